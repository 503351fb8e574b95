"""Linear models, kernel methods, ridge and ridgeless regression (10.119)-(10.141): what infinite width amounts to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError
from numeric.trained.modes import modes_of


@dataclass(frozen=True)
class LinearModel:
    """z_i(x) = Σ_j W_ij φ_j(x) (10.119), fitted: features are rows (N, n_f), weights are (n_L, n_f)."""

    weights: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(10.124): predictions (N, n_L)."""
        return np.asarray(features) @ self.weights.T


def fit_linear(features: np.ndarray, y: np.ndarray, a: float = 0.0) -> LinearModel:
    """The minimum (10.123) of the MSE loss plus a Σ W²; with a = 0 and many features, the limit a → 0⁺ of (10.127)."""
    features, y = np.asarray(features, dtype=float), np.asarray(y, dtype=float).reshape(len(features), -1)
    if a < 0:
        raise NumericError("The regularization a must not be negative.")
    if a == 0:
        return LinearModel(np.linalg.lstsq(features, y)[0].T)
    M = 2 * a * np.eye(features.shape[1]) + features.T @ features
    return LinearModel(np.linalg.solve(M, features.T @ y).T)


def kernel_regression(kernel: np.ndarray, y: np.ndarray, train: list[int], a: float = 0.0) -> np.ndarray:
    """k_{βα}(k̃ + 2a)^{-1} y on all inputs: (10.131) for a = 0 (ridgeless), the dual of (10.127) otherwise.

    >>> k = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> kernel_regression(k, np.array([3.0]), [0]), kernel_regression(k, np.array([3.0]), [0], a=0.5)
    (array([3. , 1.5]), array([2., 1.]))
    """
    if a < 0:
        raise NumericError("The regularization a must not be negative.")
    kernel = np.asarray(kernel)
    modes = modes_of(kernel[np.ix_(train, train)], train, ridge=2 * a)
    return kernel[:, train] @ (modes.inverse @ np.asarray(y))


def gaussian_kernel(X: np.ndarray, width: float) -> np.ndarray:
    """exp(-|x_1 - x_2|²/(2 width²)) of all pairs of inputs (N, n_0): (10.133), whose features are infinitely many.

    >>> gaussian_kernel(np.array([[0.0], [1.0]]), 1.0).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    inputs = np.asarray(X, dtype=float)
    if not width > 0:
        raise NumericError(f"The width of a Gaussian kernel is a positive number, not {width!r}.")
    squares = np.sum((inputs[:, None] - inputs[None]) ** 2, axis=-1)
    return np.exp(-squares / (2 * width**2))


def feature_kernel(features: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Σ c_ij φ_i φ_j of all pairs of inputs for features (N, n_f): (10.126), (10.139).

    >>> feature_kernel(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 2.0]]))
    array([[11. ,  4.5],
           [ 4.5,  2. ]])
    """
    phi = np.asarray(features, dtype=float)
    weights = np.eye(phi.shape[1]) if c is None else np.asarray(c, dtype=float)
    if weights.shape != (phi.shape[1],) * 2 or not np.allclose(weights, weights.T, rtol=1e-12, atol=0):
        raise NumericError(f"The weights of {phi.shape[1]} features are a symmetric matrix of that size.")
    return phi @ weights @ phi.T
