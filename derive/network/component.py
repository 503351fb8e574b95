r"""A component of a tensor, `Component("V", 1, 2, 3, 4)`, as a SymPy atom that knows its tensor's symmetries.

>>> Component("V", 4, 3, 2, 1)
V_1234
>>> Component("T", 2, 4, 3, 1) == Component("T", 1, 3, 4, 2)
True
>>> sp.latex(Component("Theta", 2, 1))
'\\Theta_{12}'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import sympy as sp
from sympy.core.sympify import sympify

from derive.network.trees import TENSORS
from derive.notation import TENSOR_LATEX

GRAM = "Gram"
"""The name of x_1.x_2 / n_0, the one thing a network knows of its inputs."""


@cache
def symmetries(name: str) -> tuple[tuple[int, ...], ...]:
    """Permutations of a tensor's subscripts, as positions, under which it does not change."""
    return ((0, 1), (1, 0)) if name == GRAM else TENSORS[name].symmetries


def label_key(label: object) -> tuple[int, int, str]:
    """Numbers before names, so that canonical order is the same in every process."""
    text = str(label)
    return (0, int(text), "") if text.isdigit() else (1, 0, text)


def canonical(name: str, labels: tuple) -> tuple:
    """The first of the equal ways to write a component's labels."""
    return min((tuple(labels[k] for k in g) for g in symmetries(name)), key=lambda ls: [label_key(x) for x in ls])


class Component(sp.Expr):
    """One component of a tensor of layer l: commutative, real, labels in canonical order under the symmetries."""

    is_commutative = True
    is_real = True

    def __new__(cls, name: object, *labels: object) -> Component:
        text = str(name)
        ordered = canonical(text, tuple(sympify(label, strict=True) for label in labels))
        return sp.Expr.__new__(cls, sp.Symbol(text), *ordered)

    @property
    def name(self) -> str:
        return self.args[0].name

    @property
    def labels(self) -> tuple[sp.Basic, ...]:
        return tuple(self.args[1:])

    def relabel(self, mapping: Mapping[object, object]) -> Component:
        table = {sympify(old, strict=True): sympify(new, strict=True) for old, new in mapping.items()}
        return Component(self.name, *(table.get(label, label) for label in self.labels))

    def _latex(self, printer: object) -> str:
        alone = getattr(printer, "single_input", False) and set(self.labels) == {0}
        return component_latex(self.name, tuple("" if alone else str(x) for x in self.labels))

    def _sympystr(self, printer: object) -> str:
        if getattr(printer, "single_input", False) and set(self.labels) == {0}:
            return self.name
        return f"{self.name}_{''.join(map(str, self.labels))}"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__


def component_latex(name: str, labels: tuple[str, ...], layer: str = "") -> str:
    """A component with its subscripts; pairs that commute inside are bracketed, as in V_{(12)(34)}."""
    if name == GRAM:
        first, second = (f"x_{{{label}}}" if label else "x" for label in labels)
        return rf"\frac{{{first} \cdot {second}}}{{n_0}}"
    subscript = "".join(labels)
    if subscript and name in ("V", "A"):
        subscript = f"({''.join(labels[:2])})({''.join(labels[2:])})"
    symbol, order = TENSOR_LATEX.get(name, (name, ""))
    superscript = order + layer
    return symbol + (f"^{{{superscript}}}" if superscript else "") + (f"_{{{subscript}}}" if subscript else "")
