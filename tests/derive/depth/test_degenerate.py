"""Cases where the leading term vanishes: the true next one must come out, checked by iteration."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

from derive.activations import activation
from derive.depth import asymptotics, exponents
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import network_equations
from derive.depth.exponent_table import problem, solution
from derive.depth.fit import match_constants
from derive.depth.iterate import Real, iterate
from derive.errors import DeriveError
from derive.symbols import ell, lambda_W


def text(number):
    return np.format_float_scientific(number, precision=20, unique=False)


def compare(name, tensors, rates, bias, weight, depth, corrections, accuracy, start="0.3", powers=(1, 0), C_W=1):
    """Fit the constants at `depth`, compare at half of it."""
    wanted = {n: e for n, e in network_equations().items() if n in tensors}
    b, w = (lambda layer, v=v, p=p: Real(v) * Real(layer) ** Real(-p) for v, p in zip((bias, weight), powers))
    found = iterate(
        activation(name),
        wanted,
        {"K": start, "Theta": "1"},
        {"C_b": 0, "C_W": C_W},
        (b, w),
        [depth // 2, depth],
    )
    task = problem(name, rates, 0, bias, weight)
    system = solution(task).system(corrections)
    constants = match_constants(system, depth, {t: text(found[depth][t]) for t in tensors})
    for tensor in tensors:
        series = system.solve(tensor).evaluate(depth // 2, constants)
        assert abs(series / mpmath.mpf(text(found[depth // 2][tensor])) - 1) < accuracy.get(tensor, 1e-7), tensor


def test_no_bias_learning_rate():
    """lambda_b = 0 and odd sigma: D, A, Q, T lose their leading term; what is left has logarithms."""
    table = exponents("tanh", lambda_b=0)
    assert table.tensors["D"].leading == -lambda_W * sp.log(ell) / (16 * ell)
    assert table.tensors["A"].log_power == 2 and table.tensors["A"].exponent == 1
    assert table.tensors["T"].log_power == 2 and table.tensors["T"].exponent == 0
    assert table.tensors["S"].coefficient == lambda_W**3 / 48
    compare(
        "tanh", ("K", "Theta", "V", "D", "F", "A", "Q"), "equivalence", "0", "1.25", 4000, 4, {"A": 1e-5, "V": 1e-9}
    )


def test_vanishing_cubic_coefficient():
    """sigma = z - z^5: a_1 = 0, K ~ l^(-1/2), p_perp = 1/2; found, and followed by the iteration."""
    table = exponents("z-z**5")
    assert table.tensors["K"].exponent == sp.Rational(1, 2) and table.p_perp == sp.Rational(1, 2)
    assert table.tensors["K"].coefficient == sp.sqrt(15) / 30
    assert table.tensors["V"].exponent == 0
    compare(
        "z-z**5",
        ("K", "Theta", "V", "B"),
        "equivalence",
        "0.5",
        "1.25",
        4000,
        3,
        {"K": 1e-9},
        "0.1",
        (Fraction(1, 2), 0),
    )


def test_irrational_exponents():
    """sigma = erf(z) + z^2/5: (sigma_2/sigma_1)^2 = pi/25, so that p_perp is irrational, and kept exactly."""
    name = "erf(z)+z**2/5"
    table = exponents(name)
    p_perp = (-2 + sp.pi / 25) / (-2 + 3 * sp.pi / 100)
    assert sp.simplify(table.p_perp - p_perp) == 0
    theta = table.tensors["Theta"]
    assert sp.simplify(theta.exponent - (p_perp - 1)) == 0
    power = float(p_perp)
    weight = str(sp.N(sp.pi / 4, 25))
    compare(name, ("K", "Theta", "B"), "equivalence", "0.5", "1.25", 3000, 3, {}, "0.2", (power, power - 1), C_W=weight)


def test_odd_limit_of_generic_coefficients():
    """sigma_2 = 0 in the generic formulas gives the odd ones (D, A, Q, T change form there)."""
    sigma_2 = sp.Symbol("sigma_2", real=True)
    general, odd = exponents("generic"), exponents("generic odd")
    for tensor in ("K", "Theta", "V", "F", "D", "A", "B", "P", "Q", "R", "S", "T"):
        found = general.tensors[tensor].coefficient.subs(sigma_2, 0)
        found = found.subs(sp.Symbol("p_perp", real=True), 1)
        assert sp.simplify(found - odd.tensors[tensor].coefficient) == 0, tensor
    assert general.tensors["U"].coefficient.subs(sigma_2, 0) == 0  # and U falls by one power of l


def test_exponential_growth_is_said():
    """a_1 = 0 with sigma_2 != 0: prod chi_perp grows as exp(c sqrt(l)); K has a power law, the NTK has none."""
    name = "z+z**2-z**3/2-z**4/6"
    assert asymptotics(name, "K").exponent == sp.Rational(1, 2)
    with pytest.raises(NoApproach, match="equivalence principle"):
        exponents(name)
    table = exponents(name, learning_rates="constant")
    assert not table.tensors["Theta"].exists and "exponentially" in table.tensors["Theta"].reason
    assert table.tensors["V"].exists


def test_refusals_are_sentences():
    for call in (
        lambda: exponents("sigmoid"),
        lambda: exponents("tanh", point=3),
        lambda: exponents("tanh", learning_rates="fast"),
        lambda: exponents("tanh", lambda_b="x"),
        lambda: exponents("tanh", lambda_b=-1),
        lambda: asymptotics("tanh", "X"),
        lambda: asymptotics("tanh", "R", order=0),
        lambda: exponents("tanh", plateau=True),
        lambda: exponents("sinh"),
    ):
        with pytest.raises(DeriveError) as error:
            call()
        assert "\n" not in str(error.value) and len(str(error.value)) > 20
