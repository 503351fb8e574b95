"""Kernel regression in all its forms at the edges: what is left out, given as one column, zero, or wrong."""

from __future__ import annotations

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained.conjugate_gradients import Nystrom, conjugate_gradients, nystrom
from numeric.trained.infinite import kernel_prediction
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.kernel_regression import KernelRegression, RidgePath, ridge_path
from numeric.trained.krylov import apply_function
from numeric.trained.linear_models import feature_kernel, fit_linear, gaussian_kernel, kernel_regression
from numeric.trained.look_ahead import expected_change
from numeric.trained.losses import MSE, CrossEntropy, soft_labels
from numeric.trained.modes import SingularKernel, equal_inputs, modes_of, smallest
from numeric.trained.operators import BlockKernel, DenseKernel
from numeric.trained.sketched_regression import FeatureRegression, NystromRegression

RNG = np.random.default_rng(9)
N = 12
X, T = RNG.normal(size=(N, 3)), RNG.normal(size=(5, 3))
Y, F0 = RNG.normal(size=(2, N, 2))


def kernel(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))


K, ROWS = kernel(X, X), kernel(T, X)


def raises(words, call):
    with pytest.raises(NumericError, match=words):
        call()


def test_without_a_ridge_and_with_a_start():
    """Defaults are no ridge and no start; one column is a vector; a start is fitted around."""
    exact = np.linalg.solve(K, Y)
    own = conjugate_gradients(DenseKernel(K), Y, tolerance=1e-12)
    assert np.abs(own.x - exact).max() < 1e-7 * np.abs(exact).max() and own.residual.shape == (2,)
    uneven = conjugate_gradients(DenseKernel(K), Y * [1.0, 1e-9], 0.1, tolerance=1e-10)
    assert np.abs(uneven.x[:, 1] / 1e-9 - np.linalg.solve(K + 0.1 * np.eye(N), Y)[:, 1]).max() < 1e-7
    assert conjugate_gradients(DenseKernel(2 * np.eye(3)), Y[:3], most=1).x == pytest.approx(Y[:3] / 2)
    zero = conjugate_gradients(DenseKernel(K), np.stack([Y[:, 0], np.zeros(N)], axis=1), 0.1)
    assert np.abs(zero.x[:, 1]).max() == 0 and zero.residual[1] == 0
    ridge = 0.2
    for f0 in (None, F0):
        start = 0 if f0 is None else f0
        alpha = np.linalg.solve(K + ridge * np.eye(N), Y - start)
        for fit in (
            KernelRegression(K, Y, ridge, f0),
            IterativeRegression(DenseKernel(K), Y, ridge, f0, tolerance=1e-12),
            IterativeRegression(DenseKernel(K), Y, ridge, f0, tolerance=1e-12, rank=0),
        ):
            assert np.abs(fit.alpha - alpha).max() < 1e-9
            assert np.abs(fit.predict(ROWS) - ROWS @ alpha).max() < 1e-9
            assert np.abs(fit.predict(ROWS, F0[:5]) - ROWS @ alpha - F0[:5]).max() < 1e-9
        column = IterativeRegression(DenseKernel(K), Y[:, 1], ridge, None if f0 is None else f0[:, 1], 1e-12)
        assert column.alpha.shape == (N,) and np.abs(column.alpha - alpha[:, 1]).max() < 1e-9
        bound = column.prediction_bound(np.full(5, 4.0))
        left = np.linalg.norm(Y[:, 1] - (0 if f0 is None else f0[:, 1])) * column.solution.residual[0]
        assert bound == pytest.approx(np.full(5, 2 * left / (2 * np.sqrt(ridge))))
        flowed = column.flow_weights(0.7, 2.0)
        h, U = np.linalg.eigh(K + ridge * np.eye(N))
        target = Y[:, 1] - (0 if f0 is None else f0[:, 1])
        assert np.abs(flowed.value - U @ ((1 - np.exp(-1.4 * h)) / h * (U.T @ target))).max() < 1e-9
    plain = IterativeRegression(DenseKernel(K), Y).descent_weights(3, 0.1)
    by_hand = np.zeros_like(Y)
    for _ in range(3):
        by_hand = by_hand + 0.1 * (Y - K @ by_hand)
    assert np.abs(plain.value - by_hand).max() < 1e-12
    raises("diverges at eta", lambda: IterativeRegression(DenseKernel(K), Y).descent_weights(100_000, 50.0))


def test_krylov_spaces_end():
    """One eigenvector needs one product, a matrix of N points at most N; zero columns stay zero."""
    h, U = np.linalg.eigh(K)
    one = apply_function(DenseKernel(K), U[:, [3]] * 5, np.exp)
    assert one.products == 1 and np.abs(one.value - 5 * np.exp(h[3]) * U[:, [3]]).max() < 1e-12
    large = apply_function(DenseKernel(1e6 * K), U[:, [3]] * 5, lambda x: x / 1e6)
    assert large.products == 1 and np.abs(large.value - 5 * h[3] * U[:, [3]]).max() < 1e-12
    both = apply_function(DenseKernel(K), np.stack([Y[:, 0], np.zeros(N)], axis=1), np.exp)
    assert np.abs(both.value[:, 0] - U @ (np.exp(h) * (U.T @ Y[:, 0]))).max() < 1e-10
    assert np.abs(both.value[:, 1]).max() == 0 and both.products <= N and both.error >= 1e-15
    raises("finite vectors", lambda: apply_function(DenseKernel(K), Y[:, 0], np.exp))
    raises("finite vectors", lambda: apply_function(DenseKernel(K), Y[:5], np.exp))
    raises("finite vectors", lambda: apply_function(DenseKernel(K), Y * np.nan, np.exp))
    raises("holds 3 vectors", lambda: apply_function(DenseKernel(K), Y, np.exp, memory=3 * 8 * Y.size))
    raises("leave an error of", lambda: apply_function(DenseKernel(K), Y, lambda h: 1 / (h + 1e-6), most=9))
    raises("tolerance", lambda: apply_function(DenseKernel(K), Y, np.exp, tolerance=0))
    raises("tolerance", lambda: apply_function(DenseKernel(K), Y, np.exp, tolerance=1))


def test_preconditioners():
    sketch = nystrom(DenseKernel(K), N)
    h, U = np.linalg.eigh(K)
    assert np.allclose(sketch.h, h[::-1], rtol=1e-6)
    applied = sketch.preconditioner(0.3)(Y)
    floor = h[0] + 0.3
    assert np.allclose(applied, U @ ((floor / (h + 0.3))[:, None] * (U.T @ Y)), rtol=1e-6)
    empty = nystrom(DenseKernel(np.zeros((4, 4))), 2)
    assert (empty.h == 0).all() and np.abs(empty.preconditioner(0.0)(Y[:4]) - Y[:4]).max() == 0
    assert np.allclose(Nystrom(np.zeros(2), empty.U).preconditioner(0.5)(Y[:4]), Y[:4])
    for seed in (0, 1):
        assert np.array_equal(nystrom(DenseKernel(K), 3, seed).U, nystrom(DenseKernel(K), 3, seed).U)
    assert not np.allclose(nystrom(DenseKernel(K), 3, 0).U, nystrom(DenseKernel(K), 3, 1).U)
    raises("rank", lambda: nystrom(DenseKernel(K), 0))
    raises("rank", lambda: nystrom(DenseKernel(K), N + 1))
    for wrong in (Y[:, 0], Y[:5]):
        raises("right-hand sides of shape", lambda wrong=wrong: conjugate_gradients(DenseKernel(K), wrong))
    raises("not finite", lambda: conjugate_gradients(DenseKernel(K), Y * np.inf))
    raises("ridge", lambda: conjugate_gradients(DenseKernel(K), Y, -0.1))
    raises("tolerance", lambda: conjugate_gradients(DenseKernel(K), Y, tolerance=0.0))
    raises("tolerance", lambda: conjugate_gradients(DenseKernel(K), Y, tolerance=1.0))
    raises("iterations", lambda: conjugate_gradients(DenseKernel(K), Y, most=0))


def test_dense_regression_refuses_in_a_sentence():
    for make, words in (
        (lambda: KernelRegression(K, Y[:5]), "N labels are needed"),
        (lambda: KernelRegression(K, Y[:, :, None]), "N labels are needed"),
        (lambda: KernelRegression(K, Y, f0=F0[:, 0]), "shape of the labels"),
        (lambda: KernelRegression(K, Y, f0=F0 * np.nan), "not finite"),
        (lambda: KernelRegression(K, Y * np.inf), "not finite"),
        (lambda: KernelRegression(K, Y, -1.0), "ridge"),
        (lambda: KernelRegression(K, Y).predict(ROWS[:, :4]), "test rows have shape"),
        (lambda: KernelRegression(K, Y).predict(ROWS[0]), "test rows have shape"),
        (lambda: KernelRegression(K, Y).predict(ROWS * np.nan), "not finite"),
        (lambda: KernelRegression(K, Y).predict(ROWS, F0[:4]), "f0 on the test inputs"),
        (lambda: KernelRegression(K, Y).with_point(K[2], K[2, 2], Y[2]), "repeats a training input"),
        (lambda: KernelRegression(K, Y).look_ahead(ROWS, np.ones(4), Y[:5], ROWS, np.ones((5, 5))), "candidates and"),
        (lambda: KernelRegression(K, Y).look_ahead(ROWS, np.ones(5), Y[:4], ROWS, np.ones((5, 5))), "candidates and"),
        (lambda: KernelRegression(K, Y).look_ahead(ROWS, np.ones(5), Y[:5], ROWS, np.ones((4, 5))), "candidates and"),
        (lambda: ridge_path(np.zeros((3, 3)), np.ones(3)), "kernel is zero"),
        (lambda: RidgePath(np.ones(2), np.ones(2), np.ones(2)).best("aic"), "'loo' or 'gcv'"),
        (lambda: IterativeRegression(DenseKernel(K), Y[:, :, None]), "as many labels"),
        (lambda: IterativeRegression(DenseKernel(K), Y * np.nan), "not finite"),
        (lambda: IterativeRegression(DenseKernel(K), Y, 0.1, F0 * np.nan), "not finite"),
        (lambda: IterativeRegression(DenseKernel(K), Y, 0.1).predict(ROWS[0]), "test rows"),
    ):
        raises(words, make)


def test_one_more_point_keeps_the_start():
    fit = KernelRegression(K[:8, :8], Y[:8], 0.1, F0[:8])
    grown = fit.with_point(K[8, :8], K[8, 8], Y[8] - F0[8])
    whole = np.linalg.solve(K[:9, :9] + 0.1 * np.eye(9), Y[:9] - F0[:9])
    assert np.abs(grown.alpha - whole).max() < 1e-10 and np.abs(grown.f0[8]).max() == 0
    assert np.abs(grown.inverse - np.linalg.inv(K[:9, :9] + 0.1 * np.eye(9))).max() < 1e-9
    assert grown.loo_mse == pytest.approx(np.mean((whole / np.diag(grown.inverse)[:, None]) ** 2))


def test_the_path_over_ridges_is_fit_after_fit():
    for y, f0 in ((Y, None), (Y, F0), (Y[:, 0], F0[:, 0])):
        path = ridge_path(K, y, f0, count=43)
        mean = np.trace(K) / N
        assert path.ridges[-1] == pytest.approx(100 * mean) and path.ridges[0] >= 1e-12 * mean
        assert np.log10(path.ridges[-1] / path.ridges[-4]) == pytest.approx(1.0)
        for k in (-1, -10, -15):
            fit = KernelRegression(K, y, path.ridges[k], f0)
            assert path.loo_mse[k] == pytest.approx(fit.loo_mse, rel=1e-9)
            assert path.gcv[k] == pytest.approx(fit.gcv, rel=1e-9)
    tilted = RidgePath(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.0]))
    assert tilted.best("loo") == 2 and tilted.best("gcv") == 3
    assert len(ridge_path(np.ones((40, 40)), np.ones(40)).ridges) < 43  # those below rounding are left out


def test_expected_change_is_the_mean_over_labels():
    """Draws of the label: Gaussian with the conditional variance, or one of the classes."""
    k_new, k_self = kernel(T, X), np.ones(5)
    tests = RNG.normal(size=(4, 3))
    rest = kernel(tests, X), kernel(tests, T)
    one = KernelRegression(K, Y[:, 0], 0.1)
    found = expected_change(one, k_new, k_self, *rest)
    spread = np.sqrt(k_self + 0.1 - np.einsum("cn,nm,cm->c", k_new, np.linalg.inv(K + 0.1 * np.eye(N)), k_new))
    above = one.look_ahead(k_new, k_self, one.predict(k_new) + spread, *rest)
    assert found == pytest.approx(np.sqrt(np.mean(above**2, axis=1)))
    several = expected_change(KernelRegression(K, Y, 0.1), k_new, k_self, *rest)
    assert several == pytest.approx(found)  # the same for every output
    p, fit = np.array([[0.2, 0.8]] * 5), KernelRegression(K, Y, 0.1)
    classes = [fit.look_ahead(k_new, k_self, np.tile(np.eye(2)[c], (5, 1)), *rest) for c in (0, 1)]
    mean = 0.2 * np.mean(classes[0] ** 2, axis=(1, 2)) + 0.8 * np.mean(classes[1] ** 2, axis=(1, 2))
    assert expected_change(fit, k_new, k_self, *rest, p) == pytest.approx(np.sqrt(mean))
    for wrong in (p[:3], -p + [[1.4, 0.6]] * np.ones((5, 1)) - 0.5, 0.5 * p):
        raises("rows that sum to 1", lambda wrong=wrong: expected_change(fit, k_new, k_self, *rest, wrong))
    raises("rows that sum to 1", lambda: expected_change(one, k_new, k_self, *rest, p))


def test_sketches_of_few_columns():
    """All landmarks are the whole fit, half of the features a fit of their own, starts are fitted around."""
    block = BlockKernel(kernel, X)
    exact = ROWS @ np.linalg.solve(K + 0.2 * np.eye(N), Y - F0)
    whole = NystromRegression(block, Y, 0.2, N, F0)
    found = whole.predict(T, F0[:5])
    assert np.abs(found.mean - exact - F0[:5]).max() < 1e-7
    half = whole.chosen[: N // 2]
    C, W = K[:, half], K[np.ix_(half, half)]
    coarse = kernel(T, X[half]) @ np.linalg.solve(C.T @ C + 0.2 * W, C.T @ (Y - F0))
    assert np.abs(found.error - np.abs(exact - coarse)).max() < 1e-6
    assert not np.array_equal(whole.chosen, NystromRegression(block, Y, 0.2, N, seed=1).chosen)
    psi, test = RNG.normal(size=(N, 7)), RNG.normal(size=(5, 7))
    own = FeatureRegression(psi, Y[:, 0], 0.4, F0[:, 0]).predict(test, 2.0)

    def ridge(a, b):
        return b @ np.linalg.solve(a.T @ a + 0.4 * np.eye(a.shape[1]), a.T @ (Y - F0)[:, 0])

    full, s = ridge(psi, test), np.sqrt(2)
    first, second = ridge(s * psi[:, :3], s * test[:, :3]), ridge(s * psi[:, 4:], s * test[:, 4:])
    assert own.mean == pytest.approx(full + 2.0)
    assert own.error == pytest.approx(np.hypot((first - second) / 2, (first + second) / 2 - full))
    for make, words in (
        (lambda: FeatureRegression(psi[:, 0], Y, 0.1), "p from 2 on"),
        (lambda: FeatureRegression(psi[:, :1], Y, 0.1), "p from 2 on"),
        (lambda: FeatureRegression(psi, Y[:5], 0.1), "p from 2 on"),
        (lambda: FeatureRegression(psi, Y[:, :, None], 0.1), "p from 2 on"),
        (lambda: FeatureRegression(psi, Y, 0.1, F0[:, 0]), "shape of the labels"),
        (lambda: FeatureRegression(psi * np.nan, Y, 0.1), "not finite"),
        (lambda: FeatureRegression(psi, Y * np.nan, 0.1), "not finite"),
        (lambda: FeatureRegression(psi, Y, 0.1).predict(test[:, :6]), "test features"),
        (lambda: FeatureRegression(psi, Y, 0.1).predict(test[0]), "test features"),
        (lambda: NystromRegression(block, Y[:5], 0.1, 4), "finite labels"),
        (lambda: NystromRegression(block, Y * np.nan, 0.1, 4), "finite labels"),
        (lambda: NystromRegression(block, Y[:, :, None], 0.1, 4), "finite labels"),
        (lambda: NystromRegression(block, Y, 0.1, 4, F0[:, 0]), "shape of the labels"),
        (lambda: NystromRegression(block, Y, 0.1, 1), "landmarks"),
        (lambda: NystromRegression(block, Y, 0.0, 4), "ridge"),
    ):
        raises(words, make)


def test_blocks_are_the_whole():
    many, y = RNG.normal(size=(200, 3)), RNG.normal(size=(200, 2))
    whole, rows = kernel(many, many), kernel(T, many)
    for memory in (1e9, 1e5):
        block = BlockKernel(kernel, many, memory)
        assert block.held == (memory == 1e9)
        for _ in range(2):  # the second time from what is held
            assert np.abs(block.product(y) - whole @ y).max() < 1e-12
        assert np.abs(block.columns(np.array([4, 1])) - whole[:, [4, 1]]).max() < 1e-15
        assert np.abs(block.between(T, many) - rows).max() < 1e-15
        assert np.abs(block.evaluate(T, y) - rows @ y).max() < 1e-12
        assert np.abs(block.evaluate(T, y[:, 0]) - rows @ y[:, 0]).max() < 1e-12
        raises("as many weights", lambda block=block: block.evaluate(T, y[:4]))
    assert np.abs(DenseKernel(K).columns(np.array([3])) - K[:, [3]]).max() == 0
    raises("not finite", lambda: BlockKernel(lambda a, b: kernel(a, b) * np.nan, X).product(Y))


def test_modes_and_what_is_singular():
    block = np.diag([3.0, 1.0, 2.0])
    found = modes_of(block, rcond=0.5)
    assert sorted(found.h) == [2.0, 3.0] and found.dropped == 1 and found.U.shape == (3, 2)
    zeros = modes_of(np.zeros((2, 2)), singular=True)
    assert zeros.h == pytest.approx(np.zeros(2)) and zeros.dropped == 0
    assert modes_of(np.ones((2, 2)), ridge=0.5).h == pytest.approx([0.5, 2.5])
    assert np.abs(modes_of(block).inverse - np.diag([1 / 3, 1, 1 / 2])).max() < 1e-14
    assert np.abs(modes_of(block).function(np.array([5.0, 6.0, 7.0])) - np.diag([7.0, 5.0, 6.0])).max() < 1e-14
    assert smallest(np.array([1e-20, 1.0])) > 1e-20
    for wrong, words in (
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semidefinite: it has the eigenvalue -1"),
        (np.ones((2, 3)), "square matrix"),
        (np.ones(3), "square matrix"),
        (np.zeros((0, 0)), "square matrix"),
        (np.diag([1.0, np.nan]), "not finite"),
    ):
        raises(words, lambda wrong=wrong: modes_of(wrong))
    for rcond in (-0.1, 1.0):
        raises("rcond", lambda rcond=rcond: modes_of(block, rcond=rcond))
    raises("ridge", lambda: modes_of(block, ridge=-1.0))
    alike = np.array([[1.0, 0.2, 1.0], [0.2, 2.0, 0.2], [1.0, 0.2, 1.0]])
    assert np.argwhere(equal_inputs(alike)).tolist() == [[0, 2], [2, 0]]
    with pytest.raises(SingularKernel, match="training inputs 7 and 9 are the same to the NTK; drop one"):
        modes_of(alike, names=[7, 8, 9], advice="drop one")
    mixed = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    with pytest.raises(SingularKernel, match=r"a combination of training inputs .*2.* is invisible"):
        modes_of(mixed)
    with pytest.raises(SingularKernel, match="inputs 1 and 3 are the same to the NTK and have different targets"):
        theta = np.eye(4) + np.diag([0.0, 0, 0, 0])
        theta[1, 3] = theta[3, 1] = 1.0
        kernel_prediction(theta, np.eye(4), [1.0, 2.0], [1, 3])
    for wrong, words in (
        ((np.eye(2), np.eye(3), [1.0], [0]), "square and alike"),
        ((np.ones((2, 3)), np.ones((2, 3)), [1.0], [0]), "square and alike"),
        ((np.eye(2), np.eye(2), [], []), "different inputs between 0 and 1"),
        ((np.eye(2), np.eye(2), [1.0, 2.0], [0, 0]), "different inputs between 0 and 1"),
        ((np.eye(2), np.eye(2), [1.0], [2]), "different inputs between 0 and 1"),
        ((np.eye(2), np.eye(2), [1.0], [-1]), "different inputs between 0 and 1"),
        ((np.eye(2), np.eye(2), [1.0, 2.0], [0]), "one row for each"),
        ((np.eye(2), np.eye(2), [[[1.0]]], [0]), "one row for each"),
        ((np.eye(2), np.eye(2), [np.nan], [0]), "not finite"),
    ):
        raises(words, lambda wrong=wrong: kernel_prediction(*wrong))


def test_linear_models():
    phi = RNG.normal(size=(N, 4))
    for a in (0.0, 0.3):
        M = phi.T @ phi + 2 * a * np.eye(4)
        fit = fit_linear(phi, Y, a) if a else fit_linear(phi, Y)
        assert np.abs(fit.weights.T - np.linalg.solve(M, phi.T @ Y)).max() < 1e-12
        assert np.abs(fit(phi[:2]) - phi[:2] @ np.linalg.solve(M, phi.T @ Y)).max() < 1e-12
    many = fit_linear(phi.T, Y[:4])
    assert np.abs(many(phi.T) - Y[:4]).max() < 1e-12  # more features than samples: the targets, by the least weights
    assert np.abs(many.weights - many.weights @ np.linalg.pinv(phi.T) @ phi.T).max() < 1e-12
    assert feature_kernel(phi) == pytest.approx(phi @ phi.T)
    assert gaussian_kernel(X, 1.0) == pytest.approx(K)
    for make, words in (
        (lambda: fit_linear(phi, Y, -0.1), "negative"),
        (lambda: kernel_regression(K, Y[:2], [0, 1], -0.1), "negative"),
        (lambda: gaussian_kernel(X, 0.0), "positive number"),
        (lambda: gaussian_kernel(X, float("nan")), "positive number"),
        (lambda: feature_kernel(phi, np.eye(3)), "symmetric matrix"),
        (lambda: feature_kernel(phi, np.triu(np.ones((4, 4)))), "symmetric matrix"),
    ):
        raises(words, make)


def test_losses_are_their_slopes_and_curvatures():
    """Against central differences; the metric of the generalized MSE loss among them."""
    z = RNG.normal(size=(3, 2))
    kappa = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]])
    labels = soft_labels([0, 1, 1], 2, 0.2)
    for loss in (MSE(Y[:3]), MSE(Y[:3], kappa), CrossEntropy(labels)):
        slope, bend, e = np.zeros((3, 2)), np.zeros((3, 2, 3, 2)), 1e-5
        for place in np.ndindex(3, 2):
            step = np.zeros((3, 2))
            step[place] = e
            slope[place] = (loss.value(z + step) - loss.value(z - step)) / (2 * e)
            bend[place] = (loss.error(z + step) - loss.error(z - step)) / (2 * e)
        assert np.abs(loss.error(z) - slope).max() < 1e-8
        assert np.abs(loss.hessian(z) - bend).max() < 1e-8
        assert np.abs(loss.error(loss.minimum(z))).max() < 1e-14
    assert CrossEntropy(labels).minimum(z).sum(axis=1) == pytest.approx(z.sum(axis=1))
    assert MSE(Y[:3], kappa).value(z) == pytest.approx(np.einsum("ai,ab,bi->", z - Y[:3], kappa, z - Y[:3]) / 2)
    raises("infinite outputs", lambda: CrossEntropy(np.eye(2)).minimum(np.zeros((2, 2))))
    for wrong in (([0], 1, 0.0), ([2], 2, 0.0), ([-1], 2, 0.0), ([0], 2, 1.0), ([0], 2, -0.1)):
        raises("Labels run from", lambda wrong=wrong: soft_labels(*wrong))
    assert soft_labels([0], 2, 0.0).tolist() == [[1.0, 0.0]]
