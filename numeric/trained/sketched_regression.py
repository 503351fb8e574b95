"""Kernel ridge regression with p features or m landmarks instead of N points: O(N p^2), with an estimated error.

`FeatureRegression` takes random features psi whose products estimate the kernel (`numeric.empirical.products` makes
them for the NTK of any network). Both halves of the features are fits of their own: their difference shows the
spread of the fit with all of them, their mean its bias. `NystromRegression` fits with the kernel's columns at m
landmarks; its error is estimated by what the second half of the landmarks changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numeric.errors import NumericError
from numeric.given import a_seed, finite, whole
from numeric.trained.operators import BlockKernel

Array = np.ndarray


@dataclass(frozen=True)
class Sketched:
    """Predictions and their estimated error (one standard deviation and the bias together), alike in shape."""

    mean: Array
    error: Array


@dataclass(frozen=True)
class FeatureRegression:
    """Ridge regression of y - f_0 on random features psi (N, p), E[psi psi'] being the kernel."""

    features: Array
    y: Array
    ridge: float
    f0: Array | None = None

    def __post_init__(self) -> None:
        features, y = np.asarray(self.features, float), np.asarray(self.y, float)
        if features.ndim != 2 or features.shape[1] < 2 or len(y) != len(features) or y.ndim not in (1, 2):
            raise NumericError(f"features (N, p) with p from 2 on and N labels are needed: {features.shape}, {y.shape}")
        if self.f0 is not None and np.shape(self.f0) != y.shape:
            raise NumericError(f"f0 has the shape of the labels, {y.shape}, not {np.shape(self.f0)}")
        if not (np.isfinite(features).all() and np.isfinite(y).all()):
            raise NumericError("the features or the labels have entries that are not finite numbers")
        finite(self.ridge, "The ridge of a sketched regression", above=0)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "y", y)

    @cached_property
    def _weights(self) -> tuple[Array, Array, Array]:
        """Of all features, and of each half (whose products estimate the kernel with a factor 2)."""
        b = self.y if self.f0 is None else self.y - np.asarray(self.f0, float)
        p = self.features.shape[1]
        parts = (self.features, np.sqrt(2) * self.features[:, : p // 2], np.sqrt(2) * self.features[:, p - p // 2 :])
        whole_, first, second = (np.linalg.solve(a.T @ a + self.ridge * np.eye(a.shape[1]), a.T @ b) for a in parts)
        return whole_, first, second

    def predict(self, features: Array, f0: Array | float = 0.0) -> Sketched:
        """The fit at test features (N_test, p)."""
        psi = np.asarray(features, float)
        if psi.ndim != 2 or psi.shape[1] != self.features.shape[1]:
            raise NumericError(f"test features have shape (N_test, {self.features.shape[1]}), not {psi.shape}")
        p = psi.shape[1]
        every, first, second = self._weights
        a, b = np.sqrt(2) * psi[:, : p // 2] @ first, np.sqrt(2) * psi[:, p - p // 2 :] @ second
        mean = psi @ every
        return Sketched(mean + f0, np.sqrt(((a - b) / 2) ** 2 + ((a + b) / 2 - mean) ** 2))


@dataclass(frozen=True)
class NystromRegression:
    """Ridge regression in the span of the kernel's columns at m random landmarks (the subset of regressors)."""

    kernel: BlockKernel
    y: Array
    ridge: float
    landmarks: int
    f0: Array | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        y = np.asarray(self.y, float)
        if len(y) != self.kernel.size or y.ndim not in (1, 2) or not np.isfinite(y).all():
            raise NumericError(f"{self.kernel.size} training points need as many finite labels, not {y.shape}")
        if self.f0 is not None and np.shape(self.f0) != y.shape:
            raise NumericError(f"f0 has the shape of the labels, {y.shape}, not {np.shape(self.f0)}")
        whole(self.landmarks, "The number of landmarks", least=2, most=self.kernel.size)
        finite(self.ridge, "The ridge of a sketched regression", above=0)
        object.__setattr__(self, "y", y)

    @cached_property
    def chosen(self) -> Array:
        """The landmarks' positions; the first half of them makes the coarser fit."""
        return np.random.default_rng(a_seed(self.seed)).permutation(self.kernel.size)[: self.landmarks]

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        columns = self.kernel.columns(self.chosen)
        b = self.y if self.f0 is None else self.y - np.asarray(self.f0, float)

        def fit(m: int) -> Array:
            C, W = columns[:, :m], columns[self.chosen[:m], :m]
            h, U = np.linalg.eigh(W)
            kept = h > len(h) * np.finfo(float).eps * h[-1]
            to_features = U[:, kept] / np.sqrt(h[kept])
            psi = C @ to_features
            return to_features @ np.linalg.solve(psi.T @ psi + self.ridge * np.eye(psi.shape[1]), psi.T @ b)

        return fit(self.landmarks), fit(self.landmarks // 2)

    def predict(self, X: Array, f0: Array | float = 0.0) -> Sketched:
        """The fit at test inputs, with the change from the first half of the landmarks as its error."""
        rows = self.kernel.between(np.asarray(X, float), self.kernel.X[self.chosen])
        fine, coarse = self._weights
        mean = rows @ fine
        return Sketched(mean + f0, np.abs(mean - rows[:, : len(coarse)] @ coarse))
