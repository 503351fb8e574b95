"""One draw of the 1/n forces on the outputs: neurons, initial outputs and times in, a vector over the inputs out.

Every contribution of the generated tables is a contraction of a tensor with a target of the output and with something
between two slots: a function of the training NTK, or the errors' second moment. It is summed over the hidden layers
that a neuron can sit in; averages over everything but the neuron are exact where the contraction is a tree, and else
by random vectors. The mean over draws is the exact contraction. Arrays: (draws, signs of z, outputs, inputs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax

from numeric.contributions import Contraction, Contribution, Pairing
from numeric.generated.adjoint import CONTRACTIONS, MOMENTS, PAIRS
from numeric.generated.training import CUMULANTS
from numeric.trained.sampled.draws import Draw
from numeric.trained.sampled.graph import Bond, Edge, Rows, contract, factor_edge, joined, matrix_bond, object_bond
from numeric.trained.sampled.objects import Made, made
from numeric.trained.sampled.opened import BRIDGE, opening, without_edges
from numeric.trained.sampled.theory import Still, Theory
from numeric.trained.statistics import partner

Array = jax.Array
Weights = Mapping[Contribution, tuple[Array, Sequence[Array]]]
"""For each contribution a number for each sample and factors on its modes, (S,) and (S, M) each."""


@dataclass(frozen=True)
class Bridge:
    """What the moment of the errors puts between two internal slots: an edge, a matrix at rest, random vectors.

    `across` takes a vector on the first slot to the second, `back` the other way; `probe` is a pair of vectors whose
    product has that mean.
    """

    slots: tuple[int, int]
    across: Callable[[Array], Array]
    back: Callable[[Array], Array]
    matrix: Array | None = None
    probe: Callable[[], tuple[Array, Array]] | None = None


class Forces:
    """All contributions for one draw; vectors that several of them share are made once."""

    def __init__(self, theory: Theory, draw: Draw, still: Still | None = None):
        self.theory, self.draw, self.still = theory, draw, still
        self._exact = [
            {kind: made(pieces, source) for kind, pieces in own.items()}
            for own, source in zip(theory.pieces, draw.sources)
        ]
        self._loose: dict[tuple[int, str, int], list[tuple[Made, bool]]] = {}

    def loose(self, layer: int, kind: str, which: int) -> list[tuple[Made, bool]]:
        """A pair without edges; `which` of a tensor's two pairs it is: each has random vectors of its own."""
        key = (layer, kind, which)
        if key not in self._loose:
            theory = self.theory
            place = (2 * layer + which) * len(PAIRS) + sorted(PAIRS).index(kind)

            made_here, openings = self._exact[layer][kind], theory.openings[layer][kind]
            self._loose[key] = list(without_edges(made_here, openings, partial(self.draw.noise, place)))
        return self._loose[key]

    def force(self, c: Contribution, weight: tuple[Array, Sequence[Array]], at_rest: bool = False) -> Array:
        """One contribution's force on the outputs, initial values averaged over if possible: (S, outputs, inputs).

        `at_rest` says that all factors of the weight are 1/h, for which `still` has the moments.
        """
        number, factors = weight
        total: Array | None = None
        for pairing in CUMULANTS[c.product]:
            carrier = c.internal.index(partner(pairing.pairs, c.external[0]))
            for sign, slot, bridge in self._moment(c, carrier, factors, at_rest):
                y = self.vector(c, slot, self.theory.y[None, None], factors)
                rows = Rows(pairing.order.index(c.internal[slot]), ())
                value = sign * self.tensor(pairing, c, {slot: y}, bridge, c.external[0], rows)
                total = value if total is None else total + value
        assert total is not None
        return (number[:, None, None, None] * total)[:, 0]

    def _moment(
        self, c: Contribution, carrier: int, factors: Sequence[Array], at_rest: bool
    ) -> Iterator[tuple[float, int, Bridge]]:
        """The moment of errors and legs: a sign, the slot of the output's own target, what joins the other two."""
        still = self.still if at_rest else None
        together: dict[tuple[int, tuple[int, int]], list[float]] = {}
        for term in MOMENTS[c.kinds][carrier]:
            (slot,) = (place for place, component in term.targets if component == "i")
            number = term.sign * len(self.theory.y) ** term.loops
            if term.deltas:
                yield number, slot, self.delta(c, term.deltas[0], factors, still)
                continue
            others = tuple(place for place, component in term.targets if component != "i")
            pair = term.kernels[0] if term.kernels else (others[0], others[1])
            kernels_targets = together.setdefault((slot, pair), [0.0, 0.0])
            kernels_targets[0 if term.kernels else 1] += number
        for (slot, pair), (kernels, targets) in together.items():
            yield -1.0, slot, self._second(c, pair, factors, (-kernels, -targets), still)

    def delta(
        self, c: Contribution, slots: tuple[int, int], factors: Sequence[Array], still: Still | None = None
    ) -> Bridge:
        """A function of the training NTK between two slots."""
        across = partial(self._through, self.factor(c, slots, factors))
        return Bridge(slots, across, across, None if still is None else still.inverse)

    def _through(self, factor: Array, v: Array) -> Array:
        U = self.theory.U
        return ((v @ U) * factor) @ U.T

    def _second(
        self,
        c: Contribution,
        slots: tuple[int, int],
        factors: Sequence[Array],
        numbers: tuple[float, float],
        still: Still | None,
    ) -> Bridge:
        """numbers[0] K + numbers[1] Σ y y between two slots."""
        theory, (kernels, targets) = self.theory, numbers
        modes = kernels * theory.kernel + targets * theory.y.T @ theory.y
        first, second = (self.factor(c, (slot,), factors) for slot in slots)

        def carried(v: Array, near: Array, far: Array) -> Array:
            return ((((v @ theory.U) * near) @ modes) * far) @ theory.U.T

        def probe() -> tuple[Array, Array]:
            rows = kernels**0.5 * self.draw.z + targets**0.5 * self.draw.targets
            return (rows * first) @ theory.U.T, (rows * second) @ theory.U.T

        matrix = None if still is None else kernels * still.kernel + targets * still.targets
        return Bridge(
            slots, partial(carried, near=first, far=second), partial(carried, near=second, far=first), matrix, probe
        )

    def signed(self, c: Contribution, weight: tuple[Array, Sequence[Array]]) -> Array:
        """The force for both signs of the initial outputs, (S, 2, outputs, inputs)."""
        number, factors = weight
        total: Array | None = None
        for pairing in CUMULANTS[c.product]:
            carrier = c.internal.index(partner(pairing.pairs, c.external[0]))
            for scale, vectors, bridge in self._drawn_moment(c, carrier, factors):
                value = scale * self.tensor(
                    pairing, c, vectors, bridge, c.external[0], self._rows(pairing, c, carrier, vectors)
                )
                total = value if total is None else total + value
        assert total is not None
        return number[:, None, None, None] * total

    def _drawn_moment(
        self, c: Contribution, carrier: int, factors: Sequence[Array]
    ) -> Iterator[tuple[float, dict[int, Array], Bridge | None]]:
        """What stands for the errors' moment: drawn errors where there are no legs, else one of them and a bridge."""
        if set(c.kinds) == {"e"}:
            vectors = {}
            for slot in range(len(c.kinds)):
                errors = self.draw.errors if slot == carrier else self.draw.mixed
                vectors[slot] = self.vector(c, slot, errors, factors)
            yield 1.0, vectors, None
            return
        for term in MOMENTS[c.kinds][carrier]:
            assert not term.kernels and all(component == "i" for _, component in term.targets)
            vectors = {slot: self.vector(c, slot, -self.draw.errors, factors) for slot, _ in term.targets}
            yield term.sign * len(self.theory.y) ** term.loops, vectors, self.delta(c, term.deltas[0], factors)

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
        bridge: Bridge | None,
        open_slot: int,
        rows: Rows | None = None,
        outside: Array | None = None,
    ) -> Array:
        """One tensor with vectors on internal slots and a bridge between two of them; by all hidden layers.

        One external slot stays open; `outside` is a vector on the first, if that is another one. `rows` says which
        vectors are drawn for each output, without it none are averaged over outputs.
        """
        axis = {slot: pairing.order.index(slot) for slot in range(4)}
        placed: list[Array | None] = [None] * 4
        for slot, vector in vectors.items():
            placed[axis[c.internal[slot]]] = vector
        if outside is not None:
            placed[axis[c.external[0]]] = outside
        root = axis[open_slot]
        if bridge is not None:
            first, second = (axis[c.internal[slot]] for slot in bridge.slots)
            bridge = replace(bridge, slots=(first, second))
        total: Array | None = None
        for layer, share in enumerate(self.theory.shares):
            value = share * self._at(layer, CONTRACTIONS[pairing.tensor], placed, bridge, root, rows)
            total = value if total is None else total + value
        assert total is not None
        return total

    def link(self, layer: int, first: int, second: int) -> Bond:
        """The NTK of a hidden layer between two labels; of the first one by the inputs where they are few numbers."""
        thin, theta = self.theory.thin, self.theory.layers[layer].Theta
        edge = None if layer or thin is None else factor_edge(first, second, thin)
        return matrix_bond((first, second), theta, edge)

    def _at(
        self,
        layer: int,
        own: Contraction,
        vectors: Sequence[Array | None],
        bridge: Bridge | None,
        root: int,
        rows: Rows | None = None,
    ) -> Array:
        """The share of neurons of one hidden layer."""
        bonds = [self.link(layer, *labels) for labels in own.links]
        exact = [list(self._exact[layer][kind]) for kind in own.kinds]
        if own.centered:
            for pieces, kind in zip(exact, own.kinds):
                pieces.append(Made(None, None, -self.theory.means[layer][kind]))
        objects = [object_bond(axes, pieces) for axes, pieces in zip(own.axes, exact)]
        joint = [] if bridge is None else [_bridge_bond(bridge)]
        opened = opening(
            own,
            self.theory.pieces[layer],
            None if bridge is None else (bridge.slots, bool(joint[0].pieces), bridge.probe is not None),
        )
        assert opened is not None
        edges = joined(
            [*bonds, *(joint if BRIDGE not in opened else []), *(o for k, o in enumerate(objects) if k not in opened)]
        )
        assert edges is not None
        vectors = list(vectors)
        if BRIDGE in opened:
            assert bridge is not None and bridge.probe is not None
            for label, vector in zip(bridge.slots, bridge.probe()):
                vectors[label] = _times(vectors[label], vector)
            rows = rows and replace(rows, groups=(*rows.groups, frozenset(bridge.slots)))
        free = [k for k in opened if k != BRIDGE]
        return _with_loose(
            vectors,
            edges,
            [own.axes[k] for k in free],
            [self.loose(layer, own.kinds[k], k) for k in free],
            root,
            self.draw.ones,
            rows,
        )


def _bridge_bond(bridge: Bridge) -> Bond:
    edge = Edge(*bridge.slots, bridge.across, bridge.back)
    if bridge.matrix is None:
        return Bond(None, edge)
    return matrix_bond(bridge.slots, bridge.matrix)


def _with_loose(
    vectors: Sequence[Array | None],
    edges: Sequence[Edge],
    places: Sequence[tuple[int, int]],
    loose: Sequence[Sequence[tuple[Made, bool]]],
    root: int,
    ones: Array,
    rows: Rows | None = None,
) -> Array:
    """Σ over the pieces of the pairs that are no edges; their vectors join those of the labels."""
    if not loose:
        return contract(vectors, edges, root, ones, rows)
    total: Array | None = None
    for piece, random in loose[0]:
        own, more, drawn = list(vectors), list(edges), rows
        if rows is not None and random:
            drawn = replace(rows, groups=(*rows.groups, frozenset(places[0])))
        for label, vector in zip(places[0], (piece.left, piece.right)):
            if vector is not None:
                own[label] = _times(own[label], vector)
        value = _with_loose(own, more, places[1:], loose[1:], root, ones, drawn)
        total = value if total is None else total + value
    assert total is not None
    return total


def _times(a: Array | None, b: Array) -> Array:
    return b if a is None else a * b
