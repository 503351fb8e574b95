"""Contractions of a tensor as trees: four labels, the pairs' objects and NTKs as edges, vectors on the labels.

Without cycles a contraction costs one product of a matrix and a vector for each edge. What joins the same two labels is
multiplied, entry by entry, and is one edge. Longer cycles are opened (`opened.py`): an edge becomes a sum of products
of vectors on its two labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax

from numeric.trained.sampled.objects import Made

Array = jax.Array


@dataclass(frozen=True)
class Edge:
    """`forward` takes a vector on `first` to one on `second`, `backward` the other way."""

    first: int
    second: int
    forward: Callable[[Array], Array]
    backward: Callable[[Array], Array]


@dataclass(frozen=True)
class Rows:
    """An axis along which vectors are drawn anew: groups of labels drawn together, and the label whose rows are given.

    Rows of the carrier are different questions (outputs) and stay apart. The others are independent draws of the same
    thing: once all labels of a group have been multiplied their mean over the rows can be taken, before it meets the
    carrier, so that each output sees all draws.
    """

    carrier: int
    groups: tuple[frozenset[int], ...]
    axis: int = -2

    def closed(self, labels: set[int]) -> bool:
        met = [group & labels for group in self.groups]
        return any(met) and all(not part or part == group for part, group in zip(met, self.groups))


def matrix_edge(first: int, second: int, matrix: Array) -> Edge:
    return Edge(first, second, lambda v: v @ matrix, lambda v: v @ matrix.T)


def factor_edge(first: int, second: int, factor: Array) -> Edge:
    """The matrix factor factorᵀ, for factors of few columns."""
    return Edge(first, second, *(lambda v: (v @ factor) @ factor.T,) * 2)


def object_edge(axes: tuple[int, int], pieces: Sequence[Made]) -> Edge:
    """A pair's object as one edge, pieces without a matrix among them."""

    def across(v: Array, back: bool) -> Array:
        total: Array | None = None
        for piece in pieces:
            near, far = (piece.right, piece.left) if back else (piece.left, piece.right)
            x = v if near is None else v * near
            if piece.matrix is None:
                x = x.sum(axis=-1, keepdims=True)
            else:
                x = x @ (piece.matrix.T if back else piece.matrix)
            x = x if far is None else x * far
            total = x if total is None else total + x
        assert total is not None
        return total

    return Edge(*axes, lambda v: across(v, False), lambda v: across(v, True))


@dataclass(frozen=True)
class Bond:
    """What joins two labels, as pieces; None where its matrix differs from draw to draw, and there is only an edge."""

    pieces: Sequence[Made] | None
    edge: Edge

    @property
    def axes(self) -> tuple[int, int]:
        return self.edge.first, self.edge.second


def matrix_bond(axes: tuple[int, int], matrix: Array, edge: Edge | None = None) -> Bond:
    """A symmetric matrix; `edge` is a cheaper way to apply it."""
    return Bond([Made(None, None, matrix)], matrix_edge(*axes, matrix) if edge is None else edge)


def object_bond(axes: tuple[int, int], pieces: Sequence[Made]) -> Bond:
    return Bond(pieces, object_edge(axes, pieces))


def joined(bonds: Sequence[Bond]) -> list[Edge] | None:
    """Bonds as edges without cycles, those of the same two labels as one; None where a cycle is left.

    Of bonds that are multiplied all but the last must be symmetric matrices.
    """
    single: dict[frozenset[int], Bond] = {}
    for bond in bonds:
        key = frozenset(bond.axes)
        if key in single:
            before = single[key].pieces
            if before is None or bond.pieces is None:
                return None
            (other,) = before
            assert other.matrix is not None
            bond = object_bond(bond.axes, [_multiplied(piece, other.matrix) for piece in bond.pieces])
        single[key] = bond
    return [bond.edge for bond in single.values()] if acyclic([bond.axes for bond in single.values()]) else None


def _multiplied(piece: Made, matrix: Array) -> Made:
    return Made(piece.left, piece.right, matrix if piece.matrix is None else piece.matrix * matrix)


def acyclic(edges: Sequence[tuple[int, int]]) -> bool:
    """Whether edges between labels close no cycle."""
    home = {label: label for edge in edges for label in edge}
    for first, second in edges:
        a, b = home[first], home[second]
        if a == b:
            return False
        home = {label: a if own == b else own for label, own in home.items()}
    return True


def contract(
    vectors: Sequence[Array | None],
    edges: Sequence[Edge],
    root: int,
    ones: Array,
    rows: Rows | None = None,
) -> Array:
    """Σ over all labels but `root` of vectors and edges; `ones` has the size of the last axis.

    With `rows`, what is drawn anew for each row is averaged over them as soon as all of it has been multiplied.
    """
    seen: set[int] = set()

    def gather(label: int, above: Edge | None) -> tuple[Array, set[int]]:
        seen.add(label)
        factors: list[tuple[Array, set[int]]] = []
        own = vectors[label]
        if own is not None:
            factors.append((own, {label}))
        for edge in edges:
            if edge is above or label not in (edge.first, edge.second):
                continue
            if label == edge.second:
                value, inside = gather(edge.first, edge)
                factors.append((edge.forward(value), inside))
            else:
                value, inside = gather(edge.second, edge)
                factors.append((edge.backward(value), inside))
        inside = {label}.union(*(labels for _, labels in factors))
        bound = [factor for factor in factors if rows is not None and rows.carrier in factor[1]]
        free = [factor for factor in factors if not any(factor is other for other in bound)]
        shared = _product([vector for vector, _ in free])
        if rows is not None and shared is not None and rows.closed(set().union(*(labels for _, labels in free))):
            shared = shared.mean(axis=rows.axis, keepdims=True)
        every = _product([*([] if shared is None else [shared]), *(vector for vector, _ in bound)])
        return ones if every is None else every, inside

    total, _ = gather(root, None)
    for label in range(len(vectors)):
        if label not in seen:
            total = total * gather(label, None)[0].sum(axis=-1, keepdims=True)
    return total


def _product(values: Sequence[Array]) -> Array | None:
    total: Array | None = None
    for value in values:
        total = value if total is None else total * value
    return total
