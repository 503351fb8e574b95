"""Softmax outputs while a network learns, against steps of the network itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric.empirical.learning_path import learning_path, softmax_step
from numeric.empirical.linearized import linearize
from numeric.errors import NumericError

KEYS = jax.random.split(jax.random.key(2), 3)
PARAMS = [jax.random.normal(KEYS[0], (2, 16)), jax.random.normal(KEYS[1], (16, 3)) / 4]
RATES = [0.5, 2.0]
X = jax.random.normal(KEYS[2], (5, 2))


def apply(p, x):
    return jnp.tanh(x @ p[0]) @ p[1]


def test_one_step_is_right_to_first_order():
    target = jnp.array([0.1, 0.7, 0.2])

    def loss(p):
        return -jnp.sum(target * jax.nn.log_softmax(apply(p, X[:1])[0]))

    gradient = jax.grad(loss)(PARAMS)
    gaps = []
    for eta in (1e-2, 1e-3):
        moved = [w - eta * lam * g for w, lam, g in zip(PARAMS, RATES, gradient)]
        exact = jax.nn.softmax(apply(moved, X), axis=-1) - jax.nn.softmax(apply(PARAMS, X), axis=-1)
        predicted = softmax_step(apply, PARAMS, X, X[0], target, eta, RATES)
        gaps.append(np.abs(predicted - np.asarray(exact)).max())
    assert gaps[0] < 0.05 and gaps[1] / gaps[0] == pytest.approx(1e-2, rel=0.4)


def test_the_path_is_that_of_small_steps_of_the_linearized_network():
    model = linearize(apply, PARAMS, RATES)
    labels = np.eye(3)[[0, 1, 2, 0, 1]]
    watched = X[:2] + 0.1
    path = learning_path(model, X, labels, [0.0, 0.4], watched)
    assert np.allclose(path[0], jax.nn.softmax(apply(PARAMS, watched), axis=-1))
    p, steps = PARAMS, 4000
    step = jax.jit(jax.grad(lambda w: -jnp.sum(labels * jax.nn.log_softmax(model(w, X), axis=-1))))
    for _ in range(steps):
        p = [w - 0.4 / steps * lam * g for w, lam, g in zip(p, RATES, step(p))]
    assert np.allclose(path[1], jax.nn.softmax(model(p, watched), axis=-1), atol=2e-3)


def test_refusals():
    with pytest.raises(NumericError, match="sum to 1"):
        softmax_step(apply, PARAMS, X, X[0], [0.5, 0.2, 0.1], 0.1)
    with pytest.raises(NumericError, match="a class"):
        softmax_step(apply, PARAMS, X, X[0], [0.5, 0.5], 0.1)
    with pytest.raises(NumericError, match="shape"):
        learning_path(linearize(apply, PARAMS), X, np.zeros(5), [0.1], X)
