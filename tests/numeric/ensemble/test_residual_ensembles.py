"""Ensembles of residual networks: their outputs and NTK by hand and by automatic differentiation; refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.ensemble import Networks
from numeric.errors import NumericError

X = np.array([[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3]])
OWN = {"C_b": 0.1, "C_W": [1.2, 0.8, 0.7, 1.1], "lambda_b": 0.2, "lambda_W": [0.6, 0.5, 0.4, 0.8]}
NETWORKS = Networks("tanh", (3, 5, 5, 5, 2), **OWN, skip=[0.7, -0.4])


def test_outputs_and_ntk():
    params = NETWORKS.sample(jax.random.key(0), 3)
    (W1, b1), (W2, b2), (W3, b3), (W4, b4) = (tuple(np.asarray(p[1]) for p in layer) for layer in params)
    z = W1 @ X.T + b1[:, None]
    z = 0.7 * z + W2 @ np.tanh(z) + b2[:, None]
    z = -0.4 * z + W3 @ np.tanh(z) + b3[:, None]
    expected = W4 @ np.tanh(z) + b4[:, None]
    assert np.abs(np.asarray(NETWORKS.outputs(params, jnp.asarray(X)))[1] - expected).max() < 1e-14
    slopes = jax.vmap(jax.jacrev(NETWORKS.output_one), in_axes=(0, None))(params, jnp.asarray(X))
    ntk = np.zeros((3, 2, 2, 2, 2))
    for (weight, bias), (rate_w, rate_b) in zip(slopes, NETWORKS.rates(), strict=True):
        ntk += rate_w * np.einsum("ciamn,cjbmn->cijab", weight, weight)
        ntk += rate_b * np.einsum("ciam,cjbm->cijab", bias, bias)
    assert np.abs(np.asarray(NETWORKS.ntk(params, jnp.asarray(X))) - ntk).max() < 1e-13


def test_networks_of_a_residual_flow_have_its_skips():
    f = flow("tanh", X, depth=4, width=5, tensors=["K", "Theta"], **OWN, skip=[0.7, -0.4])
    assert Networks.of_flow(f, 2) == replace(NETWORKS, activation=f.activation)
    assert Networks("tanh", (3, 5, 5, 5, 2), **OWN) == Networks("tanh", (3, 5, 5, 5, 2), **OWN, skip=0.0)


def test_refusals():
    with pytest.raises(NumericError, match="equal width"):
        Networks("tanh", (3, 5, 6, 2), C_b=0.1, C_W=1.0, lambda_b=0.1, lambda_W=1.0, skip=1.0)
    with pytest.raises(NumericError, match="no default for C_b"):
        Networks("tanh", (3, 5, 5, 2), skip=1.0)
