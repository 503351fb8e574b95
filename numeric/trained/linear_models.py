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
        return LinearModel(np.linalg.lstsq(features, y, rcond=None)[0].T)
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
