"""Where an entry of a four-point tensor is stored: tensors and blocks of them from the unique quadruples.

The four labels are sorted together with the slots that they came from by a network of five comparisons, all of it
elementwise, so that the compiler computes an entry's address where it reads it and holds no tables of labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.patterns import Pattern, arrangements, sorted_quadruples

NETWORK = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))
CHUNK = 2048  # quadruples that closed forms take at a time
LARGEST_INT32 = 300  # labels up to which the index of a quadruple is computed in 32 bits


def entries(unique: Array, patterns: Iterable[Pattern], pattern: Pattern, size: int, labels: Sequence[Array]) -> Array:
    """<sigma^(i)_a sigma^(j)_b sigma^(k)_c sigma^(l)_d>, orders `pattern`, at four integer arrays that broadcast."""
    xp = module_of(unique)
    kind = np.int32 if size <= LARGEST_INT32 else np.int64
    keys = [4 * label.astype(kind) + place for place, label in enumerate(labels)]
    for i, j in NETWORK:
        keys[i], keys[j] = xp.minimum(keys[i], keys[j]), xp.maximum(keys[i], keys[j])
    column = xp.asarray(_columns(tuple(patterns), pattern))
    code = sum((key & 3) * 4 ** (3 - place) for place, key in enumerate(keys))
    return unique[_slot([key >> 2 for key in keys], size), column[code]]


def block(
    unique: Array, patterns: Iterable[Pattern], pattern: Pattern, size: int, first: Array, second: Array
) -> Array:
    """Rows of a tensor: M[p, c, d] for the leading labels (first[p], second[p]), orders `pattern` at (a, b, c, d)."""
    inner = jnp.arange(size)
    labels = (first[:, None, None], second[:, None, None], inner[None, :, None], inner[None, None, :])
    return entries(unique, patterns, pattern, size, labels)


def tensor(unique: Array, patterns: Iterable[Pattern], pattern: Pattern, size: int) -> Array:
    """All N^4 entries."""
    labels = [
        module_of(unique).arange(size).reshape([-1 if axis == own else 1 for axis in range(4)]) for own in range(4)
    ]
    return entries(unique, patterns, pattern, size, labels)


def quadruple_slots(labels: np.ndarray, size: int) -> np.ndarray:
    """Rows of `sorted_quadruples(size)` at which sorted labels, shape (B, 4), stand."""
    return np.asarray(_slot([cast(Any, labels[:, place].astype(np.int64)) for place in range(4)], size))


def _columns(patterns: tuple[Pattern, ...], pattern: Pattern) -> np.ndarray:
    """Code of the permutation that sorts the labels -> column of `arrangements` with the orders so permuted."""
    index = {p: i for i, p in enumerate(arrangements(tuple(sorted(p)) for p in patterns))}
    columns = np.zeros(256, dtype=np.int32)
    for order in permutations(range(4)):
        code = sum(slot * 4 ** (3 - place) for place, slot in enumerate(order))
        columns[code] = index[tuple(pattern[slot] for slot in order)]
    return columns


def _slot(labels: list[Array], size: int) -> Array:
    """Index of a sorted quadruple in the lexicographic list: a sum of binomials, exact in integers."""
    total = 0 * labels[0]
    previous: Array | int = 0
    for position, label in enumerate(labels):
        rest = 4 - position  # labels from here on, this one included, are >= previous
        # quadruples that are skipped: those with this label in [previous, label)
        total = total + _multisets(size - previous, rest) - _multisets(size - label, rest)
        previous = label
    return total


def _multisets(kinds: Array | int, count: int) -> Array | int:
    """Multisets of `count` elements out of `kinds`: binomial(kinds + count - 1, count)."""
    product: Array | int = 1
    for i in range(count):
        product = product * (kinds + i) // (i + 1)
    return product


def each_quadruple(function: Callable[[Array], Array], K: Array, size: int) -> Array:
    """A closed form of the covariances (4, 4, B) of quadruples, for all sorted ones: (U, components)."""
    return in_pieces(function, K, sorted_quadruples(size))


def in_pieces(function: Callable[[Array], Array], K: Array, labels: np.ndarray) -> Array:
    """Apply to the covariances (d, d, B) of labels (B, d), piece by piece: a piece stays in the cache; (B, components).

    Covariances are gathered within a piece, so that the labels are all that is held for every quadruple.
    """
    count, d = labels.shape
    if isinstance(K, np.ndarray):
        return function(np.moveaxis(K[labels[:, :, None], labels[:, None, :]], 0, 2)).T

    def piece(own: Array) -> Array:
        blocks = jnp.stack([jnp.stack([K[own[:, i], own[:, j]] for j in range(d)]) for i in range(d)])
        return function(blocks).T

    if count <= CHUNK:
        return piece(jnp.asarray(labels))
    pad = -count % CHUNK
    pieces = np.concatenate([labels, np.repeat(labels[:1], pad, axis=0)]).reshape(-1, CHUNK, d)
    return jax.lax.map(piece, jnp.asarray(pieces)).reshape(count + pad, -1)[:count]
