"""The functions that generated activations are made of, in forms that neither cancel nor overflow, in any precision.

>>> import jax.numpy as jnp
>>> float(sech2(jnp.asarray(400.0))), float(log_cosh(jnp.asarray(1e4)))
(0.0, 9999.30685281944)
"""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfc

logistic = jax.nn.sigmoid
softplus = jax.nn.softplus


def sech(u: jax.Array) -> jax.Array:
    """1/cosh u."""
    decay = jnp.exp(-jnp.abs(u))
    return 2 * decay / (1 + decay * decay)


def sech2(u: jax.Array) -> jax.Array:
    """1/cosh^2 u, the slope of tanh, without 1 - tanh^2."""
    decay = jnp.exp(-2 * jnp.abs(u))
    return 4 * decay / (1 + decay) ** 2


def log_cosh(u: jax.Array) -> jax.Array:
    """log cosh u; by log1p(2 sinh^2(u/2)) where u is small."""
    small = jnp.abs(u) < 1
    near = jnp.log1p(2 * jnp.sinh(jnp.where(small, u, 0.0) / 2) ** 2)
    return jnp.where(small, near, jnp.abs(u) + jnp.log1p(jnp.exp(-2 * jnp.abs(u))) - jnp.log(2.0).astype(near.dtype))


def bell(u: jax.Array) -> jax.Array:
    """1/sqrt(1 + u^2)."""
    return 1 / jnp.sqrt(1 + u * u)


def ramp(u: jax.Array) -> jax.Array:
    """u/sqrt(1 + u^2)."""
    return u / jnp.sqrt(1 + u * u)


def root(u: jax.Array) -> jax.Array:
    """sqrt(1 + u^2)."""
    return jnp.sqrt(1 + u * u)


def taylor(u: jax.Array, coefficients: tuple[float, ...], order: int = 0) -> jax.Array:
    """The order-th derivative of sum_n coefficients[n] u^n, by Horner's rule."""
    total = jnp.zeros_like(u)
    for n in range(len(coefficients) - 1, order - 1, -1):
        total = total * u + coefficients[n] * math.perm(n, order)
    return total


__all__ = ["bell", "erf", "erfc", "log_cosh", "logistic", "ramp", "root", "sech", "sech2", "softplus", "taylor"]
