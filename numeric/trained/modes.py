"""The training kernel's modes: one eigendecomposition and one test of singularity behind all kernel methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite

ADVICE = "remove one of them or pass rcond=1e-10 to leave such modes untrained"

NEGATIVE = 1e-5
"""Negative eigenvalues up to this share of the largest are rounding, of single precision at worst."""


class SingularKernel(NumericError):
    """A training kernel that cannot be inverted in double precision; the message names the inputs."""


@dataclass(frozen=True)
class TrainingModes:
    """Eigenvalues h (ascending) and eigenvectors U (columns) of a training kernel; `dropped` modes stay untrained."""

    h: np.ndarray
    U: np.ndarray
    dropped: int = 0

    def function(self, weights: np.ndarray) -> np.ndarray:
        """U diag(weights) Uᵀ: a function of the kernel by its values on the modes; leading axes are carried along."""
        return (self.U * np.asarray(weights)[..., None, :]) @ self.U.T

    @property
    def inverse(self) -> np.ndarray:
        """The inverse of the training kernel, on the modes that are kept."""
        return self.function(1 / self.h)


def smallest(h: np.ndarray) -> float:
    """Below this an eigenvalue of a kernel with ascending eigenvalues h is rounding: singular in double precision."""
    return float(4 * len(h) * np.finfo(float).eps * h[-1])


def modes_of(
    kernel: np.ndarray,
    names: Sequence[int] | None = None,
    *,
    ridge: float = 0.0,
    rcond: float | None = None,
    advice: str = ADVICE,
    singular: bool = False,
) -> TrainingModes:
    """The modes of a symmetric kernel plus ridge. A singular one raises, unless `rcond` says which modes to leave.

    With `rcond`, modes below rcond times the largest eigenvalue are dropped: training does not move along them, which
    is exact for repeated inputs (they share one gradient) and is early stopping for the others. `names` are what the
    message calls the inputs; `singular` lets zero modes pass, for what does not invert.

    >>> modes_of(np.array([[2.0, 1.0], [1.0, 2.0]]), ridge=0.5).h
    array([1.5, 3.5])
    """
    block = np.asarray(kernel, dtype=float)
    if block.ndim != 2 or block.shape[0] != block.shape[1] or not len(block):
        raise NumericError(f"A training kernel is a square matrix of at least one input; its shape is {block.shape}.")
    if not np.isfinite(block).all():
        raise NumericError("The training NTK holds values that are not finite.")
    finite(ridge, "The ridge", least=0)
    if rcond is not None:
        finite(rcond, "rcond", least=0, below=1)
    h, U = np.linalg.eigh((block + block.T) / 2)
    if h[0] < -NEGATIVE * max(abs(float(h[-1])), abs(float(h[0]))):
        raise NumericError(f"The kernel is not positive semidefinite: it has the eigenvalue {h[0]:.3g}.")
    h = (np.maximum(h, 0.0) if singular else h) + ridge
    if singular:
        return TrainingModes(h, U)
    floor = rcond * h[-1] if rcond is not None else smallest(h)
    small = h <= floor
    if rcond is None and small.any():
        raise SingularKernel(_diagnosis(block, range(len(h)) if names is None else names, h, U, advice))
    return TrainingModes(h[~small], U[:, ~small], int(small.sum()))


def training_modes(
    theta: np.ndarray, train: Sequence[int], rcond: float | None = None, ridge: float = 0.0
) -> TrainingModes:
    """The modes of the training inputs' block of an NTK over all inputs, plus ridge."""
    return modes_of(np.asarray(theta)[np.ix_(train, train)], train, rcond=rcond, ridge=ridge)


def equal_inputs(block: np.ndarray) -> np.ndarray:
    """Which pairs of different rows are the same to a kernel: (N, N) of truth values."""
    scale = np.diagonal(block)
    sums = scale[:, None] + scale[None, :]
    return (sums - 2 * block <= 1e-12 * sums) & ~np.eye(len(block), dtype=bool)


def _diagnosis(block: np.ndarray, names: Sequence[int], h: np.ndarray, U: np.ndarray, advice: str) -> str:
    alike = np.argwhere(equal_inputs(block))
    if len(alike):
        which = f"training inputs {names[alike[0][0]]} and {names[alike[0][1]]} are the same to the NTK"
    else:
        share = np.abs(U[:, 0])
        found = [str(names[k]) for k in np.argsort(-share) if share[k] > 0.1 * share.max()][:6]
        which = f"a combination of training inputs {', '.join(found)} is invisible to the NTK"
    return f"The training NTK is singular (eigenvalues from {h[0]:.3g} to {h[-1]:.3g}): {which}; {advice}."
