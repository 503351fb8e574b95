"""Recommended hyperparameters and the size of 1/n corrections, against printed results."""

import math

import pytest
import sympy as sp

from derive.design.recommendation import corrections, hyperparameters
from derive.errors import DeriveError


@pytest.mark.equation("10.74")
@pytest.mark.equation("infinity.29")
def test_equivalence_rates_of_a_non_odd_activation():
    """lambda_b l^(-p) L^(p-1), lambda_W (L/l)^(p-1), with p_perp = 9/13 for sigma_1, sigma_2, sigma_3 = 1, 4/5, -1."""
    p, depth = 9 / 13, 7
    found = hyperparameters("sin(z)+4/5*(1-cos(z))", depth, bias_rate=0.3, weight_rate=2.0)
    for layer in range(1, depth + 1):
        assert math.isclose(found.lambda_b[layer - 1], 0.3 * layer**-p * depth ** (p - 1), rel_tol=1e-12)
        assert math.isclose(found.lambda_W[layer - 1], 2.0 * (depth / layer) ** (p - 1), rel_tol=1e-12)
    assert (found.C_b, found.C_W) == (0.0, 1.0)


@pytest.mark.equation("infinity.45")
def test_equivalence_rates_of_relu():
    found = hyperparameters("relu", 5)
    assert found.lambda_b == found.lambda_W == (0.2,) * 5
    assert found.C_W == 2.0


@pytest.mark.equation("infinity.169")
@pytest.mark.equation("infinity.170")
def test_corrections_of_tanh_grow_as_depth_over_width():
    """(infinity.34)-(infinity.37) with a_1 = -2 and lambda_b = lambda_W = 1; ratios in units of L/n."""
    found = corrections("tanh", 20).times_width
    half = sp.Rational(1, 2)
    printed = {
        "R K/(n Theta^3)": -sp.Rational(1, 48) * (3 + 4 * half) / (1 + half) * 20,
        "S K/(n Theta^3)": sp.Rational(1, 12) * half / (1 + half) * 20,
        "T K/(n Theta^3)": sp.Rational(1, 32) / (1 + half) ** 2 * 20,
        "U K/(n Theta^3)": half / 20,
    }
    for name, value in printed.items():
        assert math.isclose(found[name], float(value), rel_tol=1e-12), name
    assert corrections("tanh", 20).width_for(0.1) == math.ceil(2 / 3 * 20 / 0.1)  # V/(n K^2) = (2/3) L/n


def test_bad_questions():
    with pytest.raises(DeriveError, match="no critical"):
        hyperparameters("softplus", 3)
    with pytest.raises(DeriveError, match="whole number"):
        hyperparameters("tanh", 0)
    with pytest.raises(DeriveError, match="positive"):
        corrections("tanh", 3).width_for(0)
