"""A kernel over N training points that is known by its products with vectors, and never held whole unless it fits.

`KernelOperator` is all that the iterative solvers ask for. `DenseKernel` holds a matrix; `BlockKernel` evaluates a
function kernel(X1, X2) block by block, each symmetric pair of blocks once, and keeps the blocks if they fit into its
memory budget (a kernel with blocks of its own, such as `numeric.NetworkKernel`, is asked for those);
`numeric.empirical.products.NTKOperator` is the NTK of a real network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite
from numeric.progress import progress_bar

Array = np.ndarray
Kernel = Callable[[Array, Array], Array]
"""kernel(X1, X2): the kernel of every input of X1 with every input of X2, (N1, N2)."""


@runtime_checkable
class KernelInBlocks(Protocol):
    """A kernel that cuts itself into blocks within a budget in bytes, as `NetworkKernel` does."""

    def __call__(self, X1: Array, X2: Array, /) -> Array: ...

    def blocks(
        self, X: Array, against: Array | None, memory: float, progress: bool | None
    ) -> Iterator[tuple[slice, slice, Array]]:
        """Rows, columns and values; without `against` those on and above the diagonal."""
        ...


MEMORY = 1e9
"""Default budget in bytes for blocks of a kernel."""
COPIES = 4
"""Arrays of a block's size that are alive at once while a block is made and used, where the kernel is a function."""
HELD = 0.8
"""Share of the budget that a kernel may take which is held; the rest is for making it."""


class KernelOperator(ABC):
    """A symmetric positive semidefinite kernel of `size` points."""

    size: int

    @abstractmethod
    def product(self, V: Array) -> Array:
        """K V for V of shape (size, columns)."""

    def columns(self, indices: Array) -> Array:
        """K[:, indices], by products with unit vectors unless there is a shorter way."""
        unit = np.zeros((self.size, len(indices)))
        unit[indices, np.arange(len(indices))] = 1.0
        return self.product(unit)


class DenseKernel(KernelOperator):
    """A kernel matrix that is there."""

    def __init__(self, K: Array) -> None:
        self.K = checked_kernel(K)
        self.size = len(self.K)

    def product(self, V: Array) -> Array:
        return self.K @ V

    def columns(self, indices: Array) -> Array:
        return self.K[:, indices]


class BlockKernel(KernelOperator):
    """kernel(X1, X2) of N inputs within `memory` bytes: held if N^2 numbers fit, made anew at each product if not.

    >>> X = np.array([[1.0, 0.0], [3.0, 4.0]])
    >>> BlockKernel(lambda a, b: a @ b.T, X).product(np.array([[1.0], [1.0]])).tolist()
    [[4.0], [28.0]]
    """

    def __init__(self, kernel: Kernel, X: Array, memory: float = MEMORY, progress: bool | None = None) -> None:
        self.X = np.asarray(X, float)
        if self.X.ndim < 2 or len(self.X) == 0:
            raise NumericError(f"a kernel needs inputs of shape (N, n_0) with at least one row, not {self.X.shape}")
        if not np.isfinite(self.X).all():
            raise NumericError("the inputs hold values that are not finite numbers")
        self.kernel, self.memory, self.progress = kernel, finite(memory, "The memory", above=0), progress
        self.size = len(self.X)
        whole = 8.0 * self.size**2
        self.held = whole <= HELD * self.memory
        self.room = self.memory - (whole if self.held else 0)
        """What is left for making blocks, in bytes."""
        self.rows = max(1, min(self.size, int(np.sqrt(self.room / (8 * COPIES)))))
        if self.rows < min(self.size, 16):
            raise NumericError(f"memory={memory:g} bytes holds blocks of {self.rows} inputs only: give 1e6 or more")
        self._whole: Array | None = None

    def product(self, V: Array) -> Array:
        if self.held:
            if self._whole is None:
                made = np.empty((self.size, self.size))
                for rows, columns, block in self._blocks(self.X, None, "kernel"):
                    made[rows, columns] = block
                    made[columns, rows] = block.T
                self._whole = made
            return self._whole @ V
        total = np.zeros(np.shape(V))
        for rows, columns, block in self._blocks(self.X, None, "product"):
            total[rows] += block @ V[columns]
            if rows != columns:
                total[columns] += block.T @ V[rows]
        return total

    def columns(self, indices: Array) -> Array:
        if self._whole is not None:
            return self._whole[:, indices]
        return self.between(self.X, self.X[indices])

    def between(self, X1: Array, X2: Array) -> Array:
        """The rectangle of kernel values of X1 with X2: only these pairs."""
        found = np.empty((len(X1), len(X2)))
        for rows, columns, block in self._blocks(X1, X2, "kernel"):
            found[rows, columns] = block
        return found

    def evaluate(self, X: Array, alpha: Array) -> Array:
        """sum_b k(x, x_b) alpha_b over the training inputs, for alpha of shape (N,) or (N, outputs).

        The kernel of X with the training inputs is made block by block and never held.
        """
        weights = np.asarray(alpha, float)
        if len(weights) != self.size:
            raise NumericError(f"{self.size} training points have as many weights, not {weights.shape}")
        total = np.zeros((len(X), *weights.shape[1:]))
        for rows, columns, block in self._blocks(np.asarray(X, float), self.X, "prediction"):
            total[rows] += block @ weights[columns]
        return total

    def _blocks(self, X: Array, against: Array | None, what: str) -> Iterator[tuple[slice, slice, Array]]:
        if isinstance(self.kernel, KernelInBlocks):
            if len(X) and (against is None or len(against)):
                yield from self.kernel.blocks(X, against, self.room, self.progress)
            return
        other = X if against is None else against
        left, right = ([slice(i, min(i + self.rows, n)) for i in range(0, n, self.rows)] for n in (len(X), len(other)))
        places = [(i, j) for i in range(len(left)) for j in range(i if against is None else 0, len(right))]
        with progress_bar(len(places), self.progress, what) as tick:
            for i, j in places:
                yield left[i], right[j], self._checked(X[left[i]], other[right[j]])
                tick(1)

    def _checked(self, X1: Array, X2: Array) -> Array:
        block = np.asarray(self.kernel(X1, X2), float)
        if block.shape != (len(X1), len(X2)):
            raise NumericError(f"kernel(X1, X2) must return {(len(X1), len(X2))} numbers, not {block.shape}")
        if not np.isfinite(block).all():
            raise NumericError("the kernel has entries that are not finite numbers")
        return block


def over(x: Array, size: Array) -> Array:
    """x / size, and zero where the size is zero."""
    return np.divide(x, size, out=np.zeros_like(x), where=size != 0)


def checked_kernel(K: Array, name: str = "kernel") -> Array:
    """A square, finite, symmetric matrix without negative diagonal entries (to single precision), or one sentence."""
    matrix = np.asarray(K, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise NumericError(f"a {name} is a square matrix of at least one point, not an array of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise NumericError(f"the {name} has entries that are not finite numbers")
    scale = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-6 * scale):
        raise NumericError(f"a {name} is symmetric; this one is not (by {np.abs(matrix - matrix.T).max():.2g})")
    if float(np.diagonal(matrix).min()) < -1e-6 * scale:
        k = int(np.argmin(np.diagonal(matrix)))
        raise NumericError(f"a {name} is positive semidefinite; entry ({k}, {k}) is {matrix[k, k]:.3g}")
    return matrix
