"""f_lin in closed form against training the linearized model step by step, and the limits of seeds 001 and 002."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.empirical import empirical_ntk
from numeric.empirical.linearized import linearize
from numeric.empirical.shallow import linearization_bound, shallow_network, smoothness
from numeric.ensemble.networks import Networks
from numeric.errors import NumericError
from numeric.spectra.parametrization import NTKParametrization
from numeric.trained.algorithms import GradientDescent, GradientFlow, Momentum
from numeric.trained.frozen_kernel import FrozenKernelTraining, cross_entropy, squared_loss
from numeric.trained.kernel_regression import KernelRegression


def problem(outputs=2):
    nets = Networks("tanh", (3, 12, 10, outputs), C_b=0.2, C_W=1.3, lambda_b=0.4, lambda_W=0.9)
    rng = np.random.default_rng(0)
    X, y = jnp.asarray(rng.normal(size=(7, 3))), rng.normal(size=(4, outputs))
    apply = (lambda p, x: nets.output_one(p, x).T) if outputs > 1 else (lambda p, x: nets.output_one(p, x)[0])
    return apply, nets.sample_one(jax.random.key(2)), nets.rates(), X, y if outputs > 1 else y[:, 0]


def descend(model, params, rates, X, y, eta, steps, loss=squared_loss, ridge=0.0):
    """Gradient descent on the parameters of a model, one step at a time."""
    start = params

    @jax.jit
    def step(params):
        gradient = jax.grad(lambda p: loss(model(p, X), jnp.asarray(y)))(params)
        move = lambda w, w0, g, lam: w - eta * (lam * g + ridge * (w - w0))  # noqa: E731
        return jax.tree.map(move, params, start, gradient, rates)

    for _ in range(steps):
        params = step(params)
    return params


@pytest.mark.equation("review.1")
@pytest.mark.equation("review.22")
@pytest.mark.equation("review.23")
@pytest.mark.equation("review.101")
@pytest.mark.equation("review.102")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_descent_against_training_step_by_step(outputs, ridge):
    apply, params, rates, X, y = problem(outputs)
    lin = linearize(apply, params, rates)
    fit = lin.training(X[:4], y, ridge)
    eta = 0.8 * fit.frozen.critical_rate
    for steps in (1, 7, 150):
        trained = descend(lin, params, rates, X[:4], y, eta, steps, ridge=ridge)
        np.testing.assert_allclose(fit.descent(X, steps, eta), lin(trained, X), rtol=0, atol=1e-10)
        moved = fit.displacement(fit.frozen.descent_weights(steps, eta))
        for change, w, w0 in zip(jax.tree.leaves(moved), jax.tree.leaves(trained), jax.tree.leaves(params)):
            np.testing.assert_allclose(change, w - w0, rtol=0, atol=1e-10)


def test_many_times_at_once_and_the_algorithms_of_predict():
    apply, params, rates, X, y = problem()
    fit = linearize(apply, params, rates).training(X[:4], y)
    eta = 0.5 * fit.frozen.critical_rate
    times = np.array([0, 3, 40])
    together = fit.descent(X, times, eta)
    assert together.shape == (3, 7, 2)
    for t, row in zip(times, together):
        np.testing.assert_allclose(row, fit.descent(X, int(t), eta), atol=1e-13)
        np.testing.assert_allclose(row, fit.predict(X, fit.frozen.weights(GradientDescent(eta), int(t))), atol=1e-11)
    np.testing.assert_allclose(fit.flow(X, 2.5), fit.predict(X, fit.frozen.weights(GradientFlow(), 2.5)), atol=1e-11)
    heavy = fit.frozen.weights(Momentum(eta / 4, 0.5), 3000)
    np.testing.assert_allclose(fit.predict(X, heavy), fit.limit(X), atol=1e-8)


def test_flow_is_the_limit_of_small_steps():
    """Richardson: the error of 2^k steps falls by half each time, and extrapolates to the closed form."""
    apply, params, rates, X, y = problem()
    fit = linearize(apply, params, rates).training(X[:4], y)
    exact = fit.flow(X, 1.5)
    errors = [np.abs(fit.descent(X, steps, 1.5 / steps) - exact).max() for steps in (2000, 4000)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.02)


def test_limits_are_kernel_regression():
    apply, params, rates, X, y = problem(1)
    H = np.asarray(empirical_ntk(apply, params, X, rates))
    f0 = np.asarray(apply(params, X))
    for ridge in (0.0, 0.2):
        fit = linearize(apply, params, rates).training(X[:4], y, ridge)
        regression = KernelRegression(H[:4, :4], y, ridge, f0[:4]).predict(H[:, :4], f0)
        np.testing.assert_allclose(fit.limit(X), regression, atol=1e-10)
        np.testing.assert_allclose(fit.flow(X, 1e6), regression, atol=1e-9)
        np.testing.assert_allclose(fit.descent(X, 10**6, fit.frozen.critical_rate / 2), regression, atol=1e-9)


def test_singular_kernels_train_in_finite_time():
    """A repeated input: no limit in closed form, but every finite time; opposite labels end half way."""
    K = np.ones((2, 2))
    fit = FrozenKernelTraining(K, np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    with pytest.raises(NumericError, match="singular"):
        fit.limit_weights()
    assert np.allclose(fit.predict(K, fit.flow_weights(50.0), 0.5), 0, atol=1e-12)


def test_other_losses():
    """Squared loss through the ODE against its closed form; cross-entropy against training step by step."""
    apply, params, rates, X, y = problem()
    lin = linearize(apply, params, rates)
    fit = lin.training(X[:4], y)
    by_ode = fit.predict(X, fit.frozen.loss_flow_weights(1.3, squared_loss))
    np.testing.assert_allclose(by_ode, fit.flow(X, 1.3), atol=1e-8)
    labels = np.eye(2)[[0, 1, 1, 0]]
    fit = lin.training(X[:4], labels)
    steps, eta = 60, 0.05
    trained = descend(lin, params, rates, X[:4], labels, eta, steps, cross_entropy)
    by_weights = fit.predict(X, fit.frozen.loss_descent_weights(steps, cross_entropy, eta))
    np.testing.assert_allclose(by_weights, lin(trained, X), atol=1e-10)
    end = fit.predict(X, fit.frozen.loss_flow_weights(3.0, cross_entropy))
    coarse, fine = (
        fit.predict(X, fit.frozen.loss_descent_weights(n, cross_entropy, 3.0 / n)) for n in (600, 1200)
    )  # Euler steps, extrapolated
    np.testing.assert_allclose(2 * fine - coarse, end, atol=3e-5)


def test_descent_refuses_to_diverge_in_silence():
    apply, params, rates, X, y = problem()
    fit = linearize(apply, params, rates).training(X[:4], y)
    with pytest.raises(NumericError, match="diverges"):
        fit.descent(X, 10**6, 1.5 * fit.frozen.critical_rate)
    with pytest.raises(NumericError, match="whole steps"):
        fit.descent(X, 1.5, 0.1)


@pytest.mark.parametrize("activation", ["tanh", "sin", "gelu"])
def test_shallow_bound_holds(activation):
    """|f - f_lin| <= beta/(2 sqrt(m)) |w - w_0|^2 for random weights, and it is not empty: within a factor 50."""
    rng = np.random.default_rng(6)
    m, d = 40, 3
    a = jnp.asarray(rng.choice([-1.0, 1.0], m))
    X = rng.normal(size=(200, d))
    X = jnp.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
    closest = np.inf
    for scale in (0.01, 0.1, 1.0, 5.0):
        w0 = jnp.asarray(rng.normal(size=(m, d)))
        w = w0 + scale * np.sign(a)[:, None] * jnp.asarray(rng.normal(size=(1, d)))
        f = lambda w: shallow_network(activation, w, a, X)  # noqa: E731
        gap = float(jnp.abs(f(w) - linearize(lambda w, x: shallow_network(activation, w, a, x), w0)(w, X)).max())
        bound = linearization_bound(activation, w, w0)
        assert gap <= bound
        closest = min(closest, bound / gap)
    assert closest < 50


def test_smoothness_constants():
    """Closed forms of the largest |sigma''|, from above; what has no bound is refused."""
    for name, exact in (
        ("sin", 1),
        ("tanh", 4 / 27**0.5),
        ("z**2", 2),
        ("gelu", (2 / np.pi) ** 0.5),
        ("softplus", 1 / 4),
        ("swish", 1 / 2),
        ("elu", 1),
        ("sqrt(1+z**2)", 1),
    ):
        beta = smoothness(name)
        assert exact <= beta < exact + 1e-9
    assert smoothness("linear") == 0
    with pytest.raises(NumericError, match="without bound"):
        smoothness("z*sin(z)")
    with pytest.raises(NumericError, match="kink"):
        smoothness("relu")
    with pytest.raises(NumericError, match="without bound"):
        smoothness("z**4")


def test_ntk_parametrization_translates():
    """The seed's network, unit Gaussians with explicit scales and one learning rate, has our NTK."""
    beta, sigma_W, n = 0.6, 1.3, 9
    sizes = (3, n, n, 2)
    key = jax.random.key(3)
    units = []
    for a, b in pairwise(sizes):
        key, k1, k2 = jax.random.split(key, 3)
        units.append((jax.random.normal(k1, (b, a)), jax.random.normal(k2, (b,))))

    def theirs(params, x):
        for layer, (W, b) in enumerate(params):
            x = (x if layer == 0 else jnp.tanh(x)) @ W.T * (sigma_W / np.sqrt(W.shape[1])) + beta * b[None]
        return x

    h = NTKParametrization(beta, sigma_W).hyperparameters()
    nets = Networks("tanh", sizes, h.C_b, h.C_W, h.lambda_b, h.lambda_W)
    physical = [(W * sigma_W / np.sqrt(W.shape[1]), beta * b) for W, b in units]
    X = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    ours = empirical_ntk(lambda p, x: nets.output_one(p, x).T, physical, X, nets.rates())
    np.testing.assert_allclose(empirical_ntk(theirs, units, X), ours, atol=1e-12)
    # the variance of the first layer is x.x'/n_0 + beta^2: the seed's 1/sqrt(d_0) is a misprint
    first = flow("tanh", np.asarray(X), 1, C_b=h.C_b, C_W=h.C_W, tensors="K").K
    np.testing.assert_allclose(first, beta**2 + sigma_W**2 * np.asarray(X @ X.T) / 3, atol=1e-14)
