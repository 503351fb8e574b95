"""Two inputs, tight tolerances: every four-point bracket is then a two-dimensional integral, done here by a product
rule that shares nothing with the engine. At tolerance 1e-10 the engine once gave 3816 for <1113> instead of -0.3."""

import jax.numpy as jnp
import numpy as np
import pytest
from bracket_twin import functions

from numeric.brackets import PATTERNS, make_quadruple_plan, quadruple_brackets

X = np.array([[1.0, 0.2], [-0.3, 0.9]])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)


def kernel_of_second_layer():
    """K of the second layer of tanh with C_b = 0.1, C_W = 1.3, by the same product rule."""
    first = 0.1 + 1.3 * X @ X.T / 2
    second = rule(first, lambda z: [np.tanh(z[0]) ** 2, np.tanh(z[0]) * np.tanh(z[1]), np.tanh(z[1]) ** 2])
    return 0.1 + 1.3 * np.array([[second[0], second[1]], [second[1], second[2]]])


def rule(K, integrand):
    root = np.linalg.cholesky(K)
    w = np.outer(WEIGHTS, WEIGHTS) / WEIGHTS.sum() ** 2
    x, y = np.meshgrid(NODES, NODES, indexing="ij")
    z = [root[0, 0] * x, root[1, 0] * x + root[1, 1] * y]
    return [float((w * f).sum()) for f in integrand(z)]


def derivatives(z):
    t = np.tanh(z)
    d1 = 1 - t**2
    return [t, d1, -2 * t * d1, d1 * (6 * t**2 - 2)]


@pytest.mark.parametrize("tolerance", [1e-8, 1e-10])
def test_tanh_at_two_inputs(tolerance):
    f, K = functions("tanh"), kernel_of_second_layer()
    plan = make_quadruple_plan(f, K, tolerance=tolerance)
    found = quadruple_brackets(f, jnp.asarray(K), plan, PATTERNS)
    labels = [(0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 1, 1), (0, 0, 0, 1)]
    for pattern in PATTERNS:
        orders = [int(order) for order in pattern]
        expected = rule(
            K,
            lambda z, orders=orders: [
                np.prod([derivatives(z[a])[k] for a, k in zip(l, orders)], axis=0) for l in labels
            ],
        )
        scale = float(jnp.max(jnp.abs(found[pattern])))
        assert scale < 10
        for place, value in zip(labels, expected):
            assert abs(float(found[pattern][place]) - value) < 1e-7 * scale, (pattern, place)
