"""Penultimate-layer updates and the regularization tensor against sampled networks (no shared code: jvp and vjp)."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.ensemble import Networks
from numeric.trained.hidden import penultimate_update, regularization_tensor, regularized_prediction
from numeric.trained.linear_models import kernel_regression

X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]])
TRAIN, Y = [0, 1], np.array([[1.0, -0.5], [0.4, 0.8]])
HYPER = dict(C_b=0.2, C_W=1.4, lambda_b=0.3, lambda_W=0.8)
WIDTH, COUNT = 96, 1500
A_B, A_W = (0.3, 0.5, 0.2), (0.6, 0.4, 0.7)


@lru_cache
def networks() -> Networks:
    return Networks("gelu", (2, WIDTH, WIDTH, 2), **HYPER)


@lru_cache
def theory():
    return flow("gelu", X, 3, WIDTH, *HYPER.values(), tensors=["B"])


@partial(jax.jit, static_argnums=0)
def first_updates(nets: Networks, params):
    """d(preactivation of layer 2)/dη at η = 0 for each network, and the tensor R of (10.42) at the output."""
    inputs = jnp.asarray(X)

    def hidden(p):
        return nets.output_one(p[:2], inputs)

    def loss(p):
        return jnp.sum((nets.output_one(p, inputs)[:, jnp.array(TRAIN)] - Y.T) ** 2) / 2

    def one(p):
        gradient = jax.grad(loss)(p)
        rates = nets.rates()
        move = [(-rw * gw, -rb * gb) for (gw, gb), (rw, rb) in zip(gradient, rates)]
        update = jax.jvp(hidden, (p[:2],), (move[:2],))[1]
        penalty = [(rw * a_w * w.shape[1] * w, rb * a_b * b) for (w, b), (rw, rb), a_w, a_b in zip(p, rates, A_W, A_B)]
        z, R = jax.jvp(lambda q: nets.output_one(q, inputs), (p,), (penalty,))
        return update, z, R

    return jax.vmap(one)(params)


@lru_cache
def measured():
    return [np.asarray(x) for x in first_updates(networks(), networks().sample(jax.random.key(0), COUNT))]


@pytest.mark.equation("10.8")
@pytest.mark.equation("10.11")
@pytest.mark.equation("10.12")
@pytest.mark.equation("10.13")
def test_penultimate_update_statistics():
    update, _, _ = measured()
    predicted = penultimate_update(theory(), Y, TRAIN, eta=1.0)
    per_network = update.mean(axis=1)
    error = per_network.std(axis=0) / np.sqrt(COUNT)
    assert (np.abs(per_network.mean(axis=0) - predicted.mean) < 4 * error + 8 / WIDTH * np.abs(predicted.mean)).all()
    products = np.einsum("sja,sjb->sab", update, update) / WIDTH
    error = products.std(axis=0) / np.sqrt(COUNT)
    gap = np.abs(products.mean(axis=0) - predicted.second_moment)
    assert (gap < 4 * error + 8 / WIDTH * np.abs(predicted.second_moment).max()).all()
    # as printed, (10.12) leaves out the off-diagonal components of the NTK
    assert (np.abs(products.mean(axis=0) - predicted.frozen) > 6 * error).any()
    assert np.abs(predicted.mean).min() > 3 * np.abs(per_network.std(axis=0) / np.sqrt(COUNT)).max()
    # different neurons: nothing at order 1/n
    mixed = np.einsum("sa,sb->ab", update[:, 0], update[:, 1]) / COUNT
    assert np.abs(mixed).max() < 0.2 * np.abs(predicted.second_moment).max()


@pytest.mark.equation("10.11")
@pytest.mark.equation("10.12")
def test_the_metric_of_the_penultimate_update_is_felt():
    """A metric that sees one sample is training on it alone; a metric c scales the update by c, its square by c²."""
    one = penultimate_update(theory(), Y[:1], TRAIN[:1], eta=0.7)
    masked = penultimate_update(theory(), Y, TRAIN, eta=0.7, kappa=np.diag([1.0, 0.0]))
    both = penultimate_update(theory(), Y, TRAIN, eta=0.7)
    scaled = penultimate_update(theory(), Y, TRAIN, eta=0.7, kappa=3 * np.eye(2))
    for name, power in (("mean", 1), ("frozen", 2), ("fluctuation", 2)):
        assert np.abs(getattr(masked, name) - getattr(one, name)).max() < 1e-14
        assert np.abs(getattr(scaled, name) - 3**power * getattr(both, name)).max() < 1e-13
        assert np.abs(getattr(both, name) - getattr(one, name)).max() > 1e-4


@pytest.mark.equation("10.42")
@pytest.mark.equation("10.43")
def test_regularization_tensor():
    _, z, R = measured()
    predicted = regularization_tensor(theory(), A_B, A_W)
    for left, right, expected in ((R, z, predicted.with_z), (R, R, predicted.with_itself)):
        products = np.einsum("sia,sib->sab", left, right) / 2
        error = products.std(axis=0) / np.sqrt(COUNT)
        assert (np.abs(products.mean(axis=0) - expected) < 4 * error + 5 / WIDTH * np.abs(expected).max()).all()


def test_regularized_minimum_is_ridge_regression():
    """With the penalty that decays all parameters alike; for a linear model nothing of the start is left."""
    gamma = 0.3
    f = theory()
    found = regularized_prediction(f, Y, TRAIN, gamma)
    assert np.abs(found.mean - kernel_regression(np.asarray(f.Theta), Y, TRAIN, a=gamma)).max() < 1e-12
    assert np.linalg.eigvalsh(found.covariance)[0] > -1e-10
    last = flow("gelu", X, 3, WIDTH, 0.2, 1.4, [0, 0, 0.2], [0, 0, 1.4], tensors=["K", "Theta"])
    assert np.abs(regularized_prediction(last, Y, TRAIN, gamma).covariance).max() < 1e-12


def test_regularized_ensemble_against_wide_linearized_networks():
    """The penalized minimum of each sampled network's linearization, averaged: mean and covariance."""
    gamma, (_, z, _) = 0.3, measured()
    nets, f = networks(), theory()

    @jax.jit
    def decayed(params):
        """J θ = Σ θ ∂z/∂θ for each network, and its NTK."""
        inputs = jnp.asarray(X)
        slope = jax.vmap(lambda p: jax.jvp(lambda q: nets.output_one(q, inputs), (p,), (p,))[1])(params)
        return slope, nets.ntk(params, inputs)

    slope, ntk = (np.asarray(x) for x in decayed(nets.sample(jax.random.key(0), COUNT)))
    H = ntk.transpose(0, 1, 3, 2, 4)[..., TRAIN]
    start = z - slope
    block = H[:, :, TRAIN].reshape(COUNT, 4, 4) + 2 * gamma * np.eye(4)
    weights = np.linalg.solve(block, (start[:, :, TRAIN] - Y.T).reshape(COUNT, 4, 1))
    ends = start - (H.reshape(COUNT, 2, 3, 4) @ weights[:, None])[..., 0]
    predicted = regularized_prediction(f, Y, TRAIN, gamma)
    error = ends.std(axis=0) / np.sqrt(COUNT)
    assert (np.abs(ends.mean(axis=0) - predicted.mean.T) < 4 * error + 4 / WIDTH).all()
    centered = ends - ends.mean(axis=0)
    products = np.einsum("sia,sib->sab", centered, centered) / 2
    error = products.std(axis=0) / np.sqrt(COUNT)
    scale = np.abs(predicted.covariance).max()
    assert (np.abs(products.mean(axis=0) - predicted.covariance) < 4 * error + 8 / WIDTH * scale).all()
