"""What generated recursions of functionals are written in: functions of a neuron, functionals, terms, rules.

Labels are strings: "1", "2", ... of the functional's trees, "g1", "g2", ... summed over the labels of f or h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numeric.subscripts import Values

Atoms = tuple[tuple[str, int], ...]
"""(label, order of the derivative) of each activation in a product."""


@dataclass(frozen=True)
class Function:
    """P d_g ... f of a function f of the layer above (`carried`), times activations of this layer."""

    carried: str
    derivatives: tuple[str, ...]
    atoms: Atoms


def carried(name: str, *derivatives: str, times: Atoms = ()) -> Function:
    """The function `name` of the layer above, seen from this one."""
    return Function(name, derivatives, times)


def product(*atoms: tuple[str, int]) -> Function:
    """A product of this layer's activations."""
    return Function("", (), atoms)


@dataclass(frozen=True)
class At:
    """A functional of this layer at labels and functions; `hat`: with the share of the coinciding neuron."""

    name: str
    labels: str
    functions: tuple[Function, ...]
    hat: bool = False


def hat(name: str, labels: str, functions: tuple[Function, ...]) -> At:
    """The functional with the share of the coinciding neuron."""
    return At(name, labels, functions, True)


@dataclass(frozen=True)
class Term:
    """number * powers of the layer's hyperparameters * Thetas * means * functional."""

    number: float
    powers: Mapping[str, int]
    thetas: tuple[str, ...]
    means: tuple[Function, ...]
    functional: At | None

    def coefficient(self, values: Values) -> Any:
        value: Any = self.number
        for name, power in self.powers.items():
            value = value * values[name] ** power
        return value

    @property
    def functions(self) -> tuple[Function, ...]:
        return self.means + (self.functional.functions if self.functional else ())


@dataclass(frozen=True)
class Rule:
    """A functional: labels of its trees, its tensor, where coinciding neurons have Thetas, symmetries, recursion.

    `preactivations` are the labels of the z's on each neuron that make it the tensor with these `subscripts`; `free`
    are the labels on a neuron without a function; `symmetries` are (positions of labels, positions of functions).
    Labels of trees are single characters, so a string is a list of them.
    """

    labels: str
    subscripts: str
    preactivations: tuple[str, ...]
    free: str
    ntks: tuple[str, ...]
    symmetries: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    terms: tuple[Term, ...]
