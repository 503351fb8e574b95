"""Penultimate-layer updates and the regularization tensor against sampled networks (no shared code: jvp and vjp)."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import NumericError, flow
from numeric.ensemble import Networks
from numeric.trained.algorithms import GradientDescent
from numeric.trained.hidden import penultimate_update
from numeric.trained.linear_models import kernel_regression
from numeric.trained.prediction import predict
from numeric.trained.regularization import ParameterGroups, regularization_tensor, regularized_prediction

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


@lru_cache
def infinite():
    """The same networks with learning rates of every layer's own; infinite width."""
    rates = (0.3, 0.5, 0.2), (0.8, 0.6, 1.1)
    return flow("gelu", X, 3, None, HYPER["C_b"], HYPER["C_W"], *rates, tensors=["K", "Theta"])


def test_parameter_groups_make_up_the_ntk_and_the_outputs():
    """Σ λ M is the NTK; for the last layer q is what it adds, whose moments are C_b and C_W <ss>."""
    groups, f = ParameterGroups(infinite()), infinite()
    assert np.abs(np.einsum("g,gab->ab", groups.rates, groups.kernels()) - np.asarray(f.Theta)).max() < 1e-12
    last = groups.moments([0, 0, 1, 0, 0, 1])
    for moment in (last.with_z, last.with_itself):
        assert np.abs(moment - np.asarray(f.K)).max() < 1e-12
    joint = groups.joint.reshape(7 * 3, 7 * 3)
    assert np.abs(joint - joint.T).max() < 1e-13
    assert np.linalg.eigvalsh(joint)[0] > -1e-12


def test_regularized_minimum_is_ridge_regression():
    """With a penalty in proportion to 1/λ the NTK's ridge; for a linear model nothing of the start is left."""
    gamma, f = 0.3, infinite()
    rates = [np.asarray(getattr(f.parameters, name)) for name in ("lambda_b", "lambda_W")]
    found = regularized_prediction(f, Y, TRAIN, *(gamma / rate for rate in rates))
    assert np.abs(found.mean - kernel_regression(np.asarray(f.Theta), Y, TRAIN, a=gamma)).max() < 1e-12
    assert np.linalg.eigvalsh(found.covariance)[0] > -1e-10
    last = flow("gelu", X, 3, None, 0.2, 1.4, [0, 0, 0.2], [0, 0, 1.4], tensors=["K", "Theta"])
    assert np.abs(regularized_prediction(last, Y, TRAIN, 0.7, 0.2).covariance).max() < 1e-12
    with pytest.raises(NumericError, match="positive coefficient"):
        regularized_prediction(f, Y, TRAIN, [0.1, 0.0, 0.1], 0.2)


def test_early_stopping_alone_is_the_prediction_in_time():
    f = infinite()
    for algorithm, time in ((None, 1.3), (GradientDescent(0.2), 7)):
        p, found = (
            predict(f, Y, TRAIN, algorithm, time=time),
            regularized_prediction(f, Y, TRAIN, 0, 0, algorithm, time),
        )
        assert np.abs(found.mean[list(p.test)] - p.mean_infinite).max() < 1e-12
        test = np.ix_(p.test, p.test)
        assert np.abs(found.covariance[test] - p.covariance_infinite).max() < 1e-12


def test_late_times_with_a_penalty_are_the_end():
    penalty = [0.2, 0.1, 0.4], [0.3, 0.15, 0.2]
    end = regularized_prediction(infinite(), Y, TRAIN, *penalty)
    late = regularized_prediction(infinite(), Y, TRAIN, *penalty, None, 400.0)
    steps = regularized_prediction(infinite(), Y, TRAIN, *penalty, GradientDescent(0.3), 1500)
    for other in (late, steps):
        assert np.abs(other.mean - end.mean).max() < 1e-10
        assert np.abs(other.covariance - end.covariance).max() < 1e-10


@pytest.mark.parametrize("steps", [3, 200])
def test_regularized_ensemble_against_wide_linearized_networks(steps):
    """Each sampled network's linearization trained by descent on the penalized loss, parameter by parameter."""
    nets, eta, count = networks(), 0.25, 300
    a_b, a_W = np.array(A_B), np.array(A_W)

    def descended(params):
        inputs, rates = jnp.asarray(X), nets.rates()

        def linear(p):
            start, slope = jax.jvp(
                lambda q: nets.output_one(q, inputs), (params,), (jax.tree.map(lambda x, y: x - y, p, params),)
            )
            return start + slope

        def loss(p):
            decay = sum(b * jnp.sum(v**2) + w * u.shape[1] * jnp.sum(u**2) for (u, v), b, w in zip(p, a_b, a_W))
            return jnp.sum((linear(p)[:, jnp.array(TRAIN)] - Y.T) ** 2) / 2 + decay

        def step(p, _):
            g = jax.grad(loss)(p)
            return [(u - eta * r * du, v - eta * s * dv) for (u, v), (du, dv), (r, s) in zip(p, g, rates)], None

        return linear(jax.lax.scan(step, params, None, length=steps)[0])

    ends = np.asarray(jax.jit(jax.vmap(descended))(nets.sample(jax.random.key(5), count)))
    predicted = regularized_prediction(theory(), Y, TRAIN, a_b, a_W, GradientDescent(eta), steps)
    error = ends.std(axis=0) / np.sqrt(count)
    assert (np.abs(ends.mean(axis=0) - predicted.mean.T) < 4 * error + 4 / WIDTH).all()
    centered = ends - ends.mean(axis=0)
    products = np.einsum("sia,sib->sab", centered, centered) / 2
    error = products.std(axis=0) / np.sqrt(count)
    scale = np.abs(predicted.covariance).max()
    assert (np.abs(products.mean(axis=0) - predicted.covariance) < 4 * error + 8 / WIDTH * scale).all()
    plain = regularized_prediction(theory(), Y, TRAIN, 0, 0, GradientDescent(eta), steps)
    assert np.abs(plain.mean - predicted.mean).max() > 0.09
