"""Eigensystem of a kernel on a discrete input space (Simon et al. 2021): (review.31), (review.137).

(1/M) sum_{x'} K(x, x') phi_i(x') = lambda_i phi_i(x), with (1/M) sum_x phi_i(x) phi_j(x) = delta_ij. On the hypercube
and on a grid of the circle the eigenfunctions are known (Walsh functions, Fourier modes), so that only sums with
exact coefficients remain; for a user's own data set the kernel matrix is diagonalized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from numeric.errors import NumericError

Array = np.ndarray

ROUNDING = 1e-12
"""Eigenvalues within this fraction of the largest one count as zero: float64 kernels do not know them better."""


@dataclass(frozen=True)
class Eigensystem:
    """Eigenvalues and orthonormal eigenfunctions of a kernel on M points.

    `eigenfunctions[i, x]` is phi_i at point x; `levels[i]` is the mode's degree (hypercube), frequency (circle) or
    rank (data set). Eigenvalues that rounding cannot tell from zero are exactly zero.
    """

    points: Array
    eigenvalues: Array
    eigenfunctions: Array
    levels: Array
    space: str

    @property
    def size(self) -> int:
        """M, the number of points (and of modes)."""
        return len(self.eigenvalues)

    @property
    def rank(self) -> int:
        """How many eigenvalues are not zero: the most samples that a ridgeless fit can interpolate."""
        return int(np.count_nonzero(self.eigenvalues))

    def kernel(self) -> Array:
        """The kernel matrix sum_i lambda_i phi_i(x) phi_i(x'), rebuilt from the modes."""
        return (self.eigenfunctions.T * self.eigenvalues) @ self.eigenfunctions

    def coefficients(self, target: Array) -> Array:
        """v_i = <phi_i, f> of a function given by its M values, (review.32)."""
        values = np.asarray(target, float)
        if values.shape != (self.size,):
            raise NumericError(f"the target needs one value for each of the {self.size} points, got {values.shape}")
        return self.eigenfunctions @ values / self.size


def hypercube_eigenvalues(values: Sequence[Any]) -> list[Any]:
    """Eigenvalues lambda_0 ... lambda_d of a kernel on {-1, 1}^d that depends on the number of flipped signs only.

    `values[m]` is the kernel of two corners that differ in m signs. The coefficients are integers (Krawtchouk
    polynomials over 2^d), so exact numbers give exact eigenvalues.

    >>> from fractions import Fraction
    >>> hypercube_eigenvalues([Fraction(3), Fraction(1), Fraction(-1), Fraction(-3)])   # the linear kernel x.x'
    [Fraction(0, 1), Fraction(1, 1), Fraction(0, 1), Fraction(0, 1)]
    """
    d = len(values) - 1
    return [sum(_krawtchouk(m, k, d) * values[m] for m in range(d + 1)) / 2**d for k in range(d + 1)]


def hypercube(kernel: Callable[[Array], Any], dimension: int) -> Eigensystem:
    """Eigensystem on the corners of {-1, 1}^d of a kernel that is a function of the cosine x.x'/d.

    The modes are the products of coordinates over subsets, ordered by degree; the d + 1 eigenvalues are sums with
    integer coefficients of the kernel's d + 1 values, with multiplicities binom(d, k).

    >>> space = hypercube(lambda cosine: 1 + cosine, 3)
    >>> space.eigenvalues.round(12).tolist()
    [1.0, 0.333333333333, 0.333333333333, 0.333333333333, 0.0, 0.0, 0.0, 0.0]
    """
    if not 1 <= dimension <= 12:
        raise NumericError("a hypercube with all its 2^d corners has a dimension from 1 to 12: see hypercube_levels")
    subsets = np.arange(2**dimension)
    bits = (subsets[:, None] >> np.arange(dimension)) & 1
    degrees = bits.sum(axis=1)
    subsets = subsets[np.argsort(degrees, kind="stable")]
    cosines = 1 - 2 * np.arange(dimension + 1) / dimension
    by_degree = np.array(hypercube_eigenvalues(list(_kernel_values(kernel, cosines))))
    parity = np.bitwise_count(subsets[:, None] & np.arange(2**dimension)) % 2
    levels = np.sort(degrees)
    return Eigensystem(1.0 - 2.0 * bits, _positive(by_degree[levels]), 1.0 - 2.0 * parity, levels, "hypercube")


@dataclass(frozen=True)
class HypercubeLevels:
    """The levels of a hypercube too large to hold: eigenvalues by degree, how many modes, and what is left out."""

    eigenvalues: Array
    multiplicities: Array
    tail: float  # the sum of the eigenvalues that are not listed
    error: float


def hypercube_levels(kernel: Callable[[Array], Any], dimension: int, degree: int) -> HypercubeLevels:
    """lambda_0 ... lambda_degree on {-1, 1}^d for any d up to 1000: d + 1 values of the kernel are all that is needed.

    The sums are exact, so that the error is that of the kernel's own values; higher degrees go into `tail`.

    >>> linear = hypercube_levels(lambda cosine: 1 + cosine, 50, 3)
    >>> linear.eigenvalues.round(12).tolist(), linear.multiplicities.tolist()
    ([1.0, 0.02, 0.0, 0.0], [1.0, 50.0, 1225.0, 19600.0])
    """
    if not 1 <= dimension <= 1000 or degree < 0:
        raise NumericError("the hypercube has a dimension from 1 to 1000 and degrees from 0 on")
    degrees = range(min(degree, dimension) + 1)
    values = _kernel_values(kernel, 1 - 2 * np.arange(dimension + 1) / dimension)
    exact = [Fraction(float(v)) for v in values]
    weights = [[_krawtchouk(m, k, dimension) for m in range(dimension + 1)] for k in degrees]
    found = [sum((w * v for w, v in zip(row, exact)), Fraction(0)) / 2**dimension for row in weights]
    eigenvalues = np.array([float(x) for x in found])
    error = ROUNDING * float(np.abs(values).max())
    if eigenvalues.min() < -error:
        raise NumericError(f"the kernel is not positive semidefinite: it has the eigenvalue {eigenvalues.min():.3g}")
    eigenvalues = np.where(eigenvalues > 1e-3 * error, eigenvalues, 0.0)
    count = np.array([float(comb(dimension, k)) for k in degrees])
    tail = max(float(values[0]) - float(count @ eigenvalues), 0.0) if len(degrees) <= dimension else 0.0
    return HypercubeLevels(eigenvalues, count, tail, error)


def circle(kernel: Callable[[Array], Any], size: int) -> Eigensystem:
    """Eigensystem on M equally spaced points of the unit circle of a kernel that is a function of the cosine.

    The modes are 1, sqrt(2) cos(f t), sqrt(2) sin(f t) and, for even M, (-1)^j; the eigenvalues are the discrete
    Fourier transform of one row of the kernel.
    """
    if size < 2:
        raise NumericError("a grid on the circle needs at least two points")
    j = np.arange(size)
    angles = 2 * np.pi * j / size
    row = _kernel_values(kernel, np.cos(angles))
    frequencies = np.array([(i + 1) // 2 for i in range(size)])
    eigenvalues = np.fft.fft(row).real[frequencies] / size
    modes = np.empty((size, size))
    for i, f in enumerate(frequencies):
        # 2 pi (f j mod M) / M keeps the argument small, so that the modes are orthogonal to rounding
        phase = 2 * np.pi * ((f * j) % size) / size
        alone = f == 0 or 2 * f == size
        modes[i] = np.cos(phase) if alone else np.sqrt(2) * (np.cos(phase) if i % 2 else np.sin(phase))
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Eigensystem(points, _positive(eigenvalues), modes, frequencies, "circle")


def data_set(kernel_matrix: Array, points: Array | None = None) -> Eigensystem:
    """Eigensystem on a user's M points, from the M x M kernel matrix, by a symmetric eigensolver (largest first)."""
    K = np.asarray(kernel_matrix, float)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise NumericError(f"a kernel matrix is square, got shape {K.shape}")
    _finite(K)
    if not np.allclose(K, K.T, rtol=1e-10, atol=1e-12 * np.abs(K).max()):
        raise NumericError("a kernel matrix is symmetric; this one is not")
    size = len(K)
    eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2)
    modes = np.sqrt(size) * vectors.T[::-1]
    where = np.arange(size)[:, None] if points is None else np.asarray(points, float)
    return Eigensystem(where, _positive(eigenvalues[::-1] / size), modes, np.arange(size), "data set")


def _krawtchouk(m: int, k: int, d: int) -> int:
    """Sum over the corners with m minus signs of a product of k coordinates."""
    return sum((-1) ** j * comb(k, j) * comb(d - k, m - j) for j in range(min(k, m) + 1))


def _kernel_values(kernel: Callable[[Array], Any], cosines: Array) -> Array:
    values = np.asarray(kernel(cosines), float)
    if values.shape != cosines.shape:
        raise NumericError(f"the kernel must return one number for each cosine, got shape {values.shape}")
    return _finite(values)


def _finite(values: Array) -> Array:
    if not np.all(np.isfinite(values)):
        raise NumericError("the kernel has entries that are not finite numbers")
    return values


def _positive(eigenvalues: Array) -> Array:
    """The eigenvalues with rounding noise set to zero; refuses a kernel that is not positive semidefinite."""
    noise = ROUNDING * np.abs(eigenvalues).max()
    if eigenvalues.min() < -noise:
        raise NumericError(f"the kernel is not positive semidefinite: it has the eigenvalue {eigenvalues.min():.3g}")
    return np.where(eigenvalues > noise, eigenvalues, 0.0)
