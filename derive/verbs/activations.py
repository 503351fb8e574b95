"""`derive.activation` and `derive.activations`: an activation that answers questions, and the table of those built in.

`Activation` is the class below it with the package's questions as methods; that class knows nothing of them, so that
imports flow one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import BUILTIN
from derive.activations import Activation as Definition
from derive.activations import activation as define
from derive.activations.sampled import draw_activation
from derive.critical import Criticality, FixedPoints, criticality, fixed_points
from derive.depth import Asymptotics, ExponentTable, asymptotics, exponents
from derive.given import Number
from derive.layout import Block, Table
from derive.nearby import Behaviour, delta_recursions, deviation_asymptotics, generalization
from derive.notation import K_STAR, SIGMA_Z, text
from derive.results import Result, cell
from derive.steps import Words, equal
from derive.symbols import C_W, C_b

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Activation(Definition):
    """sigma(z) with everything that can be asked about it."""

    def criticality(self) -> Criticality:
        """All critical initializations, class and stability."""
        return criticality(self)

    def fixed_points(self, C_b: Number, C_W: Number) -> FixedPoints:
        """Fixed points of the kernel at given hyperparameters, stability and correlation depths."""
        return fixed_points(self, C_b, C_W)

    def exponents(
        self,
        learning_rates: str = "equivalence",
        point: int = 0,
        lambda_b: Number | None = None,
        lambda_W: Number | None = None,
        plateau: bool = False,
    ) -> ExponentTable:
        """Critical exponents and coefficients of every tensor."""
        return exponents(self, learning_rates, point, lambda_b, lambda_W, plateau)

    def asymptotics(
        self,
        tensor: str,
        order: int = 2,
        learning_rates: str = "equivalence",
        point: int = 0,
        lambda_b: Number | None = None,
        lambda_W: Number | None = None,
        plateau: bool = False,
    ) -> Asymptotics:
        """The large-depth series of one tensor."""
        return asymptotics(self, tensor, order, learning_rates, point, lambda_b, lambda_W, plateau)

    def plot(self, axes: Axes | None = None) -> Axes:
        """sigma and its first two derivatives, on the given Matplotlib axes or new ones."""
        return draw_activation(self, axes)

    def robustness(self, learning_rates: str = "equivalence", point: int = 0) -> Behaviour:
        """How Theta(-+)/Theta(++) - 1 of a nearby test input behaves with depth."""
        return generalization(self, learning_rates, point).robustness

    def delta_expansion(
        self, tensor: str, order: int = 1, learning_rates: str = "equivalence", point: int = 0
    ) -> Mapping[str, Asymptotics]:
        """The large-depth series of a tensor's deviations on two nearby inputs, by name."""
        names = delta_recursions(tensor)
        return {name: deviation_asymptotics(self, name, order, learning_rates, point) for name in names}


def activation(definition: str | sp.Expr | Definition) -> Activation:
    """An activation from a built-in name, a name with parameters, a formula in z or a SymPy expression in z.

    >>> activation("silu").name, activation("monomial(k=3)").expression
    ('swish', z**3)
    """
    found = define(definition)
    return found if isinstance(found, Activation) else Activation(found.name, found.kinks, found.pieces)


@dataclass(frozen=True)
class BuiltinTable(Result):
    """The built-in activations with their criticality."""

    entries: tuple[Criticality, ...]

    def to_json(self) -> list[dict[str, object]]:
        return [_entry(found) for found in self.entries]

    def blocks(self) -> tuple[Block, ...]:
        rows = []
        for found in self.entries:
            point = found.points[0] if found.points else None
            numbers = (point.K_star, point.C_W, point.C_b) if point else (None,) * 3
            formula = Words(equal(SIGMA_Z, found.activation.expression))
            cells = (found.activation.name, found.universality_class, *(cell(x, 6) for x in numbers), formula)
            rows.append(cells)
        return (Table(("name", "class", cell(K_STAR), cell(C_W), cell(C_b), "definition"), tuple(rows)),)


def _entry(found: Criticality) -> dict[str, object]:
    point = found.points[0].to_json() if found.points else {}
    return {
        "name": found.activation.name,
        "aliases": list(BUILTIN[found.activation.name].aliases),
        "expression": str(found.activation.expression),
        "text": text(found.activation.expression, 6),
        "class": found.universality_class,
        **{key: point.get(key) for key in ("K_star", "C_W", "C_b", "stability")},
        "points": len(found.points),
    }


def activations() -> BuiltinTable:
    """The built-in activations with their universality class and recommended critical initialization."""
    return BuiltinTable(tuple(criticality(name) for name in BUILTIN))
