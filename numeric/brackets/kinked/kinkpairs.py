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
from jax import Array

from numeric.brackets.calculus import Order, Rectangle
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.sectorrule import sector_integrals
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


def check_deltas(functions: Functions, orders: tuple[Order, ...]) -> None:
    """Refuse delta functions of which more is asked than the recursions do."""
    for j, k in orders:
        held = functions.has_delta(j) or functions.has_delta(k)
        if held and ((min(j, k), max(j, k)) not in DERIVATIVES or functions.kinks_at(0)):
            raise NumericError(
                f"{functions.name}: the pair bracket with derivative orders {(j, k)} holds a delta function's "
                "derivative at the kink and is not available; neither are derivatives that need it."
            )


def delta_pairs(functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, angles: int) -> dict[Order, Array]:
    """{(j, k): (R, C)} for orders of which at least one holds a delta function; zero where a variance vanishes."""
    check_deltas(functions, orders)
    upright = tuple(pair for pair in orders if pair[0] <= pair[1])
    found = _upright(functions, upright, pairs, angles) if upright else {}
    turned = tuple((k, j) for j, k in orders if j > k)
    if turned:
        other = _upright(functions, turned, Rectangle(pairs.b, pairs.a, pairs.c.T, pairs.same.T), angles)
        found |= {(j, k): other[k, j].T for j, k in orders if j > k}
    return found


def _upright(functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, angles: int) -> dict[Order, Array]:
    """Those with j <= k."""
    needed = tuple(sorted(set(orders)))
    shape = pairs.c.shape
    a, b = (jnp.broadcast_to(x, shape) for x in (pairs.a[:, None], pairs.b[None, :]))
    product = a * b
    root = jnp.sqrt(product)
    gap = jnp.where(pairs.same, 0, (root - pairs.c) * (root + pairs.c))
    apart, seen = gap > COINCIDENT * product, product > 0
    entries = tuple(jnp.where(apart & seen, x, y).ravel() for x, y in ((a, 1), (b, 1), (pairs.c, 0)))
    distinct = jax.lax.map(partial(_distinct, functions, needed, angles), entries, batch_size=min(CHUNK, pairs.c.size))
    one = [
        jax.lax.map(partial(_coincident, functions, needed, angles), jnp.where(x > 0, x, 1)) for x in (pairs.a, pairs.b)
    ]
    out = {}
    for i, (j, k) in enumerate(needed):
        sign = jnp.where(pairs.c < 0, float(functions.parity * (-1) ** k), 1.0)  # opposite: only odd or even functions
        together = (one[0][:, i][:, None] + one[1][:, i][None, :]) / 2 * sign
        out[j, k] = jnp.where(seen, jnp.where(apart, distinct[:, i].reshape(shape), together), 0)
    return out


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
    found = {(0, 2): jax.jacfwd(square(0))(K) - square(1)(K), (2, 2): square(2)(K)}
    # where the third (the fourth) derivative holds no delta function, <33> (<24>) is taken as it is, as elsewhere
    found[3, 3] = zero if functions.has_delta(3) else square(3)(K)
    found[2, 4] = zero if functions.has_delta(4) else jax.jacfwd(square(2))(K) - found[3, 3]
    found[1, 3] = jax.jacfwd(square(1))(K) - found[2, 2]  # d<11>/dK = <13> + <22>
    found[0, 4] = 2 * jax.jacfwd(jax.jacfwd(square(0)))(K) - 4 * found[1, 3] - 3 * found[2, 2]
    found[1, 5] = 2 * jax.jacfwd(jax.jacfwd(square(1)))(K) - 4 * found[2, 4] - 3 * found[3, 3]
    return jnp.stack([found[order] for order in orders])
