"""The series in K: typed expectations, and numbers at small K with the right power of the remainder."""

import mpmath as mp
import pytest
import sympy as sp
from gaussian_reference import one_label

from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian import Bracket, Sigma, exact, parse_bracket, series
from derive.symbols import K

s1, s2, s3 = sp.symbols("sigma_1 sigma_2 sigma_3", real=True)


def test_generic_activation():
    """<sigma sigma> = sigma_1^2 K + (sigma_1 sigma_3 + 3/4 sigma_2^2) K^2 for sigma_0 = 0; <sigma' sigma'> likewise."""
    kernel = series(parse_bracket("s0 s0"), None, 2)
    at_zero = {sp.Symbol("sigma_0", real=True): 0}
    assert kernel.coefficient(1).subs(at_zero) == s1**2
    assert sp.expand(kernel.coefficient(2).subs(at_zero) - (s1 * s3 + sp.Rational(3, 4) * s2**2)) == 0
    slopes = series(parse_bracket("s0' s0'"), None, 1)
    assert slopes.coefficients == {0: s1**2, 1: s1 * s3 + s2**2}


@pytest.mark.equation("10.73")
def test_second_derivative_squared_starts_with_sigma_2_squared():
    assert series(parse_bracket("s0'' s0''"), None, 0).coefficients == {0: s2**2}


@pytest.mark.parametrize(
    "pattern, name, coefficients",
    [
        ("s0 s0", "tanh", {1: 1, 2: -2, 3: sp.Rational(17, 3)}),
        ("s0 s0", "sin", {1: 1, 2: -1, 3: sp.Rational(2, 3)}),
        ("s0' s0'", "sin", {0: 1, 1: -1, 2: 1}),
        ("s0", "softplus", {0: sp.log(2), 1: sp.Rational(1, 8), 2: -sp.Rational(1, 64)}),
        ("s0 s0", "relu", {1: sp.Rational(1, 2)}),
    ],
)
def test_typed(pattern, name, coefficients):
    found = series(parse_bracket(pattern), name, int(max(coefficients)))
    assert found.coefficients == coefficients


@pytest.mark.parametrize("name", ["tanh", "gelu", "arctan", "swish", "softplus", "sin", "softsign", "elu"])
@pytest.mark.parametrize("orders", [(0, 0), (1, 1), (0, 0, 1)])
def test_against_numbers_with_the_right_remainder(name, orders):
    """number - truncated series = next coefficient * K^next, up to corrections of relative size sqrt(K)."""
    bracket = Bracket(*(Sigma(0, k) for k in orders))
    short, long = series(bracket, name, 3), series(bracket, name, 5)
    with mp.workdps(50):
        kernel = mp.mpf("1e-6")
        wanted = one_label(orders, name, kernel)
        partial_sum = mp.mpf(
            short.expression().subs(K, sp.Rational("1e-6")).evalf(50)._mpf_ if short.coefficients else 0
        )
        difference = wanted - partial_sum
        following = [(p, c) for p, c in long.coefficients.items() if p > 3]
        if not following:
            assert abs(difference) < mp.mpf(10) ** -40 * abs(wanted)
            return
        power, coefficient = following[0]
        assert power >= short.remainder
        predicted = mp.mpf(coefficient.evalf(30)._mpf_) * kernel ** mp.mpf(power.evalf(30)._mpf_)
        assert abs(difference / predicted - 1) < 0.05


def test_negative_powers_from_delta_functions():
    found = series(parse_bracket("s0''"), "relu", 1)
    assert found.coefficients == {-sp.S.Half: 1 / sp.sqrt(2 * sp.pi)}
    third = series(parse_bracket("s0''' z0"), "relu", 1)  # <z delta'> = -<delta>
    assert third.coefficients == {-sp.S.Half: -1 / sp.sqrt(2 * sp.pi)}
    with pytest.raises(DivergentExpectation):
        series(parse_bracket("s0'' s0''"), "relu", 2)
    with pytest.raises(DivergentExpectation):
        series(parse_bracket("s0'' s0''"), "Max(z - 1, 0)", 2)


@pytest.mark.parametrize("name", ["gelu", "erf", "sin", "elu"])
def test_agrees_with_the_expanded_closed_form(name):
    """SymPy's own series of the closed form in sqrt(K) must have our coefficients."""
    x = sp.Symbol("x", positive=True)
    closed = exact(parse_bracket("s0 s0"), name, x**2)
    expanded = sp.series(closed, x, 0, 6).removeO()
    ours = series(parse_bracket("s0 s0"), name, 2).expression(x**2)
    difference = sp.expand(expanded - ours)
    assert all(sp.simplify(difference.coeff(x, n)) == 0 for n in range(5))


def test_high_order_is_exact():
    """Order 30 of <sin sin> = (1 - exp(-2K))/2."""
    found = series(parse_bracket("s0 s0"), "sin", 30)
    assert found.coefficient(30) == -sp.Rational(2**30, 2) / sp.factorial(30)
    assert len(series(parse_bracket("s0 s0"), "tanh", 30).coefficients) == 30


def test_bad_questions():
    with pytest.raises(DeriveError, match="one label"):
        series(parse_bracket("s0 s1"), "tanh", 2)
    with pytest.raises(DeriveError, match="whole number"):
        series(parse_bracket("s0"), "tanh", -1)
    with pytest.raises(DeriveError, match="higher order"):
        series(parse_bracket("s0"), "tanh", 2).coefficient(3)
