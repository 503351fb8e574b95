"""The algorithm projectors (infinity.142)-(infinity.147) in closed form, derived from an algorithm's update rule.

In the eigenbasis of the training NTK a free error is u_a^t, a tree's weight is a running sum of products of such
powers, and the end of training keeps the constant of each geometric series. Three rules are here; an algorithm of
which nothing is known but that it reaches its targets fixes the trees whose branches are single vertices: Z_B, Z_IB.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import sympy as sp

from derive.errors import DeriveError
from derive.training.trees import LEAF, Term, Tree, count, expansion, symmetry

eta = sp.Symbol("eta", positive=True)
"""The global learning rate."""

Exponentials = dict[tuple[str, ...], sp.Expr]
"""Σ coefficient × Π u_label^t by the labels of the modes that decay; () is the constant."""

NAMES = {
    ("dH", 1): "Z_A",
    ("dH", 0): "Z_B",
    ("ddI", 1): "Z_IA",
    ("ddI", 0): "Z_IB",
    ("ddII", 2): "Z_IIA",
    ("ddII", 0): "Z_IIB",
}
"""PDLT's names, by the tensor and the place of the test input among its subscripts."""


def h(label: str) -> sp.Symbol:
    """The eigenvalue of the training NTK of mode `label`."""
    return sp.Symbol(f"h_{label}", positive=True)


class Rule(ABC):
    """A constant update rule: rate(a) multiplies the gradient of mode a, decay(modes) is 1 - Π u or its limit."""

    @abstractmethod
    def rate(self, label: str) -> sp.Expr:
        """What one unit of error of the mode adds to the displacement in a step (per unit of time)."""

    @abstractmethod
    def decay(self, labels: tuple[str, ...]) -> sp.Expr:
        """The part of the product of these modes' errors that is gone after a step (per unit of time)."""

    def weight(self, tree: Tree, labels: tuple[str, ...]) -> sp.Expr:
        """The weight of a tree with its vertices labelled in preorder, at the end of training, for unit errors."""
        return self._signal(tree, labels).get((), sp.S.Zero)

    def _signal(self, tree: Tree, labels: tuple[str, ...]) -> Exponentials:
        product: Exponentials = {(labels[0],): sp.Rational(1, symmetry(tree))}
        position = 1
        for branch, size in ((branch, count(branch)) for branch in tree):
            product = _times(product, self._signal(branch, labels[position : position + size]))
            position += size
        total: Exponentials = {}
        for modes, coefficient in product.items():
            term = coefficient * self.rate(labels[0]) / self.decay(modes)
            total[()] = total.get((), sp.S.Zero) + term
            total[modes] = total.get(modes, sp.S.Zero) - term
        return total


@dataclass(frozen=True)
class GradientDescent(Rule):
    """u_a = 1 - η h_a."""

    def rate(self, label: str) -> sp.Expr:
        return eta

    def decay(self, labels: tuple[str, ...]) -> sp.Expr:
        return 1 - sp.prod([1 - eta * h(label) for label in labels])


@dataclass(frozen=True)
class GradientFlow(Rule):
    """The limit of small η: sums become integrals of exp(-h t)."""

    def rate(self, label: str) -> sp.Expr:
        return sp.S.One

    def decay(self, labels: tuple[str, ...]) -> sp.Expr:
        return sp.Add(*[h(label) for label in labels])


@dataclass(frozen=True)
class NewtonStep(Rule):
    """The inverse training NTK as Newton tensor: u = 0, as in the two-step algorithm (infinity.79)."""

    def rate(self, label: str) -> sp.Expr:
        return 1 / h(label)

    def decay(self, labels: tuple[str, ...]) -> sp.Expr:
        return sp.S.One


@dataclass(frozen=True)
class AnyAlgorithm(Rule):
    """Known only to end on its targets: 0 = error - h × displacement fixes single vertices, the rest stays unnamed."""

    def rate(self, label: str) -> sp.Expr:
        raise DeriveError("An unspecified algorithm has no rate.")

    def decay(self, labels: tuple[str, ...]) -> sp.Expr:
        raise DeriveError("An unspecified algorithm has no decay.")

    def weight(self, tree: Tree, labels: tuple[str, ...]) -> sp.Expr:
        if tree == LEAF:
            return 1 / h(labels[0])
        return sp.Function(f"w{_shape(tree)}")(*[h(label) for label in labels])


def projectors(rule: Rule) -> dict[str, sp.Expr]:
    """The six projectors in the eigenbasis, as functions of h_a, h_b(, h_c).

    >>> projectors(GradientFlow())["Z_A"]
    1/(h_a*(h_a + h_b))
    """
    found = {}
    for term in (*expansion(("δ",), 2), *expansion(("δ",), 3)):
        name = NAMES[term.tensor, term.subscripts.index("δ")]
        found[name] = sp.factor(term_weight(rule, term))
    return {name: found[name] for name in NAMES.values()}


def term_weight(rule: Rule, term: Term) -> sp.Expr:
    """A term's coefficient with its branches' weights: the projector that multiplies its tensor."""
    return term.coefficient * sp.prod([rule.weight(tree, labels) for tree, labels in term.branches])


def universal() -> list[str]:
    """The projectors that are the same for every algorithm that reaches its targets.

    >>> universal()
    ['Z_B', 'Z_IB']
    """
    return [name for name, value in projectors(AnyAlgorithm()).items() if not value.atoms(sp.Function)]


def _times(first: Exponentials, second: Exponentials) -> Exponentials:
    product: Exponentials = {}
    for a, x in first.items():
        for b, y in second.items():
            modes = tuple(sorted(a + b))
            product[modes] = product.get(modes, sp.S.Zero) + x * y
    return product


def _shape(tree: Tree) -> str:
    return "(" + "".join(_shape(branch) for branch in tree) + ")"
