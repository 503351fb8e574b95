"""Expectations of one variable as balls: kinks, steep pieces, spikes and growth, against closed forms and mpmath."""

import mpmath
import pytest
import sympy as sp

from derive.gaussian import evaluate, parse_bracket

pytest.importorskip("flint")


def check(pattern, activation, K, expected, digits=25):
    with mpmath.workdps(40):
        found = evaluate(parse_bracket(pattern), activation, K, digits)
        assert abs(found.value - expected) <= found.error + abs(expected) * mpmath.mpf(10) ** -38
        assert found.error <= abs(found.value) * mpmath.mpf(10) ** -digits


def test_kinks_with_irrational_coefficients():
    with mpmath.workdps(40):
        roots = sorted(mpmath.polyroots([1, 0, -mpmath.pi, 1], maxsteps=200, extraprec=200), key=lambda r: r.real)
        density = lambda x: mpmath.exp(-(x**2) / 2) / mpmath.sqrt(2 * mpmath.pi)  # noqa: E731
        expected = mpmath.quad(
            lambda x: abs(x**3 - mpmath.pi * x + 1) * density(x), [-20, -8, *(r.real for r in roots), 8, 20]
        )
        check("s0", "abs(z^3-pi*z+1)", 1, expected)
        assert mpmath.nstr(expected, 6) == "1.72989"


def test_steep_pieces():
    with mpmath.workdps(40):
        # sigma' = (2 c/sqrt(pi)) exp(-c^2 z^2): half a line of (4 c^2/pi) exp(-2 c^2 z^2) each
        half = lambda c: (4 * c**2 / mpmath.pi) / (2 * mpmath.sqrt(1 + 4 * mpmath.mpf(c) ** 2))  # noqa: E731
        check("s0' s0'", "where(z<0,erf(300*z),erf(600*z))", 1, half(300) + half(600))


def test_a_spike():
    with mpmath.workdps(40):
        expected = mpmath.quad(lambda x: mpmath.tanh(x) ** 2 * mpmath.npdf(x), [-25, -8, 0, 8, 25])
        expected += 1 / mpmath.sqrt(1 + 4 * mpmath.mpf(10) ** 8)
        check("s0 s0", "tanh(z)+exp(-1e8*z^2)", 1, expected)
        check("s0", "tanh(z)+exp(-1e8*z^2)", 1, 1 / mpmath.sqrt(1 + 2 * mpmath.mpf(10) ** 8))


@pytest.mark.parametrize("K", (sp.Rational(1, 10**6), 1, 50))
def test_exponential_growth(K):
    with mpmath.workdps(60):
        check("s0 s0", "exp", K, mpmath.exp(2 * mpmath.mpf(sp.Rational(K).p) / int(sp.Rational(K).q)))


def test_cancelling_growth():
    with mpmath.workdps(40):
        expected = 2 * mpmath.quad(
            lambda x: (mpmath.exp(x**2) * mpmath.erfc(x)) ** 2 * mpmath.npdf(x), [0, 0.5, 1, 2, 4, 8, 16]
        )
        check("s0 s0", "exp(z^2)*erfc(abs(z))", 1, expected, 20)


def test_a_spike_off_the_centre():
    """Far out the spike falls against tanh: the bound on the sum must not mix the growth of one with the other's."""
    with mpmath.workdps(40):
        place = mpmath.mpf(1) / 3
        width = 1 + 2 * mpmath.mpf(10) ** 6
        check("s0", "tanh(z)+exp(-1e6*(z-1/3)^2)", 1, mpmath.exp(-(10**6) * place**2 / width) / mpmath.sqrt(width))


def test_steep_inverse_functions():
    with mpmath.workdps(40):
        cuts = [-20, -8, -1, *(s * mpmath.mpf(10) ** -k for s in (-1, 1) for k in range(6)), 0, 8, 20]
        expected = mpmath.quad(lambda x: mpmath.asinh(10000 * x) ** 2 * mpmath.npdf(x), sorted(set(cuts)))
        check("s0 s0", "asinh(10000*z)", 1, expected, 20)


def test_an_interrupt_ends_an_integral():
    """FLINT's C code cannot pass an exception on: it is kept, the integrand becomes nothing, and it is raised."""
    import flint

    from derive.gaussian.balls import integral

    calls = []

    def integrand(x, analytic):
        calls.append(x)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return x.sin()

    with pytest.raises(KeyboardInterrupt):
        integral(integrand, flint.arb(0), flint.arb(100), flint.arb(10) ** -12)
    assert len(calls) == 5
