"""What a user asks for: `predict(flow, y, train, algorithm)`, the ensemble of trained networks on the test inputs.

Infinite width is exact to rounding; the finite-width mean and covariance hold the order 1/n (truncation error: the
next order, as `numeric.ensemble` shows on real networks). Each is computed when first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numeric.trained.algorithms import Algorithm, GradientFlow
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import KernelPrediction, kernel_prediction
from numeric.trained.projectors import Projectors

PARTS = ("NTK", "H1", "NTK variance", "dNTK", "ddNTK-I", "ddNTK-II")


@dataclass(frozen=True)
class Prediction:
    """Mean and covariance of fully trained networks on the test inputs; `parts` adds up to `mean`.

    Means have shape (N_test,) or (N_test, n_L), as y does. `covariance_infinite` is (N_test, N_test), the same for
    every output; `covariance` has shape (N_test, N_test) for one output, else (n_L, n_L, N_test, N_test).
    """

    flow: Any
    kernel: KernelPrediction
    algorithm: Algorithm
    test: tuple[int, ...]

    @property
    def width(self) -> float:
        """n_{L-1}, the last hidden layer's width: what the finite-width tensors of the output layer are divided by."""
        return float(self.flow.widths[-1])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        notes = [f"trained with {self.algorithm}", f"finite width: first order in 1/n, n = {self.width:g}"]
        if self.kernel.modes.dropped:
            notes.append(f"{self.kernel.modes.dropped} modes of the training NTK were left untrained (rcond)")
        return tuple(notes)

    @cached_property
    def mean_infinite(self) -> np.ndarray:
        """(10.40) on the test inputs."""
        return self.kernel.mean(inputs=self.test)

    @cached_property
    def covariance_infinite(self) -> np.ndarray:
        """(10.41) on the test inputs."""
        return self.kernel.covariance(inputs=self.test)

    @cached_property
    def finite(self) -> FiniteWidth:
        """The 1/n corrections on all inputs."""
        self.algorithm.check(self.kernel.modes.h)
        return FiniteWidth(self.flow, self.kernel, Projectors(self.algorithm, self.kernel.modes.h))

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The mean by origin: the infinite-width kernel prediction and the five corrections of order 1/n."""
        parts = {"NTK": self.mean_infinite}
        for name, value in self.finite.mean_parts.items():
            parts[name] = (value[:, self.test].T / self.width).reshape(self.mean_infinite.shape)
        return {name: parts[name] for name in PARTS}

    @cached_property
    def mean(self) -> np.ndarray:
        """(infinity.160) with the NLO mean of the NTK, on the test inputs."""
        return np.asarray(sum(self.parts.values()))

    @cached_property
    def covariance(self) -> np.ndarray:
        """(infinity.166) to order 1/n on the test inputs."""
        outputs = self.finite.outputs
        correction = self.finite.covariance()[:, :, self.test][..., self.test] / self.width
        total = np.eye(outputs)[:, :, None, None] * self.covariance_infinite + correction
        return total[0, 0] if self.kernel.y.ndim == 1 else total


def predict(
    flow: Any,
    y: Any,
    train: Sequence[int],
    algorithm: Algorithm | None = None,
    *,
    rcond: float | None = None,
) -> Prediction:
    """Predict the ensemble of networks trained to the end on the inputs `train` of the flow with targets y (MSE loss).

    `y` has shape (N_train,) or (N_train, n_L); predictions are for all inputs of the flow that are not in `train`, in
    their order. Without `algorithm`, gradient flow. A singular training NTK raises `SingularKernel`; `rcond` (a
    number like 1e-10) leaves modes below rcond times the largest eigenvalue untrained instead.

    >>> from numeric import flow
    >>> f = flow("tanh", [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]], depth=2, width=100, tensors=["K", "Theta"])
    >>> p = predict(f, [1.0, -1.0], train=[0, 1])
    >>> [round(float(x), 6) for x in p.mean_infinite], p.covariance_infinite.shape
    ([0.254283], (1, 1))

    With all tensors in the flow (the default), p.mean, p.covariance and p.parts hold the order 1/n.
    """
    kernel = kernel_prediction(np.asarray(flow.Theta), np.asarray(flow.K), y, train, rcond)
    chosen = set(kernel.train)
    test = tuple(k for k in range(len(kernel.theta)) if k not in chosen)
    return Prediction(flow, kernel, algorithm or GradientFlow(), test)
