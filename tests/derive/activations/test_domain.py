"""What is a function on the whole line with Gaussian expectations, and what is refused, in bounded time."""

import math
import random
import time

import mpmath
import pytest
import sympy as sp

from derive.activations import activation
from derive.activations.features import features
from derive.activations.growth import tail
from derive.activations.parser import parse_formula
from derive.activations.pieces import identically_zero
from derive.activations.roots import Root, real_zeros
from derive.errors import FormulaError
from derive.symbols import z

REFUSED = {
    "log(sign(z))": "not a finite real number for z < 0",
    "sqrt(sign(z))*sinh(z)": "not a finite real number for z < 0",
    "1/sign(relu(z))": "not a finite real number for z < 0",
    "-max(z,z/2)/relu(2*z)": "not a finite real number for z < 0",
    "1/relu(z)": "not a finite real number for z < 0",
    "log(relu(z))": "not a finite real number for z < 0",
    "z/(sin(1)^2+cos(1)^2-1)": "which is zero",
    "z*log(sin(1)^2+cos(1)^2-1)": "not a finite real|which is zero|too large or not real",
    "sign(log(z))*z": "log",
    "sign(sin(z)^2+cos(z)^2-1)*z": "constant",
    "exp(z^2/1000)": "for every K",
    "exp(z^2*sin(z))": "for every K",
    "exp(z^2-300*z)": "for every K",
    "z*exp(z^2/2)*sin(z)": "for every K",
    "exp(abs(z)^(5/2))": "slower than every Gaussian|not a smooth",
    "1/(exp(z)-3*z)": "pole",
    "1/(sin(z)+cos(z)+1.4)": "pole",
    "1/(sin(z)+sin(sqrt(2)*z)+1.99)": "pole|keep away",
    "abs(sin(z))": "isolated",
    "abs(exp(z)-e*z)": "told apart",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_in_one_sentence_and_in_time(text):
    start = time.process_time()
    with pytest.raises(FormulaError, match=REFUSED[text]) as caught:
        activation(text)
    assert "\n" not in str(caught.value)
    assert time.process_time() - start < 10


ACCEPTED = (
    "1/(sin(z)+cos(z)+1.5)",
    "1/(exp(z)-z)",
    "1/(exp(z)-2.7*z)",
    "exp(z^2)*erfc(abs(z))",
    "exp(-exp(-z))",
    "exp(-z^2*(2+sin(z)))",
    "1/(2+sin(z)+0.9*sin(sqrt(2)*z))",
    "log(2+sin(z^2))",
    "exp(z*tanh(z))",
    "z^3*tanh(z)",
    "1/(z^2-300*z+1e6)",
)


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted_in_time(text):
    start = time.process_time()
    assert activation(text).pieces
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", (*ACCEPTED, "softplus(z)^4", "mish", "gelu", "z*sqrt(1+z^2)", "asinh(exp(z))"))
def test_bounds_on_the_tails_hold(text):
    """Against values with enough digits at places from 8 to 40, on both sides."""
    generator = random.Random(text)
    pieces = activation(text).pieces
    for side, piece in ((-1, pieces[0]), (1, pieces[-1])):
        found = tail(piece, side, 8.0)
        function = sp.lambdify(z, piece, "mpmath")
        for _ in range(12):
            x = 8 * 5 ** generator.uniform(0, 1)
            with mpmath.workdps(int(x * x) + 60):
                value = function(mpmath.mpf(side * x))
                size = mpmath.log(abs(value)) if value else -mpmath.inf
                assert found.sign in (0, int(mpmath.sign(value)))
                assert found.above is None or size <= found.above.at(x) + 1e-9 * (1 + abs(found.above.at(x)))
                assert found.below is None or size >= found.below.at(x) - 1e-9 * (1 + abs(found.below.at(x)))


def test_zeros_against_mpmath():
    for text, near in {
        "z^3-pi*z+1": (-1.9, 0.3, 1.6),
        "z-cos(z)": (0.7,),
        "exp(z)-3*z": (0.6, 1.5),
        "sin(z)+z/10": (-5.7, -3.5, 0, 3.5, 5.7),
        "z^5-z-1+tanh(z)": (1.0,),
    }.items():
        expression = parse_formula(text)
        function = sp.lambdify(z, expression, "mpmath")
        found = real_zeros(expression)
        assert len(found) == len(near)
        with mpmath.workdps(60):
            for zero, start in zip(found, near):
                expected = mpmath.findroot(function, start)
                assert abs(mpmath.mpf(str(zero.evalf(50))) - expected) < mpmath.mpf("1e-48")


def test_a_root_is_a_number_with_an_enclosure_of_any_width():
    pytest.importorskip("flint")
    root = real_zeros(z**3 - sp.pi * z + 1)[1]
    assert isinstance(root, Root)
    assert 0 < root < 1
    assert hash(root) == hash(real_zeros(z**3 - sp.pi * z + 1)[1])
    low, high = root.enclose(200)
    with mpmath.workdps(90):
        expected = mpmath.findroot(lambda x: x**3 - mpmath.pi * x + 1, 0.33)
        assert mpmath.mpf(int(low.p)) / int(low.q) < expected < mpmath.mpf(int(high.p)) / int(high.q)
    assert high - low < sp.Rational(1, 2**190)


def test_kinks_with_irrational_coefficients_are_kinks_without_jumps():
    found = activation("abs(z^3-pi*z+1)")
    assert len(found.kinks) == 3
    assert found.first_delta_order == 2
    middle = found.kinks[1]
    with mpmath.workdps(30):
        assert math.isclose(float(found.jump(1, middle)), 2 * abs(3 * float(middle) ** 2 - math.pi), rel_tol=1e-12)


def test_steep_pieces_are_not_merged():
    found = activation("where(z<0,erf(300*z),erf(600*z))")
    assert found.kinks == (0,)
    assert not identically_zero(sp.erf(300 * z) - sp.erf(600 * z))
    assert identically_zero(sp.sin(z) ** 2 + sp.cos(z) ** 2 - 1)
    assert activation("where(z<0,sin(2*z),2*sin(z)*cos(z))").kinks == ()


@pytest.mark.parametrize("text", ("tanh(z)+exp(-1e8*z^2)", "tanh(z)+exp(-1e10*(z-3)^2)", "z+1e-3/(1e-8+(z-1)^2)"))
def test_narrow_spikes_are_seen_by_parity_and_by_features(text):
    found = activation(text)
    assert not found.is_odd
    assert max(rate for piece in found.pieces for _, rate in features(piece)) >= 1e4
