r"""Two nearby inputs on the plateau of a half-stable activation, K^(1) = K*: exact at every depth.

The large-depth formulas of such an activation begin to hold beyond the depth of any practical network.

The kernel stays, every multiplier is one, and the deviations of K and Theta are polynomials in the layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.depth.constant_kernel import without_rounding
from derive.depth.critical_solution import ConstantSolution
from derive.depth.exponent_table import problem
from derive.depth.learning_rates import LearningRates
from derive.depth.ratios import quotient
from derive.depth.result import exact_entry
from derive.layout import Block, Equation, Text
from derive.nearby.deviation import Deviation
from derive.nearby.expansion import first_layer
from derive.nearby.flow import nearby_equations
from derive.notation import K_STAR, TensorSymbol, text
from derive.results import tex
from derive.steps import Words, equal, said
from derive.symbols import C_W, L, ell

__all__ = ["Plateau", "plateau"]


@dataclass(frozen=True)
class Plateau:
    """Quantities of the trained network at depth L, by name, in units of delta^2 = ddK_[2], the same in every layer."""

    values: dict[str, sp.Expr]
    digits: int | None

    @property
    def sentence(self) -> Words:
        """The regime, which is said before the formulas."""
        told = "On the plateau, {}, where networks of practical depth are: exact at every depth {}."
        return said(told, equal(TensorSymbol("K", "1"), K_STAR), L)

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {text(e)} * delta^2" for name, e in self.values.items())
        return f"{self.sentence} {shown}. For L to infinity instead:"

    def to_json(self) -> dict[str, object]:
        return {
            "where": str(self.sentence),
            **{name: exact_entry(e, self.digits) for name, e in self.values.items()},
            "unit": "delta^2",
        }

    def blocks(self) -> tuple[Block, ...]:
        unit = sp.Symbol("delta^2", real=True)
        return (
            Text(self.sentence),
            *(Equation(rf"\text{{{name}}} = {tex(e * unit)}") for name, e in self.values.items()),
            Text(said("For {} to infinity instead:", L)),
        )


def plateau(
    activation: Activation | str, learning_rates: str | LearningRates, point: int, wanted: dict[str, sp.Expr]
) -> Plateau | None:
    """`wanted` are quantities in K, Theta and their deviations; None where the kernel does not stay anywhere.

    >>> from derive.nearby.one_input import one_training_input
    >>> names = dict(zip(("robustness", "variance"), one_training_input(True)))
    >>> float(plateau("gelu", "equivalence", 0, names).values["variance"])
    4.0
    """
    if problem(activation, learning_rates, point).universality_class != "half-stable":
        return None
    task = problem(activation, learning_rates, point, plateau=True)
    gram = {Deviation("Gram", 2, "2"): 1 / task.C_W, Deviation("Gram", 1, "1"): sp.S.Zero}
    start = {n: e.xreplace({**gram, C_W: task.C_W}) for n, e in first_layer().items()}
    solved = ConstantSolution(task, nearby_equations(True), start)
    if solved.polynomials is None:
        return None
    at_output = {name: without_rounding(sp.expand(e.subs(ell, L))) for name, e in solved.polynomials.items()}
    values = {}
    for name, expression in wanted.items():
        known = {c: at_output.get(c.name) for c in expression.atoms(sp.Expr) if getattr(c, "labels", None) is not None}
        if any(e is None for e in known.values()):
            return None
        values[name] = quotient(*(part.xreplace(known) for part in expression.as_numer_denom()))
    return Plateau(values, solved.digits)
