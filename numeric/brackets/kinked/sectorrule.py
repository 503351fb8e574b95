"""One pair bracket of an activation with a kink at zero: the plane of (z_a, z_b) cut into four sectors by the signs.

Inside each sector the integrand is analytic: Gauss-Legendre in the angle, graded towards the kinks where the variances
are large, and double-exponential in the radius. Exact to rounding for every correlation, +1 and -1 included, where two
of the sectors close.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.functions import Functions

RADII = 128


def radii(angles: int) -> int:
    """How many radii go with so many angles."""
    return max(4 * angles + 16, RADII)


SIGNS = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])  # of z_a and z_b


def radial_rule(count: int = RADII) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for the integral of r exp(-r^2/2) F(r) over (0, infinity), F possibly sharp at zero."""
    u = np.linspace(-4.6, 2.35, count)
    r = np.exp(u - np.exp(-u))
    w = (u[1] - u[0]) * r * (1 + np.exp(-u)) * r * np.exp(-(r**2) / 2)
    return r, w


def angular_rule(count: int, grain: Array) -> tuple[Array, Array]:
    """Nodes and weights on (0, 1), graded towards 0."""
    xp = module_of(grain)
    legendre = np.polynomial.legendre.leggauss(count)
    x, w = xp.asarray((legendre[0] + 1) / 2, grain.dtype), xp.asarray(legendre[1] / 2, grain.dtype)
    tau = xp.arcsinh(np.pi / 2 / grain)
    return xp.sinh(tau * x) / xp.sinh(tau), tau * xp.cosh(tau * x) / xp.sinh(tau) * w


def _both_ends(width: Array, grain: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights on (0, width), graded towards both ends: (widths, nodes)."""
    near, weight = angular_rule(count, grain)
    half, near, weight = width[:, None] / 2, near[None, :], weight[None, :]
    nodes = jnp.concatenate([half * near, 2 * half - half * near], axis=-1)
    return nodes, jnp.concatenate([half * weight, half * weight], axis=-1)


def sector_integrals(
    functions: Functions,
    orders: tuple[tuple[int, int], ...],
    size_a: Array,
    size_b: Array,
    angle: Array,
    angles: int,
) -> Array:
    """<sigma^(j)(z_a) sigma^(k)(z_b)> without delta functions, (orders,), for standard deviations and the angle whose
    cosine is the correlation: z_a = size_a r cos(t), z_b = size_b r cos(t - angle).
    """
    r, wr = (jnp.asarray(v, angle.dtype) for v in radial_rule(radii(angles)))
    quarter = np.pi / 2
    start = jnp.stack([angle - quarter, jnp.full_like(angle, quarter), angle + quarter, jnp.full_like(angle, -quarter)])
    width = jnp.stack([np.pi - angle, angle, np.pi - angle, angle])
    grain = 1 / jnp.maximum(jax.lax.stop_gradient(jnp.maximum(size_a, size_b)), 1)
    t, wt = _both_ends(width, grain, angles)
    t = t + start[:, None]
    signs = jnp.asarray(SIGNS, angle.dtype)
    z_a = size_a * signs[:, :1, None] * jnp.abs(jnp.cos(t))[:, :, None] * r[None, None, :]
    z_b = size_b * signs[:, 1:, None] * jnp.abs(jnp.cos(t - angle))[:, :, None] * r[None, None, :]
    weight = wt[:, :, None] * wr[None, None, :] / (2 * np.pi)
    f = {k: functions.derivatives(z_a, k) * weight for k in sorted({j for j, _ in orders})}
    g = {k: functions.derivatives(z_b, k) for k in sorted({k for _, k in orders})}
    return jnp.stack([(f[j] * g[k]).sum() for j, k in orders])
