"""g(K) b for functions g of a kernel that is known by its products: training to any time without an eigendecomposition.

Lanczos' method with full reorthogonalization: after m products, b and K b, ..., K^(m-1) b span a space in which K is
a small tridiagonal T, and g(K) b is |b| V g(T) e_1. It is exact for polynomials of degree below m, so gradient descent
of t steps needs at most t products. The error is measured as the change over the last quarter of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from numeric.errors import NumericError
from numeric.given import finite, whole
from numeric.progress import progress_bar
from numeric.trained.operators import KernelOperator, over

Array = np.ndarray
FIRST, MOST = 8, 400
"""Products before the first look at the error (then a quarter more each time, at least 4), and when to give up."""
ROUNDING = 1e-15
"""The relative error of what is exact."""


@dataclass(frozen=True)
class Applied:
    """g(K) b, its estimated relative error (the largest over columns), and the products it took."""

    value: Array
    error: float
    products: int


def apply_function(
    operator: KernelOperator,
    b: Array,
    g: Callable[[Array], Array],
    *,
    tolerance: float = 1e-9,
    most: int = MOST,
    memory: float = 1e9,
    progress: bool | None = None,
) -> Applied:
    """g(K) b for b of shape (N, columns); g maps eigenvalues (not negative) to numbers and is smooth on their range."""
    finite(tolerance, "The tolerance", above=0, below=1)
    b = np.asarray(b, float)
    if b.ndim != 2 or len(b) != operator.size or not np.isfinite(b).all():
        raise NumericError(f"{operator.size} points need finite vectors of shape ({operator.size}, columns)")
    room = int(memory / (8 * max(b.size, 1)))
    least = min(FIRST, operator.size)
    most = min(whole(most, "The number of products", least), operator.size, room)
    if most < least:
        raise NumericError(f"memory={memory:g} bytes holds {room} vectors of the training set only: raise it")
    norms = np.linalg.norm(b, axis=0)
    columns = b.shape[1]
    V = [over(b, norms)]
    diagonal, beside = np.zeros((most, columns)), np.zeros((most, columns))
    look = min(FIRST, most)
    with progress_bar(most, progress, "products") as tick:
        for m in range(1, most + 1):
            W = operator.product(V[-1])
            diagonal[m - 1] = np.einsum("nc,nc->c", V[-1], W)
            basis = np.stack(V)
            for _ in range(2):  # twice is enough
                W = W - np.einsum("mnc,mc->nc", basis, np.einsum("mnc,nc->mc", basis, W))
            length = np.linalg.norm(W, axis=0)
            scale = np.abs(diagonal[:m]).max(axis=0) + beside[:m].max(axis=0)
            ended = length <= 1e-14 * scale * operator.size**0.5
            beside[m - 1] = np.where(ended, 0.0, length)
            tick(1)
            if m in (look, most) or ended.all():
                now = _in_basis(basis, diagonal[:m], beside[:m], norms, g)
                if ended.all() or m == operator.size:
                    return Applied(now, ROUNDING, m)
                before = m - m // 4
                then = _in_basis(basis[:before], diagonal[:before], beside[:before], norms, g)
                change = over(np.linalg.norm(now - then, axis=0), np.linalg.norm(now, axis=0))
                error = float(np.max(change))
                if error <= tolerance:
                    return Applied(now, max(error, ROUNDING), m)
                look = min(most, look + max(4, look // 4))
            V.append(over(W, beside[m - 1]))
    raise NumericError(
        f"{most} products with the kernel leave an error of {error:.2g}, not {tolerance:.1g}: take a shorter time, a "
        "ridge, a looser tolerance or more memory"
    )


def _in_basis(basis: Array, diagonal: Array, beside: Array, norms: Array, g: Callable[[Array], Array]) -> Array:
    """|b| V g(T) e_1, column by column."""
    found = np.zeros(basis.shape[1:])
    for c in range(basis.shape[2]):
        h, U = eigh_tridiagonal(diagonal[:, c], beside[:-1, c])
        weights = U @ (g(np.maximum(h, 0.0)) * U[0])
        found[:, c] = norms[c] * np.einsum("mn,m->n", basis[:, :, c], weights)
    return found
