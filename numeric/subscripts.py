"""What generated layer steps are written in: arrays with subscripts, and the table entry of a tensor.

`View(x)["aacd"]` is x_aacd laid out along the axes of the tensor being computed (a, b, c, d in its subscript order):
repeated letters take diagonals, absent ones have length 1 and broadcast.

>>> import jax.numpy as jnp
>>> x = jnp.arange(4.0).reshape(2, 2)
>>> View(x, rank=4)["ca"].shape, View(x, rank=2)["aa"].ravel().tolist()
((2, 1, 2, 1), [0.0, 3.0])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Order, Pattern, entries

AXES = "abcd"


@dataclass(frozen=True)
class Rows:
    """`count` consecutive values of the first axis, a, from `start` on (a traced integer)."""

    start: jax.Array
    count: int


def _labels(letter: str, rank: int, size: int, rows: Rows | None, xp: Any = jnp) -> jax.Array:
    """The labels that a letter runs over, laid out along its axis."""
    labels = xp.arange(size) if letter != "a" or rows is None else rows.start + jnp.arange(rows.count)
    return labels.reshape([-1 if axis == letter else 1 for axis in AXES[:rank]])


@dataclass(frozen=True)
class View:
    """An array to be indexed by letters, for a tensor of `rank` axes, of which `rows` are computed (None: all)."""

    array: jax.Array
    rank: int = 4
    rows: Rows | None = None

    def __getitem__(self, letters: str) -> jax.Array:
        x = self.array
        xp = np if isinstance(x, np.ndarray) else jnp
        if len(set(letters)) < len(letters):
            return x[tuple(_labels(letter, self.rank, x.shape[0], self.rows, xp) for letter in letters)]
        if self.rows is not None and "a" in letters:
            x = jax.lax.dynamic_slice_in_dim(x, self.rows.start, self.rows.count, letters.index("a"))
        order = sorted(letters)
        x = xp.transpose(x, [letters.index(letter) for letter in order])
        return xp.expand_dims(x, [axis for axis, letter in enumerate(AXES[: self.rank]) if letter not in order])


Key = TypeVar("Key", Order, Pattern, str)


def views(arrays: Mapping[Key, jax.Array], rank: int, rows: Rows | None = None) -> dict[Key, View]:
    """Each of the arrays as a view."""
    return {key: View(array, rank, rows) for key, array in arrays.items()}


@dataclass(frozen=True)
class Stored:
    """A four-point bracket to be indexed by letters, read entry by entry from the unique quadruples.

    `stored["dbca"]` has the orders `pattern` at the labels d, b, c, a; `patterns` are those that `unique` holds.
    """

    unique: jax.Array
    patterns: tuple[Pattern, ...]
    pattern: Pattern
    size: int
    rows: Rows | None = None

    def __getitem__(self, letters: str) -> jax.Array:
        orders: Pattern = tuple(self.pattern[letters.index(axis)] for axis in AXES)
        labels = [_labels(axis, 4, self.size, self.rows) for axis in AXES]
        return entries(self.unique, self.patterns, orders, self.size, labels)


Values = Mapping[str, jax.Array]
"""The layer's numbers: C_b, C_W, lambda_b, lambda_W of layer l+1 and r = n_l / n_{l-1}."""

Pairs = Mapping[Order, View]
"""Pair brackets by their derivative orders, (0, 2)."""

Quadruples = Mapping[Pattern, View | Stored]
"""Four-point brackets by theirs, (0, 1, 1, 2)."""

Views = Mapping[str, View]
"""Tensors by name."""


@dataclass(frozen=True)
class Step:
    """One tensor's recursion: its functions and the brackets and tensors of the layer below that they read."""

    rank: int
    first: Callable[[Values, View], jax.Array] | None
    advance: Callable[[Values, Pairs, Quadruples, Views], jax.Array]
    pairs: tuple[Order, ...]
    quads: tuple[Pattern, ...]
    tensors: tuple[str, ...]


Steps = Mapping[str, Step]

Label = int | str
"""A sample label of a recursion: a number, or the name of a summed one ("g1", "g2", ...)."""

Term = tuple[
    tuple[float, tuple[tuple[str, int], ...]],
    tuple[tuple[str, tuple[Label, ...]], ...],
    tuple[tuple[tuple[tuple[Label, int], ...], tuple[str, ...]], ...],
]
"""A coefficient (number, powers of the layer's numbers), components (tensor, labels), averages (atoms, derivatives)."""

Recursions = Mapping[str, tuple[tuple[int, ...], tuple[Term, ...]]]
"""{tensor: (its labels in subscript order, the terms of its recursion)}."""
