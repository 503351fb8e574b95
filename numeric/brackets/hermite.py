"""Hermite coefficients of sigma^(k)(sqrt(K) x) by the trapezoidal rule on the line, the raw material of Mehler series.

Nodes sit at half-integer multiples of the step, so that they come in pairs x, -x: the even and the odd part of the
function are integrated separately, and a coefficient that parity forbids is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

BLOCK = 512  # Hermite orders that are held at once


def half_line(step: float, radius: float) -> np.ndarray:
    """The positive nodes of the trapezoidal rule with this step."""
    return step * (np.arange(max(int(np.ceil(radius / step)), 1)) + 0.5)


def hermite_rows(
    nodes: Array, start: tuple[Array, Array], first: Array, rows: int
) -> tuple[tuple[Array, Array], Array]:
    """Normalized Hermite polynomials h_first ... h_{first+rows-1} at the nodes, times whatever `start` carries.

    `start` is (h_{first-1}, h_first); returns the pair to continue from and the rows. The three-term recursion is
    stable: the nodes lie between the turning points, or the Gaussian weight carried along is negligible.
    """

    def advance(pair: tuple[Array, Array], n: Array) -> tuple[tuple[Array, Array], Array]:
        before, now = pair
        after = (nodes * now - jnp.sqrt(n) * before) / jnp.sqrt(n + 1)
        return (now, after), now

    return jax.lax.scan(advance, start, first + jnp.arange(rows, dtype=nodes.dtype))


def gaussian_weights(nodes: Array, step: float | Array) -> Array:
    """The step times the standard normal density."""
    return jnp.asarray(step, nodes.dtype) / float(np.sqrt(2 * np.pi)) * jnp.exp(-(nodes**2) / 2)


def coefficients(function: Callable[[Array], Array], scale: Array, nodes: Array, step: float | Array, n: int) -> Array:
    """c_m = <f(scale x) h_m(x)> for m < n (n even), shape (n, N), with x standard normal and scale of shape (N,).

    `nodes` are the positive ones of `half_line`.
    """
    z = scale[:, None] * nodes[None, :]
    plus, minus = function(z), function(-z)
    even, odd = plus + minus, plus - minus
    weights = gaussian_weights(nodes, step)
    rows = min(BLOCK, n + n % 2)
    blocks = -(-n // rows)

    def block(pair: tuple[Array, Array], first: Array) -> tuple[tuple[Array, Array], Array]:
        pair, h = hermite_rows(nodes, pair, first, rows)
        return pair, jnp.stack([h[0::2] @ even.T, h[1::2] @ odd.T], axis=1).reshape(rows, -1)

    firsts = rows * jnp.arange(blocks, dtype=nodes.dtype)
    _, c = jax.lax.scan(block, (jnp.zeros_like(weights), weights), firsts)
    return c.reshape(blocks * rows, -1)[:n]
