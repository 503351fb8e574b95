"""Moments read from a table, two labels in their plane, layers with fewer nodes: against sums that share no code."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from numeric.activations import load
from numeric.brackets import arrangements, make_quadruple_plan, sorted_quadruples
from numeric.brackets.series.chebyshev import Table, Tabulated, choose_table, polynomials

PATTERNS = ((0, 0, 0, 0), (0, 0, 1, 1))
SLOPES = {
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "softplus": (lambda z: np.logaddexp(0, z), lambda z: 1 / (1 + np.exp(-z))),
}


@pytest.mark.parametrize("count", [16, 48, 112, 256])
def test_polynomials_are_those_of_chebyshev(count):
    t = np.random.default_rng(0).uniform(-1, 1, size=(3, 50))
    exact = np.moveaxis(np.polynomial.chebyshev.chebvander(t, count - 1), -1, 1)
    (every,) = polynomials(t, count, (None,))
    even, odd = polynomials(t, count, (0, 1))
    np.testing.assert_allclose(every, np.concatenate([exact[:, ::2], exact[:, 1::2]], 1), atol=3e-14 * count / 16)
    np.testing.assert_allclose(even, exact[:, ::2], atol=3e-14 * count / 16)
    np.testing.assert_allclose(odd, exact[:, 1::2], atol=3e-14 * count / 16)


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("tolerance", [1e-6, 1e-9])
def test_moments_of_a_table_are_the_integrals(name, tolerance):
    functions, radius, variance = load(name).FUNCTIONS, 6.5, 1.3
    terms, grain = choose_table(functions, (0, 1), 8, variance, radius, 0.2, tolerance)
    assert terms
    size, s = np.sqrt(np.array([variance, 0.7, 0.0])), np.array([0.4, 0.8, 0.0])
    y = 0.2 * (np.arange(-45, 45) + 0.5)
    table = Table(terms, np.float64(radius), np.float64(grain))
    means = np.linspace(-3, 3, 9) * size[:, None]
    found = Tabulated(functions, table, range(2), 8, size, s, y, np.float64(0.2)).at(means)
    x = np.linspace(-12, 12, 4001)  # a sum of its own
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    h = [np.ones_like(x), x, (x**2 - 1) / np.sqrt(2), (x**3 - 3 * x) / np.sqrt(6)]
    z = means[:, :, None] + s[:, None, None] * x
    for k in (0, 1):
        for n in range(4):
            exact = (SLOPES[name][k](z) * h[n] * weight).sum(axis=-1)
            np.testing.assert_allclose(found[k][n], exact, atol=3 * tolerance)


def test_sharp_features_have_no_table():
    smooth = load("tanh").FUNCTIONS
    spiked = replace(smooth, features=((1.0, 100.0),))
    assert choose_table(smooth, (0, 1), 8, 1.0, 6.5, 0.2, 1e-6)[0] > 0
    assert choose_table(spiked, (0, 1), 8, 1.0, 6.5, 0.2, 1e-6)[0] == 0


def test_two_labels_in_their_plane_and_fewer_nodes():
    """Quadruples of two labels, each twice, and those of a smaller kernel, against a plain sum over a fine grid."""
    functions = load("tanh").FUNCTIONS
    big = np.array([[4.0, 1.5], [1.5, 3.0]])
    kernels = np.stack([big, 0.1 * big])
    plan = make_quadruple_plan(functions, kernels, PATTERNS, 1e-8)
    coarse = plan.at(functions, PATTERNS, 0.4)
    assert any(bucket.n == 0 for bucket in plan.buckets)
    assert any((b.nodes[:, 2] == 0).all(axis=1).any() for b in coarse.buckets)
    row = next(i for i, q in enumerate(sorted_quadruples(2)) if tuple(q) == (0, 0, 1, 1))
    column = arrangements(PATTERNS).index((0, 1, 0, 1))
    x = np.linspace(-9, 9, 1201)
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    for K, own in zip(kernels, (plan, coarse)):
        low = np.linalg.cholesky(K)
        a, b = low[0, 0] * x[:, None], low[1, 0] * x[:, None] + low[1, 1] * x[None, :]
        exact = np.sum(weight[:, None] * weight * np.tanh(a) / np.cosh(a) ** 2 * np.tanh(b) / np.cosh(b) ** 2)
        found = jax.tree_util.tree_map(np.asarray, own).unique(functions, arrangements(PATTERNS), K)
        assert abs(found[row, column] - exact) < 1e-9 * np.abs(found).max()
