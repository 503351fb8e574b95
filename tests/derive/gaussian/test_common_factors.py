"""Two, three and four correlated labels in balls, against rules that share no code: NumPy's trapezoids, orthant rules,
closed forms."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

pytest.importorskip("flint")

from derive.certificates import bracket_ball
from derive.certificates.outward import ends
from derive.gaussian import Bracket, Sigma, evaluate, parse_bracket
from derive.gaussian.balls import precision
from derive.gaussian.loadings import choose, loadings

R = sp.Rational
POSITIVE = np.array([[1, 0.5, 0.25, 0.25], [0.5, 1, 0.375, 0.125], [0.25, 0.375, 2, 0.125], [0.25, 0.125, 0.125, 1]])
MIXED = np.array([[1, 0.5, -0.25, 0.25], [0.5, 1, 0.375, -0.25], [-0.25, 0.375, 1, 0.125], [0.25, -0.25, 0.125, 1]])
ORTHANTS = [
    row
    for row in json.loads((Path(__file__).parents[2] / "data" / "brackets" / "quadruples.json").read_text())
    if len(set(row[2])) > 2
]


def exact(K):
    return sp.Matrix([[R(float(x)) for x in row] for row in K])


def trapezoid(functions, K, h=0.26):
    """E of the product by the trapezoidal rule in the four variables of Cholesky's factor."""
    L = np.linalg.cholesky(K)
    y = np.arange(-int(8.5 / h), int(8.5 / h) + 1) * h
    w = h * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
    f, g, p, q = functions
    total = 0.0
    for yi, wi in zip(y, w):
        second = g(L[1, 0] * yi + L[1, 1] * y) * w
        third = p(L[2, 0] * yi + L[2, 1] * y[:, None] + L[2, 2] * y) * w
        rest = L[3, 0] * yi + L[3, 1] * y[:, None, None] + L[3, 2] * y[:, None] + L[3, 3] * y
        total += wi * f(L[0, 0] * yi) * np.einsum("a,ab,ab", second, third, q(rest) @ w)
    return total


@pytest.mark.parametrize("K", (POSITIVE, MIXED), ids=("positive", "mixed"))
def test_covariances_are_taken_apart(K):
    with precision(120):
        matrix = exact(K)
        choice = choose(sp.ImmutableDenseMatrix(matrix))
        found = loadings(matrix, choice)
        for a in range(4):
            for b in range(4):
                entry = sum(x * y for x, y in zip(found.rows[a], found.rows[b]))
                if a == b:
                    entry += found.own[a]
                elif {a, b} == set(choice.paired):
                    entry += found.correlation * (found.own[a] * found.own[b]).sqrt()
                assert entry.contains(float(K[a, b])) and entry.rad() < 1e-30


def test_four_labels_to_fifteen_digits():
    found = evaluate(parse_bracket("s0 s1 s2 s3"), "tanh", exact(POSITIVE), 15)
    expected = trapezoid([np.tanh] * 4, POSITIVE)
    assert abs(float(found.value) - expected) < 1e-14
    assert float(found.error) < 1e-15 * float(found.value)


def test_three_labels_with_derivatives():
    """<s0 s1' s2' z2>: the third function times z, the fourth label absent."""
    found = bracket_ball(parse_bracket("s0 s1' s2' z2"), "tanh", exact(MIXED[:3, :3]), 14)
    functions = [np.tanh, lambda x: 1 - np.tanh(x) ** 2, lambda x: x * (1 - np.tanh(x) ** 2), np.ones_like]
    low, high = map(float, ends(found))
    assert low - 1e-14 <= trapezoid(functions, MIXED) <= high + 1e-14
    assert high - low < 1e-14


def test_kinks_of_four_labels():
    """Equal correlations: given one common variable, relu's mean is x Phi(x/s) + s phi(x/s)."""
    K = np.full((4, 4), 0.25) + 0.75 * np.eye(4)
    ball = bracket_ball(parse_bracket("s0 s1 s2 s3"), "relu", exact(K), 15, closed_forms=False)
    erf = np.vectorize(lambda x: float(sp.erf(x).evalf(20)))
    w = np.arange(-180, 181) / 20
    x, s = w / 2, np.sqrt(0.75)
    mean = x * (1 + erf(x / s / np.sqrt(2))) / 2 + s * np.exp(-(x**2) / (2 * s**2)) / np.sqrt(2 * np.pi)
    expected = float(np.sum(mean**4 * np.exp(-(w**2) / 2)) / 20 / np.sqrt(2 * np.pi))
    low, high = map(float, ends(ball))
    assert low - 1e-15 <= expected <= high + 1e-15
    assert high - low < 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("row", ORTHANTS[::7], ids=lambda row: f"{row[0]} {row[1][0][0]:g} {row[2]} {row[3]}")
def test_orthant_rules_lie_inside(row):
    """Three and four inputs, kinks and K from 1e-8 to 1000, correlations of both signs."""
    name, K, labels, orders, value, error = row
    keep = sorted(set(labels))
    matrix = exact(np.array(K)[np.ix_(keep, keep)])
    ball = bracket_ball(Bracket(*map(Sigma, labels, orders)), name, matrix, 9, closed_forms=False)
    low, high = ends(ball)
    slack = 3 * Fraction(error) + abs(Fraction(value)) / 10**15
    assert low - slack <= Fraction(value) <= high + slack
    assert high - low <= abs(Fraction(value)) / 10**8
