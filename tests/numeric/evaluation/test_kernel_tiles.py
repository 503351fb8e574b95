"""K and Theta of the last layer in tiles, against closed recursions typed here, and where tiles must give way."""

import numpy as np
import pytest

from numeric import flow, kernel_matrices
from numeric.errors import NonFiniteFlow
from numeric.evaluation import kernel_tiles

WIDTHS, C_B, C_W = [3, 5, 7], [0.1, 0.2, 0.3, 0.4], [1.0, 1.1, 1.2, 1.3]
RATES = {"lambda_b": [0.5, 0.6, 0.7, 0.8], "lambda_W": [1.0, 0.9, 0.8, 0.7]}


def relu(K):
    size = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    angle = np.arccos(np.clip(K / size, -1, 1))
    return (size * np.sin(angle) + K * (np.pi - angle)) / (2 * np.pi), (np.pi - angle) / (2 * np.pi)


def erf(K):
    grown = 1 + 2 * np.diag(K)
    size = np.sqrt(np.outer(grown, grown))
    return 2 / np.pi * np.arcsin(2 * K / size), 4 / np.pi / np.sqrt(size**2 - 4 * K**2)


def recursion(brackets, X):
    gram = X @ X.T / X.shape[1]
    K, Theta = C_B[0] + C_W[0] * gram, RATES["lambda_b"][0] + RATES["lambda_W"][0] * gram
    for layer in range(1, 4):
        value, slope = brackets(K)
        Theta = RATES["lambda_b"][layer] + RATES["lambda_W"][layer] * value + C_W[layer] * slope * Theta
        K = C_B[layer] + C_W[layer] * value
    return K, Theta


@pytest.mark.parametrize("name, brackets", [("relu", relu), ("erf", erf)])
@pytest.mark.parametrize("scale, size", [(1.0, 20), (30.0, 20), (1.0, 300), (1.0, 301)])  # one tile, three, cut ones
def test_against_closed_recursions(name, brackets, scale, size):
    X = scale * np.random.default_rng(0).normal(size=(size, 6))
    K, Theta = recursion(brackets, X)
    f = flow(name, X, 4, WIDTHS, C_b=C_B, C_W=C_W, **RATES, tensors="Theta", layers="last")
    np.testing.assert_allclose(f.K, K, rtol=2e-8)  # the arccos above loses half the digits on the diagonal
    np.testing.assert_allclose(f.Theta, Theta, rtol=2e-7)
    apart = ~np.eye(size, dtype=bool)
    np.testing.assert_allclose(np.asarray(f.K)[apart], K[apart], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(f.Theta)[apart], Theta[apart], rtol=1e-12)
    assert np.array_equal(f.Theta, np.asarray(f.Theta).T)


def test_large_variance_of_gelu_gives_way_to_plans():
    """Beyond variance 50 the closed form cancels for nearly parallel inputs; far beyond, gelu is relu."""
    x = np.random.default_rng(1).normal(size=(3, 4))
    X = 3e4 * np.concatenate([x, x + 1e-9])
    settings = {"C_b": 0.0, "C_W": 2.0, "tensors": "Theta", "layers": "last"}
    gelu, kinked = flow("gelu", X, 4, 1, **settings), flow("relu", X, 4, 1, **settings)
    np.testing.assert_allclose(gelu.K, kinked.K, rtol=1e-6)


def test_overflow_names_its_layer():
    with pytest.raises(NonFiniteFlow, match=r"at layer 4\d\d of 4000"):
        flow("relu", [[1.0, 2.0]], 4000, 1, C_W=3.0, tensors="Theta", layers="last")


@pytest.mark.parametrize("name, brackets", [("relu", relu), ("erf", erf)])
def test_rectangles_of_tiles(name, brackets, monkeypatch):
    """Rows against other columns, both cut into tiles of which the last are short."""
    monkeypatch.setattr(kernel_tiles, "TILE", 96)
    X = np.random.default_rng(3).normal(size=(470, 6))
    found = kernel_matrices(name, X[:290], 4, C_b=C_B, C_W=C_W, **RATES, against=X[290:])
    for own, exact in zip(found, recursion(brackets, X)):
        np.testing.assert_allclose(own, exact[:290, 290:], rtol=1e-12)


def test_inputs_that_occur_twice_or_nearly():
    """relu's angle has a root at correlation one: equal inputs are seen, nearly equal ones have flows of their own."""
    X = np.random.default_rng(4).normal(size=(400, 784))
    X[300], X[17], X[399] = X[2], X[2], X[5] + 1e-12 * X[6]
    settings = {"C_b": 0.05, "C_W": 2.0, "lambda_b": 0.1, "lambda_W": 1.0}
    f = flow("relu", X, 6, 1, **settings, tensors="Theta", layers="last")
    for a, b in ((2, 300), (17, 300), (5, 399)):
        for x in (f.K, f.Theta):
            np.testing.assert_allclose(x[a, b], x[a, a], rtol=5e-12)
    other = kernel_matrices("relu", X[:20], 6, **settings, against=X[20:])
    np.testing.assert_allclose(other.Theta, f.Theta[:20, 20:], rtol=1e-13)
