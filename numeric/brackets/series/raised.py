r"""Conditional moments of every order of derivative, C^k_n = <sigma^(k)(m + s y) h_n(y)>, from one set of rows.

Since s C^{k+1}_n = sqrt(n + 1) C^k_{n+1}, all of them are multiples of rows in which k + n alone tells the place:

    C^k_n = factor^k_n(s) rows_{k - lowest + n}.

The rows are the zeroth moments of the lower orders, then all of the highest order: no power of s is divided by, so that
any s will do. Or, where no s is small, `upward`, all moments of the lowest order, for which one function is evaluated.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of, sigma
from numeric.brackets.functions import Functions
from numeric.brackets.rules import gaussian_weights
from numeric.brackets.series.hermite import hermite_rows


def rows_everywhere(
    functions: Functions, s: Array, orders: range, n: int, upward: bool, y: Array, y_step: Array, means: Array
) -> Array:
    """The rows, (n + orders - 1, M, Q), with the activation evaluated at every mean (M, Q) and every y."""
    xp = module_of(means)
    weights, count = gaussian_weights(y, y_step), n + (len(orders) - 1 if upward else 0)
    _, table = hermite_rows(y, (xp.zeros_like(weights), weights), xp.zeros((), y.dtype), count)
    z = means[None] + s[None, :, None] * y[:, None, None]
    if upward:
        return weighted(table, sigma(functions, z, orders[0]))
    zeroth = [weighted(table[:1], sigma(functions, z, k)) for k in orders[:-1]]
    return xp.concatenate([*zeroth, weighted(table, sigma(functions, z, orders[-1]))])


def weighted(table: Array, values: Array) -> Array:
    """(rows, Y) times (Y, M, Q) as one matrix product: (rows, M, Q)."""
    return (table @ values.reshape(values.shape[0], -1)).reshape(-1, *values.shape[1:])


def factors(orders: range, n: int, upward: bool, s: Array) -> dict[int, Array]:
    """{k: (n, M)}: what the rows are multiplied by."""
    xp, top = module_of(s), len(orders) - 1
    logs = np.array([lgamma(i + 1) for i in range(n + top + 1)])
    found = {}
    for k in orders:
        row = k - orders[0] + np.arange(n)
        first = 0 if upward else top  # the row of the first moment of the order that has all of them
        power = np.full(n, -(k - orders[0])) if upward else np.minimum(np.arange(n), orders[-1] - k)
        scale = np.exp((logs[np.maximum(row - first, 0)] - logs[:n]) / 2)
        found[k] = xp.asarray(scale, s.dtype)[:, None] * s[None] ** xp.asarray(power, s.dtype)[:, None]
    return found


def of_orders(rows: Array, orders: range, n: int, upward: bool, s: Array) -> dict[int, Array]:
    """{k: (n, M, Q)}: C^k_n of every order."""
    scale = factors(orders, n, upward, s)
    return {k: scale[k][:, :, None] * rows[k - orders[0] : k - orders[0] + n] for k in orders}
