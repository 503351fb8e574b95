"""The test loss of an ensemble of trained networks as bias plus variance: (10.50)-(10.55), at order 1/n too.

At finite width both are expanded to first order in 1/n: the square of a 1/n mean is of the next order and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from numeric.trained.losses import MSE, Loss

if TYPE_CHECKING:
    from numeric.trained.prediction import Prediction
    from numeric.trained.sampled.prediction import SampledPrediction


@dataclass(frozen=True)
class TestLoss:
    """E[L] = bias + variance: exact for MSE losses (10.52), to second order around the mean for others (10.55)."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    bias: float
    variance: float
    exact: bool

    @property
    def total(self) -> float:
        """The mean test loss: the generalization error (10.51) when the training loss is zero."""
        return self.bias + self.variance


def test_loss(loss: Loss, mean: np.ndarray, covariance: np.ndarray) -> TestLoss:
    """Bias and variance on the test inputs: mean (N,) or (N, n_L); covariance (N, N) or (n_L, n_L, N, N).

    A covariance (N, N) is that of every output, different outputs being independent (infinite width).

    >>> t = test_loss(MSE(np.zeros((1, 1))), np.array([1.0]), np.array([[0.5]]))
    >>> t.bias, t.variance, t.total
    (0.5, 0.25, 0.75)
    """
    mean = mean.reshape(len(mean), -1)
    outputs = mean.shape[1]
    if covariance.ndim == 2:
        covariance = np.eye(outputs)[:, :, None, None] * covariance
    variance = np.einsum("aibj,ijab->", loss.hessian(mean), covariance) / 2
    return TestLoss(loss.value(mean), float(variance), isinstance(loss, MSE))


test_loss.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class FiniteTestLoss:
    """The mean test loss to first order in 1/n: at infinite width, and what finite width adds to each part.

    `standard_error` is that of the change where it was sampled.
    """

    infinite: TestLoss
    bias_change: float
    variance_change: float
    standard_error: float = 0.0

    @property
    def bias(self) -> float:
        return self.infinite.bias + self.bias_change

    @property
    def variance(self) -> float:
        return self.infinite.variance + self.variance_change

    @property
    def change(self) -> float:
        """What finite width does to the test loss: (infinity.168) for a single training input."""
        return self.bias_change + self.variance_change

    @property
    def total(self) -> float:
        return self.infinite.total + self.change


def finite_test_loss(p: Prediction | SampledPrediction, targets: np.ndarray) -> FiniteTestLoss:
    """The MSE test loss of a prediction at one time (or the end), to order 1/n; targets (N_test,) or (N_test, n_L)."""
    center = p.mean_infinite.reshape(len(p.test), -1)
    truth = np.asarray(targets, dtype=float).reshape(center.shape)
    shift = (p.mean - p.mean_infinite).reshape(center.shape)
    error = p.standard_error_of(center - truth, np.full(center.shape, 0.5)) if hasattr(p, "standard_error_of") else 0.0
    return FiniteTestLoss(
        test_loss(MSE(truth), center, p.covariance_infinite),
        float(np.sum((center - truth) * shift)),
        float(np.sum(p.variance_change) / 2),
        error,
    )
