"""NumPy arrays that remember: what is asked for a second time is not computed again, and nothing is compiled.

A draw's forces are a thousand products of the same few dozen matrices and vectors, many of them met several times. A
compiler finds those in seconds; here each operation is looked up by its operands. A product of many draws' vectors with
a matrix is one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Kept:
    """An array of one batch of draws, and what has been made in it: arrays by operation and operands."""

    __slots__ = ("array", "made")
    __array_ufunc__ = None  # an array of NumPy leaves operators to us

    def __init__(self, array: np.ndarray, made: dict[tuple, tuple[Kept, tuple]]) -> None:
        self.array, self.made = array, made

    def _once(self, name: str, function: Callable[..., np.ndarray], *operands: Any) -> Kept:
        key = (name, *(id(x) if isinstance(x, Kept | np.ndarray) else x for x in operands))
        if key not in self.made:
            plain = (x.array if isinstance(x, Kept) else x for x in operands)
            self.made[key] = Kept(function(*plain), self.made), operands  # operands live on, or ids would be used again
        return self.made[key][0]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Kept]:
        return (self[k] for k in range(len(self.array)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def T(self) -> Kept:
        return self._once("T", np.transpose, self)

    def __getitem__(self, place: Any) -> Kept:
        return self._once(f"[{place}]", lambda x: x[place], self)

    def __neg__(self) -> Kept:
        return self._once("-", np.negative, self)

    def __add__(self, other: Any) -> Kept:
        return self._once("+", np.add, *_ordered(self, other))

    def __sub__(self, other: Any) -> Kept:
        return self._once("a-b", np.subtract, self, other)

    def __rsub__(self, other: Any) -> Kept:
        return self._once("a-b", np.subtract, other, self)

    def __mul__(self, other: Any) -> Kept:
        return self._once("*", np.multiply, *_ordered(self, other))

    __radd__, __rmul__ = __add__, __mul__

    def __matmul__(self, other: Any) -> Kept:
        return self._once("@", _times, self, other)

    def __rmatmul__(self, other: Any) -> Kept:
        return self._once("@", _times, other, self)

    def sum(self, axis: int, keepdims: bool = False) -> Kept:
        return self._once(f"sum {axis} {keepdims}", lambda x: x.sum(axis=axis, keepdims=keepdims), self)

    def mean(self, axis: int, keepdims: bool = False) -> Kept:
        return self._once(f"mean {axis} {keepdims}", lambda x: x.mean(axis=axis, keepdims=keepdims), self)

    def astype(self, kind: Any) -> Kept:
        return self._once(f"astype {np.dtype(kind)}", lambda x: x.astype(kind), self)


def _ordered(one: Any, other: Any) -> tuple[Any, Any]:
    return (one, other) if id(one) <= id(other) else (other, one)


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b; of vectors along the last of many axes, as one product of matrices."""
    if b.ndim == 2 and a.ndim > 2:
        return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
    return a @ b


def kept(tree: Any, made: dict[tuple, tuple[Kept, tuple]]) -> Any:
    """A tree of arrays as kept ones, equal arrays as one."""
    known: dict[int, Kept] = {}

    def once(x: Any) -> Kept:
        if id(x) not in known:
            known[id(x)] = Kept(np.asarray(x), made)
        return known[id(x)]

    return jax.tree_util.tree_map(once, tree)


def stacked(values: Sequence[Any]) -> Any:
    """Values of one shape, but for axes of length one, along a new first axis: an array of their kind."""
    if any(isinstance(value, Kept) for value in values):
        return np.stack(np.broadcast_arrays(*(x.array if isinstance(x, Kept) else x for x in values)))
    return jnp.stack(jnp.broadcast_arrays(*values))
