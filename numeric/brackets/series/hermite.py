"""Hermite coefficients of sigma^(k)(sqrt(K) x) by the trapezoidal rule on the line, the raw material of Mehler series.

Nodes sit at half-integer multiples of the step, so that they come in pairs x, -x: the even and the odd part of the
function are integrated separately, and a coefficient that parity forbids is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable

from jax import Array

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.rules import gaussian_weights

BLOCK = 512  # Hermite orders that are held at once


def hermite_rows(
    nodes: Array, start: tuple[Array, Array], first: Array, rows: int
) -> tuple[tuple[Array, Array], Array]:
    """Normalized Hermite polynomials h_first ... h_{first+rows-1} at the nodes, times whatever `start` carries.

    `start` is (h_{first-1}, h_first); returns the pair to continue from and the rows. The three-term recursion is
    stable: the nodes lie between the turning points, or the Gaussian weight carried along is negligible.
    """

    xp = module_of(nodes)

    def advance(pair: tuple[Array, Array], n: Array) -> tuple[tuple[Array, Array], Array]:
        before, now = pair
        after = (nodes * now - xp.sqrt(n) * before) / xp.sqrt(n + 1)
        return (now, after), now

    return loop(advance, start, first + xp.arange(rows, dtype=nodes.dtype))


def coefficients(
    function: Callable[[Array], list[Array]], scale: Array, nodes: Array, step: float | Array, n: int
) -> Array:
    """c_m = <f(scale x) h_m(x)> for m < n and each f of the list: shape (f, n, N), with x standard normal, scale (N,).

    `nodes` are the positive ones of `half_line`.
    """
    xp = module_of(nodes)
    z = scale[:, None] * nodes[None, :]
    plus, minus = (xp.concatenate(function(sign * z)) for sign in (1, -1))  # (f N, nodes)
    even, odd = plus + minus, plus - minus
    weights = gaussian_weights(nodes, step)
    rows = min(BLOCK, n + n % 2)
    blocks = -(-n // rows)

    def block(pair: tuple[Array, Array], first: Array) -> tuple[tuple[Array, Array], Array]:
        pair, h = hermite_rows(nodes, pair, first, rows)
        return pair, xp.stack([h[0::2] @ even.T, h[1::2] @ odd.T], axis=1).reshape(rows, -1)

    firsts = rows * xp.arange(blocks, dtype=nodes.dtype)
    _, c = loop(block, (xp.zeros_like(weights), weights), firsts)
    return xp.moveaxis(c.reshape(blocks * rows, -1, scale.size)[:n], 1, 0)
