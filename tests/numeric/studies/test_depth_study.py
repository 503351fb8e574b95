"""The generalization error of a data set: against Gaussian processes drawn and conditioned by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from numeric import NumericError, flow
from numeric.studies.depth import depth_study
from numeric.trained import GradientDescent, GradientFlow, predict

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


STORED = json.loads((Path(__file__).parents[2] / "data" / "trained" / "test_loss.json").read_text())


def by_descent(depth, factor):
    """The study of the stored networks, targets multiplied by a factor; learning rates are the defaults of `flow`."""
    setting = STORED["setting"]
    rows = depth_study(
        "tanh",
        np.array(setting["X"]),
        factor * np.array(setting["targets"]),
        setting["train"],
        [depth],
        lambda depth: SimpleNamespace(C_b=None, C_W=None, lambda_b=None, lambda_W=None),
        algorithms={"descent": lambda largest: GradientDescent(setting["eta"])},
    )
    return rows[0].finite["descent"].total / factor**2


def measured(depth, rescaled, f, y):
    """n × (test loss - infinite width) at 1/n = 0, from a line through the stored widths, and its standard error.

    The networks' loss was compared with that of their own linearizations, and those with the same initial outputs under
    the frozen NTK, whose mean differs from infinite width by the covariance G1/n of initial outputs.
    """
    train, test = STORED["setting"]["train"], [k for k in range(len(y)) if k not in STORED["setting"]["train"]]
    runs = [r for r in STORED["runs"] if r["depth"] == depth and (r["factor"] != 1) == rescaled]
    theta = np.asarray(f.Theta)
    moved = np.eye(len(theta))
    moved[:, train] -= theta[:, train] @ np.linalg.inv(theta[np.ix_(train, train)])
    spread = y.shape[1] * np.trace((moved @ np.asarray(f.G1) @ moved.T)[np.ix_(test, test)]) / 2
    n = np.array([r["width"] for r in runs])
    value = n * np.array([r["interaction"]["value"] + r["linear"]["value"] for r in runs])
    error = n * np.array([np.hypot(r["interaction"]["error"], r["linear"]["error"]) for r in runs])
    (_, limit), covariance = np.polyfit(1 / n, value, 1, w=1 / error, cov="unscaled")
    unit = len(test) * runs[0]["factor"] ** 2
    return (limit + spread) / unit, np.sqrt(covariance[1, 1]) / unit


@pytest.mark.equation("infinity.25")
@pytest.mark.equation("infinity.26")
@pytest.mark.parametrize(("depth", "rescaled"), [(3, False), (3, True), (6, False), (6, True)])
def test_the_loss_of_real_networks_at_two_depths(depth, rescaled):
    """Trained tanh networks of three and six layers: what finite width adds to the test loss.

    Six layers with targets that are not rescaled converge slowly (corrections of order L²/n, the networks are up to 256
    wide); rescaled to the outputs' scale, 64 neurons agree as they are.
    """
    setting = STORED["setting"]
    y = np.array(setting["targets"])
    f = flow("tanh", np.array(setting["X"]), depth, 1, tensors=["K", "Theta", "G1"])
    limit, error = measured(depth, rescaled, f, y)
    factor = next(r["factor"] for r in STORED["runs"] if r["depth"] == depth and (r["factor"] != 1) == rescaled)
    expected = by_descent(depth, factor)
    assert abs(limit - expected) < 3.5 * error
    assert error < 0.25 * max(abs(expected), 0.3)


def test_finite_width_is_the_first_order_of_the_loss():
    """One depth of a small network against the loss from mean and covariance at a large width."""
    y = np.random.default_rng(5).normal(size=(4, 1))
    own = SimpleNamespace(C_b=0.5, C_W=1.5, lambda_b=0.7, lambda_W=1.1)
    for rescale in (False, True):
        rows = depth_study(
            "sin", X[:4], y, [0, 1], [2], lambda depth: own, algorithms={"flow": lambda h: GradientFlow()},
            rescale=rescale,
        )  # fmt: skip
        n, (row,) = 1e7, rows
        f = flow("sin", X[:4], 2, int(n), 0.5, 1.5, 0.7, 1.1)
        p = predict(f, row.scale * y[:2, 0], [0, 1])
        loss = (np.sum((p.mean - row.scale * y[2:, 0]) ** 2) + np.trace(p.covariance)) / 4 / row.scale**2
        assert n * (loss - row.total) == pytest.approx(row.finite["flow"].total, rel=1e-4)
        ratio = np.trace(np.asarray(f.K)[:2, :2]) / np.trace(np.asarray(f.layer(1).K)[:2, :2])
        assert row.scale == pytest.approx(np.sqrt(ratio) if rescale else 1.0)
