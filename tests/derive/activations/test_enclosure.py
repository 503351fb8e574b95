"""Balls of formulas contain what mpmath, at twice the digits, says the formula is."""

import random

import mpmath
import pytest
import sympy as sp

from derive.activations import BUILTIN, activation, enclosure
from derive.activations.enclosure import ball_function, constant_ball, without_cancellation
from derive.activations.parser import FUNCTIONS
from derive.errors import DeriveError
from derive.symbols import z

flint = pytest.importorskip("flint")

FORMULAS = (
    *BUILTIN,
    "sech(z)",
    "sinh(z)*cos(z)",
    "asinh(z)",
    "sqrt(1+z^2)",
    "(1+z^2)^(-3/2)",
    "(1+z^2)^(1/3)",
    "erfc(z)",
    "where(z<0,z,exp(z)-1)",
    "min(z,2*z+1)",
    "max(z,0)+abs(z-pi)",
    "log(2+sin(z))*sign(z-1)",
    "exp(z^2)*erfc(abs(z))",
)


def endpoints(ball) -> tuple[mpmath.mpf, mpmath.mpf]:
    return tuple(mpmath.mp.make_mpf(end._mpf_) for end in (ball.lower(), ball.upper()))


@pytest.mark.parametrize("formula", FORMULAS)
def test_balls_contain_the_values_of_a_formula_and_its_derivatives(formula):
    generator = random.Random(formula)
    for order in range(4):
        expression = activation(formula).derivative(order)
        ball, reference = ball_function(expression), sp.lambdify(z, expression, "mpmath")
        for _ in range(6):
            middle, radius = generator.uniform(-4, 4), generator.choice([0, 1e-6, 0.1])
            inside = middle + radius * generator.uniform(-1, 1)
            with mpmath.workdps(60):
                value = reference(mpmath.mpf(inside))
                flint.ctx.prec = 100
                low, high = endpoints(ball(flint.arb(middle, radius)))
                slack = abs(value) * mpmath.mpf(10) ** -50
                assert low - slack <= value <= high + slack
                assert radius or high - low < mpmath.mpf("1e-20") * (1 + abs(value))


def test_complex_balls_are_not_finite_where_a_branch_cut_crosses_them():
    flint.ctx.prec = 64
    for formula, place in (("atan(z)", 2j), ("asinh(z)", -3j), ("log(1+exp(z))", 3.2j), ("sqrt(1+z^2)", 1.5j)):
        function = ball_function(activation(formula).pieces[0]).complex
        square = flint.acb(flint.arb(0, 0.2), flint.arb(place.imag, 0.3))
        assert not function(square, True).is_finite()
        assert function(flint.acb(flint.arb(0, 0.2), flint.arb(0.1, 0.2)), True).is_finite()


def test_poles_are_not_finite():
    function = ball_function(activation("tanh").pieces[0]).complex
    assert not function(flint.acb(flint.arb(0, 0.1), flint.arb(1.57, 0.1)), True).is_finite()


def test_complements_keep_their_digits():
    """1 - erf(30) is 2.56e-393: the plain difference is zero to 53 bits, the ball is not."""
    flint.ctx.prec = 53
    ball = ball_function(1 - sp.erf(z))(flint.arb(30))
    with mpmath.workdps(30):
        low, high = endpoints(ball)
        assert low <= mpmath.erfc(30) <= high
        assert high - low < high * mpmath.mpf("1e-10")
    assert without_cancellation(sp.exp(z) * (1 - sp.tanh(z**2))) == 2 * sp.exp(z) / (1 + sp.exp(2 * z**2))


def test_numbers_are_enclosed():
    root = sp.Poly(z**5 - z - 1, z).real_roots()[0]
    for number in (sp.pi, sp.E, sp.sqrt(2) / 3, sp.exp(-sp.pi), root, sp.tanh(1), sp.Rational(1, 3), sp.Float("0.1")):
        flint.ctx.prec = 120
        with mpmath.workdps(60):
            low, high = endpoints(constant_ball(number))
            value = mpmath.mp.make_mpf(sp.N(number, 60)._mpf_)
            assert low <= value <= high
            assert high - low < mpmath.mpf("1e-30")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_the_whitelist_has_its_balls(name):
    """Real and complex ones, on a piece: where a function is analytic its complex ball holds its real values."""
    count, _ = FUNCTIONS[name]
    inner = {"log": "2+z^2", "ln": "2+z^2", "sqrt": "2+z^2"}.get(name, "z+1/3")
    sigma = activation(f"{name}({inner})" if count == 1 else f"{name}({inner}, 2*z)")
    flint.ctx.prec = 80
    for piece in sigma.pieces:
        real, other = ball_function(piece).real, ball_function(piece).complex
        value = sp.N(piece.subs(z, sp.Rational(7, 5)), 30)
        assert real(flint.arb(7) / 5).overlaps(flint.arb(str(value), 1e-20))
        wide = other(flint.acb(flint.arb(1.4, 1e-3), flint.arb(0, 1e-3)), True)
        assert wide.is_finite() and wide.real.contains(real(flint.arb(7) / 5))


def test_asinh_does_not_cancel():
    flint.ctx.prec = 64
    for middle in (-3000.0, 3000.0, 1.5):
        ball = flint.acb(flint.arb(middle, 1.0), flint.arb(0, 0.2))
        found = ball_function(sp.asinh(z)).complex(ball, True)
        assert found.real.rad() < 2
        for x in (middle - 0.99, middle, middle + 0.99):
            assert found.real.contains(flint.arb(x).asinh())


def test_a_missing_function_is_named():
    with pytest.raises(DeriveError, match="gamma"):
        ball_function(sp.gamma(z))


def test_without_flint_only_certificates_are_refused(monkeypatch):
    monkeypatch.setattr(enclosure, "flint", None)
    with pytest.raises(DeriveError, match="python-flint"):
        enclosure.BallFunction(z)
    assert activation("tanh(2*z)").kinks == ()
