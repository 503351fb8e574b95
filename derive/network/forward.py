r"""The chain rule on trees: H, dH, ddI, ddII of layer l+1 from those of layer l, (infinity.174) and (infinity.175).

Each contraction of the learning-rate tensor is with a bias, with a weight of layer l+1, or with a parameter below. z'
is linear in its own layer's parameters, so a vertex meets at most one contraction of the first two kinds; the others
pass through sigma(z_j), whose derivatives are sums over set partitions (Faa di Bruno) and split the vertex in several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeVar

import sympy as sp

from derive.errors import DeriveError
from derive.network.definition import IDENTITY, MLP, Bias, InputWeights, Layer, Skip, Term, Weights
from derive.network.trees import OBJECTS, Forest, recognize

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Factor:
    """phi^(order)(z_{neuron; label})."""

    neuron: int
    label: int
    order: int
    function: str


@dataclass(frozen=True, order=True)
class Tree:
    """An object of layer l; `slots` are its (neuron, sample label) in the order of its definition."""

    kind: str
    slots: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Contraction:
    """An edge that ended in a parameter of layer l+1: it ties the outer neurons of its two vertices."""

    vertices: tuple[int, int]
    term: Term


@dataclass(frozen=True)
class Leg:
    """An outer vertex that keeps one parameter of layer l+1 as a factor: b_i, W_ij, or the strength of a skip."""

    vertex: int
    term: Term


@dataclass(frozen=True)
class ForwardTerm:
    """One term of a forward equation. Inner neurons are named by the (first) outer vertex that they belong to."""

    contractions: tuple[Contraction, ...]
    legs: tuple[Leg, ...]
    factors: tuple[Factor, ...]
    trees: tuple[Tree, ...]

    @property
    def neurons(self) -> tuple[int, ...]:
        """The summed inner neurons."""
        used = {f.neuron for f in self.factors} | {neuron for tree in self.trees for neuron, _ in tree.slots}
        return tuple(sorted(used))

    @property
    def coefficient(self) -> sp.Expr:
        return sp.Mul(*(c.term.rate for c in self.contractions if not isinstance(c.term, Skip)))


def set_partitions(items: Sequence[T]) -> Iterator[tuple[tuple[T, ...], ...]]:
    """All ways to divide items into non-empty blocks."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for partition in set_partitions(rest):
        yield ((first,), *partition)
        for k, block in enumerate(partition):
            yield (*partition[:k], (first, *block), *partition[k + 1 :])


@cache
def forward(forest: Forest, layer: Layer = MLP) -> tuple[ForwardTerm, ...]:
    """Every term of a product of objects at layer l+1, in objects of layer l."""
    learning = [t for t in layer.terms if not isinstance(t, Skip) and t.rate != 0]
    terms: list[ForwardTerm] = []
    for choice in product([None, *learning], repeat=len(forest.edges)):
        terms += _with_contractions(forest, layer, choice)
    return tuple(terms)


def _with_contractions(forest: Forest, layer: Layer, choice: tuple[Term | None, ...]) -> Iterator[ForwardTerm]:
    """The terms in which edge number e contracts a parameter of the term choice[e] (None: a parameter below)."""
    own: dict[int, Term] = {}
    neuron = {v: v for v in forest.vertices}
    contractions = []
    for (u, v), term in zip(forest.edges, choice):
        if term is None:
            continue
        if u in own or v in own:
            return
        own[u] = own[v] = term
        neuron[max(u, v)] = min(u, v)
        contractions.append(Contraction((u, v), term))
    below = {
        v: tuple(e for e, (edge, t) in enumerate(zip(forest.edges, choice)) if t is None and v in edge)
        for v in forest.vertices
    }
    options = [_vertex_options(below[v], own.get(v), layer) for v in forest.vertices]
    for picks in product(*options):
        factors: list[Factor] = []
        blocks: list[tuple[int, tuple[int, ...]]] = []
        legs = []
        for v, (term, order, partition) in zip(forest.vertices, picks):
            if isinstance(term, Weights | Skip):
                function = term.activation if isinstance(term, Weights) else IDENTITY
                if (function, order) != (IDENTITY, 1):  # dz/dz = 1
                    factors.append(Factor(neuron[v], v, order, function))
            blocks += [(v, block) for block in partition]
            if v not in own:
                legs.append(Leg(v, term))
        trees = _assemble(forest, blocks, choice, neuron)
        yield ForwardTerm(tuple(contractions), tuple(legs), tuple(factors), trees)


def _vertex_options(
    edges: tuple[int, ...], own: Term | None, layer: Layer
) -> list[tuple[Term, int, tuple[tuple[int, ...], ...]]]:
    """(term of z', order of the activation's derivative, how the derivatives below are grouped) for one vertex."""
    options: list[tuple[Term, int, tuple[tuple[int, ...], ...]]] = []
    for term in [own] if own is not None else layer.terms:
        if isinstance(term, Bias | InputWeights):  # nothing below them to differentiate
            if not edges:
                options.append((term, 0, ()))
        elif isinstance(term, Skip):  # linear: one block, a derivative of z itself
            options.append((term, len(edges[:1]), (edges,) if edges else ()))
        else:
            orders = 1 if term.activation == IDENTITY else len(edges)
            options += [(term, len(p), p) for p in set_partitions(edges) if len(p) <= orders]
    return options


def _assemble(
    forest: Forest,
    blocks: list[tuple[int, tuple[int, ...]]],
    choice: tuple[Term | None, ...],
    neuron: dict[int, int],
) -> tuple[Tree, ...]:
    """Join the pieces of the vertices along the edges below and recognize the trees that they form."""
    home = {(v, e): k for k, (v, block) in enumerate(blocks) for e in block}
    edges = tuple((home[u, e], home[v, e]) for e, ((u, v), t) in enumerate(zip(forest.edges, choice)) if t is None)
    trees = []
    for tree in Forest(tuple(range(len(blocks))), edges).trees():
        kind, order = recognize(tree)
        trees.append(Tree(kind, tuple((neuron[blocks[k][0]], blocks[k][0]) for k in order)))
    return tuple(sorted(trees))


def forward_object(kind: str, layer: Layer = MLP) -> tuple[ForwardTerm, ...]:
    """The stochastic forward equation of one object: "z", "H", "dH", "ddI" or "ddII"."""
    if kind not in OBJECTS:
        raise DeriveError(f"there is no object {kind!r}; choose one of {', '.join(OBJECTS)}")
    return forward(OBJECTS[kind], layer)
