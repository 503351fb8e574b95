"""The functions that generated activations are made of, in forms that neither cancel nor overflow, in any precision.

Their derivatives are given in the same closed algebra (`jax.custom_jvp`), so that differentiating generated code any
number of times stays as stable as the code.

>>> import jax.numpy as jnp
>>> float(sech2(jnp.asarray(400.0))), float(log_cosh(jnp.asarray(1e4)))
(0.0, 9999.30685281944)
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfc

logistic = jax.nn.sigmoid
softplus = jax.nn.softplus


@jax.custom_jvp
def sech(u: jax.Array) -> jax.Array:
    """1/cosh u."""
    decay = jnp.exp(-jnp.abs(u))
    return 2 * decay / (1 + decay * decay)


@jax.custom_jvp
def sech2(u: jax.Array) -> jax.Array:
    """1/cosh^2 u, the slope of tanh, without 1 - tanh^2."""
    decay = jnp.exp(-2 * jnp.abs(u))
    return 4 * decay / (1 + decay) ** 2


@jax.custom_jvp
def log_cosh(u: jax.Array) -> jax.Array:
    """log cosh u; by log1p(2 sinh^2(u/2)) where u is small."""
    small = jnp.abs(u) < 1
    near = jnp.log1p(2 * jnp.sinh(jnp.where(small, u, 0.0) / 2) ** 2)
    return jnp.where(small, near, jnp.abs(u) + jnp.log1p(jnp.exp(-2 * jnp.abs(u))) - math.log(2))


@jax.custom_jvp
def bell(u: jax.Array) -> jax.Array:
    """1/sqrt(1 + u^2)."""
    return 1 / jnp.sqrt(1 + u * u)


@jax.custom_jvp
def ramp(u: jax.Array) -> jax.Array:
    """u/sqrt(1 + u^2)."""
    return u / jnp.sqrt(1 + u * u)


@jax.custom_jvp
def root(u: jax.Array) -> jax.Array:
    """sqrt(1 + u^2)."""
    return jnp.sqrt(1 + u * u)


sech.defjvps(lambda t, y, u: -t * jnp.tanh(u) * y)
sech2.defjvps(lambda t, y, u: -2 * t * jnp.tanh(u) * y)
log_cosh.defjvps(lambda t, y, u: t * jnp.tanh(u))
bell.defjvps(lambda t, y, u: -t * ramp(u) * bell(u) ** 2)
ramp.defjvps(lambda t, y, u: t * bell(u) ** 3)
root.defjvps(lambda t, y, u: t * ramp(u))


def taylor(u: jax.Array, coefficients: tuple[float, ...], order: int = 0) -> jax.Array:
    """The order-th derivative of sum_n coefficients[n] u^n, by Horner's rule."""
    total = jnp.zeros_like(u)
    for n in range(len(coefficients) - 1, order - 1, -1):
        total = total * u + coefficients[n] * math.perm(n, order)
    return total


def beyond(sigma: Callable[[jax.Array, int], jax.Array], z: jax.Array, order: int) -> jax.Array:
    """sigma^(order) as the derivative of sigma^(order-1): for orders that are not written out."""
    return jax.jvp(lambda u: sigma(u, order - 1), (z,), (jnp.ones_like(z),))[1]


__all__ = [
    "bell",
    "beyond",
    "erf",
    "erfc",
    "log_cosh",
    "logistic",
    "ramp",
    "root",
    "sech",
    "sech2",
    "softplus",
    "taylor",
]
