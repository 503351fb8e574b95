"""Losses and their error factors (10.4), and training at infinite width with any of them.

The frozen NTK turns training into z(t+1) = z(t) - η Θ ∂L/∂z (10.3), iterated for a given loss, or its gradient flow,
integrated to a stated tolerance. MSE losses have closed forms (`numeric.trained.infinite`); these solvers are for the
cross-entropy (10.36), whose error factor (10.7) is not linear, and for checks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from numeric.errors import NumericError
from numeric.trained.ode import solve

Array: TypeAlias = Any
"""A NumPy or a JAX array."""


class Loss(ABC):
    """A loss of outputs z (N, n_L) on samples with targets; NumPy and JAX arrays of shape (N, n_L)."""

    @abstractmethod
    def total(self, z: Array) -> Array:
        """The loss, as an array without axes."""

    def value(self, z: np.ndarray) -> float:
        """The loss, as a number."""
        return float(self.total(z))

    @abstractmethod
    def error(self, z: Array) -> Array:
        """The error factor ∂L/∂z."""

    @abstractmethod
    def hessian(self, z: np.ndarray) -> np.ndarray:
        """∂²L/∂z∂z as [sample, output, sample, output]."""

    @abstractmethod
    def minimum(self, z: np.ndarray) -> np.ndarray:
        """The outputs at which training that starts from z ends."""


@dataclass(frozen=True)
class MSE(Loss):
    """½ Σ (z - y)² (10.5), or with a Newton tensor κ as metric on samples, the generalized MSE (10.22)."""

    y: np.ndarray
    kappa: np.ndarray | None = None

    def _metric(self) -> np.ndarray:
        return np.eye(len(self.y)) if self.kappa is None else np.asarray(self.kappa)

    def total(self, z: Array) -> Array:
        return ((z - self.y) * self.error(z)).sum() / 2

    def error(self, z: Array) -> Array:
        return self._metric() @ (z - self.y)

    def hessian(self, z: np.ndarray) -> np.ndarray:
        return np.einsum("ab,ij->aibj", self._metric(), np.eye(self.y.shape[1]))

    def minimum(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.y, dtype=float)


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """-Σ p log softmax(z) (10.36) for target distributions p (N, n_L): hard labels are zeros and ones."""

    p: np.ndarray

    @staticmethod
    def log_softmax(z: Array) -> Array:
        xp, moved = z.__array_namespace__(), z - z.max(axis=-1, keepdims=True)
        return moved - xp.log(xp.exp(moved).sum(axis=-1, keepdims=True))

    @staticmethod
    def softmax(z: Array) -> Array:
        """(10.38)."""
        return z.__array_namespace__().exp(CrossEntropy.log_softmax(z))

    def total(self, z: Array) -> Array:
        return -(self.p * self.log_softmax(z)).sum()

    def error(self, z: Array) -> Array:
        return self.softmax(z) - self.p

    def hessian(self, z: np.ndarray) -> np.ndarray:
        q = self.softmax(z)
        own = q[:, :, None] * (np.eye(q.shape[1]) - q[:, None])  # q_i (δ_ij - q_j)
        return np.einsum("aij,ab->aibj", own, np.eye(len(q)))

    def minimum(self, z: np.ndarray) -> np.ndarray:
        """log p up to a shift for each sample, which training cannot change: Σ_i z_i stays what it was."""
        if not (self.p > 0).all():
            raise NumericError(
                "Hard labels put the end of training at infinite outputs: give soft labels (soft_labels) or stop after "
                "a number of steps."
            )
        log_p = np.log(self.p)
        return log_p + (z - log_p).mean(axis=-1, keepdims=True)


def soft_labels(labels: Sequence[int], classes: int, epsilon: float) -> np.ndarray:
    """Label smoothing: 1 - ε on the label, ε shared among the others.

    >>> soft_labels([1], classes=3, epsilon=0.1)
    array([[0.05, 0.9 , 0.05]])
    """
    if classes < 2 or not 0 <= epsilon < 1 or not all(0 <= k < classes for k in labels):
        raise NumericError("Labels run from 0 to classes - 1, and 0 <= epsilon < 1.")
    p = np.full((len(labels), classes), epsilon / (classes - 1))
    p[np.arange(len(labels)), list(labels)] = 1 - epsilon
    return p


def descend(theta: np.ndarray, z: np.ndarray, train: Sequence[int], loss: Loss, eta: float, steps: int) -> np.ndarray:
    """z (N, n_L) after `steps` steps (10.3) with learning rate eta: the difference equation, iterated."""
    z, picked = np.array(z, dtype=float), list(train)
    response = np.asarray(theta)[:, picked]
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        for _ in range(steps):
            z = z - eta * response @ loss.error(z[picked])
    if not np.isfinite(z).all():
        raise NumericError(f"Training diverges with eta = {eta}: take a smaller one.")
    return z


def flow_to(
    theta: np.ndarray, z: np.ndarray, train: Sequence[int], loss: Loss, time: float, tolerance: float = 1e-10
) -> np.ndarray:
    """z (N, n_L) at `time` of the gradient flow dz/dt = -Θ ∂L/∂z (`numeric.trained.ode`)."""
    picked, response = list(train), np.asarray(theta)[:, list(train)]
    return solve(lambda x: -response @ loss.error(x[picked]), z, time, tolerance)
