"""Tensors alone in a layer with a skip: the plain network inside, a linear network outside, and how it is cut."""

import numpy as np
import pytest
import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.gaussian import Bracket
from derive.network import RESIDUAL, Component, recursion
from derive.network.definition import xi
from derive.network.functional import SHAPES
from derive.network.truncation import truncated, truncated_recursions


@pytest.mark.parametrize("name", ["F", "P"])
def test_without_a_skip_it_is_the_plain_recursion_with_all_labels(name):
    assert sp.expand(truncated(name, RESIDUAL).expression.subs(xi, 0) - recursion(name).expression) == 0


def test_without_a_skip_all_are_the_plain_recursions_of_one_input():
    for name in SHAPES:
        plain = recursion(name).single_input().equal_widths().expression
        assert sp.expand(truncated_recursions()[name].subs(xi, 0) - plain) == 0, name


def test_linear_networks_of_numbers():
    """V of z' = xi z + W z by sampling: n (E[q^2] / E[q]^2 - 1) - 2 for q = z.z/n, all by NumPy."""
    equation = truncated_recursions()["V"]
    known = {b: _linear(b) for b in equation.atoms(Bracket)} | {Component("K", 0, 0): sp.S.One}
    equation = equation.xreplace(known).subs({xi: sp.Rational(4, 5), symbols.C_W: sp.Rational(9, 25)})
    V = sp.S.Zero
    for _ in range(3):
        V = equation.xreplace({Component("V", 0, 0, 0, 0): V})
    assert abs(V - 3 * 2 * (1 - 0.8**4)) < 1e-12
    n, count, rng = 40, 40_000, np.random.default_rng(5)
    q = np.zeros(count)
    for start in range(0, count, 4000):
        z = rng.standard_normal((4000, n))
        for _ in range(3):  # W z given z is Gaussian of variance C_W z.z/n
            z = 0.8 * z + 0.6 * np.sqrt((z**2).mean(1, keepdims=True)) * rng.standard_normal((4000, n))
        q[start : start + 4000] = (z**2).mean(1)
    found = n * q.var() - 2
    error = n * np.sqrt(((q - q.mean()) ** 4).mean() - q.var() ** 2) / np.sqrt(count)
    assert abs(found - float(V)) < 4 * error + 8 / n


def _linear(bracket):
    """At K = 1 for sigma(z) = z."""
    orders = [a.order for a in bracket.args]
    if any(k > 1 for k in orders):
        return sp.S.Zero
    return sp.factorial2(orders.count(0) - 1) if orders.count(0) else sp.S.One


def test_kernels_have_no_functional():
    with pytest.raises(DeriveError, match="no functional of 'Theta'"):
        truncated("Theta", RESIDUAL)
