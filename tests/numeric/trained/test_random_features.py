"""What infinite width amounts to: a fixed kernel made of random features, and the bias of one training point."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from numeric import flow
from numeric.ensemble.features import gradient_features, last_layer_features
from numeric.ensemble.networks import Networks
from numeric.trained import predict
from numeric.trained.linear_models import feature_kernel, fit_linear, gaussian_kernel, kernel_regression

X = np.array([[1.0, 0.3], [-0.4, 1.1], [0.7, 0.8]])
C_b, C_W, lambda_b, lambda_W = 0.2, 1.7, 0.3, 0.8


@pytest.fixture(scope="module")
def theory():
    return flow("relu", X, depth=2, width=64, C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)


def random_features(rng, width, networks):
    """sqrt(lambda) dz/dtheta of relu networks with one hidden layer, each a row per input: derivatives by hand."""
    n0 = X.shape[1]
    W = rng.normal(scale=np.sqrt(C_W / n0), size=(networks, width, n0))
    b = rng.normal(scale=np.sqrt(C_b), size=(networks, width, 1))
    v = rng.normal(scale=np.sqrt(C_W / width), size=(networks, width, 1))
    z = W @ X.T + b
    hidden, slope = np.maximum(z, 0), (z > 0) * v
    blocks = [
        np.full((networks, 1, len(X)), np.sqrt(lambda_b)),
        np.sqrt(lambda_W / width) * hidden,
        np.sqrt(lambda_b) * slope,
        *(np.sqrt(lambda_W / n0) * slope * X[:, k] for k in range(n0)),
    ]
    return np.concatenate(blocks, axis=1).swapaxes(1, 2)


@pytest.mark.equation("10.137")
@pytest.mark.equation("10.141")
def test_the_frozen_ntk_is_the_kernel_of_the_gradients(theory):
    """With one hidden layer the mean of the features' kernel is Theta at every width; at large width each one is."""
    Theta = theory.Theta
    rng = np.random.default_rng(4)
    few = random_features(rng, 8, 20000)
    kernels = few @ few.swapaxes(1, 2)
    error = kernels.std(axis=0) / np.sqrt(len(kernels))
    assert np.abs((kernels.mean(axis=0) - Theta) / error).max() < 4
    assert (error < 0.01 * np.abs(Theta)).all()
    wide = random_features(rng, 200_000, 1)[0]
    assert np.abs(wide @ wide.T / Theta - 1).max() < 0.02
    y, train = np.array([[0.4], [-1.0]]), [0, 1]
    trained = fit_linear(wide[train], y)(wide)
    assert np.abs(trained - kernel_regression(Theta, y, train)).max() < 0.05


@pytest.mark.equation("10.56")
def test_the_bias_of_one_training_and_one_test_input(theory):
    """Theta by the closed form of relu's brackets over two inputs, written out here."""
    K = C_b + C_W * X[:2] @ X[:2].T / 2
    norm = np.sqrt(np.diag(K))
    angle = np.arccos(np.clip(K / np.outer(norm, norm), -1, 1))
    np.fill_diagonal(angle, 0)
    square = np.outer(norm, norm) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    first = lambda_b + lambda_W * X[:2] @ X[:2].T / 2
    Theta = lambda_b + lambda_W * square + C_W * (np.pi - angle) / (2 * np.pi) * first
    y_plus, y_minus = 0.9, 0.5
    bias = predict(theory, [y_plus], train=[0]).mean_infinite[0] - y_minus
    assert bias == pytest.approx((y_plus - y_minus) + (Theta[1, 0] / Theta[0, 0] - 1) * y_plus, rel=1e-10)


@pytest.mark.equation("10.134")
@pytest.mark.equation("10.135")
@pytest.mark.equation("10.136")
def test_the_stochastic_kernel_of_the_last_layer_has_the_mean_K(theory):
    """At one hidden layer the mean is K at every width; the outputs are linear in the features."""
    nets = Networks("relu", (2, 8, 2), C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)
    params = nets.sample(jax.random.key(1), 8000)
    found = last_layer_features(nets, params, X)
    kernels = found.kernel()[:, 0, 0]
    error = kernels.std(axis=0) / np.sqrt(len(kernels))
    assert np.abs((kernels.mean(axis=0) - np.asarray(theory.K)) / error).max() < 4
    assert (error < 0.02 * np.abs(theory.K)).all()
    weight, bias = (np.asarray(x) for x in params[-1])
    linear = np.einsum("cip,cap->cia", np.concatenate([bias[:, :, None], weight], axis=2), found.values[:, 0])
    assert np.abs(linear - np.asarray(nets.outputs(params, X))).max() < 1e-12
    by_hand = C_b + C_W / 8 * np.einsum("ap,bp->ab", found.values[0, 0, :, 1:], found.values[0, 0, :, 1:])
    assert np.abs(kernels[0] - by_hand).max() < 1e-13


@pytest.mark.equation("10.137")
@pytest.mark.equation("10.138")
@pytest.mark.equation("10.139")
@pytest.mark.equation("10.140")
def test_the_kernel_of_the_gradients_is_the_networks_ntk():
    """(10.138) written out for two hidden layers, and the weighted kernel against the NTK."""
    nets = Networks("tanh", (2, 5, 4, 2), C_b=C_b, C_W=C_W, lambda_b=[0.1, 0.2, 0.3], lambda_W=[0.5, 0.8, 1.1])
    params = nets.sample(jax.random.key(2), 3)
    found = gradient_features(nets, params, X)
    assert np.abs(found.kernel() - np.asarray(nets.ntk(params, X))).max() < 1e-12
    (W1, b1), (W2, b2), (W3, _) = ([np.asarray(x)[1] for x in pair] for pair in params)
    z1 = W1 @ X.T + b1[:, None]
    z2 = W2 @ np.tanh(z1) + b2[:, None]
    slope1, slope2 = 1 - np.tanh(z1) ** 2, 1 - np.tanh(z2) ** 2
    back = np.einsum("ij,ja,jk,ka->ika", W3, slope2, W2, slope1)  # dz_i/dz1_k
    first = np.einsum("ika,am->iakm", back, X).reshape(2, 3, -1)
    assert np.abs(found.values[1][:, :, :10] - first).max() < 1e-12
    assert np.abs(found.values[1][:, :, 10:15] - back.swapaxes(1, 2)).max() < 1e-12
    matrix = np.diag(found.weights)
    for i in range(2):
        assert (
            np.abs(feature_kernel(found.values[1][i], matrix) - np.asarray(nets.ntk(params, X))[1, i, i]).max() < 1e-12
        )


@pytest.mark.equation("10.132")
@pytest.mark.equation("10.133")
def test_the_gaussian_kernel_is_a_sum_over_features():
    """Its Taylor series: φ_k = x^k/√k! exp(-x²/2), as many as are needed."""
    x = np.array([0.3, -0.8, 1.1])
    order = np.arange(40)
    factorial = np.cumprod(np.maximum(order, 1.0))
    features = x[:, None] ** order / np.sqrt(factorial) * np.exp(-(x[:, None] ** 2) / 2)
    assert np.abs(gaussian_kernel(x[:, None], 1.0) - feature_kernel(features)).max() < 1e-14
    wide = gaussian_kernel(2.5 * x[:, None], 2.5)
    assert np.abs(wide - gaussian_kernel(x[:, None], 1.0)).max() < 1e-14
    y = np.array([1.0, -0.5])
    model = fit_linear(features[:2], y)(features)[:, 0]
    assert np.abs(model - kernel_regression(gaussian_kernel(x[:, None], 1.0), y, [0, 1])).max() < 1e-12
