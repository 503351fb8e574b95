"""Closed forms of (K_aa, K_bb, K_ab) for all pairs, piece by piece: a piece stays in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.calculus import Order, Rectangle

FEW_ORDERS, STRIP = 4, 1 << 15
TILE = 256

Closed = Callable[[tuple[Order, ...], Array, Array, Array, Array], list[Array]]
"""(orders, variances a, (R, 1), variances b, (1, C), covariances, whether both are one input) to values for each order,
of whatever shape broadcasts to (R, C).
"""


def _values(closed: Closed, orders: tuple[Order, ...], a: Array, b: Array, c: Array, same: Array) -> list[Array]:
    """All orders, (R, C)."""
    return [jnp.broadcast_to(value, c.shape) for value in closed(orders, a[:, None], b[None, :], c, same)]


def elementwise(closed: Closed, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool) -> dict[Order, Array]:
    """{(j, k): (R, C)}; of a symmetric matrix only one half is computed, where all orders have j = k."""
    if isinstance(pairs.c, np.ndarray):
        return _at_once(closed, orders, pairs, symmetric)
    if not symmetric and pairs.c.size <= TILE * TILE and len(orders) <= FEW_ORDERS:
        return dict(zip(orders, _values(closed, orders, *pairs)))
    if not symmetric:
        return dict(zip(orders, _strips(closed, orders, pairs)))
    wanted = tuple(sorted({(j, k) for j, k in orders if (k, j) not in orders or j <= k}))
    if all(j == k for j, k in wanted) and pairs.c.shape[0] > TILE:
        return dict(zip(wanted, _upper_tiles(closed, wanted, pairs)))
    found = dict(zip(wanted, _strips(closed, wanted, pairs)))
    line = jnp.arange(pairs.c.shape[0])
    upper = line[:, None] <= line[None, :]
    for j, k in wanted:
        if j == k:  # symmetric to the last bit
            found[j, k] = jnp.where(upper, found[j, k], found[j, k].T)
    return {(j, k): found[j, k] if (j, k) in found else found[k, j].T for j, k in orders}


def _at_once(closed: Closed, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool) -> dict[Order, Array]:
    """All pairs on the host."""
    a, b, c = cast(Any, pairs.a)[:, None], cast(Any, pairs.b)[None, :], cast(Any, pairs.c)
    values: list[Any] = closed(orders, a, b, c, pairs.same)
    found: dict[Order, Any] = {order: np.broadcast_to(value, c.shape) for order, value in zip(orders, values)}
    upper = np.triu(np.ones(c.shape, dtype=bool))
    return {(j, k): np.where(upper, x, x.T) if symmetric and j == k else x for (j, k), x in found.items()}


def _strips(closed: Closed, orders: tuple[Order, ...], pairs: Rectangle) -> list[Array]:
    """Some rows at a time. A loop even where two strips would fit at once: its results are stored, so that transposing
    them is no second evaluation; long strips are shared by the threads.
    """
    rows, columns = pairs.c.shape
    height = -(-rows // 2) if len(orders) <= FEW_ORDERS else max(1, min(STRIP // columns, -(-rows // 2)))
    pad = -rows % height

    def strip(piece: tuple[Array, Array, Array]) -> list[Array]:
        a, c, same = piece
        return _values(closed, orders, a, pairs.b, c, same)

    a = jnp.pad(pairs.a, (0, pad), mode="edge").reshape(-1, height)
    c, same = (jnp.pad(x, ((0, pad), (0, 0))).reshape(-1, height, columns) for x in (pairs.c, pairs.same))
    return [value.reshape(-1, columns)[:rows] for value in jax.lax.map(strip, (a, c, same))]


def _upper_tiles(closed: Closed, orders: tuple[Order, ...], pairs: Rectangle) -> list[Array]:
    """Tiles on and above the diagonal; the others are their transposes."""
    size = pairs.c.shape[0]
    count = -(-size // TILE)
    pad = count * TILE - size
    a = jnp.pad(pairs.a, (0, pad), mode="edge")
    c, same = (jnp.pad(x, ((0, pad), (0, pad))) for x in (pairs.c, pairs.same))
    tiles = jnp.asarray([(i, j) for i in range(count) for j in range(i, count)], dtype=jnp.int32)
    line = np.arange(TILE)
    upper = jnp.asarray(line[:, None] <= line[None, :])

    def fill(totals: list[Array], where: Array) -> tuple[list[Array], None]:
        i, j = where[0] * TILE, where[1] * TILE
        rows, columns = (jax.lax.dynamic_slice_in_dim(a, start, TILE) for start in (i, j))
        own, one = (jax.lax.dynamic_slice(x, (i, j), (TILE, TILE)) for x in (c, same))
        values = _values(closed, orders, rows, columns, own, one)
        values = [jnp.where(upper | (i != j), value, value.T) for value in jax.lax.optimization_barrier(values)]
        totals = [jax.lax.dynamic_update_slice(t, v, (i, j)) for t, v in zip(totals, values)]
        return [jax.lax.dynamic_update_slice(t, v.T, (j, i)) for t, v in zip(totals, values)], None

    totals, _ = jax.lax.scan(fill, [jnp.zeros_like(c) for _ in orders], tiles)
    return [total[:size, :size] for total in totals]
