"""Pair brackets of kinked activations whose derivatives hold delta functions: derivatives of simpler ones with respect
to the kernel, <f'' g> = 2 d<f g>/dK_aa and <f' g'> = d<f g>/dK_ab, exact wherever they exist.

Where two inputs coincide, brackets with two delta functions, or with derivatives of one, diverge one by one. The
recursions use them only in the combinations <d^2(sigma' sigma')> and <d^4(sigma sigma)>, <d^4(sigma' sigma')> along the
coincident direction, derivatives of one-input brackets with respect to K, which exist. There <sigma^(j) sigma^(k)> is
given the finite values that make these combinations right: delta functions are left out of all orders but the last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.brackets.sectorrule import sector_integrals
from numeric.errors import NumericError

COINCIDENT = 1e-12  # 1 - rho^2 below which two inputs are one
CHUNK = 16
# (j, k): the base <sigma^(m) sigma^(m)>, and with respect to which of (K_bb, K_ab) it is differentiated
DERIVATIVES: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {
    (0, 2): (0, (0,)),
    (0, 4): (0, (0, 0)),
    (1, 3): (1, (0,)),
    (2, 2): (1, (1,)),
    (1, 5): (1, (0, 0)),
    (2, 4): (1, (0, 1)),
    (3, 3): (1, (1, 1)),
}


def delta_pairs(
    functions: Functions, orders: tuple[tuple[int, int], ...], K: Array, angles: int
) -> dict[tuple[int, int], Array]:
    """{(j, k): (N, N)} for orders of which at least one holds a delta function; zero where a variance vanishes."""
    for j, k in orders:
        if (min(j, k), max(j, k)) not in DERIVATIVES or functions.kinks_at(0):
            raise NumericError(
                f"{functions.name}: the pair bracket with derivative orders {(j, k)} holds a delta function's "
                "derivative at the kink and is not available; neither are derivatives that need it."
            )
    needed = tuple(sorted({(min(pair), max(pair)) for pair in orders}))
    diagonal = jnp.diagonal(K)
    size = K.shape[0]
    a, b = (x.ravel() for x in np.indices((size, size)))
    product = diagonal[a] * diagonal[b]
    root = jnp.sqrt(product)
    gap = jnp.where(a == b, 0, (root - K[a, b]) * (root + K[a, b]))
    apart, seen = gap > COINCIDENT * product, product > 0
    entries = tuple(jnp.where(apart & seen, x, y) for x, y in ((diagonal[a], 1), (diagonal[b], 1), (K[a, b], 0)))
    distinct = jax.lax.map(partial(_distinct, functions, needed, angles), entries, batch_size=min(CHUNK, len(a)))
    one = jax.lax.map(partial(_coincident, functions, needed, angles), jnp.where(diagonal > 0, diagonal, 1))
    out = {}
    for i, (j, k) in enumerate(needed):
        sign = jnp.where(K < 0, float(functions.parity * (-1) ** k), 1.0)  # opposite inputs: only odd or even functions
        together = (one[:, i][:, None] + one[:, i][None, :]) / 2 * sign
        value = jnp.where(apart.reshape(size, size), distinct[:, i].reshape(size, size), together)
        out[j, k] = jnp.where(seen.reshape(size, size), value, 0)
        if j != k:
            out[k, j] = out[j, k].T
    return {pair: out[pair] for pair in orders}


def _distinct(
    functions: Functions, orders: tuple[tuple[int, int], ...], angles: int, entries: tuple[Array, Array, Array]
) -> Array:
    """The values where the inputs are not parallel, (orders,), from K_aa, K_bb, K_ab."""
    a, *moving = entries
    found = {}
    for base in {DERIVATIVES[order][0] for order in orders}:

        def start(x: list[Array], base: int = base) -> Array:
            b, c = x
            root = jnp.sqrt(a * b)
            angle = jnp.arctan2(jnp.sqrt((root - c) * (root + c)), c)
            return sector_integrals(functions, ((base, base),), jnp.sqrt(a), jnp.sqrt(b), angle, angles)[0]

        own = [order for order in orders if DERIVATIVES[order][0] == base]
        first = jax.jacfwd(start)
        slopes = first(moving)
        second = jax.jacfwd(first)(moving) if any(len(DERIVATIVES[order][1]) > 1 for order in own) else None
        for order in own:
            which = DERIVATIVES[order][1]
            value = slopes[which[0]] if len(which) == 1 else second[which[0]][which[1]]  # type: ignore[index]
            found[order] = 2.0 ** which.count(0) * value
    return jnp.stack([found[order] for order in orders])


def _coincident(functions: Functions, orders: tuple[tuple[int, int], ...], angles: int, K: Array) -> Array:
    """The values that stand for <sigma^(j) sigma^(k)> at one input."""

    def square(order: int) -> Callable[[Array], Array]:
        def value(variance: Array) -> Array:
            root = jnp.sqrt(variance)
            return sector_integrals(functions, ((order, order),), root, root, jnp.zeros_like(root), angles)[0]

        return value

    zero = jnp.zeros_like(K)
    found = {(0, 2): jax.jacfwd(square(0))(K) - square(1)(K), (2, 2): square(2)(K), (2, 4): zero, (3, 3): zero}
    found[1, 3] = jax.jacfwd(square(1))(K) - found[2, 2]  # d<11>/dK = <13> + <22>
    found[0, 4] = 2 * jax.jacfwd(jax.jacfwd(square(0)))(K) - 4 * found[1, 3] - 3 * found[2, 2]
    found[1, 5] = 2 * jax.jacfwd(jax.jacfwd(square(1)))(K) - 4 * found[2, 4] - 3 * found[3, 3]
    return jnp.stack([found[order] for order in orders])
