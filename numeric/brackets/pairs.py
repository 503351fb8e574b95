"""Pair brackets <sigma^(j)(z_a) sigma^(k)(z_b)> for all pairs of inputs, by a plan of whatever calculus.

Derivatives with respect to K follow from Gaussian integration by parts (`jax.custom_jvp`), so they are right where
K is singular and where an input vanishes:
d<f g> = <f' g'> dK_ab + (<f'' g> dK_aa + <f g''> dK_bb) / 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from numeric.brackets.calculus import Order, PairPlan, Rectangle
from numeric.brackets.functions import Functions


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pairs(functions: Functions, orders: tuple[Order, ...], plan: PairPlan, K: Array) -> dict[Order, Array]:
    diagonal = jnp.diagonal(K)
    return plan.rectangle(functions, orders, Rectangle(diagonal, diagonal, K, jnp.eye(K.shape[0], dtype=bool)), True)


@_pairs.defjvp
def _pairs_jvp(functions, orders, primals, tangents):
    plan, K = primals
    dK = tangents[1]
    change = jnp.diagonal(dK)
    wanted = set(orders)
    for j, k in orders:
        wanted |= {(j + 1, k + 1), (j + 2, k), (j, k + 2)}
    values = _pairs(functions, tuple(sorted(wanted)), plan, K)
    tangent = {
        (j, k): values[j + 1, k + 1] * dK
        + (values[j + 2, k] * change[:, None] + values[j, k + 2] * change[None, :]) / 2
        for j, k in orders
    }
    return {pair: values[pair] for pair in orders}, tangent


def pair_brackets(functions: Functions, K: Array, orders: Iterable[Order], plan: PairPlan) -> dict[Order, Array]:
    """All <sigma^(j)(z_a) sigma^(k)(z_b)> of the given orders (j, k): {(j, k): (N, N) array, axes a, b}.

    `plan` comes from `make_pair_plan` and is the only thing that is chosen on the host: this function can be jitted,
    mapped and differentiated with respect to K.
    """
    return _pairs(functions, tuple(orders), plan, K)
