"""K and Theta through all layers in tiles, where their brackets are closed forms that need no plan.

For a thousand inputs a layer takes milliseconds: looking at each layer's kernel would cost more than the layer itself.
The variances go first (`numeric.evaluation.single_inputs`); then each tile goes through all layers by itself and stays
in the cache. One program serves all tiles; threads call it at once. Of a symmetric matrix the tiles on and above the
diagonal are computed, and the other half is their transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan, Rectangle
from numeric.evaluation.compiled import Table
from numeric.evaluation.layer import Tensors, combine_pairs, first_kernel, needed
from numeric.runtime import in_threads
from numeric.subscripts import Values

STEP = 16  # values are padded to a multiple of so many layers: one program serves many depths
TILE = 256  # rows of a tile: a dozen arrays of its size fit into the second-level cache
TILE_ON_ACCELERATORS = 4096
ALIGNED = 64  # bytes


class Side(NamedTuple):
    """The inputs of rows or of columns, (n, n_0), a number for each (equal where inputs are equal), and their variances
    before each step and after the last, (steps + 1, n).
    """

    X: np.ndarray
    names: np.ndarray
    variances: np.ndarray

    def padded(self, size: int, steps: int) -> tuple[np.ndarray, ...]:
        """The arrays of a program that takes `size` inputs and `steps` steps; at last 1/sqrt of the variances at the
        first layer and the last.
        """
        inputs, layers = size - len(self.X), steps + 1 - len(self.variances)
        ends = self.variances[[0, -1]]
        inverse = np.divide(1, np.sqrt(ends), out=np.zeros_like(ends), where=ends > 0)
        return (
            np.pad(self.X, ((0, inputs), (0, 0)), mode="edge"),
            np.pad(self.names, (0, inputs), mode="edge"),
            np.pad(self.variances, ((0, layers), (0, inputs)), mode="edge"),
            np.pad(inverse, ((0, 0), (0, inputs)), mode="edge"),
        )


class Found(NamedTuple):
    """The last layer's tensors, and the least 1 - rho^2 of two different inputs at the first layer or the last."""

    tensors: Tensors
    gap: float


class Network(NamedTuple):
    """What all tiles share: `first` are the values of the first layer, `values` those of each step."""

    functions: Functions
    table: Table
    names: tuple[str, ...]
    plan: Plan
    first: Any
    values: Sequence[Any]


def kernel_tiles(network: Network, rows: Side, columns: Side | None = None) -> Found:
    """The tensors between rows and columns, or between all of the rows."""
    right = rows if columns is None else columns
    kind, steps = rows.X.dtype, len(network.values)
    missing = -steps % STEP
    stacked = {
        name: np.array([v[name] for v in [*network.values, *[network.values[-1]] * missing]], kind)
        for name in network.first
    }
    heights, widths = _cuts(len(rows.X)), _cuts(len(right.X))
    sides = [side.padded(cuts[-1], steps + missing) for side, cuts in ((rows, heights), (right, widths))]
    own = [tuple(map(jnp.asarray, side)) for side in (sides[:1] * 2 if columns is None else sides)]
    program = _tile(network.functions, network.table, network.names, heights[1], widths[1])
    shared = jax.tree_util.tree_map(jnp.asarray, (network.plan, stacked, dict(network.first)))
    total = {name: _aligned((len(rows.X), len(right.X)), kind) for name in network.names}

    def fill(place: tuple[int, int]) -> float:
        i, j = place
        found, gap = program(*shared, *own, np.int32(i), np.int32(j), np.int32(steps))
        for name, value in found.items():
            tile, into = np.asarray(value), total[name][i : i + heights[1], j : j + widths[1]]
            if columns is None and i == j:
                tile = np.triu(tile) + np.triu(tile, 1).T  # symmetric to the last bit
            into[:] = tile[: into.shape[0], : into.shape[1]]
            if columns is None and i != j:
                total[name][j : j + widths[1], i : i + heights[1]] = into.T
        return float(gap)

    places = [(i, j) for i in heights[:-1] for j in widths[:-1] if columns is not None or i <= j]
    gap = min(in_threads(fill, places))
    return Found({name: jnp.asarray(x) for name, x in total.items()}, gap)


def _aligned(shape: tuple[int, int], kind: np.dtype) -> np.ndarray:
    """An empty array that begins where XLA's own do: others it takes over eight times more slowly."""
    size = shape[0] * shape[1] * kind.itemsize
    memory = np.empty(size + ALIGNED, np.uint8)
    start = -memory.ctypes.data % ALIGNED
    return memory[start : start + size].view(kind).reshape(shape)


def _cuts(size: int) -> list[int]:
    """Where tiles of one size begin, and where the last one ends: as many as needed, no larger than needed."""
    number = -(-size // (TILE if jax.default_backend() == "cpu" else TILE_ON_ACCELERATORS))
    step = -(-size // number)
    return [k * step for k in range(number + 1)]


@lru_cache(maxsize=64)
def _tile(functions: Functions, table: Table, names: tuple[str, ...], height: int, width: int) -> Callable[..., Any]:
    orders, steps = needed(table.steps, names)[0], table.steps

    def tile(
        plan: Plan,
        values: Values,
        first: Values,
        rows: tuple[jax.Array, ...],
        columns: tuple[jax.Array, ...],
        i: jax.Array,
        j: jax.Array,
        count: jax.Array,
    ) -> tuple[Tensors, jax.Array]:
        (x, a, before, one), (y, b, after, other) = (
            [jax.lax.dynamic_slice_in_dim(array, k, size, axis) for array, axis in zip(side, (0, 0, 1, 1))]
            for side, k, size in ((rows, i, height), (columns, j, width))
        )
        same = a[:, None] == b[None, :]

        def gap(K: jax.Array, end: int) -> jax.Array:
            rho = K * (one[end][:, None] * other[end][None, :])
            return jnp.min(jnp.where(same, 1, (1 - rho) * (1 + rho)))

        def step(layer: jax.Array, now: Tensors) -> Tensors:
            pairs = Rectangle(before[layer], after[layer], now["K"], same)
            own = {name: array[layer] for name, array in values.items()}
            return combine_pairs(steps, names, own, now, plan.pairs.rectangle(functions, orders, pairs, False))

        gram = jnp.where(same, jnp.sum(x * x, axis=1)[:, None], x @ y.T) / x.shape[1]
        begin = {name: first_kernel(steps, name, first, gram) for name in names}
        end = jax.lax.fori_loop(0, count, step, begin)
        return end, jnp.minimum(gap(begin["K"], 0), gap(end["K"], 1))

    return jax.jit(tile)
