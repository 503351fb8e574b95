"""What a criticality analysis returns: critical points, the universality class, the reason and the steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.layout import Block, Equation, Table, Text
from derive.notation import K_STAR
from derive.numbers import exact
from derive.results import Result, cell, tex
from derive.steps import Step, Words, said, typeset
from derive.symbols import C_W, C_b

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCALE_INVARIANT = "scale-invariant"
ZERO = "K*=0"
ZERO_NON_ANALYTIC = "K*=0 non-analytic"
HALF_STABLE = "half-stable"
NONE = "none"

STABLE = "stable"
UNSTABLE = "unstable"
MARGINAL = "marginal"
FROM_ABOVE = "half-stable: attracts from above"
FROM_BELOW = "half-stable: attracts from below"

_MATHEMATICS = {
    ZERO: typeset(r"K^\star = 0", ZERO),
    ZERO_NON_ANALYTIC: said("{}, non-analytic", typeset(r"K^\star = 0", ZERO)),
}


def class_name(name: str) -> str:
    """A universality class for reading: its name, mathematics set as such."""
    return _MATHEMATICS.get(name, name)


@dataclass(frozen=True)
class CriticalPoint:
    """chi_parallel = chi_perp = 1 at K* = C_b + C_W <s s>_{K*}; exact numbers where they exist, else 30-digit floats.

    `approach` is (power, coefficient) of the leading term of K' - K in (K - K*); None where K is constant.
    """

    K_star: sp.Expr
    C_W: sp.Expr
    C_b: sp.Expr
    stability: str
    universality_class: str
    approach: tuple[sp.Expr, sp.Expr] | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "K_star": exact(self.K_star),
            "C_W": exact(self.C_W),
            "C_b": exact(self.C_b),
            "stability": self.stability,
            "class": self.universality_class,
        }


@dataclass(frozen=True)
class Inadmissible:
    """A solution of chi_parallel = chi_perp = 1 that no initialization can reach, since it needs C_b < 0."""

    K_star: sp.Expr
    C_W: sp.Expr
    C_b: sp.Expr


@dataclass(frozen=True)
class Criticality(Result):
    """All critical points of an activation, the recommended one first."""

    activation: Activation
    universality_class: str
    points: tuple[CriticalPoint, ...]
    reason: Words
    steps: tuple[Step, ...] = ()
    chi_parallel: sp.Expr | None = None
    chi_perp: sp.Expr | None = None
    inadmissible: tuple[Inadmissible, ...] = field(default=())

    def to_json(self) -> dict[str, object]:
        """The data of `derive criticality --json`."""
        return {
            "activation": self.activation.name,
            "expression": str(self.activation.expression),
            "class": self.universality_class,
            "points": [point.to_json() for point in self.points],
            "reason": self.reason,
            "chi_parallel": None if self.chi_parallel is None else str(self.chi_parallel),
            "chi_perp": None if self.chi_perp is None else str(self.chi_perp),
            "steps": [step.to_json() for step in self.steps],
        }

    def blocks(self) -> tuple[Block, ...]:
        shown: list[Block] = [Equation(rf"\sigma(z) = {tex(self.activation.expression)}")]
        shown.append(Text(f"{self.activation.name} is of the class {self.universality_class}."))
        if self.points:
            rows = [(*map(cell, (p.K_star, p.C_W, p.C_b)), p.stability) for p in self.points]
            shown.append(Table((cell(K_STAR), cell(C_W), cell(C_b), "stability"), tuple(rows)))
        return (*shown, Text(self.reason))

    def plot(self, axes: Axes | None = None) -> Axes:
        """The phase diagram: C_W and C_b, ordered and chaotic phases, the critical points."""
        from derive.critical.phase_diagram import phase_diagram
        from derive.critical.phase_picture import draw_phases

        return draw_phases(phase_diagram(self), axes)
