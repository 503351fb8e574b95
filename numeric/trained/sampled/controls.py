"""Control variates of the drawn corrections: pair objects of the source neurons between tests and trained targets.

A neuron's activities between a test input and the trained targets, l_1 E_12 r_2 of `objects`, have a mean that pair
averages give exactly, and much of the spread of a draw is a number times such a difference from its mean: what else the
neuron does fluctuates less. The numbers are fitted on draws of their own, so that nothing is biased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.arrays import module_of
from numeric.trained.sampled.draws import Draw
from numeric.trained.sampled.graph import object_edge
from numeric.trained.sampled.kept import stacked
from numeric.trained.sampled.objects import Piece, made
from numeric.trained.sampled.theory import Theory, mean_object

Array = jax.Array
Moments = Mapping[str, Array]
FAINT = 1e-6
"""A share of each control's variance that is added in the fit, against controls that are nearly the same."""


@partial(jax.tree_util.register_dataclass, data_fields=["vectors", "means", "strength"], meta_fields=["which"])
@dataclass(frozen=True)
class Controls:
    """Pieces by (layer, kind, number), trained targets `vectors` (outputs, inputs) on their second label.

    `means` are (controls, outputs, tests), `strength` (parts, controls) what a draw's parts are rid of.
    """

    which: tuple[tuple[int, str, int], ...]
    vectors: Array
    means: Array
    strength: Array

    def values(self, theory: Theory, drawn: Draw, ahead: Array) -> Array:
        """Differences from their means for every draw, (controls, S, outputs, tests)."""
        found = []
        for layer, kind, number in self.which:
            edge = object_edge((0, 1), made([theory.pieces[layer][kind][number]], drawn.sources[layer]))
            reached = edge.backward(self.vectors[None, None])
            found.append((reached @ ahead.T)[:, 0])
        return cast(Array, stacked(found) - self.means[:, None])

    def taken(self, parts: Array, values: Array) -> Array:
        """Parts (parts, S, outputs, tests) without what the controls explain."""
        xp = module_of(parts)
        return parts - xp.tensordot(xp.asarray(self.strength), values.astype(parts.dtype), 1)


def controls_of(theory: Theory, ahead: np.ndarray, vectors: np.ndarray, parts: int) -> Controls:
    """Every piece with an even number of derivatives at its ends, unused yet: others vanish for odd activations."""
    which, means = [], []
    for layer, own in enumerate(theory.pieces):
        for kind, pieces in own.items():
            for number, piece in enumerate(pieces):
                if sum((*piece.left, *piece.right)) % 2 == 0:
                    which.append((layer, kind, number))
                    means.append(_mean(piece, theory, layer, ahead, vectors))
    dtype = theory.U.dtype
    unused = jnp.zeros((parts, len(which)), jnp.float64)
    return Controls(tuple(which), jnp.asarray(vectors, dtype), jnp.asarray(np.stack(means), dtype), unused)


def _mean(piece: Piece, theory: Theory, layer: int, ahead: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The exact mean between tests and targets, (outputs, tests)."""
    own, known = jax.tree_util.tree_map(np.asarray, (piece, theory.layers[layer]))
    return (ahead @ np.asarray(mean_object([own], known), dtype=float) @ vectors.T).T


def moments(parts: Array, values: Array) -> Moments:
    """What a fit takes of some draws, averaged over them and all test outputs."""
    x = (parts - parts.mean(axis=1, keepdims=True)).reshape(len(parts), -1)
    y = values.astype(parts.dtype).reshape(len(values), -1)
    return {"xy": x @ y.T, "yy": y @ y.T}


def fitted(controls: Controls, found: Sequence[Moments]) -> Controls:
    """Controls with the strengths of least squares; those of a sum of parts are the sums of theirs."""
    xy, yy = (np.sum([np.asarray(own[name]) for own in found], axis=0) for name in ("xy", "yy"))
    size = np.sqrt(np.diagonal(yy))
    size = np.where(size > 0, size, 1.0)
    matrix = yy / size / size[:, None] + FAINT * np.eye(len(size))
    strength = np.linalg.solve(matrix, (xy / size).T).T / size
    return replace(controls, strength=jnp.asarray(strength))
