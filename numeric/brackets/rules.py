"""Rules and their sizes, measured on the host: steps, nodes, radii, a ladder of sizes.

Nothing is taken from a formula about poles: steps are refined until the integrals that matter stop moving. Sizes are
rounded up to a coarse ladder, so that the layers of a network mostly share compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.errors import NumericError

FARTHEST = 38.0  # standard deviations: beyond, the Gaussian underflows
CHUNK, LARGE_CHUNK = 8192, 131072
FINEST_STEPS = (1 / 480, 2e-4)
RATIO, COARSE = 0.85, 15  # between steps that are tried; the coarse ones are tried together


def ladder(number: float, ratio: float = 1.25) -> int:
    """The next size on the ladder of a few standard sizes, a multiple of 8."""
    size = 8
    while size < number:
        size = int(np.ceil(size * ratio / 8)) * 8
    return size


def half_line(step: float, radius: float) -> np.ndarray:
    """The positive nodes of the trapezoidal rule with this step."""
    return step * (np.arange(max(int(np.ceil(radius / step)), 1)) + 0.5)


def gaussian_weights(nodes: Array, step: float | Array) -> Array:
    """The step times the standard normal density."""
    if isinstance(nodes, np.ndarray):
        return float(step) / float(np.sqrt(2 * np.pi)) * np.exp(-(nodes**2) / 2)
    return jnp.asarray(step, nodes.dtype) / float(np.sqrt(2 * np.pi)) * jnp.exp(-(nodes**2) / 2)


def legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on (0, 1)."""
    x, w = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, w / 2


def tanh_sinh(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Double-exponential rule on (0, 1), for integrands that are singular at t = 1."""
    u = np.linspace(-3.2, 3.2, n)
    x = 1 / (1 + np.exp(-np.pi * np.sinh(u)))
    w = (u[1] - u[0]) * np.pi * np.cosh(u) * x * (1 - x)
    return x, w


@partial(jax.jit, static_argnums=(0, 1))
def _chunk(functions: Functions, order: int, z: jax.Array) -> jax.Array:
    return functions.derivatives(z, order)


def evaluate(functions: Functions, order: int, z: np.ndarray) -> np.ndarray:
    """sigma^(order) on the host: in pieces of two sizes, so that two compiled programs serve every plan."""
    flat = np.ravel(z)
    out = np.empty_like(flat)
    start = 0
    while start < flat.size:
        size = LARGE_CHUNK if flat.size - start >= LARGE_CHUNK else CHUNK
        piece = flat[start : start + size]
        whole = piece if piece.size == size else np.pad(piece, (0, size - piece.size))
        out[start : start + size] = np.asarray(_chunk(functions, order, whole))[: piece.size]
        start += size
    return out.reshape(z.shape)


def hermite_table(nodes: np.ndarray, n: int) -> np.ndarray:
    """Normalized Hermite polynomials h_0 ... h_{n-1} at the nodes, shape (n, nodes)."""
    table = np.ones((n, nodes.size))
    if n > 1:
        table[1] = nodes
    for m in range(2, n):
        table[m] = (nodes * table[m - 1] - np.sqrt(m - 1) * table[m - 2]) / np.sqrt(m)
    return table


def converged_step(
    functions: Functions, products: Iterable[tuple[int, ...]], variance: float, tolerance: float, shift: float = 0.0
) -> float:
    """The coarsest step at which all <product of sigma^(k)(z)> at one input of this variance have converged.

    Accuracy is relative to the integral of the absolute value. A `shift` of the mean (in standard deviations) keeps
    integrals of single odd functions from vanishing.
    """
    products = list(products)
    orders = sorted({k for product in products for k in product})
    scale, radius = np.sqrt(variance), reach(functions, products, variance, tolerance, shift)
    level = 200 * np.finfo(float).eps

    def integrals(*steps: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """The integrals, and those of absolute values, with each of the steps: the functions are called once."""
        lines = [half_line(step, radius) for step in steps]
        every = [np.concatenate([nodes, -nodes]) for nodes in lines]
        ends = np.cumsum([nodes.size for nodes in every])[:-1]
        values = {k: np.split(evaluate(functions, k, scale * (np.concatenate(every) + shift)), ends) for k in orders}
        found = []
        for place, (step, nodes) in enumerate(zip(steps, every)):
            weights = step / np.sqrt(2 * np.pi) * np.exp(-(nodes**2) / 2)
            factors = [[values[k][place] for k in product] for product in products]
            terms = np.array([weights * np.prod(factor, axis=0) for factor in factors])
            found.append((terms.sum(axis=1), np.abs(terms).sum(axis=1)))
        return found

    for finest in FINEST_STEPS:  # what coarse rules all miss, such as a sharp step at zero, a fine one does not
        (check, _), (exact, size) = integrals(1.7 * finest, finest)
        if not np.all(np.isfinite(exact)):
            raise NumericError(f"{functions.name}: its Gaussian integrals at variance {variance:.3g} overflow.")
        allowed = max(tolerance, level) * size
        if np.all(np.abs(check - exact) <= allowed):
            break
    else:
        raise NumericError(f"{functions.name}: the trapezoidal rule does not converge at variance {variance:.3g}.")
    step, coarse = 1.0, [RATIO**k for k in range(COARSE)]
    for step, (found, _) in zip(coarse, integrals(*coarse)):
        if np.all(np.abs(found - exact) <= allowed):
            return step
    while np.any(np.abs(integrals(step)[0][0] - exact) > allowed):
        step = max(RATIO * step, finest)
    return step


def gaussian_radius(tolerance: float) -> float:
    """Beyond this many standard deviations the Gaussian, polynomial growth included, is below the tolerance."""
    return float(np.sqrt(2 * np.log(1 / max(tolerance, 1e-17))) + 0.4)


@lru_cache(maxsize=64)
def _sizes_far_out(functions: Functions, order: int, variance: float, shift: float) -> np.ndarray:
    """|sigma^(order)| on either side, (2, points): several radii are asked for at one variance."""
    x = np.arange(0.0, FARTHEST, 0.125)
    with np.errstate(all="ignore"):
        return np.abs(evaluate(functions, order, np.sqrt(variance) * (np.stack([x, -x]) + shift)))


def reach(
    functions: Functions, products: Iterable[tuple[int, ...]], variance: float, tolerance: float, shift: float = 0.0
) -> float:
    """Beyond this many standard deviations the products of sigma^(k), Gaussian included, are below the tolerance.

    Where they grow, farther out than the Gaussian alone.
    """
    x = np.arange(0.0, FARTHEST, 0.125)
    gaussian = np.exp(-(x**2) / 2)
    products = list(products)
    orders = sorted({k for product in products for k in product})
    last = 0.0
    sizes = {k: _sizes_far_out(functions, k, variance, shift) for k in orders}
    for side in (0, 1):
        with np.errstate(all="ignore"):
            values = {k: both[side] for k, both in sizes.items()}
            for product in products:
                size = gaussian * np.prod([values[k] for k in product], axis=0)
                large = np.flatnonzero(~(size <= 0.01 * max(tolerance, 1e-17) * np.nansum(size)))
                last = max(last, float(x[large[-1]]) if large.size and np.isfinite(size).all() else 0.0)
    return max(gaussian_radius(tolerance), last + 0.4)
