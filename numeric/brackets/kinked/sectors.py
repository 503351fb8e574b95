"""Pair brackets of activations with a kink at zero that are analytic on both sides (elu, selu, softsign), all pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import Order, Rectangle
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.kinkpairs import delta_pairs
from numeric.brackets.kinked.sectorrule import sector_integrals

CHUNK = 64


def sector_pairs(
    functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool, angles: int
) -> dict[Order, Array]:
    """{(j, k): (R, C)} of <sigma^(j)(z_a) sigma^(k)(z_b)>; what delta functions mean, `kinkpairs` says."""
    held = tuple(pair for pair in orders if any(functions.has_delta(k) for k in pair))
    plain = tuple(pair for pair in orders if pair not in held)
    found = _plain_pairs(functions, plain, pairs, symmetric, angles) if plain else {}
    return found | (delta_pairs(functions, held, pairs, angles) if held else {})


def angles_between(pairs: Rectangle) -> Array:
    """The angles whose cosines are the correlations, (R, C): exactly zero and pi for equal and opposite inputs."""
    xp = module_of(pairs.c)
    size = xp.sqrt(pairs.a[:, None] * pairs.b[None, :])
    sine = xp.sqrt(xp.maximum((size - pairs.c) * (size + pairs.c), 0))
    return xp.where(pairs.same, 0, xp.where(size > 0, xp.arctan2(sine, pairs.c), np.pi / 2))


def _plain_pairs(
    functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool, angles: int
) -> dict[Order, Array]:
    shape = pairs.c.shape
    roots, between = (jnp.sqrt(pairs.a), jnp.sqrt(pairs.b)), angles_between(pairs)
    a, b = np.triu_indices(shape[0]) if symmetric else (x.ravel() for x in np.indices(shape))
    both = tuple(sorted(set(orders) | {(k, j) for j, k in orders})) if symmetric else orders
    values = jax.lax.map(
        lambda pair: sector_integrals(functions, both, pair[0], pair[1], pair[2], angles),
        (roots[0][a], roots[1][b], between[a, b]),
        batch_size=min(CHUNK, len(a)),
    ).T
    if not symmetric:
        return {order: value.reshape(shape) for order, value in zip(orders, values)}
    index = {order: i for i, order in enumerate(both)}
    where = np.zeros(shape, dtype=np.int32)
    where[a, b] = where[b, a] = np.arange(len(a))
    upper = np.triu(np.ones(shape, dtype=bool))
    return {(j, k): jnp.where(upper, values[index[j, k]][where], values[index[k, j]][where]) for j, k in orders}
