"""Training as a sum over trees: how outputs, NTK and dNTK move, and why there are exactly six projectors.

Every step moves the parameters by -λ Σ_a ∇z_a(θ) times errors, so the displacement is a series over rooted trees of
training samples: a vertex a with k branches is λ D^{k+1} z_a applied to them. A contracted tree depends on its graph
only: an edge is the NTK, a path of three the dNTK, a star of four the first and a path of four the second ddNTK.
Counting the ways to mark one vertex δ gives the network output (infinity.141); marking an edge gives the NTK in time
(infinity.117); marking a path of three gives the dNTK in time (infinity.102).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import factorial, prod

import sympy as sp

Tree = tuple["Tree", ...]
"""A rooted tree of training samples: its root's branches, sorted."""

LEAF: Tree = ()
TENSORS = {(1, 1): "H", (1, 1, 2): "dH", (1, 1, 1, 3): "ddI", (1, 1, 2, 2): "ddII"}
"""Names by the sorted degrees of the graph's vertices."""


def trees(size: int) -> list[Tree]:
    """All rooted trees with `size` vertices.

    >>> [len(trees(n)) for n in (1, 2, 3, 4)]
    [1, 1, 2, 4]
    """
    return list(forests(size - 1))


def forests(size: int) -> list[tuple[Tree, ...]]:
    """All multisets of rooted trees with `size` vertices in total."""
    if size == 0:
        return [()]
    found: set[tuple[Tree, ...]] = set()
    for parts in _partitions(size):
        choices = []
        for part in sorted(set(parts)):
            choices.append(list(combinations_with_replacement(trees(part), parts.count(part))))
        for choice in product(*choices):
            found.add(tuple(sorted(tree for group in choice for tree in group)))
    return sorted(found, key=_key)


def _partitions(size: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    if size == 0:
        yield ()
    for part in range(min(size, largest or size), 0, -1):
        for rest in _partitions(size - part, part):
            yield (part, *rest)


def _key(tree: Tree) -> tuple:
    return (count(tree), len(tree), tuple(_key(branch) for branch in tree))


def count(tree: Tree) -> int:
    """The number of vertices, the root included."""
    return 1 + sum(count(branch) for branch in tree)


def symmetry(branches: tuple[Tree, ...]) -> int:
    """k! of each kind of equal branches: what the Taylor series divides by at one vertex."""
    return prod(factorial(branches.count(branch)) for branch in set(branches))


@dataclass(frozen=True)
class Term:
    """coefficient × Π weights × tensor: one tree's share, with the tensor's subscripts and each branch's labels."""

    tensor: str
    subscripts: tuple[str, ...]
    coefficient: sp.Rational
    branches: tuple[tuple[Tree, tuple[str, ...]], ...]


def expansion(marked: tuple[str, ...], order: int) -> list[Term]:
    """How the object on the marked vertices (a path, in the given order) moves at `order` in the training samples.

    One mark is the output, two are the NTK, three the dNTK with its first index in the middle.

    >>> [term.tensor + " " + " ".join(term.subscripts) for term in expansion(("δ",), 3)]
    ['ddII a b δ c', 'ddI a δ b c', 'ddII δ a b c', 'ddI δ a b c']
    """
    terms = []
    for sizes in _compositions(order, len(marked)):
        for forest in product(*(forests(size) for size in sizes)):
            terms.append(_term(marked, forest))
    return terms


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _term(marked: tuple[str, ...], forest: tuple[tuple[Tree, ...], ...]) -> Term:
    names: list[str] = list(marked)
    edges = [(0, k) for k in range(1, len(marked))]
    branches: list[tuple[Tree, list[int]]] = []

    def grow(tree: Tree, parent: int) -> list[int]:
        vertex = len(names)
        names.append("")
        edges.append((parent, vertex))
        return [vertex] + [inner for branch in tree for inner in grow(branch, vertex)]

    for root, group in enumerate(forest):
        for tree in group:
            branches.append((tree, grow(tree, root)))
    subscripts = _read(edges, len(names))
    labels = iter("abcdef")
    for vertex in subscripts:
        names[vertex] = names[vertex] or next(labels)
    degrees = tuple(sorted(sum(vertex in edge for edge in edges) for vertex in range(len(names))))
    training = len(names) - len(marked)
    return Term(
        TENSORS[degrees],
        tuple(names[vertex] for vertex in subscripts),
        sp.Rational((-1) ** training, prod(symmetry(group) for group in forest)),
        tuple((tree, tuple(names[vertex] for vertex in vertices)) for tree, vertices in branches),
    )


def _read(edges: list[tuple[int, int]], size: int) -> tuple[int, ...]:
    """The vertices in the order of the tensor's subscripts: inner ones first, then the ends in the same order.

    Marked vertices have the smallest numbers, and along a branch numbers grow.
    """
    near = {v: [b if a == v else a for a, b in edges if v in (a, b)] for v in range(size)}
    if size == 2:
        return (0, 1)
    inner = [v for v in near if len(near[v]) > 1]
    return (*inner, *(v for center in inner for v in near[center] if len(near[v]) == 1))
