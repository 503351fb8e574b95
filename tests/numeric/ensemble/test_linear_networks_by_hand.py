"""Training of networks of one layer, z = W x + b, written out in NumPy: their outputs move by their constant NTK."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric.ensemble import Networks, train_ensemble, training
from numeric.ensemble.training import linear_outputs, linearized_outputs, newton_tensors, trained_outputs
from numeric.trained import DivergentTraining, GradientDescent, Momentum, Preconditioned, StochasticDescent
from numeric.trained.losses import MSE

X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5], [-0.8, -0.4]])
Y = np.array([[0.4, -0.2], [0.1, 0.7], [-0.5, 0.3]])
TRAIN, COUNT = (2, 0, 3), 3
NETS = Networks("tanh", (2, 2), C_b=0.2, C_W=1.1, lambda_b=0.3, lambda_W=1.0)
THETA = 0.3 + X @ X.T / 2
"""λ_b + λ_W x·x/n_0, the same for every network and output."""
KAPPA = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])
BATCHES = [[0], [1, 2], [0, 2]]


@pytest.fixture(scope="module")
def params():
    """Three networks."""
    return NETS.sample(jax.random.key(7), COUNT)


def outputs(params, sign=1.0):
    """W x + b, (networks, outputs, inputs)."""
    (weight, bias) = (sign * np.asarray(p) for p in params[0])
    return np.einsum("cij,aj->cia", weight, X) + bias[:, :, None]


def moved(z, eta, steps, mu=0.0, metric=None, batches=None):
    """z after the steps z → z - η Θ v, v → μ v + κ (z - y), of a batch."""
    metric, picked = np.eye(3) if metric is None else metric, list(TRAIN)
    velocity = np.zeros((len(z), 2, 3))
    for step in range(steps):
        error = z[..., picked] - Y.T
        if batches is not None:
            seen = np.zeros(3)
            seen[batches[step % len(batches)]] = 1
            error = error * seen
        velocity = mu * velocity + error @ metric
        z = z - eta * velocity @ THETA[picked]
    return z


@pytest.mark.parametrize("name", ["momentum", "batches", "metric"])
def test_steps(name, params):
    data = (NETS, params, jnp.asarray(X), jnp.asarray(Y), TRAIN)
    rule, own = {
        "momentum": (Momentum(0.2, 0.5), {"mu": 0.5}),
        "batches": (StochasticDescent(0.2, BATCHES), {"batches": BATCHES}),
        "metric": (GradientDescent(0.2), {"metric": KAPPA}),
    }[name]
    loss = MSE(jnp.asarray(Y), jnp.asarray(KAPPA)) if name == "metric" else None
    wanted = [moved(outputs(params, sign), 0.2, 5, **own) for sign in (1, -1)]
    assert np.abs(np.asarray(trained_outputs(*data, rule, 5, loss)) - wanted[0]).max() < 1e-13
    if loss is None:
        found = linear_outputs(*data, rule, 5)
        assert all(np.abs(np.asarray(x) - y).max() < 1e-13 for x, y in zip(found, wanted, strict=True))


def test_the_end(params):
    ends = linearized_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), TRAIN)
    picked = list(TRAIN)
    leap = np.linalg.solve(THETA[np.ix_(picked, picked)], THETA[picked])
    for sign, end in zip((1, -1), ends, strict=True):
        z = outputs(params, sign)
        assert np.abs(np.asarray(end) - z + (z[..., picked] - Y.T) @ leap).max() < 1e-11


def test_pairs():
    """Averages over a network and its partner; nothing changes the NTK of a linear model."""
    found = train_ensemble(
        NETS, X, Y, TRAIN, GradientDescent(0.2), pairs=2, steps=3, seed=4, batch=COUNT, tolerance=None, ntk=True,
        progress=False,
    )  # fmt: skip
    own = NETS.sample(jax.random.fold_in(jax.random.key(4), 0), COUNT)
    ends = [moved(outputs(own, sign), 0.2, 3) for sign in (1, -1)]
    assert np.abs(found.trained - np.mean(ends, axis=0)).max() < 1e-13
    assert np.abs(found.linear - np.mean(ends, axis=0)).max() < 1e-13
    products = np.mean([np.einsum("cia,cjb->cijab", z, z) for z in ends], axis=0)
    assert np.abs(found.products - products).max() < 1e-13
    assert found.training_error == pytest.approx(max(np.abs(z[..., list(TRAIN)] - Y.T).max() for z in ends))
    assert found.ntks.shape == (COUNT, 2, 2, 4, 4) and np.abs(found.ntks).max() < 1e-15


def test_unless_told_otherwise(monkeypatch):
    """256 networks at a time from seed 0, all of them; targets to a millionth; no more linearized ones."""
    keys, miss = [], iter([4e-7, 9e-7, 9e-7, 1.5e-6, 1.5e-6, 1.5e-6])

    def pair(batch, *_):
        blocks = np.zeros((len(batch), 1, 2))
        return blocks, blocks, np.zeros((len(batch), 1, 1, 2, 2)), next(miss), None

    def sample(key, count):
        keys.append(jax.random.key_data(key))
        return np.zeros(count)

    monkeypatch.setattr(training, "_pair", pair)
    networks = SimpleNamespace(widths=(2, 1), sample=sample)
    data = networks, X[:2], [0.3], [1], GradientDescent(0.1)
    found = train_ensemble(*data, pairs=300, steps=2, progress=False)
    assert found.trained.shape == (512, 1, 2) and found.linear.shape == (512, 1, 2) and found.ntks is None
    assert found.training_error == 9e-7
    for index, key in enumerate(keys):
        assert np.array_equal(key, jax.random.key_data(jax.random.fold_in(jax.random.key(0), index)))
    assert len(train_ensemble(*data, pairs=256, steps=2, progress=False).trained) == 256
    with pytest.raises(DivergentTraining, match=r"misses its targets by 1\.5e-06"):
        train_ensemble(*data, pairs=1, steps=2, progress=False)
    assert train_ensemble(*data, pairs=1, steps=2, tolerance=None, progress=False).training_error == 1.5e-6
    assert len(train_ensemble(*data, pairs=1, steps=2, batch=1, tolerance=2e-6, progress=False).trained) == 1


def test_newton_tensors_of_residual_networks():
    """Linear activation: K' = C_b + (s² + C_W) K and Θ' = λ_b + λ_W K + (s² + C_W) Θ with a skip s."""
    own = {"C_b": [0.1, 0.2, 0.3], "C_W": [1.2, 0.8, 0.7], "lambda_b": [0.2, 0.1, 0.4], "lambda_W": [0.6, 0.5, 0.9]}
    networks = Networks("linear", (2, 4, 4, 2), **own, skip=0.7)
    K, theta = np.zeros((4, 4)), np.zeros((4, 4))
    for layer, skip in enumerate((0.0, 0.7, 0.0)):
        C_b, C_W, l_b, l_W = (own[name][layer] for name in own)
        below = K if layer else X @ X.T / 2
        K, theta = C_b + (C_W + skip**2) * below, l_b + l_W * below + (C_W + skip**2) * theta
    picked = list(TRAIN)
    rule = Preconditioned(0.1, lambda h: 3 * h)  # three times the NTK itself
    found = np.asarray(newton_tensors(networks, [], jnp.asarray(X), TRAIN, rule))
    assert found.shape == (1, 6, 6)
    assert np.abs(found[0] - 3 * np.kron(np.eye(2), theta[np.ix_(picked, picked)])).max() < 1e-12
