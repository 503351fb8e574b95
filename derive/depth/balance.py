r"""The solver: nonlinear kernel recursions and linear recursions, matched order by order in l^(-p) log^q l.

Everything rests on one fact. On a term l^(-p) u(log l), a step l -> l+1 against a multiplier 1 - h/l + ... leaves
l^(-p-1) [(h - p) u + u'] plus smaller terms. For p != h this is inverted by a polynomial in the logarithm; at p = h it
is a resonance, where u is the integral of the source: one more power of the logarithm, and a free constant.
Nothing here knows which tensor it is solving for.

>>> ring = DepthRing(Field.containing([]), ["c"])
>>> solve_flow(ring, {1: -1}, order=3, constant="c")        # x' = x - x^2
l**(-1) + (-c - log(l))*l**(-2) + O(l**(-3))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import sympy as sp

from derive.depth.field import Field
from derive.depth.series import DepthRing, Exponent, Series
from derive.errors import DeriveError

__all__ = ["DepthRing", "Field", "Growth", "LinearSolution", "solve_flow", "solve_linear"]


class NoApproach(DeriveError):
    """A recursion whose solutions do not settle to a power law."""


def integrate_log(ring: DepthRing, poly: Any) -> Any:
    """The antiderivative in log l that vanishes at log l = 0."""
    terms = {}
    for monomial, c in poly.items():
        terms[(monomial[0] + 1, *monomial[1:])] = c / ring.field(monomial[0] + 1)
    return ring.polynomials.from_dict(terms)


def invert_step(ring: DepthRing, gap: Any, source: Any) -> Any:
    """u with gap*u + du/dlog = source; at gap = 0 the antiderivative."""
    if ring.field.negligible(gap):
        return integrate_log(ring, source)
    total, derivative, factor = ring.polynomials.zero, source, ring.field(1) / gap
    while derivative:
        total += derivative * factor
        derivative = derivative.diff(ring.log)
        factor = -factor / gap
    return total


def compose(coefficients: Mapping[int, Any], x: Series, order: float = inf) -> Series:
    """sum_j c_j x^j for a power series given by {j: c_j}; x tends to zero."""
    ring = x.ring
    total, product, power = ring.zero(), ring.one(), 0
    for j in sorted(coefficients):
        while power < j:
            product, power = (product * x).truncate(order), power + 1
        total = total + product * ring.coefficient(coefficients[j])
    return total.truncate(order)


def solve_flow(
    ring: DepthRing,
    coefficients: Mapping[int, Any],
    order: float,
    constant: str | None = None,
    scale: Any | None = None,
) -> Series:
    """x^(l) of x' = x (1 + sum_j a_j x^j), given {j: a_j} with j >= 1, through all exponents below `order`.

    x = kappa l^(-1/m) + ..., where m is the first j with a_j != 0 and kappa^m = -1/(m a_m). The perturbation
    l^(-1/m - 1) is resonant: there the free constant stands. kappa is the positive root where m is even, and for odd m
    the real one (a negative x, where a_m > 0, is an approach from below). `scale` gives kappa where the field's own
    root does not hold it.
    """
    field = ring.field
    present = {j: field(a) for j, a in coefficients.items()}
    present = {j: a for j, a in present.items() if not field.negligible(a)}
    if not present:
        raise NoApproach("the recursion is the identity to the order given, so that there is no flow in depth")
    m = min(present)
    kappa_power = field(-1) / (field(m) * present[m])
    kappa = field(scale) if scale is not None else real_root(field, kappa_power, m)
    lead = ring.rational(Fraction(1, m))
    resonance = Fraction(1, m) + 1
    truncation = order + 1
    x = ring.term(ring.polynomials.ground_new(kappa), lead, truncation)
    if constant is not None and float(resonance) < order:
        x = x + ring.term(ring.coefficient(constant) * (-kappa), resonance, truncation)
    steps = {j + 1: a for j, a in present.items()}
    while True:
        lowered = Series(ring, x.terms, truncation)
        residual = lowered.shift() - lowered - compose(steps, lowered, truncation)
        pending = [(p, r) for p, r in residual if ring.value(p) - 1 < order - 1e-9]
        if not pending:
            return Series(ring, x.terms, order)
        p, r = pending[0]
        target = (p[0] - 1, *p[1:])
        gap = ring.element(tuple(a - b for a, b in zip(ring.rational(resonance), target)))
        x = lowered + ring.term(invert_step(ring, gap, -r), target)


def real_root(field: Field, element: Any, m: int) -> Any:
    """The real m-th root (positive for even m) of an element of the field."""
    if m == 1:
        return element
    expr = field.to_sympy(element)
    negative = bool(expr.is_negative)
    if negative and m % 2 == 0:
        raise NoApproach(f"kappa^{m} = {expr} is negative: the recursion moves away from its fixed point on both sides")
    root = sp.root(-expr if negative else expr, m)
    return field(-root if negative else root)


@dataclass(frozen=True)
class Growth:
    """How the solution without source behaves: l^(-exponent), or where `rate` is set, exp(-rate * l^(1-gamma))."""

    exponent: Exponent | None
    gamma: float
    rate: sp.Expr | None = None


@dataclass(frozen=True)
class LinearSolution:
    """A solution of T' = m T + S, its homogeneous behaviour, and whether the free constant entered at this order."""

    series: Series
    homogeneous: Growth
    resonant: bool


def solve_linear(
    multiplier: Series, source: Series, constant: str | None = None, order: float = inf, name: str = "the tensor"
) -> LinearSolution:
    """T^(l) of T^(l+1) = m^(l) T^(l) + S^(l), as far as m and S are known or to `order`, the lower of the two.

    With m = 1 - h/l + ... the homogeneous solution is constant * l^(-h). With m = 1 - h l^(-gamma) + ..., gamma < 1,
    it is a (stretched) exponential: decaying for h > 0, where the source alone decides; growing ones are refused.
    """
    ring = source.ring
    field = ring.field
    change = multiplier - 1
    gamma, h = ring.rational(1), field(0)
    if change and ring.value(change.leading[0]) <= 1 + 1e-12:
        gamma, lead = change.leading
        if not lead.is_ground:
            raise NoApproach(f"the multiplier of {name} has a logarithm at leading order: {multiplier}")
        h = -lead.coeff(1)
    algebraic = ring.value(gamma) < 1 - 1e-12
    series, residual = ring.zero(), source
    resonant = False
    exponent = gamma if algebraic else ring.exponent(h)
    if algebraic:
        rate = field.to_sympy(h)
        growth = Growth(None, ring.value(gamma), rate)
        if not rate.free_symbols and rate < 0:
            raise NoApproach(f"{name} grows exponentially with depth: its multiplier is {multiplier}")
    else:
        growth = Growth(exponent, 1.0)
        if constant is not None:
            seed = ring.term(ring.coefficient(constant), exponent)
            limit = min(order, source.order - 1, ring.value(exponent) + multiplier.order - 1) + 1
            if limit == inf:
                raise ValueError("exact multiplier and source: give an order to stop at")
            series = seed.truncate(limit - 1) if limit - 1 > ring.value(exponent) else ring.zero()
            residual = residual - _defect(series, multiplier, limit)
            residual = residual + ring.zero(ring.value(exponent) + multiplier.order)
    lag = ring.value(gamma)
    while True:
        limit = min(residual.order, order + lag)
        pending = [(p, r) for p, r in residual if ring.value(p) < limit - 1e-9]
        if not pending:
            break
        p, r = pending[0]
        target = tuple(a - b for a, b in zip(p, gamma))
        if algebraic:
            piece = ring.term(r * (field(1) / h), target)
        else:
            gap = ring.element(tuple(a - b for a, b in zip(exponent, target)))
            resonant = resonant or field.negligible(gap)
            piece = ring.term(invert_step(ring, gap, r), target)
        residual = residual - _defect(piece, multiplier, limit)
        residual = residual + ring.zero(piece.lead + multiplier.order)
        residual.terms.pop(p, None)
        series = series + piece
    final = min(residual.order - lag, order)
    if not algebraic and constant is None:
        final = min(final, ring.value(exponent))
    return LinearSolution(Series(ring, series.terms, final), growth, resonant)


def _defect(piece: Series, multiplier: Series, limit: float) -> Series:
    """shift(piece) - m piece, below `limit`; what m leaves unknown is accounted for by the caller."""
    exact = Series(piece.ring, piece.terms, limit)
    known = Series(multiplier.ring, multiplier.terms)
    return exact.shift() - (known * Series(piece.ring, piece.terms)).truncate(limit)
