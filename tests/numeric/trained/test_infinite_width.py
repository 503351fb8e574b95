"""Infinite width (chapter 10): kernel prediction, time dependence, algorithm independence, Bayesian special case."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import random_flow
from trained_setting import reindexed, theory

from numeric import flow
from numeric.errors import NumericError
from numeric.trained import (
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Schedule,
    SingularKernel,
    TwoStep,
    kernel_prediction,
    predict,
)
from numeric.trained.generalization import test_loss as mean_test_loss
from numeric.trained.linear_models import fit_linear, kernel_regression
from numeric.trained.losses import MSE, CrossEntropy, descend, flow_to, soft_labels

TRAIN = [4, 0, 2]
TEST = [1, 3]


@pytest.fixture(scope="module")
def setting():
    f = random_flow(seed=7)
    y = np.random.default_rng(3).normal(size=(3, 2))
    return f, y, kernel_prediction(f.Theta, f.K, y, TRAIN)


@pytest.mark.equation("10.20")
@pytest.mark.equation("10.25")
@pytest.mark.equation("10.28")
@pytest.mark.equation("10.39")
def test_newton_lands_in_one_step(setting):
    f, y, kernel = setting
    z = np.random.default_rng(8).normal(size=(5, 2))
    block = f.Theta[np.ix_(TRAIN, TRAIN)]
    leapt = z - f.Theta[:, TRAIN] @ np.linalg.inv(block) @ (z[TRAIN] - y)
    for algorithm in (Newton(), TwoStep()):
        assert np.abs(kernel.sample(z, algorithm, t=1) - leapt).max() < 1e-12
    assert np.abs(kernel.sample(z) - leapt).max() < 1e-12
    assert np.abs(leapt[TRAIN] - y).max() < 1e-12


@pytest.mark.equation("10.40")
@pytest.mark.equation("10.41")
def test_mean_and_covariance_as_printed(setting):
    f, y, kernel = setting
    Ti = np.linalg.inv(f.Theta[np.ix_(TRAIN, TRAIN)])
    B = f.Theta[:, TRAIN] @ Ti
    K = f.K
    printed = K - K[:, TRAIN] @ B.T - B @ K[TRAIN] + B @ K[np.ix_(TRAIN, TRAIN)] @ B.T
    assert np.abs(kernel.mean() - B @ y).max() < 1e-12
    assert np.abs(kernel.covariance() - printed).max() < 1e-12
    assert np.abs(kernel.covariance()[TRAIN]).max() < 1e-12


@pytest.mark.equation("10.3")
@pytest.mark.parametrize("steps", [0, 1, 2, 9, 50])
@pytest.mark.parametrize("kind", ["descent", "momentum", "schedule"])
def test_steps_in_closed_form(setting, steps, kind):
    """Mean and covariance after t steps against iterating the update on a basis of initial outputs."""
    f, y, kernel = setting
    top = kernel.modes.h[-1]
    rates = [0.9 / top, 0.2 / top, 0.5 / top]
    algorithm = {
        "descent": GradientDescent(rates[0]),
        "momentum": Momentum(rates[1], 0.7),
        "schedule": Schedule(rates),
    }[kind]
    z = np.concatenate([np.eye(5), np.zeros((5, 2))], axis=1)
    targets = np.concatenate([np.zeros((3, 5)), y], axis=1)
    velocity = np.zeros_like(z)
    for step in range(steps):
        gradient = f.Theta[:, TRAIN] @ (z[TRAIN] - targets)
        velocity = 0.7 * velocity + gradient
        rate = {"descent": rates[0], "momentum": rates[1], "schedule": rates[min(step, 2)]}[kind]
        z = z - rate * (velocity if kind == "momentum" else gradient)
    moved, mean = z[:, :5], z[:, 5:]
    assert np.abs(kernel.mean(algorithm, steps) - mean).max() < 1e-11
    assert np.abs(kernel.covariance(algorithm, steps) - moved @ f.K @ moved.T).max() < 1e-11


def test_gradient_flow_in_closed_form(setting):
    from scipy.linalg import expm

    f, y, kernel = setting
    block = f.Theta[np.ix_(TRAIN, TRAIN)]
    S = f.Theta[:, TRAIN] @ np.linalg.inv(block) @ (np.eye(3) - expm(-0.7 * block))
    assert np.abs(kernel.mean(GradientFlow(), 0.7) - S @ y).max() < 1e-12
    with pytest.raises(NumericError, match="needs the algorithm"):
        kernel.mean(t=3)


@pytest.mark.equation("10.33")
@pytest.mark.equation("10.34")
@pytest.mark.equation("10.35")
def test_algorithm_independence(setting):
    """Batches, random learning rates and Newton tensors, another loss, then one Newton step: always the same end."""
    f, y, kernel = setting
    rng = np.random.default_rng(11)
    z = start = rng.normal(size=(5, 2))
    for _ in range(20):
        batch = np.diag(rng.integers(0, 2, size=3).astype(float))
        kappa = rng.normal(size=(3, 3))
        error = z[TRAIN] - y + 0.1 * np.tanh(z[TRAIN] - y)
        z = z - f.Theta[:, TRAIN] @ (0.05 * (kappa + kappa.T) @ batch) @ error
    block = f.Theta[np.ix_(TRAIN, TRAIN)]
    z = z - f.Theta[:, TRAIN] @ np.linalg.solve(block, z[TRAIN] - y)
    assert np.abs(z - kernel.sample(start)).max() < 1e-11
    for algorithm, t in ((GradientDescent(0.3), 4000), (Momentum(0.2, 0.5), 4000), (GradientFlow(), 300.0)):
        assert np.abs(kernel.sample(start, algorithm, t) - kernel.sample(start)).max() < 1e-10


@pytest.mark.equation("10.44")
@pytest.mark.equation("10.46")
@pytest.mark.equation("10.48")
@pytest.mark.equation("10.49")
def test_last_layer_training_is_bayesian_inference():
    X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5], [0.4, -0.8]])
    C_b, C_W = 0.3, 1.4
    f = flow("tanh", X, 3, 1, C_b, C_W, [0, 0, C_b], [0, 0, C_W], tensors=["K", "Theta"])
    K = np.asarray(f.K)
    assert np.abs(np.asarray(f.Theta) - K).max() < 1e-13
    p = predict(f, [1.0, -0.5], train=[0, 3])
    t, s = [0, 3], [1, 2]
    inverse = np.linalg.inv(K[np.ix_(t, t)])
    assert np.abs(p.mean_infinite - K[np.ix_(s, t)] @ inverse @ [1.0, -0.5]).max() < 1e-12
    posterior = K[np.ix_(s, s)] - K[np.ix_(s, t)] @ inverse @ K[np.ix_(t, s)]
    assert np.abs(p.covariance_infinite - posterior).max() < 1e-12


@pytest.mark.equation("infinity.173")
def test_no_interactions_when_only_the_last_layer_learns():
    f = theory((0.0, 0.0, 0.1), (0.0, 0.0, 1.5))
    parts = predict(f, [1.0, -0.5], train=[0, 1]).parts
    assert all(np.abs(parts[name]).max() < 1e-13 for name in ("dNTK", "ddNTK-I", "ddNTK-II"))
    assert np.abs(parts["NTK variance"]).max() > 1e-2


@pytest.mark.equation("10.7")
@pytest.mark.equation("10.36")
@pytest.mark.equation("10.37")
@pytest.mark.equation("10.38")
def test_cross_entropy(setting):
    f, _, kernel = setting
    rng = np.random.default_rng(4)
    z = rng.normal(size=(5, 3))
    p = soft_labels([0, 2, 1], 3, 0.2)
    loss = CrossEntropy(p)
    picked = z[TRAIN]
    numeric = np.zeros_like(picked)
    for index in np.ndindex(picked.shape):
        step = np.zeros_like(picked)
        step[index] = 1e-6
        numeric[index] = (loss.value(picked + step) - loss.value(picked - step)) / 2e-6
    assert np.abs(numeric - loss.error(picked)).max() < 1e-8
    end = descend(f.Theta, z, TRAIN, loss, 0.5, 20000)
    flowed = flow_to(f.Theta, z, TRAIN, loss, 3000.0, tolerance=1e-9)
    leap = kernel_prediction(f.Theta, f.K, loss.minimum(picked), TRAIN).sample(z)
    assert np.abs(end - leap).max() < 1e-8
    assert np.abs(flowed - leap).max() < 1e-6
    assert np.abs(CrossEntropy.softmax(end[TRAIN]) - p).max() < 1e-8
    # a shift of the targets moves all components alike: the same softmax on every input
    shifted = loss.minimum(picked) + rng.normal(size=(3, 1))
    other = kernel_prediction(f.Theta, f.K, shifted, TRAIN).sample(z)
    assert np.abs(CrossEntropy.softmax(other) - CrossEntropy.softmax(leap)).max() < 1e-12
    assert np.abs(other - leap).max() > 0.1
    with pytest.raises(NumericError, match="soft labels"):
        CrossEntropy(np.eye(3)).minimum(picked)
    assert kernel.y.shape == (3, 2)


@pytest.mark.equation("10.5")
@pytest.mark.equation("10.22")
@pytest.mark.equation("10.23")
def test_mse_solvers_agree_with_the_closed_form(setting):
    f, y, kernel = setting
    z = np.random.default_rng(5).normal(size=(5, 2))
    eta = 0.8 / kernel.modes.h[-1]
    assert (
        np.abs(descend(f.Theta, z, TRAIN, MSE(y), eta, 37) - kernel.sample(z, GradientDescent(eta), 37)).max() < 1e-12
    )
    assert np.abs(flow_to(f.Theta, z, TRAIN, MSE(y), 1.3) - kernel.sample(z, GradientFlow(), 1.3)).max() < 1e-8
    kappa = np.diag([0.5, 1.0, 2.0])
    end = descend(f.Theta, z, TRAIN, MSE(y, kappa), 0.2 / kernel.modes.h[-1], 8000)
    assert np.abs(end - kernel.sample(z)).max() < 1e-8


@pytest.mark.equation("10.22")
@pytest.mark.equation("10.23")
def test_the_metric_of_the_generalized_loss_is_felt(setting):
    """Value, error and Hessian of one function, and the descent that it drives, with a metric that mixes samples."""
    f, y, kernel = setting
    rng = np.random.default_rng(21)
    z = rng.normal(size=(5, 2))
    root = rng.normal(size=(3, 3))
    kappa = root @ root.T + np.eye(3)
    loss, e = MSE(y, kappa), z[TRAIN] - y
    assert loss.value(z[TRAIN]) == pytest.approx(sum(e[:, i] @ kappa @ e[:, i] for i in range(2)) / 2)
    for index in np.ndindex(e.shape):
        step = np.zeros_like(e)
        step[index] = 0.5  # the loss is quadratic: its central difference is exact
        slope = loss.value(z[TRAIN] + step) - loss.value(z[TRAIN] - step)
        assert loss.error(z[TRAIN])[index] == pytest.approx(slope)
        bent = loss.error(z[TRAIN] + step) - loss.error(z[TRAIN] - step)
        assert np.abs(loss.hessian(z[TRAIN])[index] - bent).max() < 1e-12
    by_hand, eta = z, 0.1 / np.linalg.norm(kernel.theta)
    for _ in range(3):
        by_hand = by_hand - eta * f.Theta[:, TRAIN] @ kappa @ (by_hand[TRAIN] - y)
    assert np.abs(descend(f.Theta, z, TRAIN, loss, eta, 3) - by_hand).max() < 1e-12
    plain = descend(f.Theta, z, TRAIN, MSE(y), eta, 3)
    assert np.abs(plain - by_hand).max() > 1e-3


@pytest.mark.equation("10.50")
@pytest.mark.equation("10.51")
@pytest.mark.equation("10.52")
@pytest.mark.equation("10.53")
@pytest.mark.equation("10.54")
@pytest.mark.equation("10.55")
def test_bias_and_variance(setting):
    """Against averaging the loss over many trained networks drawn from the ensemble."""
    f, _, kernel = setting
    rng = np.random.default_rng(6)
    truth = rng.normal(size=(2, 2))
    draws = np.einsum("ab,sbi->sai", np.linalg.cholesky(f.K), rng.normal(size=(40000, 5, 2)))
    ends = np.stack([kernel.sample(z) for z in draws])[:, TEST]
    covariance = kernel.covariance()[np.ix_(TEST, TEST)]
    for loss, exact in ((MSE(truth), True), (CrossEntropy(CrossEntropy.softmax(truth)), False)):
        scale = 1.0 if exact else 0.05
        center = kernel.mean()[TEST]
        values = np.array([loss.value(center + scale * (z - center)) for z in ends])
        decomposed = mean_test_loss(loss, center, scale**2 * covariance)
        error = values.std() / np.sqrt(len(values))
        assert decomposed.exact is exact
        assert abs(values.mean() - decomposed.total) < 4 * error + (0 if exact else 1e-4)
        assert decomposed.variance > 4 * error


@pytest.mark.equation("10.121")
@pytest.mark.equation("10.123")
@pytest.mark.equation("10.125")
@pytest.mark.equation("10.127")
@pytest.mark.equation("10.130")
@pytest.mark.equation("10.131")
def test_linear_models_and_kernel_methods_are_dual():
    rng = np.random.default_rng(9)
    features, y, train = rng.normal(size=(6, 9)), rng.normal(size=(4, 2)), [0, 1, 2, 3]
    for a in (0.0, 0.3):
        model = fit_linear(features[train], y, a)
        dual = kernel_regression(features @ features.T, y, train, a)
        assert np.abs(model(features) - dual).max() < 1e-11
        gradient = (model(features[train]) - y).T @ features[train] + 2 * a * model.weights
        assert np.abs(gradient).max() < 1e-11


def test_singular_kernels_are_named_or_regularized():
    f = reindexed(theory(), [0, 1, 0, 3])
    with pytest.raises(SingularKernel, match="inputs 0 and 2 are the same"):
        predict(f, [1.0, 0.5, 1.0], train=[0, 1, 2])
    once = predict(f, [1.0, 0.5], train=[0, 1], algorithm=TwoStep())
    twice = predict(f, [1.0, 0.5, 1.0], train=[0, 1, 2], algorithm=TwoStep(), rcond=1e-10)
    assert any("left untrained" in note for note in twice.notes)
    assert np.abs(once.mean[1] - twice.mean[0]) < 1e-9
    assert np.abs(once.plain("covariance")[1, 1] - twice.plain("covariance")[0, 0]) < 1e-9
    # gradient descent sees that input 0 counts twice, but only through the projectors that know the algorithm
    once = predict(f, [1.0, 0.5], train=[0, 1], algorithm=GradientDescent(0.05))
    twice = predict(f, [1.0, 0.5, 1.0], train=[0, 1, 2], algorithm=GradientDescent(0.05), rcond=1e-10)
    assert np.abs(once.parts["NTK variance"][1] - twice.parts["NTK variance"][0]) < 1e-9
    assert np.abs(once.mean[1] - twice.mean[0]) > 1e-4
    with pytest.raises(SingularKernel, match="combination of training inputs"):
        kernel_prediction(np.array([[2.0, 1, 3], [1, 2, 3], [3, 3, 6.0]]), np.eye(3), [1.0, 2, 3], [0, 1, 2])


@pytest.mark.parametrize(
    ("y", "train", "message"),
    [
        ([1.0], [0, 1], "one row for each"),
        ([1.0, np.nan], [0, 1], "not finite"),
        ([1.0, 2.0], [0, 0], "different inputs"),
        ([1.0, 2.0], [0, 9], "different inputs"),
    ],
)
def test_bad_input_gets_one_clear_sentence(setting, y, train, message):
    f, _, _ = setting
    with pytest.raises(NumericError, match=message):
        kernel_prediction(f.Theta, f.K, y, train)


def test_ridge_is_kernel_ridge_regression_and_weight_decay_in_time():
    """The end is k (k + ridge)^-1 y; on the way a linear model with the same kernel, trained step by step."""
    import numeric
    from numeric import GradientDescent, GradientFlow

    X = np.random.default_rng(4).normal(size=(6, 3))
    f = numeric.flow("erf", X, depth=2, tensors=["K", "Theta"])
    theta, K, y, train, ridge = np.asarray(f.Theta), np.asarray(f.K), np.array([1.0, -1.0, 0.5, 2.0]), [0, 1, 2, 3], 0.3
    p = numeric.predict(f, y, train, ridge=ridge)
    G = np.linalg.inv(theta[:4, :4] + ridge * np.eye(4))
    assert np.allclose(p.mean_infinite, theta[4:, :4] @ G @ y, rtol=1e-12)
    leap = np.concatenate([-theta[4:, :4] @ G, np.eye(2)], axis=1)
    assert np.allclose(p.covariance_infinite, leap @ K @ leap.T, rtol=1e-11)
    eta, steps = 0.2, 7
    features = np.linalg.cholesky(theta + 1e-13 * np.eye(6))
    w = np.zeros(6)
    for _ in range(steps):
        w = w - eta * (features[:4].T @ (features[:4] @ w - y) + ridge * w)
    stepped = numeric.predict(f, y, train, GradientDescent(eta), time=steps, ridge=ridge)
    assert np.allclose(stepped.mean_infinite, features[4:] @ w, rtol=1e-9)
    late = numeric.predict(f, y, train, GradientFlow(), time=200.0, ridge=ridge)
    assert np.allclose(late.mean_infinite, p.mean_infinite, rtol=1e-9)


def test_ridge_refusals():
    import numeric
    from numeric.trained import Newton, Preconditioned

    f = numeric.flow("relu", np.eye(3), depth=2, width=8, tensors=["K", "Theta"])
    with pytest.raises(NumericError, match="ridge"):
        numeric.predict(f, [1.0, 2.0], [0, 1], ridge=-1.0)
    for algorithm in (Newton(), Preconditioned(0.1, np.sqrt)):
        with pytest.raises(NumericError, match="no ridge"):
            _ = numeric.predict(f, [1.0, 2.0], [0, 1], algorithm, time=2, ridge=0.1).mean_infinite
