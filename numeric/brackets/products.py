"""Pair averages of products of activations, <Π σ^(j)(z_a) Π σ^(k)(z_b)>, by Mehler series of the products.

For smooth activations. The series is continued until the products' norms are exhausted: Σ c_n² = <f²> to 1e-13, which
bounds what is left out for every correlation.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import numpy as np

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.functions import Functions
from numeric.brackets.rules import evaluate
from numeric.errors import NumericError

Array = jax.Array
Orders = tuple[int, ...]
ENOUGH, LONGEST, RADIUS = 1e-13, 2048, 14.0
FEW = 256  # inputs up to which a loop on the host is faster than compiling one


def _hermite(nodes: np.ndarray, n: int) -> np.ndarray:
    """Normalized Hermite polynomials h_0 ... h_{n-1} times the normal density, (n, nodes)."""
    rows = np.empty((n, len(nodes)))
    rows[0] = np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    rows[1] = nodes * rows[0]
    for k in range(1, n - 1):
        rows[k + 1] = (nodes * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1)
    return rows


def _series(rho: Array, left: Array, right: Array) -> Array:
    """Σ_n ρ^n left[n]_a right[n]_b."""

    def horner(total: Array, terms: tuple[Array, Array]) -> tuple[Array, None]:
        return total * rho + terms[0][:, None] * terms[1][None, :], None

    return loop(horner, module_of(rho).zeros_like(rho), (left, right), reverse=True)[0]


_compiled_series = jax.jit(_series)


def product_pairs(
    functions: Functions, K: np.ndarray, groups: Iterable[tuple[Orders, Orders]]
) -> dict[tuple[Orders, Orders], np.ndarray]:
    """{(orders at a, orders at b): (N, N)}; with no orders on one side the average is over the other alone."""
    wanted = sorted(set(groups))
    scale = np.sqrt(np.maximum(np.diagonal(np.asarray(K)), 0.0))
    size = scale[:, None] * scale[None, :]
    rho = np.clip(np.divide(np.asarray(K), size, out=np.zeros_like(size), where=size > 0), -1, 1)
    step = min(0.05, 0.25 / max(float(scale.max()), 1e-300))
    half = step * (np.arange(int(np.ceil(RADIUS / step))) + 0.5)
    nodes = np.concatenate([-half[::-1], half])
    z = scale[:, None] * nodes
    highest = max(k for group in wanted for side in group for k in side)
    values = [evaluate(functions, k, z) for k in range(highest + 1)]
    density = step * _hermite(nodes, 2)[0]

    def alone(orders: Orders) -> np.ndarray:
        return np.prod([values[k] for k in orders], axis=0) @ density

    sides = tuple(sorted({side for group in wanted if all(group) for side in group}))
    stacked = np.stack([np.prod([values[k] for k in side], axis=0) for side in sides])
    norms, n = np.square(stacked) @ density, 64
    while True:
        c = np.einsum("nx,sax->sna", step * _hermite(nodes, n), stacked, optimize=True)
        left = norms - np.sum(np.square(c), axis=1)
        largest = np.maximum(np.max(norms, axis=1, keepdims=True), np.finfo(float).tiny)  # zero for inputs of zeros
        if float(np.max(left / largest)) < ENOUGH:
            break
        n *= 2
        if n > LONGEST:
            raise NumericError(f"Averages of {functions.name} over two inputs do not converge: scale the inputs down.")
    series = _series if len(rho) <= FEW else _compiled_series
    found: dict[tuple[Orders, Orders], np.ndarray] = {}
    for first, second in wanted:
        if not first or not second:
            own = alone(first + second)
            found[first, second] = own[:, None] if first else own[None, :]
        elif first <= second:
            total = series(rho, c[sides.index(first)], c[sides.index(second)])
            both = alone(first + second)[:, None]
            found[first, second] = np.where(np.eye(len(rho), dtype=bool), both, np.asarray(total))
            found[second, first] = found[first, second].T
    return found
