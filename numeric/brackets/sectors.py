"""Pair brackets of activations with a kink at zero that are analytic on both sides (elu, selu, softsign).

In the plane of the two whitened preactivations the kinks are two lines through the origin. Inside each of the four
sectors the integrand is analytic: Gauss-Legendre in the angle, double-exponential in the radius. Exact to rounding for
every correlation, +1 and -1 included, where two of the sectors close.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.errors import NumericError

ANGLES = 40
RADII = 128
CHUNK = 64


def _radial_rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for the integral of r exp(-r^2/2) F(r) over (0, infinity), F possibly sharp at zero."""
    u = np.linspace(-4.6, 2.35, RADII)
    r = np.exp(u - np.exp(-u))
    w = (u[1] - u[0]) * r * (1 + np.exp(-u)) * r * np.exp(-(r**2) / 2)
    return r, w


def sector_pairs(functions: Functions, orders: tuple[tuple[int, int], ...], K: Array) -> dict[tuple[int, int], Array]:
    """{(j, k): (N, N)} of <sigma^(j)(z_a) sigma^(k)(z_b)>; orders with delta functions are refused."""
    for j, k in orders:
        for order in (j, k):
            if functions.has_delta(order):
                raise NumericError(
                    f"{functions.name}: its derivative of order {order} holds a delta function at the kink; "
                    "pair brackets with it are not available."
                )
    legendre = np.polynomial.legendre.leggauss(ANGLES)
    x, wx = jnp.asarray((legendre[0] + 1) / 2, K.dtype), jnp.asarray(legendre[1] / 2, K.dtype)
    r, wr = (jnp.asarray(v, K.dtype) for v in _radial_rule())
    needed = sorted({k for pair in orders for k in pair})
    size = K.shape[0]
    diagonal = jnp.diagonal(K)
    scale = jnp.sqrt(diagonal)
    size_ab = jnp.sqrt(diagonal[:, None] * diagonal[None, :])
    sine = jnp.sqrt(jnp.maximum((size_ab - K) * (size_ab + K), 0))  # exactly zero for equal and opposite inputs
    angles = jnp.where(jnp.eye(size, dtype=bool), 0, jnp.where(size_ab > 0, jnp.arctan2(sine, K), np.pi / 2))
    a, b = np.triu_indices(size)
    both = tuple(sorted(set(orders) | {(k, j) for j, k in orders}))

    def one(pair: tuple[Array, Array, Array]) -> Array:
        """z_a = scale_a r cos(t), z_b = scale_b r cos(t - angle); the sectors by the signs of the two cosines."""
        size_a, size_b, angle = pair
        total = jnp.zeros(len(both), K.dtype)
        # (start, width, signs): both positive, a - b +, both negative, a + b -
        quarter = np.pi / 2
        sectors = (
            (angle - quarter, np.pi - angle, 1.0, 1.0),
            (quarter, angle, -1.0, 1.0),
            (angle + quarter, np.pi - angle, -1.0, -1.0),
            (angle + quarter - angle - np.pi, angle, 1.0, -1.0),
        )
        for start, width, sign_a, sign_b in sectors:
            t = start + width * x
            z_a = size_a * sign_a * jnp.abs(jnp.cos(t))[:, None] * r
            z_b = size_b * sign_b * jnp.abs(jnp.cos(t - angle))[:, None] * r
            weight = wx[:, None] * wr * width / (2 * np.pi)
            f = {k: functions.derivatives(z_a, k) * weight for k in needed}
            g = {k: functions.derivatives(z_b, k) for k in needed}
            total = total + jnp.stack([(f[j] * g[k]).sum() for j, k in both])
        return total

    values = jax.lax.map(one, (scale[a], scale[b], angles[a, b]), batch_size=min(CHUNK, len(a))).T
    index = {order: i for i, order in enumerate(both)}
    where = np.zeros((size, size), dtype=np.int32)
    where[a, b] = where[b, a] = np.arange(len(a))
    upper = np.triu(np.ones((size, size), dtype=bool))
    return {(j, k): jnp.where(upper, values[index[j, k]][where], values[index[k, j]][where]) for j, k in orders}
