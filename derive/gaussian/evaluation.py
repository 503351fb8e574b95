"""Any bracket as a number to any precision, with an error that is met.

Integrals of one, three and four variables, and of two with kinks, are enclosed by ball arithmetic (`balls`,
`common_factors`): their error is proved. Where nested quadrature is faster (two smooth labels, labels close to
perfectly correlated), for five labels, and where FLINT is not installed, the error is quadrature's estimate. Its
working precision is chosen from the cancellation that is seen: in the activation's own formula (small K), between the
two signs of the integrand, and between the terms of a bracket with delta functions; the answer then has the requested
number of significant digits. A bracket that is zero by symmetry is exactly zero; one that vanishes otherwise is
reported as zero with an absolute error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import gmpy2
import mpmath
import sympy as sp
from gmpy2 import mpfr

from derive.activations import activation as make_activation
from derive.activations.enclosure import available
from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian import balls
from derive.gaussian.bracket import Bracket
from derive.gaussian.closed_forms import exact
from derive.gaussian.common_factors import terms_ball
from derive.gaussian.compiled import compiled, to_mpf, to_mpfr
from derive.gaussian.covariance import covariance
from derive.gaussian.distribution import Distribution
from derive.gaussian.moments import components
from derive.gaussian.nested import ExponentialGrowth, Nest
from derive.gaussian.support import GaussianIntegral, regular_integrals

PATIENCE = {2: 3.0, 3: 30.0, 4: 300.0}
"""CPU seconds, for so many labels, beyond which balls are left for nested quadrature, which then takes less."""
GUARD = 3
"""Decimal digits beyond the requested ones that the quadrature aims at."""


@dataclass(frozen=True)
class Evaluation:
    """A number and an absolute error bound; `relative_met` is False where only the absolute bound holds (a zero)."""

    value: mpmath.mpf
    error: mpmath.mpf
    relative_met: bool


def value(bracket: sp.Expr, activation: Any, K: Any, digits: int = 15) -> mpmath.mpf:
    """The bracket to `digits` significant digits (see `evaluate` for the error bound).

    >>> from derive.gaussian.pattern import parse_bracket
    >>> print(mpmath.nstr(value(parse_bracket("s0 s0"), "tanh", 1, 30), 30))
    0.394294490397841174416459772444
    """
    return evaluate(bracket, activation, K, digits).value


def evaluate(bracket: sp.Expr, activation: Any, K: Any, digits: int = 15, closed_forms: bool = True) -> Evaluation:
    """Value and error bound. K: a number (one label), {(a, b): number} or a matrix for the sorted labels.

    Integrals over several variables are taken from a closed form where there is one (not with `closed_forms=False`).
    """
    if not isinstance(digits, int) or not 1 <= digits <= 1000:
        raise DeriveError("The number of digits is a whole number from 1 to 1000.")
    if bracket == 1:
        return Evaluation(mpmath.mpf(1), mpmath.mpf(0), True)
    if not isinstance(bracket, Bracket):
        raise TypeError(f"value() takes a bracket, not {bracket}.")
    K = covariance(K, bracket.labels)
    if not K.is_numeric:
        raise DeriveError(f"A number needs a numeric K; {', '.join(map(str, K.matrix.free_symbols))} is free.")
    if not isinstance(activation, Mapping):
        activation = make_activation(activation)
    terms = [t for t in regular_integrals(bracket, activation, K) if not _odd(t)]
    if not terms:
        return Evaluation(mpmath.mpf(0), mpmath.mpf(0), True)
    try:
        several = any(len(t.factors) > 1 for t in terms)
        found = _closed(exact(bracket, activation, K.as_mapping()), digits) if closed_forms and several else None
        return found or _enclosed(terms, digits) or _sum(terms, digits, stop_at_growth=True)
    except ExponentialGrowth:  # sums of exponentials at large K: the closed form is the better number
        found = _closed(exact(bracket, activation, K.as_mapping()), digits)
        return found or _sum(terms, digits, stop_at_growth=False)


def _closed(closed: sp.Expr | None, digits: int) -> Evaluation | None:
    """A closed form as a number; None where it cannot be told from zero."""
    if closed is None:
        return None
    if closed == 0:
        return Evaluation(mpmath.mpf(0), mpmath.mpf(0), True)
    bits = int((digits + GUARD) * 3.3220)
    number = closed.evalf(digits + GUARD + 2, maxn=20000)
    if not number.is_Float or number == 0 or number._prec < bits:
        return None
    exact_value = mpmath.mp.make_mpf(number._mpf_)
    return Evaluation(exact_value, abs(exact_value) * mpmath.mpf(10) ** -(digits + 1), True)


def _enclosed(terms: list[GaussianIntegral], digits: int) -> Evaluation | None:
    """By ball arithmetic: the error is proved. None where balls are not to be had, or would take too long."""
    if not available():
        return None
    try:
        most = max(len(t.factors) for t in terms)
        if most == 2 and not any(f.knots for t in terms for f in t.factors):
            return None  # two smooth labels: nested trapezoids are faster
        total = terms_ball(terms, digits, PATIENCE.get(most, 0.0))
    except DivergentExpectation:
        raise
    except DeriveError:
        return None
    value, error = balls.middle_and_radius(total)
    if not error < abs(value):
        return Evaluation(mpmath.mpf(0), abs(value) + error, error == 0)
    return Evaluation(value, error, True) if error * mpmath.mpf(10) ** digits <= abs(value) else None


def _odd(term: GaussianIntegral) -> bool:
    """Whether the integral vanishes because one group of correlated variables enters it oddly."""
    for group in components(term.covariance):
        if prod(term.factors[i].parity for i in group) == -1 and all(term.mean[i] == 0 for i in group):
            return True
    return False


def _sum(terms: list[GaussianIntegral], digits: int, stop_at_growth: bool) -> Evaluation:
    """The sum of the terms to `digits`, raising the precision by what cancels."""
    rough = [_rough(t, stop_at_growth) for t in terms]
    with gmpy2.context(precision=64):
        magnitude = sum((m for _, m in rough), mpfr(0))
        estimate = abs(sum((s for s, _ in rough), mpfr(0)))
        scale = estimate if estimate > magnitude / 1000 else magnitude / 1000
        noise = max((_noise(t) for t in terms), default=0)
        smallest = magnitude * mpfr(10) ** -(2 * digits + 40)
    if magnitude == 0:
        return Evaluation(mpmath.mpf(0), mpmath.mpf(0), True)
    while True:
        lost = int(gmpy2.log10(magnitude / scale)) + 1
        bits = int((digits + GUARD + lost + noise) * 3.3220) + 24
        tolerance = scale * mpfr(10) ** -(digits + GUARD - 1)
        total, error = _accurate(terms, bits, digits + GUARD + lost, tolerance)
        if abs(total) >= scale / 100:
            if error <= abs(total) * mpfr(10) ** -digits:
                return Evaluation(to_mpf(total), to_mpf(error), True)
            noise += digits // 2 + 5  # rounding was worse than foreseen
            if noise > 4 * digits + 200:
                raise DeriveError("The expectation could not be evaluated to that precision: rounding errors dominate.")
            continue
        if scale <= smallest:
            return Evaluation(mpmath.mpf(0), to_mpf(abs(total) + error), False)
        scale = max(abs(total), tolerance) if abs(total) > 100 * tolerance else tolerance


def _accurate(terms: list[GaussianIntegral], bits: int, digits: int, tolerance: mpfr) -> tuple[mpfr, mpfr]:
    with gmpy2.context(precision=bits):
        total, error = mpfr(0), mpfr(0)
        for term in terms:
            coefficient = to_mpfr(term.coefficient, bits)
            if not term.factors:
                total += coefficient
                continue
            found = Nest(term, bits, digits).integrate(tolerance / (abs(coefficient) * len(terms)))
            total += coefficient * found.value
            error += abs(coefficient) * found.error
        return total, max(error, tolerance)


def _rough(term: GaussianIntegral, stop_at_growth: bool) -> tuple[mpfr, mpfr]:
    """(value to a few digits, bound on the integral of the absolute value)."""
    coefficient = to_mpfr(term.coefficient, 80)
    if not term.factors:
        return coefficient, abs(coefficient)
    bits = 80 + int(_noise(term) * 3.33)
    if len(term.factors) == 1:
        found = Nest(term, bits, 8, stop_at_growth).integrate(None)
        return coefficient * found.value, abs(coefficient) * found.magnitude
    bound = _hoelder(term, bits, stop_at_growth)
    if bound == 0:
        return mpfr(0), mpfr(0)
    found = Nest(term, bits, 6, stop_at_growth).integrate(bound / 10000)
    return coefficient * found.value, abs(coefficient) * bound


def _hoelder(term: GaussianIntegral, bits: int, stop_at_growth: bool) -> mpfr:
    """prod_a E[F_a^m]^(1/m) with m even and not below the number of factors: at least E[prod |F_a|]."""
    m = 2 * ((len(term.factors) + 1) // 2)
    bound = mpfr(1)
    for i, factor in enumerate(term.factors):
        power = Distribution(factor.knots, tuple(p**m for p in factor.pieces))
        alone = GaussianIntegral(sp.S.One, (power,), (term.mean[i],), term.covariance.extract([i], [i]))
        bound *= gmpy2.rootn(abs(Nest(alone, bits, 8, stop_at_growth).integrate(None).value), m)
    return bound


def _noise(term: GaussianIntegral) -> int:
    """Decimal digits that rounding costs in the formulas themselves, seen by comparing two precisions."""
    low, high = 100, 400
    worst = 0
    for i, factor in enumerate(term.factors):
        deviation = gmpy2.sqrt(to_mpfr(term.covariance[i, i], high))
        centre = to_mpfr(term.mean[i], high)
        errors, values = [], []
        for k in range(-12, 13):
            y = mpfr(k) * abs(k) / 18 + mpfr(1) / 97
            with gmpy2.context(precision=high):
                point = centre + deviation * y
                piece = factor.pieces[sum(1 for x in factor.knots if to_mpfr(x, high) < point)]
                right = compiled(piece, high)(point)
            with gmpy2.context(precision=low):
                rounded = +point
            with gmpy2.context(precision=high):
                reference = compiled(piece, high)(rounded)
            with gmpy2.context(precision=low):
                wrong = compiled(piece, low)(rounded)
            with gmpy2.context(precision=high):
                weight = gmpy2.exp(-y * y / 2)
                errors.append(weight * abs(wrong - reference))
                values.append(weight * abs(right))
        top = max(values)
        if top > 0 and max(errors) > 0:
            worst += max(0, int(gmpy2.log10(max(errors) / top) + low * 0.30103) + 1)
    return worst
