r"""What the solver hands to people: one tensor's behaviour at large depth, with its steps; it prints, evaluates and
turns into the JSON of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mpmath
import sympy as sp

from derive.errors import DeriveError
from derive.given import Number, number
from derive.layout import Block, Equation, Text
from derive.notation import K_STAR, TensorSymbol, latex, text
from derive.results import Result
from derive.steps import Step, Verbatim, Words, as_written, equal, relation, said
from derive.symbols import ell

ON_PLATEAU = said(
    "On the plateau, {}, where networks of practical depth are: exact for every {}.",
    equal(TensorSymbol("K", "1"), K_STAR),
    relation(">=", ell, 1),
)
BEYOND = said(
    "For {} to infinity, beyond the depth that {} names:",
    ell,
    Verbatim("derive exponents"),
)


@dataclass(frozen=True)
class Asymptotics(Result):
    """coefficient * l^(-exponent) * log(l)^log_power + ..., and the further terms in `series`.

    `remainder` is the exponent of the first power left out (times logarithms); None where the series is exact in l.
    `digits` is None for exact coefficients, else the number of digits they were computed with. A tensor that vanishes
    identically has coefficient 0 and no exponent; one that does not exist has a `reason`. `powers` are the terms of
    the series as (exponent, coefficient): a power of 1/l and what multiplies it, powers of log(l) included.
    """

    tensor: str
    exponent: sp.Expr | None = None
    log_power: int = 0
    coefficient: sp.Expr | None = None
    series: sp.Expr | None = None
    remainder: sp.Expr | None = None
    free_constants: Mapping[str, Words] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    digits: int | None = None
    reason: str | None = None
    powers: tuple[tuple[sp.Expr, sp.Expr], ...] = ()
    balls: Mapping[str, tuple[str, str]] | None = None
    """Intervals that are proved to hold the numbers of the coefficient, by the learning rates that they multiply."""
    plateau: Asymptotics | None = None
    """A half-stable activation's polynomial where K stays at K*, which networks of practical depth show."""

    @property
    def exists(self) -> bool:
        return self.series is not None

    @property
    def leading(self) -> sp.Expr:
        """The leading term as an expression in ell."""
        if self.coefficient is None:
            raise DeriveError(f"{self.tensor} does not exist: {self.reason}")
        if self.exponent is None:
            return sp.S.Zero
        return self.coefficient * ell**-self.exponent * sp.log(ell) ** self.log_power

    def at(self, layer: Number, digits: int = 15, **values: Number) -> mpmath.mpf:
        """The series, without its remainder, at a layer: an mpmath number; every symbol in it needs a value."""
        if self.series is None:
            raise DeriveError(f"{self.tensor} does not exist: {self.reason}")
        numbers = {n: number(v, n) for n, v in values.items()}
        expression = self.series.subs({s: numbers[s.name] for s in self.series.free_symbols if s.name in numbers})
        absent = sorted(s.name for s in expression.free_symbols if s != ell)
        if absent:
            raise DeriveError(f"{self.tensor} at a layer needs a value for {', '.join(absent)}")
        with mpmath.workdps(digits + 10):
            return mpmath.mpf(str(sp.N(expression.subs(ell, number(layer, "the layer")), digits + 5)))

    def blocks(self) -> tuple[Block, ...]:
        first: tuple[Block, ...] = ()
        if self.plateau is not None:
            first = (Text(ON_PLATEAU), *self.plateau.blocks(), Text(BEYOND))
        return (*first, Equation(self.equation_latex()), *([Text(self.reason)] if self.reason else []))

    def equation_latex(self) -> str:
        """The series as an equation, without an environment."""
        left = latex(TensorSymbol(self.tensor, "ell"))
        if self.series is None:
            return rf"{left} \text{{ does not exist}}"
        tail = "" if self.remainder is None else rf" + O\left({latex(ell**-self.remainder)}\right)"
        series = as_written(*(c * ell**-p for p, c in self.powers)) if self.powers else self.series
        return f"{left} = {latex(series, order='none')}{tail}"

    @property
    def remainder_text(self) -> str:
        return "0 (exact)" if self.remainder is None else f"O(ell**({-self.remainder})), times powers of log(ell)"

    def __str__(self) -> str:
        if self.series is None:
            return f"{self.tensor} does not exist: {self.reason}"
        tail = "" if self.remainder is None else f" + O(ell**({-self.remainder}))"
        first = "" if self.plateau is None else f"{ON_PLATEAU} {self.plateau}\n{BEYOND} "
        return f"{first}{self.tensor} = {self.series}{tail}"

    def to_json(self) -> dict[str, object]:
        """The entry of `derive asymptotics --json`."""
        return {
            "tensor": self.tensor,
            **self.row(),
            "series": None if self.series is None else str(self.series),
            "series_latex": self.equation_latex(),
            "remainder": self.remainder_text if self.exists else None,
            "free_constants": list(self.free_constants),
            "free_constant_meanings": dict(self.free_constants),
            "steps": [step.to_json() for step in self.steps],
            **({} if self.plateau is None else {"plateau": self.plateau.to_json()}),
        }

    def row(self) -> dict[str, object]:
        """The entry of one tensor in `derive exponents --json`."""
        entry: dict[str, object] = {
            "exponent": exact_entry(self.exponent, self.digits),
            "log_power": self.log_power if self.exists else None,
            "coefficient": exact_entry(self.coefficient, self.digits, self.balls),
            "exists": self.exists,
        }
        if self.reason is not None:
            entry["reason"] = self.reason
        return entry


def exact_entry(
    expression: sp.Expr | None, digits: int | None = None, balls: Mapping[str, tuple[str, str]] | None = None
) -> dict[str, object] | None:
    """{"exact", "value"}; floating-point numbers say so with their number of "digits", and those that are proved with
    the "ball" [lo, hi] they lie in, or "balls" by monomials of the learning rates."""
    if expression is None:
        return None
    symbolic = bool(expression.free_symbols)
    entry: dict[str, object] = {"exact": str(expression), "value": None if symbolic else float(expression)}
    if digits is not None and expression.has(sp.Float):
        entry["digits"] = digits
        entry["text"] = text(expression)  # rounded for reading
        if balls is not None:
            alone = balls.get("1") if len(balls) == 1 else None
            entry |= {"ball": list(alone)} if alone else {"balls": {m: list(ball) for m, ball in balls.items()}}
    return entry
