"""Sixteen inputs, a near-duplicate and an opposite pair among them, through ten hidden layers: all tensors at 1e-8."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flow_twin import Twin

from numeric import flow

DEPTH = 11
CASES = {
    "tanh": (jnp.tanh, 0.0, 1.0),
    "erf": (jax.scipy.special.erf, 0.0, np.pi / 4),
    "sin": (jnp.sin, 0.0, 1.0),
    "gelu": (lambda z: z * jax.scipy.stats.norm.cdf(z), 0.173, 1.98),
    "swish": (lambda z: z * jax.nn.sigmoid(z), 0.055, 1.988),
    "softplus": (jax.nn.softplus, 0.05, 0.6),
}
"""Activation -> a JAX function, C_b and C_W: at or near criticality, where there is one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_all_tensors_after_ten_layers(name):
    """The error estimate, and the entries of two of the inputs against the twin's own ten layers.

    Brackets are asked for at 1e-9: V is a difference of them, and at 1e-8 softplus leaves 1.6e-8 of it.
    """
    sigma, C_b, C_W = CASES[name]
    x = np.random.default_rng(16).normal(size=(16, 8))
    x[5], x[9] = x[4] + 1e-8, -x[8]
    f = flow(name, x, depth=DEPTH, width=64, C_b=C_b, C_W=C_W, lambda_b=1, lambda_W=1, tolerance=1e-9, layers="last")
    assert len(f.names) == 15
    pair = [4, 8]
    ones = [1.0] * DEPTH
    twin = Twin(sigma, x[pair], [64] * (DEPTH - 1), [C_b] * DEPTH, [C_W] * DEPTH, ones, ones, step=0.15, radius=8.5)
    for tensor in f.names:
        full = np.asarray(f.layer(DEPTH)[tensor])
        part = full[np.ix_(*[pair] * full.ndim)]
        assert np.abs(part - twin.layers[-1][tensor]).max() < 1e-8 * np.abs(full).max(), tensor
    assert max(f.error.values()) < 1e-7  # ten times the largest difference that was seen
