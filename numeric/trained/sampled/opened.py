"""Pairs whose edge would close a cycle: a sum of products of vectors on the two labels instead of a matrix.

The largest singular vectors of the matrix are taken as they are, and what is left of it by random vectors whose
products have it as their mean. The averages <s'_1 s'_2> over the neurons above are nearly constant: one pair of vectors
leaves little of them, and the noise of the rest is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import jax
import numpy as np

from numeric.contributions import Contraction
from numeric.generated.adjoint import CONTRACTIONS
from numeric.trained.sampled.graph import acyclic
from numeric.trained.sampled.objects import Made, Piece

Array = Any
BRIDGE = 2
"""Beside 0 and 1, a tensor's two pairs: what joins two slots of the errors."""
BRIDGES = ((True, True), (True, False), (False, True), (False, False))
"""Whether a bridge is a matrix, whether it can be drawn."""
PROBED = 1.5
"""What it costs in noise to draw initial outputs; a pair of labels costs one for each matrix of its pieces."""
LEADING = 1
"""Singular vectors that are taken exactly: each costs as much as a random vector."""
NOTHING = 1e-9
"""A share of the largest singular value that does not matter."""
MILDLY = 0.3
"""Up to this size of the antisymmetric part, over the symmetric one, the latter's eigenvectors are taken."""
SMALL, ROUNDING = 64, 1e-13
"""Below so many inputs all singular vectors are found at once; what may be added to a diagonal against rounding."""


def opening(
    own: Contraction, pieces: Mapping[str, Sequence[Piece]], bridge: tuple[tuple[int, int], bool, bool] | None
) -> tuple[int, ...] | None:
    """Which of a tensor's two pairs (0, 1) and the BRIDGE must be opened so that no cycle is left; None: it cannot be.

    `bridge` tells its labels, whether it is a matrix (which can be multiplied with another), whether it can be drawn.
    """
    costs: dict[int, float] = {}
    for k in (1, 0):
        costs[k] = sum(piece.matrix is not None for piece in pieces[own.kinds[k]])
    if bridge is not None and bridge[2]:
        costs[BRIDGE] = PROBED
    subsets = [found for count in range(len(costs) + 1) for found in combinations(costs, count)]
    for found in sorted(subsets, key=lambda some: sum(costs[k] for k in some)):
        bonds = list(own.links) + [axes for k, axes in enumerate(own.axes) if k not in found]
        if bridge is not None and BRIDGE not in found:
            bonds.append(bridge[0])
        pairs = [frozenset(axes) for axes in bonds]
        if bridge is not None and BRIDGE not in found and not bridge[1] and pairs.count(frozenset(bridge[0])) > 1:
            continue
        if acyclic([(min(pair), max(pair)) for pair in set(pairs)]):
            return found if not own.centered or not {0, 1} & set(found) else None
    return None


def every_opening(pieces: Mapping[str, Sequence[Piece]]) -> set[str]:
    """The kinds of pairs that some contraction may have to open."""
    found = set()
    for own in CONTRACTIONS.values():
        bridges = [(labels, *flags) for labels in combinations(range(4), 2) for flags in BRIDGES]
        for bridge in (None, *bridges):
            chosen = opening(own, pieces, bridge)
            found |= {own.kinds[k] for k in chosen or () if k != BRIDGE}
    return found


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Opened:
    """E_12 = Σ left_1 right_2 + the mean of (noise @ near)_1 (noise @ far)_2: (few, N) and (rank, N) each."""

    left: Array
    right: Array
    near: Array
    far: Array


def opened(matrix: np.ndarray, precision: float = 0.0) -> Opened:
    """A matrix, known to a relative `precision`, by its singular vectors, or by something as good that takes less time.

    A positive one by its largest eigenvector and a Cholesky factor of what is left: the random vectors have the same
    distribution. Else by rows in any orthogonal basis, M = Σ_k v_k (v_kᵀ M): the noise is the least where both factors
    are given the root of |v_kᵀ M|, and grows with the sum of these. Singular vectors have the smallest sum; the
    eigenvectors of the symmetric part come near where that is most of the matrix.
    """
    even = (matrix + matrix.T) / 2
    if _symmetric(matrix):
        found = _positive(even)
        if found is not None:
            return found
    if np.linalg.norm(matrix - even) < MILDLY * np.linalg.norm(even):
        basis = np.linalg.eigh(even)[1]
    else:
        basis = np.linalg.svd(matrix)[0]
    rows = basis.T @ matrix
    size = np.linalg.norm(rows, axis=1)
    order = np.argsort(-size)
    order = order[size[order] > max(NOTHING, precision) * size[order[0]]]
    half = np.sqrt(size[order])[:, None]
    return _split(half * basis.T[order], rows[order] / half)


def _symmetric(matrix: np.ndarray) -> bool:
    """But for rounding."""
    limit = 1e-10 * np.abs(matrix).max(initial=0.0)
    return all(np.abs(row - column).max() <= limit for row, column in zip(matrix, matrix.T))


def _positive(matrix: np.ndarray) -> Opened | None:
    """None where a symmetric matrix has negative eigenvalues, or nearly so."""
    if len(matrix) < SMALL:
        return None
    from scipy.sparse.linalg import eigsh  # a third of a second that `import numeric` does without

    (value,), vector = eigsh(matrix, k=LEADING, v0=np.ones(len(matrix)))
    if value <= 0:
        return None
    leading = np.sqrt(value) * vector.T
    try:
        rest = np.linalg.cholesky(matrix - leading.T @ leading + ROUNDING * value * np.eye(len(matrix))).T
    except np.linalg.LinAlgError:
        return None
    return _split(*(np.concatenate([leading, rest]),) * 2)


def _split(left: np.ndarray, right: np.ndarray) -> Opened:
    return Opened(left[:LEADING], right[:LEADING], left[LEADING:], right[LEADING:])


def openings(pieces: Sequence[Piece], known: list[tuple[np.ndarray, Opened]]) -> tuple[Opened | None, ...]:
    """For each piece, None where there is no matrix; matrices that are `known` already are not done again."""
    found: list[Opened | None] = []
    for piece in pieces:
        if piece.matrix is None:
            found.append(None)
            continue
        own = next((old for other, old in known if np.array_equal(other, piece.matrix)), None)
        if own is None:
            kind = np.asarray(piece.matrix).dtype
            found_here = opened(np.asarray(piece.matrix, float), 8 * float(np.finfo(kind).eps))
            own = jax.tree_util.tree_map(partial(np.asarray, dtype=kind), found_here)
            known.append((piece.matrix, own))
        found.append(own)
    return tuple(found)


def without_edges(
    made: Sequence[Made], openings: Sequence[Opened | None], noise: Callable[[int, int], Array]
) -> Iterator[tuple[Made, bool]]:
    """Pieces of drawn neurons as products of vectors, and whether they are random.

    `noise(number, rank)` gives standard normal numbers for the piece of that number, (draws, 1, rows, rank).
    """
    for number, (piece, own) in enumerate(zip(made, openings, strict=True)):
        if own is None:
            yield piece, False
            continue
        for left, right in zip(own.left[:, None, None, None], own.right[:, None, None, None]):
            yield Made(_times(piece.left, left), _times(piece.right, right), None), False
        if len(own.near):
            drawn = noise(number, len(own.near))
            yield Made(_times(piece.left, drawn @ own.near), _times(piece.right, drawn @ own.far), None), True


def _times(a: Array | None, b: Array) -> Array:
    return b if a is None else a * b
