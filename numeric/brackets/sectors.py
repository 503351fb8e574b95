"""Pair brackets of activations with a kink at zero that are analytic on both sides (elu, selu, softsign), all pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.brackets.kinkpairs import delta_pairs
from numeric.brackets.sectorrule import sector_integrals

CHUNK = 64


def sector_pairs(
    functions: Functions, orders: tuple[tuple[int, int], ...], K: Array, angles: int
) -> dict[tuple[int, int], Array]:
    """{(j, k): (N, N)} of <sigma^(j)(z_a) sigma^(k)(z_b)>; what delta functions mean, `kinkpairs` says."""
    held = tuple(pair for pair in orders if any(functions.has_delta(k) for k in pair))
    plain = tuple(pair for pair in orders if pair not in held)
    found = _plain_pairs(functions, plain, K, angles) if plain else {}
    return found | (delta_pairs(functions, held, K, angles) if held else {})


def _plain_pairs(
    functions: Functions, orders: tuple[tuple[int, int], ...], K: Array, angles: int
) -> dict[tuple[int, int], Array]:
    size = K.shape[0]
    diagonal = jnp.diagonal(K)
    scale = jnp.sqrt(diagonal)
    size_ab = jnp.sqrt(diagonal[:, None] * diagonal[None, :])
    sine = jnp.sqrt(jnp.maximum((size_ab - K) * (size_ab + K), 0))  # exactly zero for equal and opposite inputs
    between = jnp.where(jnp.eye(size, dtype=bool), 0, jnp.where(size_ab > 0, jnp.arctan2(sine, K), np.pi / 2))
    a, b = np.triu_indices(size)
    both = tuple(sorted(set(orders) | {(k, j) for j, k in orders}))
    values = jax.lax.map(
        lambda pair: sector_integrals(functions, both, pair[0], pair[1], pair[2], angles),
        (scale[a], scale[b], between[a, b]),
        batch_size=min(CHUNK, len(a)),
    ).T
    index = {order: i for i, order in enumerate(both)}
    where = np.zeros((size, size), dtype=np.int32)
    where[a, b] = where[b, a] = np.arange(len(a))
    upper = np.triu(np.ones((size, size), dtype=bool))
    return {(j, k): jnp.where(upper, values[index[j, k]][where], values[index[k, j]][where]) for j, k in orders}
