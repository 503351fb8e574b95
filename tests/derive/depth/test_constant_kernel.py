"""Scale-invariant activations: the exact polynomials against iteration in fractions of recursions written by hand."""

from fractions import Fraction

import pytest
import sympy as sp

from derive.depth import asymptotics, exponents
from derive.symbols import K, L, ell, lambda_b, lambda_W

SLOPES = {"relu": (1, 0), "leaky_relu(slope=1/10)": (1, Fraction(1, 10)), "linear": (1, 1)}


def by_hand(slopes, depth, kernel, bias, weight):
    """The theory page's section 5 at one input for s = a_+ z, a_- z, where <ss''> = 0 and d<s's'>/dK = 0.

    A_2 = <s's'>, A_4 = <s's's's'>; <ssss> = 3 A_4 K^2, <sss's'> = A_4 K; C_W A_2 = 1, so every multiplier is one.
    """
    plus, minus = map(Fraction, slopes)
    a2, a4 = (plus**2 + minus**2) / 2, (plus**4 + minus**4) / 2
    c = 1 / a2
    theta = bias + weight * kernel / c
    v = d = f = a = b = q = s = t = Fraction(0)
    for layer in range(1, depth + 1):
        yield layer, {"Theta": theta, "V": v, "D": d, "F": f, "A": a, "B": b, "Q": q, "S": s, "T": t}
        spread = 3 * a4 - a2**2
        cross = a4 - a2**2
        mean_square = weight**2 * spread * kernel**2 + 2 * weight * c * theta * kernel * cross + c**2 * theta**2 * cross
        a, d, v, f, b, q, s, t, theta = (
            a + mean_square + (weight * a2) ** 2 * v + 2 * weight * a2 * d,
            d + c * (weight * spread * kernel**2 + c * theta * kernel * cross) + weight / c * v,
            v + c**2 * spread * kernel**2,
            f + c**2 * a4 * kernel * theta,
            b + c**2 * a4 * theta**2,
            q + c * weight * a4 * kernel * theta + c * weight * a2**2 * f,
            s + c * weight * a4 * theta**2 + c * a2 * weight * a2 * b,
            t + weight**2 * a4 * kernel * theta + (weight * a2) ** 2 * f + 2 * c * a2 * weight * a2 * q,
            theta + bias + weight * a2 * kernel,
        )


def check(name, depth, step=1):
    kernel, bias, weight = Fraction(3, 2), Fraction(7, 10), Fraction(13, 10)
    values = {
        K: sp.Rational(3, 2),
        lambda_b: sp.Rational(7, 10),
        lambda_W: sp.Rational(13, 10),
        L: 1,
    }
    table = exponents(name)
    tensors = [t for t in ("Theta", "V", "D", "F", "A", "B", "Q", "S", "T") if table.tensors[t].exists]
    forms = {t: sp.Poly(asymptotics(name, t).series.subs(values), ell) for t in tensors}
    for layer, state in by_hand(SLOPES[name], depth, kernel, bias, weight):
        if layer % step == 0 or layer < 5:
            for t in tensors:
                assert forms[t].eval(layer) == sp.Rational(state[t].numerator, state[t].denominator), (t, layer)


@pytest.mark.parametrize("name", list(SLOPES))
def test_polynomials_are_exact(name):
    """Equal as fractions at the first 60 layers: for polynomials of degree four or less, that is a proof."""
    check(name, 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SLOPES))
def test_polynomials_at_great_depth(name):
    check(name, 100000, step=50000)


@pytest.mark.parametrize("name", list(SLOPES))
def test_what_vanishes(name):
    """G1, H1 and P are zero: <ss> is linear in K, <s's'> does not depend on it, and <ss''> vanishes."""
    table = exponents(name)
    for t in ("G1", "H1", "P"):
        assert table.tensors[t].exists and table.tensors[t].coefficient == 0 and table.tensors[t].exponent is None


def test_rates_that_are_no_polynomials_give_series():
    """lambda_b ~ l^(-1/2): Theta is a generalized harmonic number; its Euler-Maclaurin series by mpmath's zeta."""
    import mpmath

    found = asymptotics("relu", "Theta", order=4, learning_rates="power(1/2,0)", lambda_b=1, lambda_W=0)
    with mpmath.workdps(30):
        layer = 2000
        exact = mpmath.nsum(lambda k: mpmath.mpf(k) ** -0.5, [1, layer], method="d")
        constant = mpmath.zeta(mpmath.mpf(1) / 2)
        assert abs(found.at(layer, digits=25, c_Theta=str(constant)) - exact) < 1e-13
