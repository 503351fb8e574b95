"""Pairs of nearly parallel inputs of large variance, where the Mehler series would be too long: a rule in the plane.

z_b = (K_ab / K_aa) z_a + s y with y standard normal, s^2 = det / K_aa. Where the correlation is close to +1 or -1, s is
small on the scale of the activation, so few nodes suffice for y; z_a takes as many as one input alone.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from numeric.brackets.functions import Functions
from numeric.brackets.hermite import gaussian_weights


def determinant(a: Array, b: Array, c: Array) -> Array:
    """a b - c^2 to full relative accuracy (Dekker's exact products), not below zero."""
    first, first_error = _product(a, b)
    second, second_error = _product(c, c)
    return jnp.maximum((first - second) + (first_error - second_error), 0)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its rounding error."""
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _halves(x: Array) -> tuple[Array, Array]:
    bits = 27 if x.dtype == jnp.float64 else 12
    t = x * (2.0**bits + 1)
    high = t - (t - x)
    return high, x - high


def close_pairs(
    functions: Functions,
    orders: tuple[tuple[int, int], ...],
    K: Array,
    pairs: Array,
    nodes: tuple[Array, Array],
    steps: tuple[Array, Array],
) -> Array:
    """<sigma^(j)(z_a) sigma^(k)(z_b)> for the pairs (a, b), shape (J, 2): (orders, J).

    `nodes` and `steps` are those of the trapezoidal rules for z_a and for y, both signs included.
    """
    x, y = (n.astype(K.dtype) for n in nodes)
    wx, wy = (gaussian_weights(n, step) for n, step in zip((x, y), steps))
    left, right = sorted({j for j, _ in orders}), sorted({k for _, k in orders})

    def one(pair: Array) -> Array:
        a, b = pair[0], pair[1]
        variance = K[a, a]
        safe = jnp.where(variance > 0, variance, 1)
        z = jnp.sqrt(variance) * x
        s = jnp.sqrt(determinant(variance, K[b, b], K[a, b]) / safe)
        other = (K[a, b] / safe * z)[:, None] + s * y[None, :]
        f = {j: functions.derivatives(z, j) * wx for j in left}
        g = {k: functions.derivatives(other, k) @ wy for k in right}
        return jnp.stack([f[j] @ g[k] for j, k in orders])

    return jax.lax.map(one, pairs).T
