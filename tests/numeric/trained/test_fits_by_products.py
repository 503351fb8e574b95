"""Fits with a kernel's products and with sketches: what stands in them unless told, bounds, units; by dense algebra."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.operators import BlockKernel, DenseKernel
from numeric.trained.sketched_regression import FeatureRegression, NystromRegression

RNG = np.random.default_rng(21)
N, RIDGE = 14, 0.3
X, T = RNG.normal(size=(N, 2)), RNG.normal(size=(5, 2))
Y = RNG.normal(size=(N, 2)) * [1.0, 20.0]


def kernel(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))


K = kernel(X, X)


def test_the_preconditioner_has_at_most_half_as_many_columns_as_there_are_points():
    """128 of them unless told, with the seed zero; none where there is one point, or where none is wanted."""
    for size, rank in ((300, 128), (255, 127), (14, 7), (3, 1)):
        sketch = IterativeRegression(DenseKernel(np.eye(size)), np.zeros(size)).sketch
        assert sketch.U.shape == (size, rank)
    assert IterativeRegression(DenseKernel(np.eye(1)), np.zeros(1)).sketch is None
    assert IterativeRegression(DenseKernel(K), Y, rank=0).sketch is None
    assert IterativeRegression(DenseKernel(K), Y, rank=1).sketch.U.shape == (N, 1)
    assert IterativeRegression(DenseKernel(K), Y, rank=4).sketch.U.shape == (N, 4)
    plain, zero, one = (
        IterativeRegression(DenseKernel(K), Y, **given).sketch.U for given in ({}, {"seed": 0}, {"seed": 1})
    )
    assert np.array_equal(plain, zero) and not np.allclose(plain, one)


def test_the_bound_of_every_output():
    """sqrt(k(x, x)) |r| / (2 sqrt(ridge)) with the residual of each output; zero for kernels below zero."""
    fit = IterativeRegression(DenseKernel(K), Y, RIDGE, tolerance=0.2, rank=0)
    r = np.linalg.norm(Y - (K + RIDGE * np.eye(N)) @ fit.alpha, axis=0)
    assert (r > 1e-3).all() and not np.isclose(*r)
    bound = fit.prediction_bound([0.09, 4.0, -1e-9])
    assert bound == pytest.approx(np.outer([0.3, 2.0, 0.0], r) / (2 * np.sqrt(RIDGE)))
    rows = kernel(T, X)
    exact = rows @ np.linalg.solve(K + RIDGE * np.eye(N), Y)
    assert (np.abs(fit.predict(rows) - exact) <= fit.prediction_bound(np.ones(5))).all()


def test_thirty_two_probes_unless_told():
    fit = IterativeRegression(DenseKernel(K), Y, RIDGE)
    assert fit.gcv() == fit.gcv(probes=32) != fit.gcv(probes=33)


def test_times_and_rates_out_of_range():
    fit = IterativeRegression(DenseKernel(np.ones((1, 1))), np.array([1000.0]))
    with pytest.raises(NumericError, match="The time is a number from 0 on, not -1"):
        fit.flow_weights(-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for steps in (308, 400):  # 1 - (-10)^308 is a number, a thousand times as much is none
            with pytest.raises(NumericError, match="gradient descent diverges at eta = 11"):
                fit.descent_weights(steps, 11.0)


@pytest.mark.parametrize("progress", [True, False])
def test_bars_are_shown_as_asked(progress, capsys):
    fit = IterativeRegression(DenseKernel(K), Y, RIDGE, progress=progress)
    for run, name in ((lambda: fit.alpha, "conjugate gradients"), (lambda: fit.flow_weights(1.0), "products")):
        run()
        assert (name in capsys.readouterr().err) == progress


def test_sketches_of_lists_and_single_outputs():
    """Two features, two landmarks and one output are enough."""
    psi, test = RNG.normal(size=(N, 2)), RNG.normal(size=(5, 2))
    alpha = np.linalg.solve(psi.T @ psi + RIDGE * np.eye(2), psi.T @ Y[:, 1])
    features = FeatureRegression(psi.tolist(), Y[:, 1].tolist(), RIDGE)
    assert features.predict(test).mean == pytest.approx(test @ alpha)
    landmarks = NystromRegression(BlockKernel(kernel, X), Y[:, 1].tolist(), RIDGE, 2, Y[:, 0].tolist())
    C, W = K[:, landmarks.chosen], K[np.ix_(landmarks.chosen, landmarks.chosen)]
    exact = kernel(T, X[landmarks.chosen]) @ np.linalg.solve(C.T @ C + RIDGE * W, C.T @ (Y[:, 1] - Y[:, 0]))
    assert landmarks.predict(T).mean == pytest.approx(exact)
    assert features.y.shape == landmarks.y.shape == (N,)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_a_kernel_does_not_matter(unit):
    """Kernel and ridge in another unit are the same fit, with landmarks that are all different or all alike."""
    whole = NystromRegression(BlockKernel(lambda a, b: unit * kernel(a, b), X), Y, unit * RIDGE, N).predict(T)
    assert whole.mean == pytest.approx(kernel(T, X) @ np.linalg.solve(K + RIDGE * np.eye(N), Y), rel=1e-6)
    flat = BlockKernel(lambda a, b: np.full((len(a), len(b)), unit), X)
    found = NystromRegression(flat, Y, 1e-9 * unit, 6).predict(T)
    assert found.mean == pytest.approx(np.tile(Y.mean(axis=0), (5, 1)), rel=1e-6)
