"""A step a hundred times sharper than the inputs' spread: coarse rules must not agree on having missed it."""

from dataclasses import replace

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from numeric.activations import load
from numeric.brackets import Calculus, make_pair_plan, pair_brackets

SHARPNESS = 100
STEP = mpmath.mpf(SHARPNESS) / mpmath.sqrt(mpmath.pi)
SIGMA = {
    0: lambda z: z * (1 + mpmath.erf(SHARPNESS * z)) / 2,
    1: lambda z: (1 + mpmath.erf(SHARPNESS * z)) / 2 + z * STEP * mpmath.exp(-((SHARPNESS * z) ** 2)),
    2: lambda z: 2 * STEP * (1 - (SHARPNESS * z) ** 2) * mpmath.exp(-((SHARPNESS * z) ** 2)),
}
PLACES = [-9, -1, -0.1, -0.04, -0.02, 0, 0.02, 0.04, 0.1, 1, 9]


@pytest.mark.parametrize("closed", [True, False])
def test_one_input(closed):
    f = load(f"z*(1+erf({SHARPNESS}*z))/2").FUNCTIONS
    f = f if closed else replace(f, calculus=Calculus())
    orders = [(0, 0), (1, 1), (0, 2), (2, 2)]
    K = np.array([[1.0]])
    out = pair_brackets(f, jnp.asarray(K), orders, make_pair_plan(f, K, 2))
    for j, k in orders:
        exact = mpmath.quad(lambda z, j=j, k=k: SIGMA[j](z) * SIGMA[k](z) * mpmath.npdf(z), PLACES)
        assert float(out[j, k][0, 0]) == pytest.approx(float(exact), rel=1e-11)
