"""Objects of a pair of labels as one neuron makes them, carried to the output by the layers above: Σ l_1 E_12 r_2.

The generated maps (`numeric.generated.adjoint`) are run downwards: matrices that multiply a pair at the output become
matrices that multiply what a neuron of a hidden layer makes, averages over the neurons above done exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from numeric.contributions import Coefficient, PairStep
from numeric.generated.adjoint import PAIRS

Array = Any
"""A JAX array, or NumPy's before anything is drawn."""
Activities = Mapping[int, Array]
"""σ^(k) of drawn neurons on all inputs, by k: (samples, 1, 1, inputs)."""
Brackets = Mapping[tuple[int, int], Array]
Place = tuple[str, tuple[int, int]]
"""A kind of pair, and the labels of the output's pair (0, 1) where it sits."""
HIGHEST = max(
    max(k for m in PAIRS.values() for source in m.sources for k in source.orders),
    max(k for m in PAIRS.values() for step in m.steps for k in step.orders),
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HiddenLayer:
    """A hidden layer and the step that leads up from it: kernels, pair averages, C_W and λ_W of the next layer."""

    K: Array
    Theta: Array
    brackets: Brackets
    parameters: Mapping[str, float]


@partial(jax.tree_util.register_dataclass, data_fields=["matrix"], meta_fields=["left", "right", "number"])
@dataclass(frozen=True)
class Piece:
    """l_1 E_12 r_2: activities of the neuron by their orders on each label, and a matrix (None: a number)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    matrix: Array | None
    number: float = 1.0


def _number(coefficient: Coefficient, parameters: Mapping[str, float]) -> float:
    number, powers = coefficient
    for name, power in powers:
        number *= parameters[name] ** power
    return number


def needed_orders() -> tuple[tuple[int, int], ...]:
    """The pair averages that steps take."""
    return tuple(sorted({step.orders for own in PAIRS.values() for step in own.steps}))


def _place(step: PairStep, at: tuple[int, int]) -> Place:
    first, second = at[step.at[0]], at[step.at[1]]
    if step.kind[-2] == step.kind[-1] and first > second:
        first, second = second, first
    return step.kind, (first, second)


def _average(layer: HiddenLayer, step: PairStep, at: tuple[int, int]) -> Array:
    """What a step multiplies with, for the labels `at` of a pair (1, 2): laid out along the axes 1, 2."""
    array = layer.brackets[step.orders] * (layer.Theta if step.theta else 1.0)
    if at[0] == at[1]:
        own = array.diagonal()
        return own[:, None] if at[0] == 0 else own[None, :]
    return array if at == (0, 1) else array.T


def exact_pieces(kind: str, layers: Sequence[HiddenLayer]) -> tuple[Piece, ...]:
    """A kind of pair at the output, as a neuron of layers[0] makes it, averages over all neurons above done."""
    matrices: dict[Place, Array | None] = {(kind, (0, 1)): None}
    for layer in reversed(layers[1:]):
        below: dict[Place, Array | None] = {}
        for (own, at), matrix in matrices.items():
            for step in PAIRS[own].steps:
                factor = _number(step.coefficient, layer.parameters) * _average(layer, step, at)
                moved = np.broadcast_to(factor if matrix is None else factor * matrix, layer.K.shape)
                place = _place(step, at)
                before = below.get(place)
                below[place] = moved if before is None else before + moved
        matrices = below
    source, found = layers[0], []
    for (own, at), matrix in matrices.items():
        for made in PAIRS[own].sources:
            number = _number(made.coefficient, source.parameters)
            ends: tuple[tuple[int, ...], tuple[int, ...]] = (made.orders[:1], made.orders[1:])
            if at[0] == at[1]:
                ends = (made.orders, ()) if at[0] == 0 else ((), made.orders)
            elif at == (1, 0):
                ends = (ends[1], ends[0])
            edge = matrix
            if made.theta:
                theta = source.Theta
                if at[0] == at[1]:
                    own_theta = theta.diagonal()
                    theta = own_theta[:, None] if at[0] == 0 else own_theta[None, :]
                edge = np.broadcast_to(theta if edge is None else edge * theta, source.K.shape)
            found.append(Piece(*ends, edge if edge is None else number * edge, 1.0 if edge is not None else number))
    return _merged(found)


def _merged(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces of the same activities with matrices as one."""
    found: dict[tuple, Piece] = {}
    for piece in pieces:
        key = (piece.left, piece.right, piece.matrix is None)
        if key in found:
            before = found[key]
            joint = None if piece.matrix is None or before.matrix is None else before.matrix + piece.matrix
            piece = Piece(piece.left, piece.right, joint, before.number + piece.number if joint is None else 1.0)
        found[key] = piece
    return tuple(found.values())


def product(activities: Activities, orders: Sequence[int]) -> Array | None:
    """Π σ^(k) over the orders; None for none."""
    value: Array | None = None
    for k in orders:
        value = activities[k] if value is None else value * activities[k]
    return value


@dataclass(frozen=True)
class Made:
    """A piece for drawn neurons: vectors (samples, 1, 1, inputs) on its two labels and an edge between them or none."""

    left: Array | None
    right: Array | None
    matrix: Array | None


def made(pieces: Sequence[Piece], activities: Activities) -> list[Made]:
    """Exact pieces for drawn source neurons."""
    found = []
    for piece in pieces:
        left, right = product(activities, piece.left), product(activities, piece.right)
        if piece.number != 1.0:
            left = piece.number * left if left is not None else None
            if left is None:
                assert right is not None
                right = piece.number * right
        found.append(Made(left, right, piece.matrix))
    return found


def root(K: np.ndarray) -> np.ndarray:
    """A factor F with F Fᵀ = K: Cholesky's where K allows it, else from its eigenvectors."""
    size = float(np.mean(np.diagonal(K)))
    try:
        return np.linalg.cholesky(K + 1e-13 * size * np.eye(len(K)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(K)
        return vectors * np.sqrt(np.maximum(values, 0.0))


def activities_of(derivatives: Callable[[Array, int], Array], z: Array) -> dict[int, Array]:
    """σ^(k)(z) for all orders that the pieces use."""
    return {k: derivatives(z, k) for k in range(HIGHEST + 1)}
