"""Infinite width: the kernel prediction (10.39), its mean (10.40) and covariance (10.41), at the end and in time.

At infinite width the NTK is frozen, so training is linear: z(t) = z - S(t)(z - y) on the training set's errors, with
S(t) = Θ U p(t) Uᵀ in the eigenbasis U of the training NTK. At the end p = 1/h whatever the algorithm: (10.35).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from numeric.errors import NumericError
from numeric.trained.algorithms import Algorithm
from numeric.trained.modes import SingularKernel, TrainingModes, equal_inputs, training_modes
from numeric.trained.penalized import no_ridge
from numeric.trained.signals import Times, position_signal


@dataclass(frozen=True)
class KernelPrediction:
    """Infinite-width ensemble after training: arrays over all inputs, `train` says which are training inputs.

    `theta` and `K` are the output layer's frozen NTK and kernel; y has shape (N_train,) or (N_train, n_L).
    """

    theta: np.ndarray
    K: np.ndarray
    y: np.ndarray
    train: tuple[int, ...]
    modes: TrainingModes
    ridge: float = 0.0
    """A penalty (ridge/2) |θ - θ_0|² (norm with the inverse learning rates) shifts every eigenvalue h of the modes."""

    @cached_property
    def leap(self) -> np.ndarray:
        """Θ_{δa} Θ^{ab}: the linear map from training values to all inputs, (N, N_train)."""
        return self.response(1 / self.modes.h)

    def response(self, p: np.ndarray, inputs: Sequence[int] | None = None) -> np.ndarray:
        """Θ_{δa} U p Uᵀ for weights p of the modes, on all inputs or some."""
        rows = self.theta[:, self.train] if inputs is None else self.theta[np.ix_(inputs, self.train)]
        return rows @ self.modes.function(p)

    def residual(self, x: np.ndarray) -> np.ndarray:
        """[X]_δ = X_δ - Θ_{δa}Θ^{ab} X_b along the first axis: what training on the samples cannot reach."""
        return x - np.tensordot(self.leap, x[list(self.train)], axes=1)

    def _map(self, algorithm: Algorithm | None, t: Times | None, inputs: Sequence[int] | None = None) -> np.ndarray:
        if self.ridge and algorithm is not None and algorithm.preconditions:
            raise no_ridge(algorithm)
        if t is None and self.ridge and algorithm is not None and self._batches(algorithm):
            raise NumericError("With a ridge a schedule of batches goes round and round: give a time.")
        if t is None:
            return self.response(1 / self.modes.h, inputs)
        if algorithm is None:
            raise NumericError("A prediction at a time t needs the algorithm that gets there.")
        if self._batches(algorithm):
            rows = self.theta[:, self.train] if inputs is None else self.theta[np.ix_(inputs, self.train)]
            return rows @ _batch_positions(algorithm, self.theta[np.ix_(self.train, self.train)], t, self.ridge)
        return self.response(position_signal(algorithm, self.modes.h).at(t), inputs)

    def _batches(self, algorithm: Algorithm) -> bool:
        return algorithm.masks(len(self.train)) is not None

    def mean(
        self, algorithm: Algorithm | None = None, t: Times | None = None, inputs: Sequence[int] | None = None
    ) -> np.ndarray:
        """E[z(t)] on all inputs (or some); at the end of training (t=None) it is (10.40) for any algorithm.

        An array of times adds a leading axis, here and in `covariance`.
        """
        return self._map(algorithm, t, inputs) @ self.y

    def covariance(
        self, algorithm: Algorithm | None = None, t: Times | None = None, inputs: Sequence[int] | None = None
    ) -> np.ndarray:
        """Cov[z_1(t), z_2(t)] of one output component on all inputs (or some); at the end of training it is (10.41)."""
        moved = self.evolution(algorithm, t, inputs)
        return moved @ self.K @ np.swapaxes(moved, -1, -2)

    def evolution(
        self, algorithm: Algorithm | None = None, t: Times | None = None, inputs: Sequence[int] | None = None
    ) -> np.ndarray:
        """How the initial outputs move: z(t) = evolution @ z + (what the targets add), (N, N)."""
        map_ = self._map(algorithm, t, inputs)
        start = np.eye(len(self.K)) if inputs is None else np.eye(len(self.K))[list(inputs)]
        moved = np.array(np.broadcast_to(start, (*map_.shape[:-2], *start.shape)))
        moved[..., self.train] -= map_
        return moved

    def sample(self, z: np.ndarray, algorithm: Algorithm | None = None, t: Times | None = None) -> np.ndarray:
        """(10.39): where the network with initial outputs z (N,) or (N, n_L) ends."""
        return z - self._map(algorithm, t) @ (z[list(self.train)] - self.y)


def _batch_positions(algorithm: Algorithm, H: np.ndarray, t: Times, ridge: float) -> np.ndarray:
    """What has piled up of the initial errors of all samples when the steps see batches: (times..., N, N)."""
    masks, position, found = algorithm.masks(len(H)), np.zeros_like(H), {}
    assert masks is not None
    wanted = np.atleast_1d(np.asarray(t)).astype(int)
    for step in range(int(wanted.max()) + 1):
        if step in wanted:
            found[step] = position
        rate, seen = algorithm.rule(step).direct, masks[step % len(masks)]
        position = position + rate * (seen[:, None] * (np.eye(len(H)) - H @ position) - ridge * position)
    stacked = np.stack([found[int(step)] for step in wanted])
    return stacked if np.ndim(t) else stacked[0]


def kernel_prediction(
    theta: np.ndarray,
    K: np.ndarray,
    y: ArrayLike,
    train: Sequence[int],
    rcond: float | None = None,
    ridge: float = 0.0,
) -> KernelPrediction:
    """Check shapes and conditioning, then the infinite-width ensemble.

    >>> theta, K = np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(2)
    >>> p = kernel_prediction(theta, K, y=[3.0], train=[0])
    >>> p.mean(), p.covariance()
    (array([3. , 1.5]), array([[0.  , 0.  ], [0.  , 1.25]]))
    """
    theta, K, y = (np.asarray(x, dtype=float) for x in (theta, K, y))
    train = tuple(int(k) for k in train)
    if theta.ndim != 2 or theta.shape != K.shape or theta.shape[0] != theta.shape[1]:
        raise NumericError(f"Theta and K must be square and alike; they have shapes {theta.shape} and {K.shape}.")
    if not train or len(set(train)) != len(train) or not all(0 <= k < len(theta) for k in train):
        raise NumericError(f"train must name different inputs between 0 and {len(theta) - 1}.")
    if y.ndim not in (1, 2) or len(y) != len(train):
        raise NumericError(f"y must have one row for each of the {len(train)} training inputs; its shape is {y.shape}.")
    if not np.isfinite(y).all():
        raise NumericError("y holds values that are not finite.")
    try:
        modes = training_modes(theta, train, rcond, ridge)
    except SingularKernel:
        refuse_conflicts(theta, y, train)
        raise
    return KernelPrediction(theta, K, y, train, modes, float(ridge))


def refuse_conflicts(theta: np.ndarray, y: np.ndarray, train: Sequence[int]) -> None:
    """One sentence for training inputs that are the same to the NTK and have different targets."""
    targets = y.reshape(len(train), -1)
    for a, b in np.argwhere(np.triu(equal_inputs(theta[np.ix_(train, train)]))):
        if not np.array_equal(targets[a], targets[b]):
            raise SingularKernel(
                f"Training inputs {train[a]} and {train[b]} are the same to the NTK and have different targets, which "
                "no network can fit: remove one of them, or give a ridge."
            )


__all__ = ["KernelPrediction", "SingularKernel", "TrainingModes", "kernel_prediction", "training_modes"]
