"""Contractions of a tensor as trees: four labels, the pairs' objects and NTKs as edges, vectors on the labels.

Without cycles a contraction costs one product of a matrix and a vector for each edge. Every tensor's links are a tree
(its cumulant's forest); the pairs' edges may close cycles, and then the drawn form of a pair, without edges, is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from numeric.trained.sampled.objects import Made

Array = jax.Array


@dataclass(frozen=True)
class Edge:
    """`forward` takes a vector on `first` to one on `second`, `backward` the other way."""

    first: int
    second: int
    forward: Callable[[Array], Array]
    backward: Callable[[Array], Array]


def matrix_edge(first: int, second: int, matrix: Array) -> Edge:
    return Edge(first, second, lambda v: v @ matrix, lambda v: v @ matrix.T)


def object_edge(axes: tuple[int, int], pieces: Sequence[Made]) -> Edge:
    """A pair's object as one edge, pieces without a matrix among them."""

    def across(v: Array, back: bool) -> Array:
        total: Array | None = None
        for piece in pieces:
            near, far = (piece.right, piece.left) if back else (piece.left, piece.right)
            x = v if near is None else v * near
            if piece.matrix is None:
                x = jnp.sum(x, axis=-1, keepdims=True)
            else:
                x = x @ (piece.matrix.T if back else piece.matrix)
            x = x if far is None else x * far
            total = x if total is None else total + x
        assert total is not None
        return total

    return Edge(*axes, lambda v: across(v, False), lambda v: across(v, True))


def acyclic(edges: Sequence[tuple[int, int]]) -> bool:
    """Whether edges between labels close no cycle."""
    home = {label: label for edge in edges for label in edge}
    for first, second in edges:
        a, b = home[first], home[second]
        if a == b:
            return False
        home = {label: a if own == b else own for label, own in home.items()}
    return True


def contract(vectors: Sequence[Array | None], edges: Sequence[Edge], root: int, ones: Array) -> Array:
    """Σ over all labels but `root` of vectors and edges; `ones` has the size of the last axis."""
    seen: set[int] = set()

    def gather(label: int, above: Edge | None) -> Array:
        seen.add(label)
        value = vectors[label]
        for edge in edges:
            if edge is above or label not in (edge.first, edge.second):
                continue
            if label == edge.second:
                message = edge.forward(gather(edge.first, edge))
            else:
                message = edge.backward(gather(edge.second, edge))
            value = message if value is None else value * message
        return ones if value is None else value

    total = gather(root, None)
    for label in range(len(vectors)):
        if label not in seen:
            total = total * jnp.sum(gather(label, None), axis=-1, keepdims=True)
    return total
