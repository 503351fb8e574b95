"""How a quantity of the trained network behaves with its depth L: coefficient * L^(-exponent) * log(L)^log_power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.asymptotics import Asymptotics
from derive.asymptotics.result import exact_entry
from derive.errors import DeriveError
from derive.symbols import L

UNITS = {"c_ddK_2": "delta^2"}
"""Names of free constants that have one of their own: (10.71) calls the constant of ddK_[2] delta^2."""


@dataclass(frozen=True)
class Behaviour:
    """`unit` says in what the coefficient is measured, e.g. "delta^2"; `digits` is None where it is exact."""

    exponent: sp.Expr
    log_power: int
    coefficient: sp.Expr
    unit: str = ""
    digits: int | None = None

    @property
    def expression(self) -> sp.Expr:
        return self.coefficient * L**-self.exponent * sp.log(L) ** self.log_power

    def to_json(self) -> dict[str, Any]:
        return {
            "exponent": exact_entry(self.exponent, self.digits),
            "log_power": self.log_power,
            "coefficient": exact_entry(self.coefficient, self.digits),
            "unit": self.unit,
        }

    def __str__(self) -> str:
        return f"{self.expression}" + (f" * {self.unit}" if self.unit else "")


def quotient(top: Asymptotics, bottom: Asymptotics | None, factor: sp.Expr) -> Behaviour:
    """factor * top / bottom at the output layer l = L, in units of the free constant that remains in it."""
    coefficient, exponent, logs, free = factor, sp.S.Zero, 0, set()
    for part, sign in ((top, 1), (bottom, -1)):
        if part is None:
            continue
        if part.coefficient is None or part.exponent is None:
            raise DeriveError(f"{part.tensor} has no leading term: {part.reason or 'it vanishes'}")
        value, power = _without_depth(part.coefficient)
        coefficient *= value**sign
        exponent += sign * (part.exponent - power)
        logs += sign * part.log_power
        free |= {c for c in value.free_symbols if c.name in part.free_constants}
    reduced = _float_ratio if coefficient.has(sp.Float) else _exact_ratio
    coefficient = reduced(coefficient)
    left = sorted(coefficient.free_symbols & free, key=str)
    if len(left) > 1:
        raise DeriveError(f"the leading term of {top.tensor} depends on several free constants: {left}")
    unit = left[0] if left else sp.S.One
    name = "" if unit == 1 else UNITS.get(str(unit), str(unit))
    return Behaviour(sp.simplify(exponent), logs, reduced(coefficient / unit), name, top.digits)


def _without_depth(coefficient: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """c L^p as (c, p)."""
    value, depth = coefficient.as_independent(L, as_Add=False)
    power = depth.as_base_exp()[1] if depth != 1 else sp.S.Zero
    if depth != 1 and depth != L**power:
        raise DeriveError(f"{coefficient} is not a power of L times a constant")
    return value, power


def _exact_ratio(expression: sp.Expr) -> sp.Expr:
    return sp.factor(sp.cancel(expression))


def _float_ratio(expression: sp.Expr) -> sp.Expr:
    """A ratio of polynomials with floating-point coefficients, reduced where top and bottom are proportional."""
    top, bottom = sp.fraction(sp.together(expression))
    if not expression.free_symbols:
        return expression.evalf()
    generators = sorted(expression.free_symbols, key=str)
    for symbol in generators:  # monomial factors first
        while sp.Poly(top, symbol).nth(0) == 0 and sp.Poly(bottom, symbol).nth(0) == 0:
            top, bottom = sp.expand(top / symbol), sp.expand(bottom / symbol)
    above, below = sp.Poly(top, *generators), sp.Poly(bottom, *generators)
    scale = above.LC() / below.LC()
    same = set(above.monoms()) == set(below.monoms())
    if same and all(abs(c - scale * below.coeff_monomial(m)) <= 1e-15 * abs(c) for m, c in above.terms()):
        return scale
    return above.as_expr() / below.as_expr()
