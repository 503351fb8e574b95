"""One draw of the 1/n forces on the outputs: neurons, initial outputs and times in, a vector over the inputs out.

Every contribution of the generated tables is a contraction of a tensor with errors, whose initial outputs are drawn
with both signs, or with targets and a function of the training NTK between two slots; summed over the hidden layers
that a neuron can sit in. The mean over draws is the exact contraction. Arrays: (draws, signs of z, outputs, inputs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp

from numeric.contributions import Contraction, Contribution, Pairing
from numeric.generated.adjoint import CONTRACTIONS, MOMENTS
from numeric.generated.training import CUMULANTS
from numeric.trained.sampled.graph import Edge, Rows, acyclic, contract, factor_edge, matrix_edge, object_edge
from numeric.trained.sampled.objects import (
    Activities,
    HiddenLayer,
    Made,
    Piece,
    activities_of,
    drawn_pieces,
    exact_pieces,
    made,
)
from numeric.trained.statistics import partner

Array = jax.Array
Weights = Mapping[Contribution, tuple[Array, Sequence[Array]]]
"""For each contribution a number for each sample and factors on its modes, (S,) and (S, M) each."""
Placed = tuple[float, dict[int, Array], dict[tuple[int, int], Array]]
"""A number, vectors on slots, functions of the training NTK between slots."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["layers", "factors", "initial", "U", "y", "pieces", "means", "thin"],
    meta_fields=["derivatives", "shares"],
)
@dataclass(frozen=True)
class Theory:
    """What a draw needs: hidden layers from the first up, their factors F Fᵀ = K, modes, targets.

    `initial` is such a factor of the outputs' kernel, `U` is (inputs, modes), zero on test inputs; `y` (outputs,
    modes); `shares` are n_{L-1} / n_l. `pieces` are the exact pieces of every kind of pair for a neuron of each hidden
    layer, `means` the means of those objects that enter by their covariance. `thin` is a factor of the first
    layer's NTK with few columns (None: it has as many as rows).
    """

    derivatives: Callable[[Array, int], Array]
    layers: tuple[HiddenLayer, ...]
    factors: tuple[Array, ...]
    initial: Array
    shares: tuple[float, ...]
    U: Array
    y: Array
    pieces: tuple[dict[str, tuple[Piece, ...]], ...]
    means: tuple[dict[str, Array], ...]
    thin: Array | None = None


def objects_of(
    layers: Sequence[HiddenLayer],
) -> tuple[tuple[dict[str, tuple[Piece, ...]], ...], tuple[dict[str, Array], ...]]:
    """`pieces` and `means` of a theory."""
    kinds = sorted({kind for own in CONTRACTIONS.values() for kind in own.kinds})
    centered = sorted({kind for own in CONTRACTIONS.values() if own.centered for kind in own.kinds})
    pieces = tuple({kind: exact_pieces(kind, layers[k:]) for kind in kinds} for k in range(len(layers)))
    means = tuple({kind: mean_object(own[kind], layer) for kind in centered} for own, layer in zip(pieces, layers))
    return pieces, means


def mean_object(pieces: Sequence[Piece], layer: HiddenLayer) -> Array:
    """<O_12> over the source neuron."""
    total = jnp.zeros_like(layer.K)
    for piece in pieces:
        orders = (*piece.left, *piece.right)
        known = (orders[0], orders[1]) in layer.brackets
        average = layer.brackets[orders[0], orders[1]] if known else layer.brackets[orders[1], orders[0]].T
        if not piece.right or not piece.left:
            own = jnp.diagonal(average)
            average = own[:, None] if piece.left else own[None, :]
        total = total + piece.number * average * (1.0 if piece.matrix is None else piece.matrix)
    return total


@dataclass(frozen=True)
class Draw:
    """Drawn neurons: of each hidden layer as a source, and for each source one of every layer above, twice.

    `errors` are initial errors ±z - y in the modes, z drawn for each output: (S, 2, outputs, M); `mixed` are they in an
    order that a random number shifts, times the root of their number: the mean of mixed ⊗ mixed in a row is the sum
    over outputs of errors ⊗ errors, and so is its mean over the rows, draw by draw. Neurons above are drawn for each
    row.
    """

    sources: Sequence[Activities]
    above: Sequence[tuple[Sequence[Activities], Sequence[Activities]]]
    errors: Array
    mixed: Array


def draw(theory: Theory, key: Array, count: int) -> tuple[Draw, Array]:
    """`count` draws, and the initial outputs on all inputs (S, outputs, N); the same ones in either precision."""
    kind = theory.U.dtype
    keys = iter(jax.random.split(key, 2 + len(theory.layers) * (2 * len(theory.layers) + 1)))

    def neurons(layer: int, rows: int = 1) -> Activities:
        noise = jax.random.normal(next(keys), (count, 1, rows, len(theory.U)), jnp.float32).astype(kind)
        return activities_of(theory.derivatives, noise @ theory.factors[layer].T)

    outputs = len(theory.y)
    sources, above = [], []
    for k in range(len(theory.layers)):
        sources.append(neurons(k))
        up = range(k + 1, len(theory.layers))
        above.append(([neurons(m, outputs) for m in up], [neurons(m, outputs) for m in up]))
    noise = jax.random.normal(next(keys), (count, outputs, theory.initial.shape[1]), jnp.float32).astype(kind)
    z = noise @ theory.initial.T
    modes, y = z @ theory.U, theory.y[None]
    errors = jnp.stack([modes - y, -modes - y], axis=1)
    shift = jax.random.randint(next(keys), (count, 1), 0, outputs)
    order = (jnp.arange(outputs)[None, :] + shift) % outputs
    mixed = outputs**0.5 * jnp.take_along_axis(errors, order[:, None, :, None], axis=2)
    return Draw(sources, above, errors, mixed), z


class Forces:
    """All contributions for one draw; vectors that several of them share are made once."""

    def __init__(self, theory: Theory, draw: Draw):
        self.theory, self.draw = theory, draw
        self.ones = jnp.ones((1, 1, 1, len(theory.U)), theory.U.dtype)
        self._exact = [
            {kind: made(pieces, source) for kind, pieces in own.items()}
            for own, source in zip(theory.pieces, draw.sources)
        ]
        self._drawn: dict[tuple[int, str, int], list[Made]] = {}

    def drawn(self, layer: int, kind: str, which: int) -> list[Made]:
        key = (layer, kind, which)
        if key not in self._drawn:
            theory, above = self.theory, self.draw.above[layer][which]
            self._drawn[key] = drawn_pieces(kind, theory.layers[layer:], self.draw.sources[layer], above)
        return self._drawn[key]

    def force(self, c: Contribution, weight: tuple[Array, Sequence[Array]]) -> Array:
        """One contribution's force on the outputs, (S, outputs, inputs)."""
        return jnp.mean(self.signed(c, weight, False), axis=1)

    def signed(self, c: Contribution, weight: tuple[Array, Sequence[Array]], linear: bool = True) -> Array:
        """The force for both signs of z, (S, 2, outputs, inputs).

        Where z enters linearly only, and not `linear`, the mean over the sign on an axis of length 1.
        """
        number, factors = weight
        total: Array | None = None
        for pairing in CUMULANTS[c.product]:
            carrier = c.internal.index(partner(pairing.pairs, c.external[0]))
            for scale, vectors, bridges in self._moment(c, carrier, factors, linear):
                value = scale * self.tensor(
                    pairing, c, vectors, bridges, c.external[0], self._rows(pairing, c, carrier, vectors)
                )
                total = value if total is None else total + value
        assert total is not None
        return number[:, None, None, None] * total

    def _moment(self, c: Contribution, carrier: int, factors: Sequence[Array], linear: bool) -> Iterator[Placed]:
        """What stands for the errors' moment: drawn errors where there are no legs, else targets and bridges."""
        if set(c.kinds) == {"e"}:
            vectors = {}
            for slot in range(len(c.kinds)):
                errors = self.draw.errors if slot == carrier else self.draw.mixed
                vectors[slot] = self.vector(c, slot, errors, factors)
            yield 1.0, vectors, {}
            return
        own = -self.draw.errors if linear else self.theory.y[None, None]
        for term in MOMENTS[c.kinds][carrier]:
            assert not term.kernels and all(component == "i" for _, component in term.targets)
            vectors = {slot: self.vector(c, slot, own, factors) for slot, _ in term.targets}
            bridges = {pair: self.factor(c, pair, factors) for pair in term.deltas}
            yield term.sign * len(self.theory.y) ** term.loops, vectors, bridges

    def _rows(self, pairing: Pairing, c: Contribution, carrier: int, vectors: Mapping[int, Array]) -> Rows:
        """Which vectors of a contraction are drawn anew for each output: all errors but that of the output itself."""
        labels = {slot: pairing.order.index(c.internal[slot]) for slot in vectors}
        if len(labels) == 1:
            return Rows(next(iter(labels.values())), ())
        return Rows(labels.pop(carrier), (frozenset(labels.values()),))

    def factor(self, c: Contribution, slots: Sequence[int], factors: Sequence[Array]) -> Array:
        """The weight's factors on the modes of these slots: (S, 1, 1, M)."""
        own = [factors[c.modes.index(slot)] for slot in slots if slot in c.modes]
        value = own[0]
        for other in own[1:]:
            value = value * other
        return value[:, None, None, :]

    def vector(self, c: Contribution, slot: int, modes: Array, factors: Sequence[Array]) -> Array:
        return (modes * self.factor(c, (slot,), factors)) @ self.theory.U.T

    def tensor(
        self,
        pairing: Pairing,
        c: Contribution,
        vectors: Mapping[int, Array],
        bridges: Mapping[tuple[int, int], Array],
        open_slot: int,
        rows: Rows | None = None,
        outside: Array | None = None,
    ) -> Array:
        """One tensor with vectors on internal slots, functions of the training NTK between them; by all hidden layers.

        One external slot stays open; `outside` is a vector on the first, if that is another one. `rows` says which
        vectors are drawn for each output, without it none are averaged over outputs.
        """
        axis = {slot: pairing.order.index(slot) for slot in range(4)}
        placed: list[Array | None] = [None] * 4
        for slot, vector in vectors.items():
            placed[axis[c.internal[slot]]] = vector
        joined = [
            Edge(axis[c.internal[a]], axis[c.internal[b]], *(self._across(factor),) * 2)
            for (a, b), factor in bridges.items()
        ]
        if outside is not None:
            placed[axis[c.external[0]]] = outside
        root = axis[open_slot]
        total: Array | None = None
        for layer, share in enumerate(self.theory.shares):
            value = share * self._at(layer, CONTRACTIONS[pairing.tensor], placed, joined, root, rows)
            total = value if total is None else total + value
        assert total is not None
        return total

    def _across(self, factor: Array) -> Callable[[Array], Array]:
        U = self.theory.U
        return lambda v: ((v @ U) * factor) @ U.T

    def link(self, layer: int, first: int, second: int) -> Edge:
        """The NTK of a hidden layer between two labels; of the first one by the inputs where they are few numbers."""
        thin = self.theory.thin
        if layer or thin is None:
            return matrix_edge(first, second, self.theory.layers[layer].Theta)
        return factor_edge(first, second, thin)

    def _at(
        self,
        layer: int,
        own: Contraction,
        vectors: Sequence[Array | None],
        joined: Sequence[Edge],
        root: int,
        rows: Rows | None = None,
    ) -> Array:
        """The share of neurons of one hidden layer."""
        edges = [self.link(layer, *labels) for labels in own.links] + list(joined)
        fixed = [(edge.first, edge.second) for edge in edges]
        exact = [list(self._exact[layer][kind]) for kind in own.kinds]
        if own.centered:
            for pieces, kind in zip(exact, own.kinds):
                pieces.append(Made(None, None, -self.theory.means[layer][kind]))
        for as_edge in ((True, True), (True, False), (False, True), (False, False)):
            objects = [axes for axes, whole in zip(own.axes, as_edge) if whole]
            if not acyclic([*fixed, *objects]):
                continue
            whole = [object_edge(axes, pieces) for axes, pieces, w in zip(own.axes, exact, as_edge) if w]
            loose = [self.drawn(layer, kind, k) for k, kind in enumerate(own.kinds) if not as_edge[k]]
            places = [axes for axes, w in zip(own.axes, as_edge) if not w]
            return _with_loose(vectors, [*edges, *whole], places, loose, root, self.ones, rows)
        raise AssertionError("links close a cycle")


def _with_loose(
    vectors: Sequence[Array | None],
    edges: Sequence[Edge],
    places: Sequence[tuple[int, int]],
    loose: Sequence[Sequence[Made]],
    root: int,
    ones: Array,
    rows: Rows | None = None,
) -> Array:
    """Σ over the pieces of the pairs that are no edges; their vectors join those of the labels."""
    if not loose:
        return contract(vectors, edges, root, ones, rows)
    if rows is not None:
        rows = replace(rows, groups=(*rows.groups, frozenset(places[0])))
    total: Array | None = None
    for piece in loose[0]:
        own, more = list(vectors), list(edges)
        for label, vector in zip(places[0], (piece.left, piece.right)):
            if vector is not None:
                before = own[label]
                own[label] = vector if before is None else before * vector
        if piece.matrix is not None:
            more.append(matrix_edge(*places[0], piece.matrix))
        value = _with_loose(own, more, places[1:], loose[1:], root, ones, rows)
        total = value if total is None else total + value
    assert total is not None
    return total
