"""The ensemble's own machinery: parametrization, pairing, linearized ends, tensors, extrapolation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.ensemble import (
    Networks,
    estimate_tensors,
    extrapolate,
    flip_last_layer,
    linearized_outputs,
    train_ensemble,
    trained_outputs,
)
from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, GradientFlow, Momentum
from numeric.trained.dynamics import NetworkTensors, TrainingDynamics

X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]])
NETS = Networks("tanh", (2, 12, 9, 2), C_b=(0.1, 0.2, 0.3), C_W=(1.5, 1.1, 0.9), lambda_b=0.3, lambda_W=(1.0, 0.5, 2.0))
COUNT = 300


def test_initialization_has_the_variances_of_the_theory():
    params = NETS.sample(jax.random.key(1), COUNT)
    for layer, (weight, bias) in enumerate(params):
        for values, variance in ((weight, NETS.C_W[layer] / NETS.widths[layer]), (bias, NETS.C_b[layer])):
            found = float(jnp.mean(values**2))
            assert abs(found / variance - 1) < 5 * np.sqrt(2 / values.size)


@pytest.mark.equation("10.1")
@pytest.mark.equation("10.140")
def test_ntk_is_the_learning_rate_tensor_between_gradients():
    """Against one step of gradient descent with a tiny learning rate."""
    params = jax.tree.map(lambda x: x[0], NETS.sample(jax.random.key(2), COUNT))
    ntk = np.asarray(NETS.ntk_one(params, jnp.asarray(X)))
    target = jnp.array([[0.3, -0.2]])
    batch = jax.tree.map(lambda x: x[None], params)
    z = np.asarray(NETS.output_one(params, jnp.asarray(X)))
    moved = np.asarray(trained_outputs(NETS, batch, jnp.asarray(X), target, (1,), GradientDescent(1e-6), 1))[0]
    expected = -np.einsum("ijd,j->id", ntk[..., 1], z[:, 1] - np.asarray(target)[0])
    assert np.abs((moved - z) / 1e-6 - expected).max() < 1e-4 * np.abs(expected).max()


def test_flipping_the_last_layer_flips_outputs_and_keeps_the_ntk():
    params = NETS.sample(jax.random.key(3), COUNT)
    partner = flip_last_layer(params)
    inputs = jnp.asarray(X)
    assert np.abs(NETS.outputs(params, inputs) + NETS.outputs(partner, inputs)).max() < 1e-14
    assert np.abs(NETS.ntk(params, inputs) - NETS.ntk(partner, inputs)).max() < 1e-14


@pytest.mark.equation("infinity.93")
def test_linearized_end_is_the_free_solution():
    params, y = NETS.sample(jax.random.key(4), COUNT), jnp.array([[1.0, -0.5], [0.2, 0.4]])
    ends = linearized_outputs(NETS, params, jnp.asarray(X), y, (0, 2))
    for sign, end in zip((1, -1), ends):
        for k in range(3):
            one = jax.tree.map(lambda x, k=k: x[k], params)
            z, H = (
                sign * np.asarray(NETS.output_one(one, jnp.asarray(X))),
                np.asarray(NETS.ntk_one(one, jnp.asarray(X))),
            )
            net = NetworkTensors(z, H, *(np.zeros(0),) * 3)
            free = TrainingDynamics(net, np.eye(3), np.asarray(y), [0, 2], GradientDescent(0.1)).free()
            assert np.abs(np.asarray(end)[k] - free).max() < 1e-11


def test_training_is_reproducible_and_reaches_its_targets():
    arguments = dict(pairs=COUNT, steps=400, batch=COUNT, seed=5, tolerance=np.inf)
    data = (X, [[1.0, -0.5], [0.2, 0.4]], [0, 1])
    runs = [
        train_ensemble(NETS, *data, algorithm, **arguments)
        for algorithm in (GradientDescent(0.1), GradientDescent(0.1), Momentum(0.05, 0.5))
    ]
    assert (runs[0].trained == runs[1].trained).all()
    assert 1e-5 < np.abs(runs[0].mean[0][:, 2] - runs[2].mean[0][:, 2]).max() < 0.1
    assert np.median(np.abs(runs[0].trained[:, :, [0, 1]] - np.array(data[1]).T)) < 1e-6
    with pytest.raises(DivergentTraining, match="misses its targets"):
        train_ensemble(NETS, *data, GradientDescent(0.1), **(arguments | {"tolerance": 1e-12}))
    with pytest.raises(NumericError, match="train in steps"):
        train_ensemble(NETS, *data, GradientFlow(), **arguments)


@pytest.mark.slow
def test_every_tensor_is_estimated():
    """Two inputs, two hidden layers: estimates against the flow, to 4.5 standard errors and the next order in 1/n."""
    width = 96
    f = flow("tanh", X[:2], 3, width, 0.1, 1.3, 0.3, 1.0, tolerance=1e-8)
    found = estimate_tensors(Networks.of_flow(f, 2), X[:2], 1200, batch=100)
    for name, estimate in found.items():
        exact = np.asarray(getattr(f, name))
        allowed = 4.5 * estimate.error + 8 / width * np.abs(exact).max()
        assert (np.abs(estimate.value - exact) < allowed).all(), name
        if name not in ("V", "D", "F", "A"):  # these need many more networks: products of outputs of order one
            assert estimate.error.max() < 0.25 * np.abs(exact).max(), name


def test_estimators_on_a_linear_network():
    """Deep linear networks have simple exact tensors at every width: one hidden layer, one input, hand-made moments."""
    width, C_W, lam = 8, 1.3, 0.7
    nets = Networks("z", (2, width, 2), C_b=0.0, C_W=C_W, lambda_b=0.0, lambda_W=lam)
    x = np.array([[1.0, 0.5]])
    K1 = C_W * np.sum(x**2) / 2
    T1 = lam * np.sum(x**2) / 2
    found = estimate_tensors(nets, x, 6000, batch=1000, names=("K", "Theta", "V", "B", "P", "S", "T"))
    exact = {
        "K": C_W * K1,
        "Theta": lam * K1 + C_W * T1,
        "V": 2 * C_W**2 * K1**2,
        "B": C_W**2 * T1**2,
        "P": 0.0,
        "S": C_W * lam * T1**2,
        "T": lam**2 * K1 * T1,
    }
    for name, value in exact.items():
        estimate = found[name]
        gap = np.abs(estimate.value - value).max()
        assert gap < 5 * estimate.error.max() + 1e-12, name
        assert estimate.error.max() <= 0.25 * max(abs(value), 0.1), name


def test_extrapolation_finds_the_limit_within_its_error():
    rng = np.random.default_rng(12)
    n = np.array([16.0, 24, 32, 48, 64])
    pulls = []
    for _ in range(300):
        errors = np.full((5, 1), 0.02)
        fit = extrapolate(n, (1.5 - 6 / n + 20 / n**2)[:, None] + errors * rng.normal(size=(5, 1)), errors)
        pulls.append(((fit.limit - 1.5) / fit.error)[0])
    assert abs(np.mean(pulls)) < 0.25
    assert np.std(pulls) == pytest.approx(1, abs=0.15)
    with pytest.raises(NumericError, match="needs more than 2"):
        extrapolate([1, 2], np.ones(2), np.ones(2))
