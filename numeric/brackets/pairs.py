"""Pair brackets <sigma^(j)(z_a) sigma^(k)(z_b)> for all pairs of inputs, by the Mehler series or in closed form.

Mehler: with c_n the Hermite coefficients at the two variances and rho the correlation,
<f(z_a) g(z_b)> = sum_n rho^n c_n[f](K_aa) c_n[g](K_bb). It holds for every |rho| <= 1 and needs no inverse.
Derivatives with respect to K follow from Gaussian integration by parts (`jax.custom_jvp`), so they are right where
K is singular and where an input vanishes:
d<f g> = <f' g'> dK_ab + (<f'' g> dK_aa + <f g''> dK_bb) / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from numeric.brackets.close import close_pairs
from numeric.brackets.exponential import exponential_brackets
from numeric.brackets.functions import Functions
from numeric.brackets.hermite import coefficients, gaussian_weights
from numeric.brackets.kinked import linear_pair
from numeric.brackets.plan import PairPlan
from numeric.brackets.sectors import sector_pairs
from numeric.brackets.stein import stein_brackets

Order = tuple[int, int]
TILE = 128
UNROLL = 8
FEW_ORDERS, STRIP = 4, 1 << 15


def correlation(K: Array, diagonal: Array) -> Array:
    """K_ab / sqrt(K_aa K_bb), clipped to [-1, 1]; zero where an input vanishes."""
    size = jnp.sqrt(diagonal)
    product = size[:, None] * size[None, :]
    rho = jnp.where(product > 0, K / jnp.where(product > 0, product, 1), 0)
    return jnp.clip(rho, -1, 1)


def _power_sum(rho: Array, left: Array, right: Array, parity: int | None) -> Array:
    """sum_n rho^n left[n] right[n] (outer product of the columns), only even (0) or odd (1) n if `parity` says so."""
    if parity is None:
        variable, first = rho, None
    else:
        left, right, variable, first = left[parity::2], right[parity::2], rho * rho, (rho if parity else None)
    missing = -left.shape[0] % UNROLL
    left, right = (jnp.pad(x, ((0, missing), (0, 0))).reshape(-1, UNROLL, x.shape[1]) for x in (left, right))

    def horner(total: Array, terms: tuple[Array, Array]) -> tuple[Array, None]:
        for m in reversed(range(UNROLL)):
            total = total * variable + terms[0][m][:, None] * terms[1][m][None, :]
        return total, None

    total, _ = jax.lax.scan(horner, jnp.zeros_like(rho), (left, right), reverse=True)
    return total if first is None else total * first


def _mehler(rho: Array, left: Array, right: Array, parity: int | None, symmetric: bool) -> Array:
    """The series for all pairs, tile by tile so that a tile stays in the cache; half of them if symmetric."""
    size = rho.shape[0]
    if size <= TILE:
        return _power_sum(rho, left, right, parity)
    count = -(-size // TILE)
    pad = count * TILE - size
    rho = jnp.pad(rho, ((0, pad), (0, pad)))
    left, right = (jnp.pad(x, ((0, 0), (0, pad))) for x in (left, right))
    tiles = jnp.asarray([(i, j) for i in range(count) for j in range(i if symmetric else 0, count)], dtype=jnp.int32)

    def fill(total: Array, where: Array) -> tuple[Array, None]:
        i, j = where[0] * TILE, where[1] * TILE
        rows = jax.lax.dynamic_slice_in_dim(left, i, TILE, axis=1)
        columns = jax.lax.dynamic_slice_in_dim(right, j, TILE, axis=1)
        tile = _power_sum(jax.lax.dynamic_slice(rho, (i, j), (TILE, TILE)), rows, columns, parity)
        total = jax.lax.dynamic_update_slice(total, tile, (i, j))
        return (jax.lax.dynamic_update_slice(total, tile.T, (j, i)) if symmetric else total), None

    total, _ = jax.lax.scan(fill, jnp.zeros_like(rho), tiles)
    return total[:size, :size]


def _derivative(functions: Functions, order: int, z: Array) -> Array:
    return functions.derivatives(z, order)


def _series(functions: Functions, orders: tuple[Order, ...], plan: PairPlan, K: Array) -> dict[Order, Array]:
    diagonal = jnp.diagonal(K)
    rho = correlation(K, diagonal)
    scale = jnp.sqrt(jnp.maximum(diagonal, 0))
    nodes = plan.nodes.astype(K.dtype)
    needed = sorted({k for pair in orders for k in pair})
    c = {k: coefficients(partial(_derivative, functions, k), scale, nodes, plan.step, plan.n) for k in needed}
    on_diagonal = _diagonal(functions, orders, K, jnp.concatenate([nodes, -nodes]), plan.step)
    close = _close_values(functions, orders, plan, K)
    out: dict[Order, Array] = {}
    for j, k in orders:
        if (k, j) in out:
            out[j, k] = out[k, j].T
            continue
        if functions.parity and (j + k) % 2:
            out[j, k] = jnp.zeros_like(K)  # an odd function of an even one
            continue
        parity = None if functions.parity == 0 else (j + (functions.parity < 0)) % 2
        total = _mehler(rho, c[j], c[k], parity, j == k)
        out[j, k] = jnp.where(jnp.eye(K.shape[0], dtype=bool), on_diagonal[j, k][:, None], total)
        out[j, k] = _with_close(out[j, k], (j, k), close, plan)
    return out


def _diagonal(
    functions: Functions, orders: tuple[Order, ...], K: Array, nodes: Array, step: Array
) -> dict[Order, Array]:
    """<sigma^(j) sigma^(k)> at one input, by the trapezoidal rule with these nodes (both signs)."""
    nodes = nodes.astype(K.dtype)
    z = jnp.sqrt(jnp.maximum(jnp.diagonal(K), 0))[:, None] * nodes[None, :]
    values = {k: functions.derivatives(z, k) for k in sorted({k for pair in orders for k in pair})}
    weights = gaussian_weights(nodes, step)
    return {(j, k): (values[j] * values[k]) @ weights for j, k in orders}


def _with_close(values: Array, order: Order, close: dict[Order, Array], plan: PairPlan) -> Array:
    if not close:
        return values
    a, b = plan.close[:, 0], plan.close[:, 1]
    return values.at[a, b].set(close[order]).at[b, a].set(close[order[::-1]])


def _close_values(functions: Functions, orders: tuple[Order, ...], plan: PairPlan, K: Array) -> dict[Order, Array]:
    """{(j, k): values} for the plan's close pairs, both orders; empty if it has none."""
    if not plan.close.shape[0]:
        return {}
    both = tuple(sorted(set(orders) | {(k, j) for j, k in orders}))
    return dict(zip(both, close_pairs(functions, both, K, plan.close, plan.close_nodes, plan.close_steps)))


Closed = Callable[[Functions, tuple[Order, ...], Array, Array, Array], list[Array]]


def _stein_pairs(functions: Functions, orders: tuple[Order, ...], a: Array, b: Array, c: Array) -> list[Array]:
    none = jnp.zeros(0, c.dtype)
    return stein_brackets(functions, orders, [[a, c], [c, b]], none, none)


def _exponential_pairs(functions: Functions, orders: tuple[Order, ...], a: Array, b: Array, c: Array) -> list[Array]:
    blocks = jnp.stack([jnp.stack([a.ravel(), c.ravel()]), jnp.stack([c.ravel(), b.ravel()])])
    return [value.reshape(c.shape) for value in exponential_brackets(functions, orders, blocks)]


def _elementwise(functions: Functions, orders: tuple[Order, ...], K: Array, closed: Closed) -> dict[Order, Array]:
    """A closed form of (K_aa, K_bb, K_ab) for all pairs; many orders at once strip by strip, to bound the memory."""
    wanted = tuple(sorted({(j, k) for j, k in orders if (k, j) not in orders or j <= k}))
    size, diagonal = K.shape[0], jnp.diagonal(K)

    def rows(strip: tuple[Array, Array]) -> list[Array]:
        c, a = strip
        return closed(functions, wanted, jnp.broadcast_to(a[:, None], c.shape), jnp.broadcast_to(diagonal, c.shape), c)

    # a loop even where two strips would fit at once: its results are stored, so that transposing them is no second
    # evaluation; long strips are shared by the threads
    height = -(-size // 2) if len(wanted) <= FEW_ORDERS else max(1, min(STRIP // size, -(-size // 2)))
    pad = -size % height
    strips = jnp.pad(K, ((0, pad), (0, 0))).reshape(-1, height, size), jnp.pad(diagonal, (0, pad), mode="edge")
    values = jax.lax.map(rows, (strips[0], strips[1].reshape(-1, height)))
    found = {order: value.reshape(-1, size)[:size] for order, value in zip(wanted, values)}
    line = jnp.arange(size)
    upper = line[:, None] <= line[None, :]
    for j, k in wanted:
        if j == k:  # symmetric to the last bit
            found[j, k] = jnp.where(upper, found[j, k], found[j, k].T)
    return {(j, k): found[j, k] if (j, k) in found else found[k, j].T for j, k in orders}


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pairs(functions: Functions, orders: tuple[Order, ...], plan: PairPlan, K: Array) -> dict[Order, Array]:
    if plan.route == "mehler":
        return _series(functions, orders, plan, K)
    if plan.route == "linear":
        return {(j, k): linear_pair(functions, j, k, K) for j, k in orders}
    if plan.route == "sectors":
        return sector_pairs(functions, orders, K, plan.n)
    closed = _exponential_pairs if plan.route == "exponential" else _stein_pairs
    out = _elementwise(functions, orders, K, closed)
    if plan.close_nodes[0].shape[0] > 1:
        close = _close_values(functions, orders, plan, K)
        single = _diagonal(functions, orders, K, plan.close_nodes[0], plan.close_steps[0])
        own = jnp.eye(K.shape[0], dtype=bool)
        out = {pair: jnp.where(own, single[pair][:, None], value) for pair, value in out.items()}
        out = {pair: _with_close(value, pair, close, plan) for pair, value in out.items()}
    return out


@_pairs.defjvp
def _pairs_jvp(functions, orders, primals, tangents):
    plan, K = primals
    dK = tangents[1]
    change = jnp.diagonal(dK)
    wanted = set(orders)
    for j, k in orders:
        wanted |= {(j + 1, k + 1), (j + 2, k), (j, k + 2)}
    values = _pairs(functions, tuple(sorted(wanted)), plan, K)
    tangent = {
        (j, k): values[j + 1, k + 1] * dK
        + (values[j + 2, k] * change[:, None] + values[j, k + 2] * change[None, :]) / 2
        for j, k in orders
    }
    return {pair: values[pair] for pair in orders}, tangent


def pair_brackets(functions: Functions, K: Array, orders: Iterable[Order], plan: PairPlan) -> dict[Order, Array]:
    """All <sigma^(j)(z_a) sigma^(k)(z_b)> of the given orders (j, k): {(j, k): (N, N) array, axes a, b}.

    `plan` comes from `make_pair_plan` and is the only thing that is chosen on the host: this function can be jitted,
    mapped and differentiated with respect to K.
    """
    return _pairs(functions, tuple(orders), plan, K)
