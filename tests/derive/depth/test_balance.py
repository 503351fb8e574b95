"""The solver against two published answers (Somos, Finch), exact solutions, and iteration."""

from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from derive.depth.balance import NoApproach, solve_flow, solve_linear
from derive.depth.field import Field
from derive.depth.series import DepthRing
from derive.symbols import ell

LOG = sp.log(ell)


def test_somos():
    """x' = x - x^2: y = 1/x through n^-2, as printed on the theory page."""
    ring = DepthRing(Field.containing([]), ["c"])
    x = solve_flow(ring, {1: -1}, order=5, constant="c")
    y = x.power(Fraction(-1), 1)
    c, log = sp.Symbol("c", real=True), LOG
    expected = (
        ell
        + (c + log)
        + (c - sp.Rational(1, 2) + log) / ell
        + (sp.Rational(1, 6) * (-5 + 9 * c - 3 * c**2) + (sp.Rational(3, 2) - c) * log - log**2 / 2) / ell**2
    )
    assert y.order == 3
    assert sp.expand(y.to_sympy() - expected) == 0


def test_somos_constant_from_iteration():
    """The constant of x_0 = 1/2, known as 1.767993786, comes out of iterating to n = 20000 and solving for c."""
    ring = DepthRing(Field.containing([]), ["c"])
    x = solve_flow(ring, {1: -1}, order=6, constant="c")
    with mpmath.workdps(30):
        value = mpmath.mpf(1) / 2
        n = 20000
        for _ in range(n):
            value -= value**2
        fitted = mpmath.findroot(lambda c: x.evaluate(n, {"c": c}) / value - 1, 1.7)
    assert abs(fitted - 1.767993786) < 1e-9


def test_finch():
    """x' = x - a x^3 + b x^4 + d x^5 with symbolic a, b, d; kappa stands for (2a)^(-1/2)."""
    kappa, a, b, d = sp.symbols("kappa a b d", positive=True)
    a_of_kappa = 1 / (2 * kappa**2)
    ring = DepthRing(Field.containing([kappa, b, d]), ["C"])
    x = solve_flow(ring, {2: -a_of_kappa, 3: b, 4: d}, order=2, constant="C", scale=kappa)
    series = x.to_sympy().subs(kappa, (2 * a) ** sp.Rational(-1, 2))
    log_term = (-3 * a**3 + 2 * b**2 + 2 * a * d) / (8 * sp.sqrt(2) * a ** sp.Rational(7, 2))
    expected = (2 * a * ell) ** sp.Rational(-1, 2) + b / (2 * a**2 * ell) + log_term * LOG / ell ** sp.Rational(3, 2)
    difference = sp.simplify(sp.expand(series - expected) * ell ** sp.Rational(3, 2))
    assert not difference.has(LOG) and not difference.has(ell)
    assert difference.has(sp.Symbol("C", real=True))


@pytest.mark.parametrize("start", [mpmath.mpf("0.2"), mpmath.mpf("0.35")])
def test_finch_numerically(start):
    """With numbers, the series with one fitted constant follows the iterated recursion to the next order."""
    ring = DepthRing(Field.containing([sp.sqrt(2)]), ["C"])
    x = solve_flow(ring, {2: sp.Rational(-1), 3: sp.Rational(1, 2), 4: sp.Rational(1, 3)}, order=4, constant="C")
    with mpmath.workdps(30):
        value, seen = start, {}
        for n in range(1, 20001):
            value = value - value**3 + value**4 / 2 + value**5 / 3
            seen[n] = value
        c = mpmath.findroot(lambda c: x.evaluate(20000, {"C": c}) / seen[20000] - 1, 0.1)
        for n in (5000, 10000):
            assert abs(x.evaluate(n, {"C": c}) / seen[n] - 1) < mpmath.log(n) ** 4 * mpmath.mpf(n) ** -3.4


def test_linear_with_exact_solution():
    """T' = l/(l+1) T + 1 has T = (l+1)/2 + c/l (a resonance-free source), as an exact series."""
    ring = DepthRing(Field.containing([]), ["c"])
    m = (ring.term(1, 1, 8)).power(Fraction(1), 1)
    one_over = ring.term(1, -1) + 1  # l + 1
    m = ring.term(1, -1, 8) * Series_inverse(one_over.truncate(8))
    solution = solve_linear(m, ring.one(), "c", order=4)
    c = sp.Symbol("c", real=True)
    assert sp.expand(solution.series.to_sympy() - (ell / 2 + sp.Rational(1, 2) + c / ell)) == 0


def Series_inverse(series):
    return series.power(Fraction(-1), 1)


def test_linear_resonance():
    """T' = l/(l+1) T + 1/(l+1)^... : (l T)' - l T = 1 gives T = (log-free) 1; with source 1/(l(l+1)) a logarithm."""
    ring = DepthRing(Field.containing([]), ["c"])
    m = ring.term(1, -1, 9) * Series_inverse((ring.term(1, -1) + 1).truncate(9))
    # (l+1) T' = l T + 1/l  =>  l T = harmonic number H_{l-1} + c = log l + gamma - 1/(2l) - 1/(12 l^2) + ...
    source = ring.term(1, 1) * Series_inverse((ring.term(1, -1) + 1).truncate(9))
    solution = solve_linear(m, source, "c", order=4)
    assert solution.resonant
    c = sp.Symbol("c", real=True)
    expected = LOG / ell + c / ell - 1 / (2 * ell**2) - 1 / (12 * ell**3)
    assert sp.expand(solution.series.to_sympy() - expected) == 0


def test_irrational_exponent():
    """A multiplier 1 - sqrt(2)/l: the homogeneous solution is Gamma(l - sqrt 2)/Gamma(l), expanded by mpmath."""
    root = sp.Symbol("root")
    ring = DepthRing(Field.containing([sp.sqrt(2)]), ["c"], {root: (sp.sqrt(2), 2**0.5)})
    m = ring.one() - ring.term(sp.sqrt(2), 1)
    solution = solve_linear(m, ring.zero(), "c", order=8)
    with mpmath.workdps(30):
        layer = mpmath.mpf(1000)
        exact = mpmath.gammaprod([layer - mpmath.sqrt(2)], [layer])
        assert abs(solution.series.evaluate(1000, {"c": 1}) / exact - 1) < 1e-17
    assert str(ring.exponent_expr(solution.series.leading[0])) == "root"


def test_stretched_exponential_balance():
    """T' = (1 - l^(-1/2)) T + 1: the source alone decides, T = l^(1/2) + ...; checked by iteration."""
    ring = DepthRing(Field.containing([]), ["c"])
    m = ring.one() - ring.term(1, Fraction(1, 2))
    solution = solve_linear(m, ring.one(), "c", order=2)
    assert solution.homogeneous.exponent is None and not solution.series.used_names()
    value = mpmath.mpf(0)
    for layer in range(1, 20000):
        value = (1 - mpmath.mpf(layer) ** -0.5) * value + 1
    assert abs(solution.series.evaluate(20000) / value - 1) < 20000**-2.4


def test_unstable_flows_are_refused():
    ring = DepthRing(Field.containing([]), ["c"])
    with pytest.raises(NoApproach, match="negative"):
        solve_flow(ring, {2: 1}, order=2, constant="c")
    with pytest.raises(NoApproach, match="identity"):
        solve_flow(ring, {1: 0}, order=2, constant="c")
    with pytest.raises(NoApproach, match="exponentially"):
        solve_linear(ring.one() + ring.term(1, Fraction(1, 2)), ring.one(), "c", order=2)


def test_remainder_is_tracked():
    ring = DepthRing(Field.containing([]), [])
    x, y = ring.term(1, 1, 3), ring.term(2, 2, 7)
    assert (x * y).order == 5 and (x + y).order == 3
    assert x.shift().order == 3
