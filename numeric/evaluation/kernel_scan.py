"""K and Theta through all layers in one compiled loop, where their brackets are closed forms that need no plan.

For a thousand inputs a layer takes milliseconds: looking at each layer's kernel would cost more than the layer itself.
The variances go first, on the host unless layers are very many; then each tile on and above the diagonal goes through
all layers by itself and stays in the cache, and the other half is its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan, Rectangle
from numeric.evaluation.compiled import Table
from numeric.evaluation.layer import Tensors, combine_pairs, needed
from numeric.subscripts import Values

STEP = 16  # values are padded to a multiple of so many layers: one program serves many depths
TILE = 256  # rows of a tile: a dozen arrays of its size fit into the second-level cache
DEEP = 512  # layers from which compiling the loop over variances pays


def diagonals(
    functions: Functions, table: Table, names: tuple[str, ...], plan: Plan, values: Sequence[Any], tensors: Tensors
) -> tuple[np.ndarray, dict[str, float]]:
    """The variances before each step, (steps, N), and the largest entry of each tensor on the way (NaN if one was).

    The largest entries of K and Theta stand on the diagonal, since both are positive.
    """
    start: Any = {name: np.diagonal(np.asarray(tensors[name]))[:, None].copy() for name in names}
    if len(values) > DEEP:
        stacked = {name: jnp.asarray(np.stack([v[name] for v in values])) for name in values[0]}
        line, most = _line(functions, table, names)(plan, stacked, start)
        return np.asarray(line), {name: float(x) for name, x in most.items()}
    orders = needed(table.steps, names)[0]
    host: Any = jax.tree_util.tree_map(np.asarray, plan.pairs)
    variances: np.ndarray = np.empty((len(values), len(start["K"])), start["K"].dtype)
    largest = {name: float(np.max(np.abs(x))) for name, x in start.items()}
    with np.errstate(all="ignore"):
        for layer, own in enumerate(values):
            variances[layer] = start["K"][:, 0]
            found = host.single(functions, orders, variances[layer])
            start = combine_pairs(table.steps, names, own, start, {o: value[:, None] for o, value in found.items()})
            largest = {name: float(np.maximum(largest[name], np.max(np.abs(x)))) for name, x in start.items()}
    return variances, largest


@lru_cache(maxsize=64)
def _line(functions: Functions, table: Table, names: tuple[str, ...]) -> Callable[..., tuple[jax.Array, Tensors]]:
    orders = needed(table.steps, names)[0]

    def line(plan: Plan, values: Values, start: Tensors) -> tuple[jax.Array, Tensors]:
        def step(state: tuple[Tensors, Tensors], own: Values) -> tuple[tuple[Tensors, Tensors], jax.Array]:
            now, largest = state
            variances = now["K"][:, 0]
            found = plan.pairs.single(functions, orders, variances)
            new = combine_pairs(table.steps, names, own, now, {order: value[:, None] for order, value in found.items()})
            return (new, {name: jnp.maximum(largest[name], jnp.max(jnp.abs(new[name]))) for name in names}), variances

        largest = {name: jnp.max(jnp.abs(start[name])) for name in names}
        (_, largest), variances = jax.lax.scan(step, (start, largest), values)
        return variances, largest

    return jax.jit(line)


def kernel_scan(
    functions: Functions,
    table: Table,
    names: tuple[str, ...],
    plan: Plan,
    values: Sequence[Any],
    variances: np.ndarray,
    tensors: Tensors,
) -> Tensors:
    """The tensors after one step for each of `values` (numbers), with these `variances` before each of them."""
    size, kind = variances.shape[1], variances.dtype
    missing = -len(values) % STEP
    padded = [*values, *[values[-1]] * missing]
    stacked = {name: jnp.asarray(np.array([v[name] for v in padded], kind)) for name in values[0]}
    tile = min(TILE, size)
    own = jnp.asarray(np.pad(variances, ((0, missing), (0, -size % tile)), mode="edge"))
    return _loop(functions, table, names)(plan, stacked, own, tensors, len(values))


@lru_cache(maxsize=64)
def _loop(functions: Functions, table: Table, names: tuple[str, ...]) -> Callable[..., Tensors]:
    orders = needed(table.steps, names)[0]

    def loop(plan: Plan, values: Values, variances: jax.Array, tensors: Tensors, count: jax.Array) -> Tensors:
        size = tensors["K"].shape[0]
        tile = min(TILE, size)
        number = -(-size // tile)
        pad = number * tile - size
        first = {name: jnp.pad(x, ((0, pad), (0, pad)), mode="edge") for name, x in tensors.items()}
        upper = jnp.triu(jnp.ones((tile, tile), dtype=bool))

        def at(layer: jax.Array) -> Values:
            return {name: array[layer] for name, array in values.items()}

        def fill(totals: Tensors, where: jax.Array) -> tuple[Tensors, None]:
            i, j = where[0] * tile, where[1] * tile
            same = jnp.eye(tile, dtype=bool) & (i == j)

            def step(layer: jax.Array, now: Tensors) -> Tensors:
                rows, columns = (jax.lax.dynamic_slice_in_dim(variances[layer], k, tile) for k in (i, j))
                found = plan.pairs.rectangle(functions, orders, Rectangle(rows, columns, now["K"], same), False)
                return combine_pairs(table.steps, names, at(layer), now, found)

            own = {name: jax.lax.dynamic_slice(first[name], (i, j), (tile, tile)) for name in names}
            own = jax.lax.fori_loop(0, count, step, own)
            for name in names:
                value = jnp.where(upper | (i != j), own[name], own[name].T)  # symmetric to the last bit
                filled = jax.lax.dynamic_update_slice(totals[name], value, (i, j))
                totals = totals | {name: jax.lax.dynamic_update_slice(filled, value.T, (j, i))}
            return totals, None

        tiles = jnp.asarray([(i, j) for i in range(number) for j in range(i, number)], dtype=jnp.int32)
        totals, _ = jax.lax.scan(fill, {name: jnp.zeros_like(first[name]) for name in names}, tiles)
        return {name: x[:size, :size] for name, x in totals.items()}

    return jax.jit(loop)
