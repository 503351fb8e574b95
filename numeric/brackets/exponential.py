"""Sums of exponentials (sin, cos, exp, ...): brackets from the Gaussian moment generating function.

With sigma = sum_t c_t exp(r_t z): <prod_i exp(r_i z_i)> = exp(sum_ij r_i r_j K_ij / 2). For pairs the factor
exp(r r' K_ab) is written as 1 + expm1, so that weakly correlated inputs lose no digits.
"""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
from jax import Array

from numeric.brackets.functions import Functions


def exponential_brackets(functions: Functions, patterns: tuple[tuple[int, ...], ...], K: Array) -> Array:
    """<product of sigma^(k_i)(z_i)> for each pattern: (patterns, B), from covariances (d, d, B)."""
    assert functions.exponentials is not None
    size = K.shape[0]
    terms = functions.exponentials
    separate, joint = [], []
    choices = list(product(range(len(terms)), repeat=size))
    for choice in choices:
        r = [terms[t][1] for t in choice]
        own = sum(complex(r[i] * r[i]) / 2 * K[i, i] for i in range(size))
        cross = sum(complex(r[i] * r[j]) * K[i, j] for i in range(size) for j in range(i + 1, size))
        separate.append(own)
        joint.append(cross)
    rows = []
    for pattern in patterns:
        total = jnp.zeros_like(K[0, 0])
        mean = jnp.ones_like(K[0, 0])
        for i, k in enumerate(pattern):
            mean = mean * _real(sum(complex(c * r**k) * jnp.exp(complex(r * r) / 2 * K[i, i]) for c, r in terms))
        for choice, own, cross in zip(choices, separate, joint):
            weight = 1 + 0j
            for i, t in enumerate(choice):
                weight *= complex(terms[t][0]) * complex(terms[t][1]) ** pattern[i]
            large = jnp.real(cross) > 1  # then nothing cancels, while the factors may under- and overflow
            small = jnp.exp(own) * jnp.expm1(jnp.where(large, 0, cross))
            total = total + _real(weight * jnp.where(large, jnp.exp(own + cross) - jnp.exp(own), small))
        rows.append(mean + total)
    return jnp.stack(rows)


def _real(x: Array | complex) -> Array:
    return jnp.real(jnp.asarray(x))
