"""Sums of exponentials (sin, cos, exp, ...): brackets from the Gaussian moment generating function.

With sigma = sum_t c_t exp(r_t z): <prod_i exp(r_i z_i)> = exp(sum_ij r_i r_j K_ij / 2). For pairs the factor
exp(r r' K_ab) is written as 1 + expm1, so that weakly correlated inputs lose no digits.
"""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions


def exponential_brackets(functions: Functions, patterns: tuple[tuple[int, ...], ...], K: Array) -> Array:
    """<product of sigma^(k_i)(z_i)> for each pattern: (patterns, B), from covariances (d, d, B)."""
    assert functions.exponentials is not None
    size = K.shape[0]
    terms = functions.exponentials
    rates = np.array([r for _, r in terms], dtype=complex)
    choices = np.array(list(product(range(len(terms)), repeat=size)))
    r = rates[choices]  # (choices, size)
    kind = jnp.result_type(K.dtype, jnp.complex64)
    own = sum(jnp.asarray(r[:, i] ** 2 / 2, kind)[:, None] * K[i, i] for i in range(size))
    cross = sum(
        jnp.asarray(r[:, i] * r[:, j], kind)[:, None] * K[i, j] for i in range(size) for j in range(i + 1, size)
    )
    large = jnp.real(cross) > 1  # then nothing cancels, while the factors may under- and overflow
    small = jnp.exp(own) * jnp.expm1(jnp.where(large, 0, cross))
    change = jnp.where(large, jnp.exp(own + cross) - jnp.exp(own), small)  # (choices, B)
    single = {
        (i, k): _real(sum(complex(c * r**k) * jnp.exp(complex(r * r) / 2 * K[i, i]) for c, r in terms))
        for i in range(size)
        for k in sorted({p[i] for p in patterns})
    }
    rows = []
    for pattern in patterns:
        weight = np.ones(len(choices), dtype=complex)
        mean = jnp.ones_like(K[0, 0])
        for i, k in enumerate(pattern):
            weight = weight * np.array([complex(c) * complex(r) ** k for c, r in terms])[choices[:, i]]
            mean = mean * single[i, k]
        rows.append(mean + _real((jnp.asarray(weight, kind)[:, None] * change).sum(axis=0)))
    return jnp.stack(rows)


def _real(x: Array | complex) -> Array:
    return jnp.real(jnp.asarray(x))
