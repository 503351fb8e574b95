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
    """factor * top / bottom at the output layer l = L, in units of the free constant that `top` is proportional to."""
    for part in (top, bottom):
        if part is not None and (part.coefficient is None or part.exponent is None):
            raise DeriveError(f"{part.tensor} has no leading term: {part.reason or 'it vanishes'}")
    assert top.coefficient is not None and top.exponent is not None
    free = sorted((c for c in top.coefficient.free_symbols if c.name in top.free_constants), key=str)
    unit = free[0] if len(free) == 1 else sp.S.One
    coefficient, exponent, logs = top.coefficient * factor / unit, top.exponent, top.log_power
    if bottom is not None:
        assert bottom.coefficient is not None and bottom.exponent is not None
        coefficient, exponent, logs = (
            coefficient / bottom.coefficient,
            exponent - bottom.exponent,
            logs - bottom.log_power,
        )
    coefficient = _floats_apart(coefficient) if coefficient.has(sp.Float) else sp.factor(sp.cancel(coefficient))
    if coefficient.free_symbols & set(free):
        raise DeriveError(f"the leading term of {top.tensor} is not proportional to one free constant")
    name = "" if unit == 1 else UNITS.get(str(unit), str(unit))
    return Behaviour(sp.simplify(exponent), logs, coefficient, name, top.digits)


def _floats_apart(expression: sp.Expr) -> sp.Expr:
    """A ratio of forms in lambda_b and lambda_W with floating-point coefficients, common factors taken out."""
    top, bottom = sp.fraction(sp.together(expression))
    ratio = sp.Poly(sp.expand(top), *sorted(expression.free_symbols, key=str)) if expression.free_symbols else None
    if ratio is None:
        return sp.N(expression)
    other = sp.Poly(sp.expand(bottom), *ratio.gens)
    leading = ratio.LC() / other.LC()
    if all(abs(c - leading * other.coeff_monomial(m)) <= 1e-20 * abs(c) for m, c in ratio.terms()):
        return leading
    return ratio.as_expr() / other.as_expr()
