"""Delta functions in brackets: which expectations exist, and their values by hand."""

import mpmath as mp
import pytest
import sympy as sp

from derive.errors import DivergentExpectation
from derive.gaussian import exact, parse_bracket, value
from derive.symbols import K


def agrees(number, wanted):
    with mp.workdps(40):
        return abs(number - mp.mpf(str(sp.N(wanted, 40)))) <= mp.mpf("1e-25")


a, b, c = sp.Symbol("K_00", positive=True), sp.Symbol("K_01", real=True), sp.Symbol("K_11", positive=True)


@pytest.mark.parametrize(
    "pattern, wanted",
    [
        ("s0''", 1 / sp.sqrt(2 * sp.pi * K)),  # p(0)
        ("s0 s0''", sp.S.Zero),  # delta times a function that vanishes there
        ("s0'' z0 z0", sp.S.Zero),
        ("s0'''", sp.S.Zero),  # <delta'> = -p'(0)
        ("s0''' z0", -1 / sp.sqrt(2 * sp.pi * K)),  # z delta' = -delta
        ("s0'''' z0 z0", 2 / sp.sqrt(2 * sp.pi * K)),  # z^2 delta'' = 2 delta
        ("s0''''", -1 / (K * sp.sqrt(2 * sp.pi * K))),  # p''(0)
        ("s0 s0 s0'''", sp.S.Zero),
    ],
)
def test_relu_one_label(pattern, wanted):
    assert sp.simplify(exact(parse_bracket(pattern), "relu") - wanted) == 0
    assert agrees(value(parse_bracket(pattern), "relu", 2, 25), wanted.subs(K, 2))


@pytest.mark.parametrize(
    "pattern, wanted",
    [
        ("s0'' s1''", 1 / (2 * sp.pi * sp.sqrt(a * c - b**2))),  # joint density at the origin
        ("s0'' s1'", 1 / (2 * sp.sqrt(2 * sp.pi * a))),  # p(0) P(z_1 > 0 | z_0 = 0)
        ("s0'' s1", sp.sqrt(c - b**2 / a) / (2 * sp.pi * sp.sqrt(a))),  # p(0) E[relu | z_0 = 0]
        ("s0''' s1", -b / a / (2 * sp.sqrt(2 * sp.pi * a))),  # -p(0) (K_01/K_00) P(z_1 > 0 | z_0 = 0)
        ("s0''' s1'", -b / a / (2 * sp.pi * sp.sqrt(a * c - b**2))),
    ],
)
def test_relu_two_labels(pattern, wanted):
    closed = exact(parse_bracket(pattern), "relu")
    at = {a: sp.Rational(3, 2), b: sp.Rational(-2, 3), c: sp.Rational(4, 5)}
    assert abs((closed - wanted).xreplace(at).evalf(40)) < 1e-30
    K2 = [[at[a], at[b]], [at[b], at[c]]]
    assert agrees(value(parse_bracket(pattern), "relu", K2, 25), wanted.xreplace(at))


@pytest.mark.parametrize(
    "pattern, name, kernel",
    [
        ("s0'' s0''", "relu", 1),
        ("s0' s0''", "relu", 1),
        ("s0 s0'''", "relu", 1),
        ("s0'' s0''", "leaky_relu(slope=1/10)", 1),
        ("s0'''  s0'''", "softsign", 1),
        ("s0''' s0'''", "elu", 1),
        ("s0'' s1''", "relu", [[1, 1], [1, 1]]),
        ("s0'' s1''", "relu", [[1, -2], [-2, 4]]),
        ("s0'' s1'", "relu", [[1, 1], [1, 1]]),
        ("s0''", "relu", 0),
        ("s0'' s1'' s2''", "relu", [[1, 0, 1], [0, 1, 1], [1, 1, 2]]),
        ("s0'", "sign(z)", 0),
    ],
)
def test_divergent(pattern, name, kernel):
    for function in (exact, value):
        with pytest.raises(DivergentExpectation) as caught:
            function(parse_bracket(pattern), name, kernel)
        sentence = str(caught.value)
        assert sentence.startswith("The expectation") and sentence.endswith(".") and "z = 0" in sentence


def test_deltas_at_different_points_do_not_meet():
    """|z - 1| + |z + 1| has deltas at 1 and -1; at correlation -1 they meet, at +1 each meets itself."""
    pattern, name = parse_bracket("s0''"), "Abs(z - 1) + Abs(z + 1)"
    wanted = 2 * 2 * mp.npdf(1)
    assert abs(value(pattern, name, 1, 15) - wanted) < 1e-14
    ramp = "Max(z - 1, 0)"
    assert value(parse_bracket("s0'' s1''"), ramp, [[1, -1], [-1, 1]], 15) == 0
    with pytest.raises(DivergentExpectation):
        value(parse_bracket("s0'' s1''"), ramp, [[1, 1], [1, 1]])


def test_softsign_third_derivative():
    """sigma'' of softsign jumps by -4 at 0, so sigma''' holds -4 delta; by parts <sigma'''> = <sigma'' z>/K."""
    left = value(parse_bracket("s0'''"), "softsign", 1, 25)
    right = value(parse_bracket("s0'' z0"), "softsign", 1, 25)
    assert abs(left - right) < mp.mpf("1e-24")
    with mp.workdps(30):
        by_hand = mp.quad(lambda z: -2 / (1 + z) ** 3 * z * mp.npdf(z) * 2, [0, 1, 4, 20])
        assert abs(right - by_hand) < mp.mpf("1e-24")
