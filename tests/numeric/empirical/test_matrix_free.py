"""A network's NTK without its matrix: products, linearized training and random features against the matrix itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric.empirical.linearized import LinearizedTraining, MatrixFreeTraining, linearize
from numeric.empirical.products import NTKOperator, random_features
from numeric.errors import NumericError
from numeric.trained.sketched_regression import FeatureRegression

KEYS = jax.random.split(jax.random.key(5), 4)
PARAMS = {"W": jax.random.normal(KEYS[0], (3, 40)) / 3**0.5, "V": jax.random.normal(KEYS[1], (40, 2)) / 40**0.5}
RATES = {"W": 0.7, "V": 1.3}
X = jax.random.normal(KEYS[2], (60, 3))
T = jax.random.normal(KEYS[3], (7, 3))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def apply(p, x):
    return jnp.tanh(x @ p["W"]) @ p["V"]


def jacobian(x):
    J = jax.jacobian(apply)(PARAMS, x)
    scaled = [np.sqrt(RATES[k]) * np.asarray(J[k]).reshape(2 * len(x), -1) for k in sorted(J)]
    return np.concatenate(scaled, axis=1)  # rows (sample, output)


def test_products_in_batches_are_the_matrix():
    J = jacobian(X)
    V = np.random.default_rng(0).normal(size=(120, 3))
    for memory in (1e9, 3e4):
        ntk = NTKOperator(apply, PARAMS, X, RATES, memory)
        assert (ntk.batch < 60) == (memory < 1e6)
        assert np.allclose(ntk.product(V), J @ (J.T @ V), rtol=1e-12, atol=1e-12)
        assert np.allclose(ntk.columns(np.array([3, 50])), (J @ J.T)[:, [3, 50]], rtol=1e-11, atol=1e-12)


def test_linearized_training_chooses_by_memory_and_agrees():
    model = linearize(apply, PARAMS, RATES)
    direct, free = model.training(X, Y, 0.05), model.training(X, Y, 0.05, memory=3e5)
    assert isinstance(direct, LinearizedTraining) and isinstance(free, MatrixFreeTraining)
    eta = float(0.5 * direct.frozen.critical_rate)
    for ask in (lambda t: t.limit(T), lambda t: t.flow(T, 2.0), lambda t: t.descent(T, 30, eta)):
        assert np.abs(ask(direct) - ask(free)).max() < 1e-6
    moved = jax.tree.map(jnp.add, PARAMS, free.displacement(free.fit.alpha))
    assert np.abs(np.asarray(model(moved, T)) - direct.limit(T)).max() < 1e-6


def test_random_features_have_the_ntk_as_their_mean_and_regress():
    J = jacobian(X)
    H = J @ J.T
    psi = random_features(apply, PARAMS, X, 4000, rates=RATES)
    diagonal = np.sqrt(np.outer(np.diag(H), np.diag(H)))
    assert np.sqrt(np.mean((psi @ psi.T - H) ** 2 / diagonal**2)) < 2 / np.sqrt(4000)
    test = random_features(apply, PARAMS, T, 4000, rates=RATES)
    start = np.asarray(apply(PARAMS, X)).reshape(-1)
    found = FeatureRegression(psi, Y.reshape(-1), 1.0, f0=start).predict(test)
    exact = (jacobian(T) @ J.T) @ np.linalg.solve(H + np.eye(120), Y.reshape(-1) - start)
    gap, error = np.sqrt(np.mean((found.mean - exact) ** 2)), np.sqrt(np.mean(found.error**2))
    assert gap < 3 * error < 0.5 * np.abs(exact).max()


def test_single_precision_parameters_are_taken_in_double():
    single = jax.tree.map(lambda w: w.astype(jnp.float32), PARAMS)
    double = jax.tree.map(lambda w: w.astype(float), single)
    V = np.random.default_rng(0).normal(size=(120, 1))
    ours = NTKOperator(apply, single, X.astype(jnp.float32), RATES).product(V)
    assert np.allclose(ours, NTKOperator(apply, double, X, RATES).product(V), rtol=1e-5)
    fit = linearize(apply, single, RATES).training(X, Y, 0.05, memory=3e5)
    assert np.allclose(fit.limit(T), linearize(apply, double, RATES).training(X, Y, 0.05).limit(T), atol=1e-5)


def test_refusals():
    model = linearize(apply, PARAMS)
    for make, words in (
        (lambda: NTKOperator(apply, PARAMS, X[:0]), "at least one input"),
        (lambda: NTKOperator(lambda p, x: apply(p, x)[None], PARAMS, X), "must return"),
        (lambda: NTKOperator(apply, PARAMS, X, memory=10), "memory"),
        (lambda: model.training(X, Y[:3]), "as many labels"),
        (lambda: model.training(X, np.full((60, 2), np.nan)), "finite"),
        (lambda: model.training(X, Y[:, 0], memory=3e4).limit(T), "shape of the outputs"),
        (lambda: random_features(apply, PARAMS, X, 0), "number of features"),
    ):
        with pytest.raises(NumericError, match=words):
            make()
