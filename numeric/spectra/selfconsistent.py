"""Mean learnability and test error against sample size, from the eigenvalues alone (Simon et al. 2021).

On average over training sets the transfer matrix is diagonal, L_i = lambda_i / (lambda_i + kappa), and the constant
kappa follows from one self-consistent equation. On M points sampled without repetition the eigenbasis acts as a
random rotation, and free probability (the sum of a projector of rank n and of ridge/M Lambda^{-1}) gives

    sum_i L_i + (ridge/kappa) (1 - sum_i L_i / M) = n,
    mean test error = E_0 sum_i (1 - L_i)^2 v_i^2,   E_0 = 1/(1 - (t/l^2) [1 - 1/(w^2/p + (1 - p)/(1 - l)^2)]),

with p = n/M, l = mean of L_i, t = mean of L_i^2 and w = (p - l)/(1 - l). For M -> infinity, or without ridge, these
are the equations of Simon et al.: sum_i L_i + ridge/kappa = n and E_0 = n/(n - sum_i L_i^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite
from numeric.shapes import Levels
from numeric.spectra.eigensystem import Array


@dataclass(frozen=True)
class LearnabilityPrediction:
    """What n samples learn on average, mode by mode.

    `learnabilities[i]` is the mean L(phi_i); `overfitting` is E_0, the factor by which the error exceeds that of a
    fit that only shrinks the modes; `kappa` is the eigenvalue at which a mode is learned by half.
    """

    samples: int
    ridge: float
    kappa: float
    eigenvalues: Levels
    multiplicities: Levels
    learnabilities: Levels
    overfitting: float
    points: float  # M, infinite on a continuous space

    def learnability(self, coefficients: Array | Sequence[float]) -> float:
        """Mean L(f) of a target with squared weight v_i^2 in each mode (or level)."""
        weights = np.asarray(coefficients, float) ** 2
        return float(weights @ self.learnabilities / weights.sum())

    def mse(self, coefficients: Array | Sequence[float], noise: float = 0.0) -> float:
        """Mean squared error of the fit against the clean target, averaged over all points of the space.

        `coefficients` are the target's v_i (for a level of several modes: the root of the sum of their squares);
        `noise` is the variance of independent noise on the training labels.
        """
        weights = np.asarray(coefficients, float) ** 2
        if weights.shape != self.learnabilities.shape:
            raise NumericError(f"one coefficient for each of the {len(self.learnabilities)} levels is needed")
        error = self.overfitting * float(weights @ (1 - self.learnabilities) ** 2)
        if noise == 0:
            return error
        if np.isinf(self.points):
            return error + noise * (self.overfitting - 1)
        share = self.multiplicities / self.points
        unlearned = float(share @ (1 - self.learnabilities) ** 2)
        learned = float(share @ self.learnabilities)
        return error + noise * (2 * learned - 1 + self.overfitting * unlearned)


def learnability(
    eigenvalues: Array | Sequence[float],
    samples: int,
    ridge: float = 0.0,
    multiplicities: Array | Sequence[float] | None = None,
    tail: float | None = None,
) -> LearnabilityPrediction:
    """Predict how much of each eigenmode kernel regression on `samples` random points learns.

    `eigenvalues` are one for each mode, or one for each level with `multiplicities`. By default they are all modes of
    a discrete space (M is their number) and the points are drawn without repetition. On a continuous space give
    `tail`, the sum of the eigenvalues beyond the last one listed: those modes are too many and too small to be
    learned, and act as a ridge.

    >>> p = learnability([1.0, 0.5, 0.1, 0.1], samples=2)
    >>> float(round(p.learnabilities.sum(), 12))
    2.0
    """
    lam = np.asarray(eigenvalues, float)
    count = np.ones_like(lam) if multiplicities is None else np.asarray(multiplicities, float)
    if lam.ndim != 1 or count.shape != lam.shape:
        raise NumericError("eigenvalues and multiplicities are two lists of the same length")
    finite(ridge, "The ridge", least=0)
    if not np.all(np.isfinite(lam)) or lam.min() < 0 or not 0 <= (tail or 0.0) < np.inf:
        raise NumericError("eigenvalues and tail must be finite and not negative")
    points = np.inf if tail is not None else float(count.sum())
    ridge_like = ridge + (tail or 0.0)
    rank = float(count[lam > 0].sum())
    if samples < 0 or samples > points or (ridge_like == 0 and samples > rank):
        raise NumericError(
            f"{samples} samples cannot be interpolated by {rank:g} nonzero modes on {points:g} points: "
            "take fewer samples or a ridge"
        )
    kappa = _solve_kappa(lam, count, float(samples), ridge_like, points)
    L = np.ones_like(lam) if kappa == 0 else lam / (lam + kappa)
    L = np.where(lam > 0, L, 0.0)
    return LearnabilityPrediction(
        samples, ridge, kappa, lam, count, L, _overfitting(L, count, float(samples), ridge_like, points), points
    )


def _solve_kappa(lam: Array, count: Array, n: float, ridge: float, points: float) -> float:
    """The root of the self-consistent equation, by bisection in log(kappa): the left side falls with kappa."""
    if n == 0:
        return float("inf")
    if ridge == 0 and n == count[lam > 0].sum():
        return 0.0

    def excess(kappa: float) -> float:
        if np.isinf(points):
            return float(count @ (lam / (lam + kappa))) + ridge / kappa - n
        unlearned = float(count @ (kappa / (lam + kappa)))  # not M - learned, which is lost to rounding where n = M
        return (points - n) - unlearned + (ridge / kappa) * unlearned / points

    low, high = np.log(1e-300), np.log((float(count @ lam) + ridge) / n * 4 + 1e-300)
    for _ in range(400):
        middle = (low + high) / 2
        if excess(float(np.exp(middle))) > 0:
            low = middle
        else:
            high = middle
        if high - low < 1e-15 * max(1.0, abs(high)):
            break
    return float(np.exp((low + high) / 2))


def _overfitting(L: Array, count: Array, n: float, ridge: float, points: float) -> float:
    if n in (0, points):  # nothing, or everything, is sampled: nothing is left to chance
        return 1.0
    squares = float(count @ L**2)
    if ridge == 0 or np.isinf(points):
        # at n = M everything is learned: the factor multiplies an error of zero, and its limit is finite only there
        return n / (n - squares) if squares < n * (1 - 1e-14) else 1.0
    p, l, t = n / points, float(count @ L) / points, squares / points
    w = (p - l) / (1 - l)
    return 1 / (1 - (t / l**2) * (1 - 1 / (w**2 / p + (1 - p) / (1 - l) ** 2)))
