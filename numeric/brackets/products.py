"""Pair averages of products of activations, <Π σ^(j)(z_a) Π σ^(k)(z_b)>, by Mehler series of the products.

For smooth activations. The series is continued until the products' norms are exhausted: Σ c_n² = <f²> to 1e-13, which
bounds what is left out for every correlation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.hermite import coefficients, gaussian_weights, half_line
from numeric.brackets.pairs import correlation, mehler
from numeric.errors import NumericError

Array = jax.Array
Orders = tuple[int, ...]
ENOUGH, LONGEST, RADIUS = 1e-13, 2048, 14.0


def _product(functions: Functions, orders: Orders, z: Array) -> Array:
    value = jnp.ones_like(z)
    for k in orders:
        value = value * functions.derivatives(z, k)
    return value


@partial(jax.jit, static_argnums=(0, 1))
def _alone(functions: Functions, sides: tuple[Orders, ...], scale: Array, nodes: Array, step: Array) -> Array:
    """<Π σ^(k)> at each input, for each tuple of orders: (sides, N)."""
    both = jnp.concatenate([nodes, -nodes])
    z, weights = scale[:, None] * both[None, :], gaussian_weights(both, step)
    values = {k: functions.derivatives(z, k) for k in sorted({k for side in sides for k in side})}
    found = []
    for side in sides:
        value = jnp.ones_like(z)
        for k in side:
            value = value * values[k]
        found.append(value @ weights)
    return jnp.stack(found)


@partial(jax.jit, static_argnums=(0, 1, 5))
def _coefficients(
    functions: Functions, sides: tuple[Orders, ...], scale: Array, nodes: Array, step: Array, n: int
) -> Array:
    """Hermite coefficients of each product: (sides, n, N)."""

    def stacked(z: Array) -> Array:
        return jnp.concatenate([_product(functions, side, z) for side in sides])

    c = coefficients(stacked, scale, nodes, step, n)
    return c.reshape(n, len(sides), len(scale)).transpose(1, 0, 2)


@jax.jit
def _series(rho: Array, c: Array, which: Array) -> Array:
    return jax.lax.map(lambda pair: mehler(rho, c[pair[0]], c[pair[1]], None, False), which)


def product_pairs(
    functions: Functions, K: Array, groups: Iterable[tuple[Orders, Orders]]
) -> dict[tuple[Orders, Orders], np.ndarray]:
    """{(orders at a, orders at b): (N, N)}; with no orders on one side the average is over the other alone."""
    wanted = sorted(set(groups))
    diagonal = jnp.maximum(jnp.diagonal(K), 0)
    rho, scale = correlation(K, diagonal), jnp.sqrt(diagonal)
    step = min(0.05, 0.25 / max(float(jnp.max(scale)), 1e-300))
    nodes = jnp.asarray(half_line(step, RADIUS))
    sides = tuple(sorted({side for group in wanted if all(group) for side in group}))
    single = tuple(sorted({first + second for first, second in wanted} | {side * 2 for side in sides}))
    alone = dict(zip(single, np.asarray(_alone(functions, single, scale, nodes, jnp.asarray(step)))))
    norms, n = np.stack([alone[side * 2] for side in sides]), 64
    while True:
        c = _coefficients(functions, sides, scale, nodes, jnp.asarray(step), n)
        left = norms - np.sum(np.square(np.asarray(c)), axis=1)
        if float(np.max(left / np.max(norms, axis=1, keepdims=True))) < ENOUGH:
            break
        n *= 2
        if n > LONGEST:
            raise NumericError(f"Averages of {functions.name} over two inputs do not converge: scale the inputs down.")
    once = [(first, second) for first, second in wanted if first and second and first <= second]
    which = jnp.asarray([[sides.index(first), sides.index(second)] for first, second in once])
    found: dict[tuple[Orders, Orders], np.ndarray] = {}
    for group, series in zip(once, np.asarray(_series(rho, c, which))):
        first, second = group
        found[group] = np.where(np.eye(len(K), dtype=bool), alone[first + second][:, None], series)
        found[second, first] = found[group].T
    for first, second in wanted:
        if not first or not second:
            own = alone[first + second]
            found[first, second] = own[:, None] if first else own[None, :]
    return found
