"""The generalization error of a data set: against Gaussian processes drawn and conditioned by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from numeric import NumericError
from numeric.studies.depth import depth_study

SETTINGS = SimpleNamespace(C_b=0.5, C_W=1.5, lambda_b=0.7, lambda_W=1.1)
X = np.random.default_rng(3).normal(size=(6, 3))
TRAIN = [0, 1, 2]


def sample_losses(loss, y, count=20_000):
    """Depth 1: a linear model with Gaussian parameters. Draw outputs, train each by the kernel formula, average."""
    rng = np.random.default_rng(0)
    K, T = 0.5 + 1.5 * X @ X.T / 3, 0.7 + 1.1 * X @ X.T / 3
    outputs = y.shape[1]
    z = np.linalg.cholesky(K + 1e-12 * np.eye(6)) @ rng.normal(size=(count, 6, outputs))
    leap = T[3:, :3] @ np.linalg.inv(T[:3, :3])
    if loss == "mse":
        ends = np.broadcast_to(y[:3], (count, 3, outputs))
    else:  # the sum over outputs is conserved
        logs = np.log(y[:3])
        ends = logs + (z[:, :3] - logs).mean(axis=-1, keepdims=True)
    trained = z[:, 3:] - leap @ (z[:, :3] - ends)
    if loss == "mse":
        values = ((trained - y[3:]) ** 2).sum(axis=(1, 2)) / 2
    else:
        q = trained - trained.max(axis=-1, keepdims=True)
        values = -(y[3:] * (q - np.log(np.exp(q).sum(axis=-1, keepdims=True)))).sum(axis=(1, 2))
    return values.mean() / 3, values.std() / np.sqrt(count) / 3


@pytest.mark.equation("10.50")
@pytest.mark.equation("10.51")
@pytest.mark.equation("10.52")
def test_mse_against_sampled_networks():
    y = np.random.default_rng(5).normal(size=(6, 2))
    row = depth_study("linear", X, y, TRAIN, [1], lambda depth: SETTINGS)[0]
    mean, error = sample_losses("mse", y)
    assert abs(row.total - mean) < 4 * error
    assert error < 0.02 * mean
    assert row.variance > 0


@pytest.mark.equation("10.53")
@pytest.mark.equation("10.54")
@pytest.mark.equation("10.55")
def test_cross_entropy_to_second_order():
    """The second-order expansion: good for small fluctuations, which a small initialization has."""
    small = SimpleNamespace(C_b=0.005, C_W=0.015, lambda_b=0.7, lambda_W=1.1)
    p = np.random.default_rng(5).dirichlet(np.ones(3) * 4, size=6)
    row = depth_study("linear", X, p, TRAIN, [1], lambda depth: small, loss="cross-entropy")[0]
    bias = depth_study("linear", X, p, TRAIN, [1], lambda depth: SETTINGS, loss="cross-entropy")[0].bias
    assert abs(row.bias - bias) < 1e-10  # the mean prediction does not know the initialization
    rng = np.random.default_rng(1)
    K, T = 0.005 + 0.015 * X @ X.T / 3, 0.7 + 1.1 * X @ X.T / 3
    z = np.linalg.cholesky(K + 1e-14 * np.eye(6)) @ rng.normal(size=(40_000, 6, 3))
    logs = np.log(p[:3])
    ends = logs + (z[:, :3] - logs).mean(axis=-1, keepdims=True)
    trained = z[:, 3:] - T[3:, :3] @ np.linalg.inv(T[:3, :3]) @ (z[:, :3] - ends)
    q = trained - np.log(np.exp(trained).sum(axis=-1, keepdims=True))
    values = -(p[3:] * q).sum(axis=(1, 2)) / 3
    assert abs(values.mean() - row.total) < 4 * values.std() / 200 + 0.02 * row.variance


def test_bad_studies():
    with pytest.raises(NumericError, match="training inputs and test inputs"):
        depth_study("linear", X, np.zeros((6, 1)), range(6), [1], lambda depth: SETTINGS)
    with pytest.raises(NumericError, match="loss"):
        depth_study("linear", X, np.zeros((6, 1)), TRAIN, [1], lambda depth: SETTINGS, loss="hinge")
    with pytest.raises(NumericError, match="soft labels"):
        depth_study("linear", X, np.eye(6)[:, :2], TRAIN, [1], lambda depth: SETTINGS, loss="cross-entropy")
