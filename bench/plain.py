"""Plain Monte Carlo of the 1/n forces, to compare with: neurons above and initial outputs drawn, nothing averaged."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from numeric.contributions import Contraction
from numeric.generated.adjoint import PAIRS
from numeric.trained.sampled.forces import Bridge, Forces
from numeric.trained.sampled.graph import Edge, Rows, contract, matrix_edge
from numeric.trained.sampled.objects import Activities, HiddenLayer, Made, Place, _number, _place, activities_of

Array = jax.Array


class PlainForces(Forces):
    """Every neuron above is drawn for both pairs."""

    def _drawn(self, layer: int, kind: str, which: int) -> list[Made]:
        theory, above = self.theory, []
        for upper in range(layer + 1, len(theory.layers)):
            key = jax.random.fold_in(self.draw.key, (layer * 64 + upper) * 2 + which)
            shape = (len(self.draw.z), 1, len(theory.y), len(theory.U))
            noise = jax.random.normal(key, shape, jnp.float32).astype(theory.U.dtype)
            above.append(activities_of(theory.derivatives, noise @ theory.factors[upper].T))
        return drawn_pieces(kind, theory.layers[layer:], self.draw.sources[layer], above)

    def _at(
        self,
        layer: int,
        own: Contraction,
        vectors: Sequence[Array | None],
        bridge: Bridge | None,
        root: int,
        rows: Rows | None = None,
    ) -> Array:
        edges = [self.link(layer, *labels).edge for labels in own.links]
        if bridge is not None:
            edges.append(Edge(*bridge.slots, bridge.across, bridge.back))
        loose = [self._drawn(layer, kind, k) for k, kind in enumerate(own.kinds)]
        if own.centered:
            for pieces, kind in zip(loose, own.kinds):
                pieces.append(Made(None, None, -self.theory.means[layer][kind]))
        return _contracted(vectors, edges, list(own.axes), loose, root, self.ones)


def _contracted(
    vectors: Sequence[Array | None],
    edges: Sequence[Edge],
    places: Sequence[tuple[int, int]],
    loose: Sequence[Sequence[Made]],
    root: int,
    ones: Array,
) -> Array:
    """Σ over the pieces of both pairs."""
    if not loose:
        return contract(vectors, edges, root, ones)
    total: Array | None = None
    for piece in loose[0]:
        own, more = list(vectors), list(edges)
        for label, vector in zip(places[0], (piece.left, piece.right)):
            if vector is not None:
                own[label] = _times(own[label], vector)
        if piece.matrix is not None:
            more.append(matrix_edge(*places[0], piece.matrix))
        value = _contracted(own, more, places[1:], loose[1:], root, ones)
        total = value if total is None else total + value
    assert total is not None
    return total


def drawn_pieces(
    kind: str, layers: Sequence[HiddenLayer], source: Activities, above: Sequence[Activities]
) -> list[Made]:
    """A kind of pair at the output for drawn source neurons, with one drawn neuron for each layer above."""
    states: list[tuple[Place, Array | None, Array | None, Array | None]] = [((kind, (0, 1)), None, None, None)]
    for layer, activities in zip(reversed(layers[1:]), reversed(above), strict=True):
        below = []
        for (own, at), left, right, matrix in states:
            for step in PAIRS[own].steps:
                number = _number(step.coefficient, layer.parameters)
                if at[0] == at[1]:
                    factor = number * _own(layer.brackets[step.orders])
                    if step.theta:
                        factor = factor * _own(layer.Theta)
                    ends = _times(left, factor) if at[0] == 0 else left, right if at[0] == 0 else _times(right, factor)
                    below.append((_place(step, at), *ends, matrix))
                    continue
                first, second = (activities[step.orders[k]] for k in at)
                edge = layer.Theta if step.theta else None
                joint = edge if matrix is None else matrix if edge is None else matrix * edge
                below.append((_place(step, at), _times(left, number * first), _times(right, second), joint))
        states = below
    found = []
    for (own, at), left, right, matrix in states:
        for origin in PAIRS[own].sources:
            number = _number(origin.coefficient, layers[0].parameters)
            first, second = (source[k] for k in origin.orders)
            edge = matrix
            if at[0] == at[1]:
                both = number * first * second * (_own(layers[0].Theta) if origin.theta else 1.0)
                ends = (_times(left, both), right) if at[0] == 0 else (left, _times(right, both))
            else:
                if at == (1, 0):
                    first, second = second, first
                ends = (_times(left, number * first), _times(right, second))
                if origin.theta:
                    edge = layers[0].Theta if edge is None else edge * layers[0].Theta
            found.append(Made(ends[0], ends[1], edge))
    return found


def _own(matrix: Array) -> Array:
    """The diagonal, laid out as vectors of drawn neurons are."""
    return jnp.diagonal(matrix)[None, None, None, :]


def _times(a: Array | None, b: Array) -> Array:
    return b if a is None else a * b
