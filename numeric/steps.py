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

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class View:
    """An array to be indexed by letters, for a tensor of `rank` axes."""

    array: jax.Array
    rank: int = 4

    def __getitem__(self, letters: str) -> jax.Array:
        x, axes = self.array, letters
        for letter in sorted(set(letters)):
            while axes.count(letter) > 1:
                i = axes.index(letter)
                j = axes.index(letter, i + 1)
                x = jnp.diagonal(x, axis1=i, axis2=j)
                axes = axes[:i] + axes[i + 1 : j] + axes[j + 1 :] + letter
        order = sorted(axes)
        x = jnp.transpose(x, [axes.index(letter) for letter in order])
        return jnp.expand_dims(x, [axis for axis, letter in enumerate("abcd"[: self.rank]) if letter not in order])


Values = Mapping[str, jax.Array]
"""The layer's numbers: C_b, C_W, lambda_b, lambda_W of layer l+1 and r = n_l / n_{l-1}."""

Views = Mapping[str, View]
"""Brackets by their derivative orders ("02", "0112"), or tensors by name."""


@dataclass(frozen=True)
class Step:
    """One tensor's recursion: its functions and the brackets and tensors of the layer below that they read."""

    rank: int
    first: Callable[[Values, View], jax.Array] | None
    advance: Callable[[Values, Views, Views, Views], jax.Array]
    pairs: tuple[str, ...]
    quads: tuple[str, ...]
    tensors: tuple[str, ...]


Steps = Mapping[str, Step]
