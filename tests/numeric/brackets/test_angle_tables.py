"""Pair brackets of kinked activations for many inputs, interpolated: against one-dimensional integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bracket_twin import functions
from scipy.special import log_ndtr, ndtr, wofz

from numeric import flow, kernel_matrices
from numeric.activations import load
from numeric.brackets import Rectangle, make_pair_plan, pair_brackets

RNG = np.random.default_rng(4)
SHRINKING = (0.0, *(9.0 * 0.5**k for k in range(23, -1, -1)))


def many(count=50, scale=1.0):
    """Inputs of different sizes; among them twins, an opposite pair, a multiple and nearly parallel ones."""
    X = RNG.normal(size=(count, 6)) * scale
    X[1], X[2], X[3], X[4] = X[0], -X[0], 2 * X[0], X[5] + 1e-7 * RNG.normal(size=6)
    return X


def half_line(edges=SHRINKING):
    """Nodes and weights on (0, 9), in panels."""
    x, w = np.polynomial.legendre.leggauss(24)
    edges = np.asarray(edges)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()


def elu_given(order, m, s):
    """<sigma^(order)(m + s y)> of elu: the Gaussian integral over either side."""
    tilted = np.exp(m + s * s / 2 + log_ndtr(-(m + s * s) / s))
    if order == 1:
        return ndtr(m / s) + tilted
    return m * ndtr(m / s) + s * np.exp(-((m / s) ** 2) / 2) / np.sqrt(2 * np.pi) + tilted - ndtr(-m / s)


def elu_pair(order, a, b, angle):
    """<sigma^(order) sigma^(order)> of elu at two deviations and an angle, an integral over the first input."""
    x, w = half_line()
    x, w = np.concatenate([x, -x]), np.tile(w * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), 2)
    z = a * x
    first = np.where(z > 0, 1.0, np.exp(np.minimum(z, 0))) if order else np.where(z > 0, z, np.expm1(np.minimum(z, 0)))
    return float(w @ (first * elu_given(order, b * np.cos(angle) * x, b * np.sin(angle))))


@pytest.fixture(scope="module")
def table():
    X = many()
    return X @ X.T / 6, make_pair_plan(functions("elu"), X @ X.T / 6, 1)


def test_many_inputs_are_interpolated_and_few_are_not(table):
    K, plan = table
    assert type(plan).__name__ == "AngleTable" and 0 < float(plan.tail) < 3e-14
    elu = functions("elu")
    for kernel, highest in ((K[:30, :30], 1), (K, 3), (np.pad(K, (0, 1)), 1)):  # few, delta functions, a zero input
        assert type(make_pair_plan(elu, kernel, highest)).__name__ == "SectorPairs"


@pytest.mark.parametrize("order", [0, 1])
def test_any_two_deviations_and_angle(table, order):
    K, plan = table
    root = np.sqrt([np.diag(K).min(), np.diag(K).max()])
    for a, b, angle in ((root[0], root[1], 0.02), (1.0, 1.3, 0.7), (root[1], 0.9, 2.1), (1.1, 1.1, 3.1)):
        pairs = Rectangle(*(jnp.asarray(v) for v in ([a * a], [b * b], [[a * b * np.cos(angle)]], [[False]])))
        found = plan.rectangle(functions("elu"), ((order, order),), pairs, False)[order, order]
        assert float(found[0, 0]) == pytest.approx(elu_pair(order, a, b, angle), rel=2e-13, abs=2e-13)


def test_equal_and_opposite_inputs(table):
    """<sigma(z)^2>, <sigma(z) sigma(-z)>, <sigma(z) sigma(2 z)>, integrals over one input; on the host as compiled."""
    K, plan = table
    x, w = half_line()
    w = w * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    z = np.sqrt(K[0, 0]) * x
    below = np.expm1(-z)
    expected = [w @ (z * z + below**2), 2 * w @ (z * below), w @ (2 * z * z + below * np.expm1(-2 * z))]
    compiled = pair_brackets(functions("elu"), jnp.asarray(K), [(0, 0), (0, 1)], plan)
    line = np.diag(K).copy()
    host = plan.rectangle(
        functions("elu"), ((0, 0), (0, 1)), Rectangle(line, line, K, np.eye(len(K), dtype=bool)), True
    )
    for found in (compiled, host):
        np.testing.assert_allclose(np.asarray(found[0, 0])[0, [1, 2, 3]], expected, rtol=1e-13)
        np.testing.assert_array_equal(found[0, 0], np.asarray(found[0, 0]).T)
    np.testing.assert_allclose(host[0, 1], compiled[0, 1], rtol=1e-12, atol=1e-13)


def test_outside_of_the_table_the_sectors_answer(table):
    """An input smaller than any it was made for."""
    _, plan = table
    a, b, angle = 0.01, 1.0, 0.5
    pairs = Rectangle(*(jnp.asarray(v) for v in ([a * a], [b * b], [[a * b * np.cos(angle)]], [[False]])))
    found = plan.rectangle(functions("elu"), ((0, 0),), pairs, False)[0, 0]
    assert float(found[0, 0]) == pytest.approx(elu_pair(0, a, b, angle), rel=1e-12)


def test_single_inputs(table):
    """<sigma^2> and <sigma'^2> of elu, integrals over one input; of one outside of the table too."""
    K, plan = table
    x, w = half_line()
    w = w * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    for variances in (np.diag(K)[:7], np.array([1.0, 1e-4])):
        z = np.sqrt(variances)[:, None] * x
        expected = {(0, 0): (z**2 + np.expm1(-z) ** 2) @ w, (1, 1): (1 + np.exp(-2 * z)) @ w}
        for kind in (np.asarray, jnp.asarray):
            found = plan.single(functions("elu"), tuple(expected), kind(variances))
            assert all(np.allclose(found[order], value, rtol=1e-13, atol=0) for order, value in expected.items())


@pytest.mark.slow
def test_a_derivative_asks_for_orders_beyond_the_table(table):
    """d/dK_ab <sigma sigma> = <sigma' sigma'>, and <sigma sigma''> is asked for besides: by sectors, for all pairs."""
    K, plan = table
    elu = functions("elu")
    move = jnp.zeros_like(jnp.asarray(K)).at[7, 9].set(1.0).at[9, 7].set(1.0)
    _, slope = jax.jvp(lambda K: pair_brackets(elu, K, [(0, 0)], plan)[0, 0], (jnp.asarray(K),), (move,))
    angle = float(np.arccos(K[7, 9] / np.sqrt(K[7, 7] * K[9, 9])))
    assert float(slope[7, 9]) == pytest.approx(elu_pair(1, K[7, 7] ** 0.5, K[9, 9] ** 0.5, angle), rel=1e-11)


def test_a_refined_table_is_another_one(table):
    K, plan = table
    finer = plan.refined()
    assert all(n > m for n, m in zip(finer.coefficients.shape[1:], plan.coefficients.shape[1:]))
    own, other = (pair_brackets(functions("elu"), jnp.asarray(K), [(0, 0)], p)[0, 0] for p in (plan, finer))
    change = float(jnp.max(jnp.abs(own - other)) / jnp.max(own))
    assert 0 < change < 1e-13


def test_kernels_of_many_inputs_are_those_of_pairs():
    """selu, whose first derivative jumps: two inputs at a time are integrated in sectors, one pair by one."""
    X = many(48)
    settings = {"C_b": 0.1, "C_W": 1.2, "lambda_b": 0.3, "lambda_W": 0.8}
    found = kernel_matrices("selu", X, 4, **settings)
    for i, j in ((0, 7), (11, 40), (0, 2), (0, 3), (46, 47)):
        f = flow("selu", X[[i, j]], 4, 64, tensors="Theta", **settings)
        assert found.K[i, j] == pytest.approx(float(f.K[0, 1]), rel=1e-12)
        assert found.Theta[i, j] == pytest.approx(float(f.Theta[0, 1]), rel=1e-12)


def sine_pair(s, angle):
    """<sigma sigma>, sigma(z) = sin(z) for z > 0 and zero below: the inner integral by Faddeeva's function."""
    x, w = half_line(np.linspace(0, 9, 101))
    m, t = s * np.cos(angle) * x, s * np.sin(angle)
    u = (m + 1j * t * t) / (t * np.sqrt(2))  # <exp(i z) 1_{z>0}> = exp(i m - t^2/2) erfc(-u) / 2
    damped = np.exp(1j * m - t * t / 2) * (1 - np.exp(-(u**2)) * wofz(1j * u) / 2)
    return float(w @ (np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * np.sin(s * x) * damped.imag))


def test_oscillating_sides_take_more_angles():
    """sin(z) above zero at a variance of 400: with the angles that elu needs the bracket was wrong in its second digit,
    and nothing said so.
    """
    sine = load("where(z < 0, 0, sin(z))").FUNCTIONS
    s, angle = 20.0, 0.05
    K = s * s * np.array([[1, np.cos(angle)], [np.cos(angle), 1]])
    plan = make_pair_plan(sine, K, 1)
    assert plan.angles > 52 and float(plan.tail) < 2e-13
    found = float(pair_brackets(sine, jnp.asarray(K), [(0, 0)], plan)[0, 0][0, 1])
    assert found == pytest.approx(sine_pair(s, angle), rel=1e-11)
