"""What draws need of a network and its training set: hidden layers, modes, targets, exact pieces of pair objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from numeric.generated.adjoint import CONTRACTIONS
from numeric.trained.sampled.objects import HiddenLayer, Piece, exact_pieces
from numeric.trained.sampled.opened import Opened

Array = jax.Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["layers", "factors", "initial", "U", "y", "kernel", "pieces", "openings", "means", "thin"],
    meta_fields=["derivatives", "shares"],
)
@dataclass(frozen=True)
class Theory:
    """What a draw needs: hidden layers from the first up, their factors F Fᵀ = K, modes, targets.

    `initial` is such a factor of the outputs' kernel, `kernel` that kernel in the modes (M, M); `U` is (inputs, modes),
    zero on test inputs; `y` (outputs, modes); `shares` are n_{L-1} / n_l. `pieces` are the exact pieces of every kind
    of pair for a neuron of each hidden layer, `openings` those of the pairs that may have to be opened, `means` the
    means of those objects that enter by their covariance. `thin` is a factor of the first layer's NTK with few columns
    (None: it has as many as rows).
    """

    derivatives: Callable[[Array, int], Array]
    layers: tuple[HiddenLayer, ...]
    factors: tuple[Any, ...]
    initial: Array
    shares: tuple[float, ...]
    U: Array
    y: Array
    kernel: Array
    pieces: tuple[dict[str, tuple[Piece, ...]], ...]
    openings: tuple[dict[str, tuple[Opened | None, ...]], ...]
    means: tuple[dict[str, Any], ...]
    thin: Array | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Still:
    """Moments of errors that have come to rest, between all inputs: every mode weighs 1/h. (N, N) each.

    `inverse` is the training NTK's inverse; `kernel` and `targets` are K and Σ y y between two of them.
    """

    inverse: Array
    kernel: Array
    targets: Array


def objects_of(
    layers: Sequence[HiddenLayer], cast: Callable[[np.ndarray], np.ndarray]
) -> tuple[tuple[dict[str, tuple[Piece, ...]], ...], tuple[dict[str, np.ndarray], ...]]:
    """`pieces` and `means` of a theory, each `cast` as soon as it is made: there are dozens of them, (N, N) each."""
    kinds = sorted({kind for own in CONTRACTIONS.values() for kind in own.kinds})
    centered = {kind for own in CONTRACTIONS.values() if own.centered for kind in own.kinds}
    pieces: list[dict[str, tuple[Piece, ...]]] = []
    means: list[dict[str, np.ndarray]] = []
    for k, layer in enumerate(layers):
        pieces.append({})
        means.append({})
        for kind in kinds:
            own = exact_pieces(kind, layers[k:])
            if kind in centered:
                means[-1][kind] = cast(mean_object(own, layer))
            pieces[-1][kind] = tuple(
                piece if piece.matrix is None else replace(piece, matrix=cast(piece.matrix)) for piece in own
            )
    return tuple(pieces), tuple(means)


def mean_object(pieces: Sequence[Piece], layer: HiddenLayer) -> np.ndarray:
    """<O_12> over the source neuron."""
    total = np.zeros(layer.K.shape)
    for piece in pieces:
        orders = (*piece.left, *piece.right)
        known = (orders[0], orders[1]) in layer.brackets
        average = layer.brackets[orders[0], orders[1]] if known else layer.brackets[orders[1], orders[0]].T
        if not piece.right or not piece.left:
            own = average.diagonal()
            average = own[:, None] if piece.left else own[None, :]
        total = total + piece.number * average * (1.0 if piece.matrix is None else piece.matrix)
    return total
