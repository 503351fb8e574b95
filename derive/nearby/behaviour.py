"""How a quantity of the trained network behaves with its depth L: coefficient * L^(-exponent) * log(L)^log_power."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.depth import Asymptotics
from derive.depth.ratios import quotient as coefficient_ratio
from derive.depth.result import exact_entry
from derive.errors import DeriveError
from derive.results import tex
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
    def unit_expression(self) -> sp.Expr:
        """The unit as a symbol, 1 where there is none."""
        return sp.Symbol(self.unit, real=True) if self.unit else sp.S.One

    @property
    def expression(self) -> sp.Expr:
        return self.coefficient * L**-self.exponent * sp.log(L) ** self.log_power

    def latex(self) -> str:
        """As an expression, without an environment."""
        return tex(self.expression * self.unit_expression)

    def to_json(self) -> dict[str, object]:
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
    exponent, logs, free = sp.S.Zero, 0, set()
    coefficients = [factor, sp.S.One]
    for place, part in enumerate((top, bottom)):
        if part is None:
            continue
        if part.coefficient is None or part.exponent is None:
            raise DeriveError(f"{part.tensor} has no leading term: {part.reason or 'it vanishes'}")
        sign = 1 - 2 * place
        coefficients[place] *= part.coefficient
        exponent += sign * part.exponent
        logs += sign * part.log_power
        free |= {c for c in part.coefficient.free_symbols if c.name in part.free_constants}
    value, depth = coefficient_ratio(*coefficients).as_independent(L, as_Add=False)
    exponent -= depth.as_base_exp()[1] if depth != 1 else sp.S.Zero
    if depth not in (1, L) and depth.as_base_exp()[0] != L:
        raise DeriveError(f"{value * depth} is not a power of L times a constant")
    left = sorted(value.free_symbols & free, key=str)
    if len(left) > 1:
        raise DeriveError(f"the leading term of {top.tensor} depends on several free constants: {left}")
    unit = left[0] if left else sp.S.One
    name = "" if unit == 1 else UNITS.get(str(unit), str(unit))
    return Behaviour(sp.simplify(exponent), logs, coefficient_ratio(value, unit), name, top.digits)
