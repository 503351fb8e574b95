"""Pairs of nearly parallel inputs of large variance, where series are too long and closed forms cancel: a rule in the
plane.

z_b = (K_ab / K_aa) z_a + s y with y standard normal, s^2 = det / K_aa. Where the correlation is close to +1 or -1, s is
small on the scale of the activation, so few nodes suffice for y; z_a takes as many as one input alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of, sigma
from numeric.brackets.calculus import Order, PairQuestion, Rectangle
from numeric.brackets.functions import Functions
from numeric.brackets.rules import converged_step, gaussian_radius, gaussian_weights, half_line, ladder
from numeric.errors import NumericError

MOST_CLOSE_PAIRS = 1 << 15


def determinant(a: Array, b: Array, c: Array) -> Array:
    """a b - c^2 to full relative accuracy (Dekker's exact products), not below zero."""
    first, first_error = _product(a, b)
    second, second_error = _product(c, c)
    return module_of(a).maximum((first - second) + (first_error - second_error), 0)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its rounding error."""
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _halves(x: Array) -> tuple[Array, Array]:
    bits = 27 if x.dtype == jnp.float64 else 12
    t = x * (2.0**bits + 1)
    high = t - (t - x)
    return high, x - high


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ClosePairs:
    """Some pairs (row, column), shape (J, 2), and the trapezoidal rules for z_a and for y, both signs included."""

    pairs: Array
    nodes: tuple[Array, Array]
    steps: tuple[Array, Array]

    def values(self, functions: Functions, orders: tuple[Order, ...], own: Rectangle) -> dict[Order, Array]:
        """{(j, k): (J,)} of <sigma^(j)(z_a) sigma^(k)(z_b)>."""
        x, y = (n.astype(own.c.dtype) for n in self.nodes)
        wx, wy = (gaussian_weights(n, step) for n, step in zip((x, y), self.steps))
        left, right = sorted({j for j, _ in orders}), sorted({k for _, k in orders})

        def one(entries: tuple[Array, Array, Array]) -> Array:
            a, b, c = entries
            safe = jnp.where(a > 0, a, 1)
            z = jnp.sqrt(a) * x
            s = jnp.sqrt(determinant(a, b, c) / safe)
            other = (c / safe * z)[:, None] + s * y[None, :]
            f = {j: functions.derivatives(z, j) * wx for j in left}
            g = {k: functions.derivatives(other, k) @ wy for k in right}
            return jnp.stack([f[j] @ g[k] for j, k in orders])

        a, b = self.pairs[:, 0], self.pairs[:, 1]
        return dict(zip(orders, jax.lax.map(one, (own.a[a], own.b[b], own.c[a, b])).T))

    def put_in(
        self, functions: Functions, found: dict[Order, Array], own: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        """The brackets with these pairs' values in their places, on both sides of the diagonal if symmetric."""
        if not self.pairs.shape[0]:
            return found
        mirrored = {(k, j) for j, k in found} if symmetric else set()
        values = self.values(functions, tuple(sorted(set(found) | mirrored)), Rectangle(*map(jnp.asarray, own)))
        found = {order: jnp.asarray(value) for order, value in found.items()}
        a, b = self.pairs[:, 0], self.pairs[:, 1]
        out = {order: value.at[a, b].set(values[order]) for order, value in found.items()}
        if symmetric:
            out = {(j, k): value.at[b, a].set(values[k, j]) for (j, k), value in out.items()}
        return out


def no_close_pairs() -> ClosePairs:
    """None at all."""
    return ClosePairs(jnp.zeros((0, 2), jnp.int32), (jnp.zeros(1), jnp.zeros(1)), (jnp.ones(()), jnp.ones(())))


def plan_close(functions: Functions, question: PairQuestion, which: np.ndarray, step: float) -> ClosePairs:
    """The two rules for the chosen pairs; `step` is the one for a single input."""
    kernels, tolerance = question.kernels, question.tolerance
    a, b = kernels.pairs(which)
    if a.size > MOST_CLOSE_PAIRS:
        raise NumericError(
            f"{functions.name}: {a.size} pairs of inputs are nearly parallel at variances up to "
            f"{kernels.variance:.3g}; at most {MOST_CLOSE_PAIRS} such pairs can be done: scale the inputs down."
        )
    variance = kernels.a[:, a]
    left = kernels.b[:, b] - kernels.c[:, a, b] ** 2 / np.where(variance > 0, variance, 1)
    spread = float(np.max(left, initial=0.0))
    fine = converged_step(functions, [(k,) for k in question.orders], max(spread, 1e-12), tolerance, shift=0.4)
    rules = []
    for h in (step, min(fine, 0.7)):
        line = half_line(h, gaussian_radius(tolerance * 1e-2))
        line = half_line(h, h * ladder(line.size))
        rules.append((jnp.asarray(np.concatenate([-line[::-1], line])), jnp.asarray(h)))
    pairs = jnp.asarray(np.stack([a, b], axis=1), jnp.int32)
    return ClosePairs(pairs, (rules[0][0], rules[1][0]), (rules[0][1], rules[1][1]))


def at_one_input(
    functions: Functions, orders: tuple[Order, ...], variances: Array, nodes: Array, step: Array
) -> dict[Order, Array]:
    """<sigma^(j) sigma^(k)> at single inputs (N,), by the trapezoidal rule with these nodes (both signs)."""
    nodes = nodes.astype(variances.dtype)
    xp = module_of(variances)
    z = xp.sqrt(xp.maximum(variances, 0))[:, None] * nodes[None, :]
    values = {k: sigma(functions, z, k) for k in sorted({k for pair in orders for k in pair})}
    weights = gaussian_weights(nodes, step)
    return {(j, k): (values[j] * values[k]) @ weights for j, k in orders}
