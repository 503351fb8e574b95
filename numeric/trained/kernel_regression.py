"""Kernel regression with and without ridge, its cross-validation in closed form, and look-ahead updates (Sutherland).

From one factorization of the training kernel: the fit k(x) (K + ridge)^{-1} (y - f_0) + f_0(x), (review.5), the
leave-one-out residuals, generalized cross-validation, and the prediction with one more labelled point by block
inversion. Sutherland's ridge is N lambda here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite
from numeric.trained.modes import modes_of, smallest
from numeric.trained.operators import checked_kernel

Array = np.ndarray

REPEATED = 1e-13
"""A point whose variance given the others is below this share of its own repeats a training input."""


@dataclass(frozen=True)
class KernelRegression:
    """A fit of y on training points with kernel matrix K, shape (N, N), around the initial function f_0.

    y and f0 have shape (N,) or (N, outputs); every output is fitted with the same kernel. A kernel that mixes outputs
    is passed flattened, with rows (sample, output) in that order, and y flattened alike.
    """

    K: Array
    y: Array
    ridge: float = 0.0
    f0: Array | None = None

    def __post_init__(self) -> None:
        K, y = checked_kernel(self.K), np.asarray(self.y, float)
        if y.ndim not in (1, 2) or len(y) != len(K):
            raise NumericError(f"a kernel of shape (N, N) and N labels are needed, got {K.shape} and {y.shape}")
        if self.f0 is not None:
            object.__setattr__(self, "f0", np.asarray(self.f0, float))
            if np.shape(self.f0) != y.shape:
                raise NumericError(f"f0 has the shape of the labels, {y.shape}, not {np.shape(self.f0)}")
        if not (np.isfinite(y).all() and (self.f0 is None or np.isfinite(self.f0).all())):
            raise NumericError("the labels or f0 have entries that are not finite numbers")
        finite(self.ridge, "The ridge", least=0)
        object.__setattr__(self, "K", K)
        object.__setattr__(self, "y", y)

    @cached_property
    def inverse(self) -> Array:
        """G = (K + ridge)^{-1}; refuses a kernel that is singular to rounding."""
        return modes_of(self.K, ridge=self.ridge, advice="use a ridge or remove repeated inputs").inverse

    @cached_property
    def residual(self) -> Array:
        """y - f_0 on the training points."""
        return self.y if self.f0 is None else self.y - self.f0

    @cached_property
    def alpha(self) -> Array:
        """The representer weights G (y - f_0)."""
        return self.inverse @ self.residual

    def predict(self, k: Array, f0: Array | float = 0.0) -> Array:
        """k alpha + f_0(x) for test rows k of shape (N_test, N)."""
        rows = self._rows(k, "test rows")
        value = rows @ self.alpha
        start = np.asarray(f0, float)
        if start.shape not in ((), value.shape):
            raise NumericError(f"f0 on the test inputs has the shape {value.shape}, not {start.shape}")
        return value + start

    def _rows(self, k: Array, name: str) -> Array:
        rows = np.asarray(k, float)
        if rows.ndim != 2 or rows.shape[1] != len(self.y):
            raise NumericError(f"{name} have shape (points, {len(self.y)}), not {rows.shape}")
        if not np.isfinite(rows).all():
            raise NumericError(f"{name} hold values that are not finite numbers")
        return rows

    @cached_property
    def leave_one_out(self) -> Array:
        """y_i minus the prediction for point i of the fit to all others: alpha_i / G_ii, without refitting."""
        diagonal = np.diag(self.inverse)
        return self.alpha / (diagonal if self.alpha.ndim == 1 else diagonal[:, None])

    @property
    def loo_mse(self) -> float:
        """Mean squared leave-one-out residual: nearly unbiased for the test error with N - 1 samples."""
        return float(np.mean(self.leave_one_out**2))

    @property
    def gcv(self) -> float:
        """Generalized cross-validation: the leave-one-out error with every G_ii replaced by their mean.

        The training error over (ridge tr(G)/N)^2; written with alpha = G y it has a limit without ridge.
        """
        return float(np.mean(self.alpha**2) / np.mean(np.diag(self.inverse)) ** 2)

    def look_ahead(self, k_new: Array, k_self: Array, y_new: Array, k_test: Array, k_test_new: Array) -> Array:
        """Change of the test predictions if one more point with label y_new were added, for many candidates at once.

        With C candidates: `k_new` (C, N) kernel to the training points, `k_self` (C,) to themselves, `y_new` (C,) or
        (C, outputs) labels minus f_0, `k_test` (N_test, N), `k_test_new` (N_test, C). Returns (C, N_test[, outputs]).
        By block inversion the change is k~(x, x+) (y+ - f(x+)) / (k~(x+, x+) + ridge), with the conditioned kernel
        k~ = k - k G k; nothing is refitted.
        """
        k_new, k_test = self._rows(k_new, "candidates' rows"), self._rows(k_test, "test rows")
        candidates, tests = len(k_new), len(k_test)
        given = np.shape(k_self), np.shape(k_test_new), np.shape(y_new)
        if given != ((candidates,), (tests, candidates), (candidates, *self.y.shape[1:])):
            raise NumericError(
                f"{candidates} candidates and {tests} test inputs need k_self ({candidates},), k_test_new "
                f"({tests}, {candidates}) and y_new {(candidates, *self.y.shape[1:])}, not {given}"
            )
        solved = self.inverse @ k_new.T
        variance = np.asarray(k_self, float) - np.einsum("cn,nc->c", k_new, solved) + self.ridge
        if np.any(variance <= REPEATED * np.abs(np.asarray(k_self, float))):
            raise NumericError("a candidate repeats a training input: without ridge its label adds nothing")
        surprise = np.asarray(y_new, float) - k_new @ self.alpha
        conditioned = (np.asarray(k_test_new, float) - k_test @ solved) / variance
        return np.einsum("tc,c...->ct...", conditioned, surprise)

    def with_point(self, k_new: Array, k_self: float, y_new: Array) -> KernelRegression:
        """The fit with one more point, by block inversion; if there is an f_0, y_new is the label minus f_0."""
        row = self._rows(np.asarray(k_new, float)[None], "a new point's rows")[0]
        g = self.inverse @ row
        s = float(k_self + self.ridge - row @ g)
        if s <= REPEATED * abs(k_self):
            raise NumericError("the new point repeats a training input: without ridge the kernel becomes singular")
        K = np.block([[self.K, row[:, None]], [row[None, :], np.array([[k_self]])]])
        y = np.concatenate([self.y, np.asarray(y_new, float)[None]])
        f0 = None if self.f0 is None else np.concatenate([self.f0, np.zeros_like(self.f0[:1])])
        updated = KernelRegression(K, y, self.ridge, f0)
        G = np.block([[self.inverse + np.outer(g, g) / s, -g[:, None] / s], [-g[None, :] / s, np.array([[1 / s]])]])
        updated.__dict__["inverse"] = G
        return updated


@dataclass(frozen=True)
class RidgePath:
    """Leave-one-out error and generalized cross-validation for many ridges, from one eigendecomposition."""

    ridges: Array
    loo_mse: Array
    gcv: Array

    def best(self, by: str) -> float:
        """The ridge with the least risk by "loo" or "gcv"."""
        if by not in ("loo", "gcv"):
            raise NumericError(f"a ridge is chosen by 'loo' or 'gcv', not {by!r}")
        return float(self.ridges[np.argmin(self.loo_mse if by == "loo" else self.gcv)])


def ridge_path(K: Array, y: Array, f0: Array | None = None, count: int = 43) -> RidgePath:
    """Risks at ridges from 1e-12 to 100 times the kernel's mean eigenvalue, where the inverse exists."""
    K, target = checked_kernel(K), np.asarray(y, float) if f0 is None else np.asarray(y, float) - np.asarray(f0, float)
    modes = modes_of(K, singular=True)
    mean = float(np.mean(modes.h))
    if mean <= 0:
        raise NumericError("the kernel is zero: no ridge can be chosen")
    ridges = mean * np.logspace(-12, 2, count)
    ridges = ridges[ridges > smallest(modes.h)]
    rotated, squares = modes.U.T @ target.reshape(len(K), -1), modes.U**2
    loo, gcv = [], []
    for ridge in ridges:
        g = 1 / (modes.h + ridge)
        alpha, diagonal = modes.U @ (g[:, None] * rotated), squares @ g
        loo.append(np.mean((alpha / diagonal[:, None]) ** 2))
        gcv.append(np.mean(alpha**2) / np.mean(diagonal) ** 2)
    return RidgePath(ridges, np.array(loo), np.array(gcv))
