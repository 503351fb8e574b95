"""K and Theta through all layers in one compiled loop, where their brackets are closed forms that need no plan.

For a thousand inputs a layer takes milliseconds: looking at each layer's kernel would cost more than the layer itself.
The variances go first; then each tile on and above the diagonal goes through all layers by itself and stays in the
cache, and the other half is its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp

from numeric.brackets import Functions, Plan, Rectangle
from numeric.evaluation.compiled import Table
from numeric.evaluation.layer import Tensors, combine_pairs, needed
from numeric.subscripts import Values

STEP = 16  # values are padded to a multiple of so many layers: one program serves many depths
TILE = 256  # rows of a tile: a dozen arrays of its size fit into the second-level cache


def kernel_scan(
    functions: Functions, table: Table, names: tuple[str, ...], plan: Plan, values: Sequence[Values], tensors: Tensors
) -> tuple[Tensors, Tensors]:
    """The tensors after one step for each of `values`, and the largest entry of each on the way (NaN if one was).

    The largest entries of K and Theta stand on the diagonal, since both are positive.
    """
    padded = [*values, *[values[-1]] * (-len(values) % STEP)]
    stacked = {name: jnp.stack([v[name] for v in padded]) for name in values[0]}
    return _loop(functions, table, names)(plan, stacked, tensors, len(values))


@lru_cache(maxsize=64)
def _loop(functions: Functions, table: Table, names: tuple[str, ...]) -> Callable[..., tuple[Tensors, Tensors]]:
    orders = needed(table.steps, names)[0]

    def loop(plan: Plan, values: Values, tensors: Tensors, count: jax.Array) -> tuple[Tensors, Tensors]:
        size = tensors["K"].shape[0]
        tile = min(TILE, size)
        number = -(-size // tile)
        pad = number * tile - size
        first = {name: jnp.pad(x, ((0, pad), (0, pad)), mode="edge") for name, x in tensors.items()}

        def at(layer: jax.Array) -> Values:
            return {name: array[layer] for name, array in values.items()}

        def line(layer: jax.Array, state: tuple[Tensors, jax.Array, Tensors]) -> tuple[Tensors, jax.Array, Tensors]:
            now, variances, largest = state
            found = plan.pairs.single(functions, orders, now["K"][:, 0])
            two = {order: value[:, None] for order, value in found.items()}
            new = combine_pairs(table.steps, names, at(layer), now, two)
            variances = variances.at[layer].set(now["K"][:, 0])
            return new, variances, {name: jnp.maximum(largest[name], jnp.max(jnp.abs(new[name]))) for name in names}

        start = {name: jnp.diagonal(x)[:, None] for name, x in first.items()}
        room = jnp.zeros((values["C_W"].shape[0], number * tile), first["K"].dtype)
        largest = {name: jnp.max(jnp.abs(start[name])) for name in names}
        _, variances, largest = jax.lax.fori_loop(0, count, line, (start, room, largest))

        upper = jnp.triu(jnp.ones((tile, tile), dtype=bool))

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
        return {name: x[:size, :size] for name, x in totals.items()}, largest

    return jax.jit(loop)
