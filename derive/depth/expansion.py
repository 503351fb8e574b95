r"""Brackets near a fixed point K* of the kernel, as power series in y, where K = K* + y^(1/step).

At K* = 0 they are exact (step 1, or 1/2 where sigma has a kink at the origin); at K* > 0 their coefficients are
d^n<f>/dK^n / n! = <f He_2n(z/sqrt K)> / ((2K)^n n!), numbers of `DIGITS` digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp
from sympy.polys.orthopolys import hermite_prob_poly

from derive.activations import Activation
from derive.errors import DivergentExpectation
from derive.gaussian import Bracket, Z, series, single_input_normal_form, value

DIGITS = 30
"""Of the numbers that stand for brackets at K* > 0."""
ZERO_DIGITS = 5
"""A coefficient that is smaller than its neighbours by all but so many of the digits is zero."""


@dataclass(frozen=True)
class PowerSeries:
    """sum_j coefficients[j] y^j + O(y^order); negative j for brackets that hold delta functions at K* = 0."""

    coefficients: Mapping[int, sp.Expr]
    order: int


@dataclass(frozen=True)
class FixedPoint:
    """Where the kernel flows to. `activation` None is a generic smooth sigma with sigma(0) = 0, Taylor data symbolic;
    `odd` then drops its even coefficients."""

    activation: Activation | None
    K_star: sp.Expr
    odd: bool = False

    @property
    def at_zero(self) -> bool:
        return self.K_star == 0

    @cached_property
    def step(self) -> sp.Rational:
        kinked = self.at_zero and self.activation is not None and not self.activation.is_analytic_at_zero
        return sp.Rational(1, 2) if kinked else sp.Integer(1)

    def expand(self, bracket: Bracket, order: int) -> PowerSeries:
        """A one-label bracket through y^order. Raises DivergentExpectation if it does not exist."""
        return self._at_zero(bracket, order) if self.at_zero else self._at_kernel(bracket, order)

    def _at_zero(self, bracket: Bracket, order: int) -> PowerSeries:
        known = series(bracket, self.activation, int(sp.ceiling(order * self.step)))
        terms = {int(p / self.step): c for p, c in known.coefficients.items()}
        if self.activation is None:
            terms = {j: c.subs(self._absent(c)) for j, c in terms.items()}
        return PowerSeries({j: c for j, c in terms.items() if c != 0}, int(known.remainder / self.step))

    def _absent(self, expression: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
        """sigma_0 = 0, and for an odd sigma all even coefficients."""
        orders = {s: int(s.name.split("_")[1]) for s in expression.free_symbols}
        return {s: sp.S.Zero for s, k in orders.items() if k == 0 or (self.odd and k % 2 == 0)}

    def _at_kernel(self, bracket: Bracket, order: int) -> PowerSeries:
        x = sp.Symbol("x")
        known = max(order, 1)  # the next coefficient tells how small a zero is
        moments = [self._number(Bracket(*bracket.args, *[Z(0)] * (2 * k))) for k in range(known + 1)]
        terms = {}
        for n in range(known + 1):
            hermite = sp.Poly(hermite_prob_poly(2 * n, x), x)
            total = sum(c * moments[m[0] // 2] / self.K_star ** (m[0] // 2) for m, c in hermite.terms())
            terms[n] = sp.Float(total / ((2 * self.K_star) ** n * sp.factorial(n)), DIGITS)
        sizes = {n: abs(c) * self.K_star**n for n, c in terms.items()}
        least = max(sizes.values()) * sp.Float(10) ** (ZERO_DIGITS - DIGITS)
        return PowerSeries({n: c if sizes[n] > least else sp.S.Zero for n, c in terms.items() if n <= order}, order + 1)

    def _number(self, bracket: sp.Expr) -> sp.Float:
        assert self.activation is not None
        return _bracket_number(bracket, self.activation, self.K_star)


@lru_cache(maxsize=4096)
def _bracket_number(bracket: sp.Expr, activation: Activation, kernel: sp.Expr) -> sp.Float:
    return sp.Float(value(bracket, activation, kernel, DIGITS + 5), DIGITS + 5)


def existing_form(expression: sp.Expr, activation: Activation | None) -> sp.Expr:
    """The expression itself where each of its brackets exists, else integrated by parts, so that brackets which exist
    only together (kinked activations) combine into ones that exist by themselves."""
    if activation is None or activation.is_smooth or all(_exists(b, activation) for b in expression.atoms(Bracket)):
        return expression
    return single_input_normal_form(expression)


def _exists(bracket: Bracket, activation: Activation) -> bool:
    try:
        series(bracket, activation, 0)
    except DivergentExpectation:
        return False
    return True
