r"""Recursions as objects: what the engine derived for one tensor, for printing, solving and generating code.

>>> recursion("Theta").expression
C_W*<s1' s2'>*Theta_12 + lambda_W*<s1 s2> + lambda_b
>>> recursion("U").single_input().equal_widths().expression
C_W**2*<s0' s0'>**2*U_0000 + C_W**2*<s0' s0' s0'' s0''>*Theta_00**3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.layout import Block, Equation
from derive.network.component import Component
from derive.network.definition import FIRST, MLP, Layer
from derive.network.expectation import cumulant
from derive.network.term_latex import Namer, equation_latex, label_latex, line_latex, no_label, term_latex
from derive.network.terms import Term, read_terms
from derive.network.trees import TENSORS
from derive.results import Result


@dataclass(frozen=True)
class Recursion(Result):
    """One tensor at layer l+1 in terms of layer l. Parameters are those of layer l+1, r is n_l / n_{l-1}.

    `labels` are the tensor's sample labels in subscript order; `expression` holds no others. `single_input` and
    `equal_widths` return recursions again.
    """

    tensor: str
    labels: tuple[int, ...]
    terms: tuple[Term, ...]
    layer: Layer = MLP

    @cached_property
    def expression(self) -> sp.Expr:
        """The right-hand side, expanded, in `Bracket` and `Component` objects and `derive.symbols`."""
        return sp.expand(sp.Add(*(term.expression for term in self.terms)))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The tensors of layer l on the right-hand side, in the order in which they can be evolved; K, if a bracket is
        there, for it is the brackets' variance."""
        names = {name for term in self.terms for name, _ in term.components}
        if any(term.averages for term in self.terms):
            names.add("K")
        return tuple(name for name in TENSORS if name in names)

    @property
    def symmetries(self) -> tuple[tuple[int, ...], ...]:
        """Permutations of the subscripts, as positions, that leave the tensor as it is."""
        return TENSORS[self.tensor].symmetries

    @property
    def component(self) -> Component:
        """The left-hand side's component (of layer l+1)."""
        return Component(self.tensor, *self.labels)

    def single_input(self) -> Recursion:
        """All sample labels equal, sums carried out: the single input is label 0."""
        terms = read_terms(sp.Add(*(t.relabel({x: 0 for x in self.labels}).expression for t in self.terms)))
        return replace(self, labels=(0,) * len(self.labels), terms=_in_order(terms))

    def equal_widths(self) -> Recursion:
        """n_l = n_{l-1}."""
        terms = (replace(t, coefficient=t.coefficient.subs(symbols.r, 1)) for t in self.terms)
        return replace(self, terms=tuple(terms))

    def blocks(self) -> tuple[Block, ...]:
        return (Equation(self.equation_latex()),)

    def to_json(self) -> dict[str, object]:
        """The data of `derive recursion --json`."""
        terms = [{"latex": text, "expression": str(t.expression)} for text, t in zip(self.term_latex(), self.terms)]
        return {
            "tensor": self.tensor,
            "definition": str(self.layer),
            "labels": list(self.labels),
            "latex": self.latex(),
            "expression": str(self.expression),
            "terms": terms,
            "depends_on": list(self.depends_on),
            "symmetries": [[self.labels[k] for k in g] for g in self.symmetries],
        }

    def equation_latex(self) -> str:
        """In the notation of PDLT, one line a term; sums over gammas run over the labels in the bracket."""
        return equation_latex(self.tensor, self.labels, self.terms, self._namer)

    def line_latex(self) -> str:
        """The same as one line without alignment, brackets without their covariance."""
        return line_latex(self.tensor, self.labels, self.terms, self._namer)

    def term_latex(self) -> list[str]:
        """Each term by itself."""
        return [term_latex(term, self._namer) for term in self.terms]

    @property
    def _namer(self) -> Namer:
        return no_label if set(self.labels) == {0} else label_latex

    def __str__(self) -> str:
        return f"{self.component}' = {self.expression}"


def _in_order(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Terms made by this layer alone first, then those that pass on the tensors of the layer below."""

    def key(term: Term) -> tuple:
        tensors = sorted((list(TENSORS).index(name) for name, _ in term.components if name in TENSORS), reverse=True)
        return term.coefficient.has(symbols.r), tensors, len(term.averages), str(term.coefficient)

    return tuple(sorted(terms, key=key))


def recursion(tensor: str, layer: Layer = MLP) -> Recursion:
    """Derive the recursion of a tensor for a layer's definition (the MLP's, if none is given)."""
    if tensor not in TENSORS:
        raise DeriveError(f"there is no tensor {tensor!r}; choose one of {' '.join(TENSORS)}")
    return _derive(tensor, layer)


@cache
def _derive(tensor: str, layer: Layer) -> Recursion:
    target = TENSORS[tensor]
    terms = cumulant(target.forest, target.pairing, layer, target.order).collect()
    return Recursion(tensor, target.subscripts, _in_order(terms), layer)


def initial(tensor: str) -> Recursion:
    """The tensor at the first layer, z = b + W x, by the same engine: K and Theta from the inputs, all others zero."""
    return recursion(tensor, FIRST)


def recursions(layer: Layer = MLP, progress: Callable[[str], None] | None = None) -> dict[str, Recursion]:
    """All fifteen, in an order in which each depends on earlier ones of the same layer only."""
    found = {}
    for name in TENSORS:
        if progress:
            progress(name)
        found[name] = recursion(name, layer)
    return found
