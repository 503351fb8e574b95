"""Residual layers' critical points: the defining equations, evaluated by quadrature; what there is at a skip of 1."""

import numpy as np
import pytest
import sympy as sp

import derive
from derive.errors import DeriveError


def mean(f, K):
    """<f> over N(0, K)."""
    x = np.arange(-8000, 8001) * 1e-3
    w = np.exp(-(x**2) / 2) * 1e-3 / np.sqrt(2 * np.pi)
    return float(w @ f(np.sqrt(K) * x))


def test_gelu_at_a_skip_satisfies_the_equations():
    """K = xi^2 K + C_b + C_W <s s>, xi^2 + C_W <s' s'> = 1, <s s''> = 0 at K*, none of it by our own brackets."""
    from scipy.stats import norm

    point = derive.criticality("gelu", layer="residual", skip="3/5").points[0]
    K, C_W, C_b = (float(x) for x in (point.K_star, point.C_W, point.C_b))
    s = lambda z: z * norm.cdf(z)  # noqa: E731
    ds = lambda z: norm.cdf(z) + z * norm.pdf(z)  # noqa: E731
    dds = lambda z: (2 - z**2) * norm.pdf(z)  # noqa: E731
    assert abs(0.36 * K + C_b + C_W * mean(lambda z: s(z) ** 2, K) - K) < 1e-6
    assert abs(0.36 + C_W * mean(lambda z: ds(z) ** 2, K) - 1) < 1e-6
    assert abs(mean(lambda z: s(z) * dds(z), K)) < 1e-6


def test_tanh_keeps_its_exponent_and_counts_layers_by_their_share():
    """K' = K - 2 (1 - xi^2) K^2 + ..., seen by iterating the kernel: K l -> 1 / (2 (1 - xi^2))."""
    point = derive.criticality("tanh", layer="residual", skip=0.8).points[0]
    assert sp.Rational(9, 25) == point.C_W and point.approach == (2, sp.Rational(-18, 25))
    K, nodes = 0.05, np.polynomial.hermite_e.hermegauss(40)
    for _ in range(4000):
        K = 0.64 * K + 0.36 * float(nodes[1] @ np.tanh(np.sqrt(K) * nodes[0]) ** 2) / np.sqrt(2 * np.pi)
    assert abs(K * 4000 * 2 * 0.36 - 1) < 0.03


def test_a_skip_of_one_has_none_and_says_what_happens():
    found = derive.criticality("tanh", layer="residual", skip=1)
    assert not found.points and "C_W = c/L" in str(found.reason)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "residual"}, "needs --skip"),
        ({"skip": 1}, "--skip belongs to --layer residual"),
        ({"layer": "residual", "skip": 1, "C_b": 0, "C_W": 1}, "leave --layer out"),
        ({"layer": "two-matrices"}, "not 'two-matrices'"),
        ({"layer": "residual", "skip": "nan"}, "skip|nan"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(DeriveError, match=message):
        derive.criticality("tanh", **arguments)
