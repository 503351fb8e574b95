"""Regression in other units and at its limits: kernels a billion times smaller, lists for arrays, repeated points."""

from __future__ import annotations

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained import kernel_regression
from numeric.trained.frozen_kernel import FrozenKernelTraining, squared_loss
from numeric.trained.kernel_regression import KernelRegression, ridge_path
from numeric.trained.linear_models import feature_kernel
from numeric.trained.look_ahead import expected_change
from numeric.trained.losses import MSE, CrossEntropy, descend
from numeric.trained.modes import SingularKernel, equal_inputs, modes_of, smallest
from numeric.trained.ode import solve
from numeric.trained.spectral_weights import flow_weights

RNG = np.random.default_rng(21)
N = 8
POINTS = RNG.normal(size=(N + 6, 3))
FULL = np.exp(-0.5 * ((POINTS[:, None] - POINTS[None]) ** 2).sum(-1))
"""N training points, three candidates, three test points."""
K, TRAIN, NEW, TEST = FULL[:N, :N], range(N), [N, N + 1, N + 2], [N + 3, N + 4, N + 5]
Y, F0 = RNG.normal(size=(2, N, 2))
LABELS = RNG.normal(size=(3, 2))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit):
    """A kernel in other units: predictions stay, ridges and limits scale, rates scale the other way."""
    full = unit * FULL
    fit = KernelRegression(full[:N, :N], Y)
    rows = full[np.ix_(TEST, TRAIN)]
    change = fit.look_ahead(full[np.ix_(NEW, TRAIN)], np.diag(full)[NEW], LABELS, rows, full[np.ix_(TEST, NEW)])
    before = FULL[np.ix_(TEST, TRAIN)] @ np.linalg.solve(K, Y)
    for own, c, label in zip(change, NEW, LABELS):
        grown = [*TRAIN, c]
        after = FULL[np.ix_(TEST, grown)] @ np.linalg.solve(FULL[np.ix_(grown, grown)], np.vstack([Y, label]))
        assert own == pytest.approx(after - before, abs=1e-8)
        again = fit.with_point(full[c, :N], full[c, c], label)
        assert again.predict(full[np.ix_(TEST, grown)]) == pytest.approx(after, abs=1e-8)
    path, other = ridge_path(K, Y), ridge_path(full[:N, :N], Y)
    assert other.ridges == pytest.approx(unit * path.ridges)
    assert other.best("loo") == pytest.approx(unit * path.best("loo"))
    alike = np.array([[1.0, 0.2, 1.0], [0.2, 2.0, 0.2], [1.0, 0.2, 1.0]])
    assert np.argwhere(equal_inputs(unit * alike)).tolist() == [[0, 2], [2, 0]]
    h = np.array([0.5, 2.0, 3.0])
    assert smallest(unit * h) == pytest.approx(unit * smallest(h)) and 1e-16 < smallest(h) / 3 < 1e-13
    rate = FrozenKernelTraining(full[:N, :N], Y, F0).critical_rate
    assert rate == pytest.approx(2 / np.linalg.eigvalsh(K)[-1] / unit)


def test_lists_are_arrays():
    fit = KernelRegression(K[:4, :4].tolist(), Y[:4].tolist(), 0.1, F0[:4].tolist())
    assert isinstance(fit.K, np.ndarray) and isinstance(fit.y, np.ndarray) and isinstance(fit.f0, np.ndarray)
    grown = fit.with_point(K[4, :4].tolist(), 1.0, (Y[4] - F0[4]).tolist())
    assert grown.alpha == pytest.approx(np.linalg.solve(K[:5, :5] + 0.1 * np.eye(5), Y[:5] - F0[:5]))
    trained = FrozenKernelTraining(K[:4, :4].tolist(), Y[:4].tolist(), F0[:4].tolist())
    assert trained.descent_weights(1, 0.5) == pytest.approx(0.5 * (Y[:4] - F0[:4]))


def test_points_given_twice():
    """Refused without a ridge, whichever way the rounding falls; with a ridge the second label counts as much."""
    fit, ridge = KernelRegression(K, Y), KernelRegression(K, Y, 0.3)
    for k in range(N):
        with pytest.raises(NumericError, match="repeats a training input"):
            fit.with_point(K[k], K[k, k], Y[k])
        twice = [*range(N), k]
        again = np.linalg.solve(K[np.ix_(twice, twice)] + 0.3 * np.eye(N + 1), Y[twice])
        assert ridge.with_point(K[k], K[k, k], Y[k]).alpha == pytest.approx(again)
    with pytest.raises(NumericError, match="repeats a training input"):
        KernelRegression(np.eye(2), np.ones(2)).with_point(np.array([1.0, 0.0]), 1.0, 0.5)


def test_one_more_point_is_no_new_factorization(monkeypatch):
    fit = KernelRegression(K, Y)
    assert fit.inverse.shape == (N, N)
    monkeypatch.setattr(kernel_regression, "modes_of", lambda *_, **__: pytest.fail("factorized again"))
    grown = fit.with_point(FULL[N, :N], 1.0, LABELS[0])
    assert grown.alpha == pytest.approx(np.linalg.solve(FULL[: N + 1, : N + 1], np.vstack([Y, LABELS[:1]])), abs=1e-8)


def test_rounding_in_kernels():
    """Negative eigenvalues up to 1e-5 of the largest, halves that differ: the symmetric part's, clipped if asked."""
    for share in (0.9e-5, 1.1e-5):
        block = np.diag([1.0, -share])
        if share > 1e-5:
            with pytest.raises(NumericError, match="not positive semidefinite"):
                modes_of(block, singular=True)
            continue
        found = modes_of(block, singular=True)
        assert found.h.tolist() == [0.0, 1.0] and found.dropped == 0
        assert modes_of(block, ridge=1e-4).h == pytest.approx([1e-4 - share, 1 + 1e-4], rel=1e-12)
    uneven = np.array([[2.0, 1 + 1e-4], [1 - 1e-4, 2.0]])
    assert modes_of(uneven).h == pytest.approx([1.0, 3.0], rel=1e-12)


def test_invisible_combinations_name_those_that_matter():
    """Those that have at least a tenth of the largest share, the largest first."""
    vector = np.array([1.0, 0.12, 0.05, 0.6])
    block = np.eye(4) - np.outer(vector, vector) / (vector @ vector)
    with pytest.raises(SingularKernel, match="a combination of training inputs 0, 3, 1 is invisible"):
        modes_of(block)


def test_classes_that_are_impossible_and_single_columns():
    blocks = FULL[np.ix_(NEW, TRAIN)], np.ones(3), FULL[np.ix_(TEST, TRAIN)], FULL[np.ix_(TEST, NEW)]
    fit = KernelRegression(K, Y, 0.2)
    certain = np.array([[0.0, 1.0]] * 3)
    change = fit.look_ahead(blocks[0], blocks[1], certain, *blocks[2:])
    assert expected_change(fit, *blocks, certain) == pytest.approx(np.sqrt(np.mean(change**2, axis=(1, 2))))
    column, plain = KernelRegression(K, Y[:, :1], 0.2), KernelRegression(K, Y[:, 0], 0.2)
    assert expected_change(column, *blocks) == pytest.approx(expected_change(plain, *blocks))


def test_nearly_symmetric_weights_of_features_are_refused():
    phi = RNG.normal(size=(3, 2))
    for wrong in (np.array([[1.0, 0.5], [0.5 + 1e-7, 2.0]]), 1e-9 * np.array([[1.0, 0.5], [0.0, 2.0]])):
        with pytest.raises(NumericError, match="symmetric matrix"):
            feature_kernel(phi, wrong)


def test_cross_entropy_of_outputs_far_apart():
    """Each sample by itself: log softmax of (0, 1) and of (1000, 1001) is the same."""
    z, p = np.array([[0.0, 1.0], [1000.0, 1001.0], [-1000.0, 1000.0]]), np.array([[1.0, 0.0]] * 3)
    own = -np.log(1 + np.e)
    assert CrossEntropy.log_softmax(z) == pytest.approx(np.array([[own, own + 1], [own, own + 1], [-2000.0, 0.0]]))
    assert CrossEntropy(p).value(z) == pytest.approx(2000 - 2 * own)


def test_descent_that_diverges_is_told_once():
    """A sentence and none of NumPy's warnings, for outputs that overflow and for those that are not numbers then."""
    theta = np.array([[2.0, 1.0], [1.0, 2.0]])
    for steps in (300, 600):
        with pytest.raises(NumericError, match=r"diverges with eta = 5\.0"):
            descend(theta, np.zeros((2, 1)), [0, 1], MSE(np.ones((2, 1))), 5.0, steps)


def test_flows_that_leave_their_range():
    """x' = x² ends at time 1, exp(x) overflows, -√x meets no number, x/0 starts with none; time zero is the start."""
    start = np.array([[1.0]])
    for rate in (lambda x: x * np.inf, lambda x: np.sqrt(-x)):
        with pytest.raises(NumericError, match="starts with a rate that is not finite"):
            solve(rate, start, 3.0)
    for rate in (lambda x: x**2, np.exp, lambda x: np.exp(100 * x), lambda x: -np.sqrt(x)):
        with pytest.raises(NumericError, match="left the range of floating-point numbers"):
            solve(rate, start, 3.0)
    same = solve(np.exp, start, 0.0)
    assert same.tolist() == [[1.0]] and same is not start
    assert solve(lambda x: -x, np.ones((2, 1)), 2.0) == pytest.approx(np.full((2, 1), np.exp(-2)), rel=1e-9)


def test_the_learning_rate_is_one_unless_given():
    h = np.array([0.3, 1.7])
    assert flow_weights(h, 0.8) == pytest.approx((1 - np.exp(-0.8 * h)) / h, rel=1e-13)
    own = FrozenKernelTraining(np.diag(h), np.array([1.0, -2.0]), np.zeros(2))
    exact = (1 - np.exp(-0.8 * h)) / h * [1.0, -2.0]
    assert own.flow_weights(0.8) == pytest.approx(exact)
    assert own.loss_flow_weights(0.8, squared_loss) == pytest.approx(exact, rel=1e-8)


def test_divergence_in_the_last_step():
    """(f - 1) is -1, then 1e200, then out of range."""
    own = FrozenKernelTraining(np.eye(1), np.ones(1), np.zeros(1))
    assert own.loss_descent_path(1, squared_loss, 1e200).ravel() == pytest.approx([0.0, 1e200])
    with pytest.raises(NumericError, match="diverges at eta"):
        own.loss_descent_path(2, squared_loss, 1e200)
