r"""What every linear recursion sees: the kernel and its brackets as series in depth, and the ring they live in.

`FlowingKernel` is a critical fixed point that the kernel approaches as a power of depth; `ConstantKernel` a kernel that
does not move: a scale-invariant activation, or a fixed point off criticality (approached exponentially).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from derive import symbols
from derive.depth.balance import NoApproach, compose, solve_flow
from derive.depth.expansion import DIGITS, FixedPoint, PowerSeries
from derive.depth.field import Field
from derive.depth.powers import binomial_power, is_one, linear_combination
from derive.depth.series import DepthRing, Series
from derive.errors import DeriveError
from derive.gaussian import Bracket
from derive.notation import P_PERP

KERNEL_CONSTANT = "c_K"
WIELDY_DIGITS = 60
"""Rational numbers longer than this are replaced by floating-point ones."""


class FlowingKernel:
    """K -> K* as a power of depth: y' = y (1 + sum_j a_j y^j), y = (K - K*)^step, solved to l^(-corrections) relative.

    `kernel_map` is K' and `chi_perp` the multiplier of the NTK, in brackets; `names` are the symbols that coefficients
    may hold. A `p_perp` that depends on symbols needs a `sample` value to order exponents by.
    """

    def __init__(
        self,
        point: FixedPoint,
        kernel_map: sp.Expr,
        chi_perp: sp.Expr,
        brackets: Iterable[Bracket],
        constants: Mapping[sp.Symbol, sp.Expr],
        names: Sequence[str],
        corrections: int,
        numbers: Iterable[sp.Expr] = (),
        sample: float | None = None,
    ) -> None:
        self.point, self.corrections = point, corrections
        self.constants = dict(constants)
        self._order = max(4, 2 * corrections + 2) if point.at_zero else corrections + 2
        self._expansions = {b: point.expand(b, self._order) for b in brackets}
        if _unwieldy(
            [*self.constants.values(), *(c for k in self._expansions.values() for c in k.coefficients.values())]
        ):
            self.constants = {s: sp.N(c, DIGITS + 5) for s, c in self.constants.items()}
            self._expansions = {b: _as_numbers(known) for b, known in self._expansions.items()}
        self._series: dict[Bracket, Series] = {}
        self.kernel_map = linear_combination(kernel_map.subs(self.constants), self._expansions)
        self.flow = _flow(self.kernel_map, point)
        if not self.flow:
            raise NoApproach("the kernel does not flow with depth at this point to the order that was looked at")
        self.leading_power = m = min(self.flow)
        kappa_power = -1 / (m * self.flow[m])
        if point.at_zero and not kappa_power.free_symbols and kappa_power < 0:
            raise NoApproach(
                "the kernel grows away from K* = 0 with depth, so that there is no asymptotic regime there"
            )
        self.kappa = kappa_power if m == 1 else sp.root(kappa_power, m)
        if self.kappa.is_real is False:
            raise NoApproach("the kernel moves away from this fixed point on both sides")
        values = [c for known in self._expansions.values() for c in known.coefficients.values()]
        field = Field.containing([*self.constants.values(), *self.flow.values(), self.kappa, *values, *numbers])
        perpendicular = linear_combination(chi_perp.subs(self.constants), self._expansions)
        self.p_perp: sp.Expr | None = None  # where chi_perp - 1 falls more slowly than 1/l there is no power law
        irrationals: dict[sp.Symbol, Any] = {}
        if all(field.negligible(field(c)) for j, c in perpendicular.coefficients.items() if 0 < j < m):
            ratio = perpendicular.coefficients.get(m, sp.S.Zero) / (m * self.flow[m])
            self.p_perp, irrationals = _exponent(field, ratio, sample)
        self.ring = DepthRing(field, names, irrationals)

    @cached_property
    def y(self) -> Series:
        order = 1 / self.leading_power + self.corrections
        return solve_flow(self.ring, self.flow, order, KERNEL_CONSTANT, scale=self.kappa)

    @cached_property
    def kernel(self) -> Series:
        return self.y ** int(1 / self.point.step) + self.ring.coefficient(self.point.K_star)

    def bracket(self, bracket: Bracket) -> Series:
        """A bracket as a series in depth."""
        if bracket not in self._series:
            known = self._expansions.get(bracket) or self.point.expand(bracket, self._order)
            low = min([0, *known.coefficients])
            total = compose(
                {j - low: c for j, c in known.coefficients.items()}, self.y, (known.order - low) * self.y.lead
            )
            self._series[bracket] = total * inverse(self.y) ** (-low) if low else total
        return self._series[bracket]


class ConstantKernel:
    """A kernel that stays where it is; `values` gives each bracket in closed form or as a number."""

    def __init__(
        self,
        kernel: sp.Expr,
        values: Mapping[Bracket, sp.Expr],
        constants: Mapping[sp.Symbol, sp.Expr],
        names: Sequence[str],
        corrections: int,
        numbers: Iterable[sp.Expr] = (),
    ) -> None:
        self.corrections = corrections
        self.constants = dict(constants)
        self._values = dict(values)
        field = Field.containing([kernel, *self.constants.values(), *self._values.values(), *numbers])
        self.ring = DepthRing(field, names)
        self.kernel = self.ring.term(kernel)

    def bracket(self, bracket: Bracket) -> Series:
        return self.ring.term(self._values[bracket])


Background = FlowingKernel | ConstantKernel


def inverse(series: Series) -> Series:
    """1/series, for a leading coefficient that is a number."""
    _, lead = series.leading
    return series.power(Fraction(-1), series.ring.field(1) / lead.coeff(1))


def _unwieldy(values: Iterable[sp.Expr]) -> bool:
    """Whether exact numbers have become longer than anything they could say (selu's 60-digit parameters)."""
    return any(max(abs(q.p), q.q) > 10**WIELDY_DIGITS for v in values for q in v.atoms(sp.Rational))


def _as_numbers(known: PowerSeries) -> PowerSeries:
    return PowerSeries({j: sp.N(c, DIGITS + 5) for j, c in known.coefficients.items()}, known.order)


def _flow(kernel_map: PowerSeries, point: FixedPoint) -> dict[int, sp.Expr]:
    """{j: a_j} of y' = y (1 + sum a_j y^j), from K' = K* + y^(1/step) (1 + ...)."""
    q = int(1 / point.step)
    moved = {j: c for j, c in kernel_map.coefficients.items() if j > 0}
    start = kernel_map.coefficients.get(0, sp.S.Zero) - point.K_star
    if abs(start) > 1e-20 or not moved or min(moved) < q or not is_one(moved[q]):
        raise NoApproach("this is not a critical fixed point: K' is not K + higher powers near it")
    return binomial_power({j - q: c for j, c in moved.items() if j > q}, sp.Rational(1, q), kernel_map.order - q)


def _exponent(field: Field, ratio: sp.Expr, sample: float | None) -> tuple[sp.Expr, dict[sp.Symbol, Any]]:
    """b/(m a) as a rational number if it is one, else with the irrational unit that exponents then need."""
    element = field(ratio)
    fraction = field.fraction(element)
    if fraction is not None:
        return sp.Rational(fraction.numerator, fraction.denominator), {}
    value = field.to_sympy(element)
    number = sample if value.free_symbols else float(value)
    if number is None:
        raise DeriveError("a symbolic p_perp needs a sample value, which decides what dominates")
    return value, {P_PERP: (value, number)}


def layer_parameters(C_b: Any, C_W: Any) -> dict[sp.Symbol, sp.Expr]:
    return {symbols.C_b: sp.sympify(C_b, strict=True), symbols.C_W: sp.sympify(C_W, strict=True)}
