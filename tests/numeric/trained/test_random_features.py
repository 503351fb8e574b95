"""What infinite width amounts to: a fixed kernel made of random features, and the bias of one training point."""

from __future__ import annotations

import numpy as np
import pytest

from numeric import flow
from numeric.trained import predict
from numeric.trained.linear_models import fit_linear, kernel_regression

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
