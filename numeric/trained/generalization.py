"""The test loss of an ensemble of trained networks as bias plus variance: (10.50)-(10.55)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.trained.losses import MSE, Loss


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
