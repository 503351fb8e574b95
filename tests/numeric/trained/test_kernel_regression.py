"""Cross-validation and look-ahead updates against refitting from scratch."""

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.spectra.eigensystem import hypercube
from numeric.trained.kernel_regression import KernelRegression


def problem(n=14, test=5, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + test, 3))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)) + 0.1 * X @ X.T
    return K, rng.normal(size=(n + test, outputs)), n


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_leave_one_out_is_refitting(ridge):
    K, y, n = problem()
    fit = KernelRegression(K[:n, :n], y[:n], ridge)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        other = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(n - 1), y[rest])
        assert np.allclose(fit.leave_one_out[i], y[i] - K[i, rest] @ other, rtol=1e-9, atol=1e-9)


def test_gcv_is_the_shrunk_training_error():
    """GCV = (training error) / (1 - tr(K (K + ridge)^-1)/N)^2, the textbook form, and its limit without ridge."""
    K, y, n = problem()
    for ridge in (0.3, 1e-7):
        fit = KernelRegression(K[:n, :n], y[:n, 0], ridge)
        hat = K[:n, :n] @ np.linalg.inv(K[:n, :n] + ridge * np.eye(n))
        textbook = np.mean((y[:n, 0] - hat @ y[:n, 0]) ** 2) / (1 - np.trace(hat) / n) ** 2
        assert fit.gcv == pytest.approx(textbook, rel=1e-4 if ridge < 1e-3 else 1e-11)
    assert KernelRegression(K[:n, :n], y[:n, 0]).gcv == pytest.approx(fit.gcv, rel=1e-3)


def test_both_predict_the_test_error():
    """On the hypercube the mean of each over training sets is the mean test error on fresh points, within errors."""
    space = hypercube(lambda c: np.exp(2 * c), 7)
    K, rng = space.kernel(), np.random.default_rng(8)
    target = space.points[:, 0] + 0.5 * space.points[:, 1] * space.points[:, 2]
    loo, gcv, truth = [], [], []
    for _ in range(120):
        order = rng.permutation(128)
        train, test = order[:40], order[40:]
        y = target + 0.3 * rng.normal(size=128)
        fit = KernelRegression(K[np.ix_(train, train)], y[train], ridge=0.4)
        loo.append(fit.loo_mse)
        gcv.append(fit.gcv)
        truth.append(np.mean((fit.predict(K[np.ix_(test, train)]) - y[test]) ** 2))
    error = np.std(truth) / np.sqrt(120)
    for estimate in (loo, gcv):
        spread = np.hypot(error, np.std(estimate) / np.sqrt(120))
        assert abs(np.mean(estimate) - np.mean(truth)) < 3 * spread + 0.02 * np.mean(truth)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_look_ahead_is_retraining(ridge):
    K, y, n = problem(n=9, test=6)
    fit = KernelRegression(K[:n, :n], y[:n], ridge)
    candidates, test = [9, 10, 11], [12, 13, 14]
    change = fit.look_ahead(
        K[np.ix_(candidates, range(n))], np.diag(K)[candidates], y[candidates], K[np.ix_(test, range(n))],
        K[np.ix_(test, candidates)],
    )  # fmt: skip
    assert change.shape == (3, 3, 2)
    for i, c in enumerate(candidates):
        grown = [*range(n), c]
        after = K[np.ix_(test, grown)] @ np.linalg.solve(K[np.ix_(grown, grown)] + ridge * np.eye(n + 1), y[grown])
        assert np.allclose(change[i], after - fit.predict(K[np.ix_(test, range(n))]), atol=1e-9)
        updated = fit.with_point(K[c, :n], K[c, c], y[c])
        assert np.allclose(updated.predict(K[np.ix_(test, grown)]), after, atol=1e-9)


def test_initial_function():
    K, y, n = problem()
    f0 = np.cos(np.arange(len(y)))[:, None] * np.ones(2)
    fit = KernelRegression(K[:n, :n], y[:n], f0=f0[:n])
    assert np.allclose(fit.predict(K[:n, :n], f0[:n]), y[:n], atol=1e-8)


def test_refusals():
    with pytest.raises(NumericError, match="singular"):
        _ = KernelRegression(np.ones((3, 3)), np.ones(3)).alpha
    with pytest.raises(NumericError, match="repeats"):
        KernelRegression(np.eye(2), np.ones(2)).look_ahead(
            np.array([[1.0, 0.0]]), np.array([1.0]), np.array([1.0]), np.eye(2), np.ones((2, 1))
        )
    with pytest.raises(NumericError, match="not finite"):
        KernelRegression(np.eye(2), np.array([1.0, np.nan]))
