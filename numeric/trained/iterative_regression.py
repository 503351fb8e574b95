"""Kernel ridge regression and training in time for many inputs, with products of the kernel alone.

What `KernelRegression` and `FrozenKernelTraining` do with a factorization, here by conjugate gradients and Lanczos'
method: O(N) memory besides what the kernel itself holds. Every number comes with its error: the residual of the
solution, a bound on predictions that follows from it, the standard error of the random traces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from numeric.errors import NumericError
from numeric.given import a_seed, finite
from numeric.trained.conjugate_gradients import TOLERANCE, Nystrom, Solution, conjugate_gradients, nystrom
from numeric.trained.krylov import Applied, apply_function
from numeric.trained.operators import MEMORY, KernelOperator
from numeric.trained.spectral_weights import descent_weights, flow_weights

Array = np.ndarray
RANK = 128
"""Default rank of the preconditioner."""


@dataclass(frozen=True)
class Estimate:
    """A number from random samples, with its standard error."""

    value: float
    error: float


class _Shifted(KernelOperator):
    """K + ridge."""

    def __init__(self, operator: KernelOperator, ridge: float) -> None:
        self.operator, self.ridge, self.size = operator, ridge, operator.size

    def product(self, V: Array) -> Array:
        return self.operator.product(V) + self.ridge * V


@dataclass(frozen=True)
class IterativeRegression:
    """A fit of y on N points around f_0 with a kernel that is known by its products.

    y and f0 have shape (N,) or (N, outputs), each output with the same kernel; a kernel that mixes outputs acts on
    (sample, output) rows, and y is flattened alike. `rank` is that of the preconditioner (0 for none).

    >>> from numeric.trained.operators import DenseKernel
    >>> fit = IterativeRegression(DenseKernel(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([3.0, 0.0]), ridge=1.0)
    >>> fit.alpha.round(8).tolist(), fit.predict(np.array([[2.0, 1.0]])).round(8).tolist()
    ([1.125, -0.375], [1.875])
    """

    operator: KernelOperator
    y: Array
    ridge: float = 0.0
    f0: Array | None = None
    tolerance: float = TOLERANCE
    rank: int = RANK
    seed: int = 0
    memory: float = MEMORY
    progress: bool | None = None

    def __post_init__(self) -> None:
        y = np.asarray(self.y, float)
        object.__setattr__(self, "y", y)
        if y.ndim not in (1, 2) or len(y) != self.operator.size:
            raise NumericError(f"{self.operator.size} training points need as many labels, not {y.shape}")
        if self.f0 is not None:
            f0 = np.asarray(self.f0, float)
            if f0.shape != y.shape:
                raise NumericError(f"f0 has the shape of the labels, {y.shape}, not {f0.shape}")
            object.__setattr__(self, "f0", f0)
        if not np.isfinite(self.residual).all():
            raise NumericError("the labels or f0 have entries that are not finite numbers")
        finite(self.ridge, "The ridge", least=0)

    @cached_property
    def residual(self) -> Array:
        """y - f_0 on the training points."""
        return self.y if self.f0 is None else self.y - self.f0

    @property
    def _columns(self) -> Array:
        """The residual as (N, outputs)."""
        return self.residual if self.residual.ndim > 1 else self.residual[:, None]

    @cached_property
    def sketch(self) -> Nystrom | None:
        """The large eigenvalues, for the preconditioner."""
        rank = min(self.rank, self.operator.size // 2)
        return nystrom(self.operator, rank, self.seed) if rank > 0 else None

    @cached_property
    def solution(self) -> Solution:
        """(K + ridge) alpha = y - f_0 with its residual."""
        return self._solve(self._columns)

    @property
    def alpha(self) -> Array:
        """The representer weights (K + ridge)⁻¹ (y - f_0)."""
        return self.solution.x.reshape(self.y.shape)

    def predict(self, k: Array, f0: Array | float = 0.0) -> Array:
        """k alpha + f_0(x) for test rows k of shape (N_test, N)."""
        rows = np.asarray(k, float)
        if rows.ndim != 2 or rows.shape[1] != len(self.y):
            raise NumericError(f"test rows have shape (N_test, {len(self.y)}), not {rows.shape}")
        return rows @ self.alpha + f0

    def prediction_bound(self, k_self: Array) -> Array:
        """What the solver's residual r can do to a prediction at x, proved: sqrt(k(x, x)) norm(r) / (2 sqrt(ridge)).

        The change of f is the representer sum of (K + ridge)⁻¹ r, whose norm in the kernel's space is at most
        max_h sqrt(h)/(h + ridge) norm(r). Shape (N_test,) or (N_test, outputs).
        """
        if self.ridge == 0:
            raise NumericError("without a ridge a small residual bounds nothing: the kernel may be nearly singular")
        size = np.linalg.norm(self._columns, axis=0) * self.solution.residual
        bound = np.sqrt(np.maximum(np.asarray(k_self, float), 0))[:, None] * size / (2 * np.sqrt(self.ridge))
        return bound[:, 0] if self.y.ndim == 1 else bound

    def gcv(self, probes: int = 32) -> Estimate:
        """Generalized cross-validation with tr (K + ridge)⁻¹ from random signs; the error is one standard error."""
        signs = np.random.default_rng(a_seed(self.seed) + 1).choice([-1.0, 1.0], size=(self.operator.size, probes))
        traces = np.einsum("nc,nc->c", signs, self._solve(signs).x) / self.operator.size
        mean, error = traces.mean(), traces.std(ddof=1) / np.sqrt(probes)
        value = float(np.mean(self.alpha**2) / mean**2)
        return Estimate(value, float(2 * value * error / mean))

    def flow_weights(self, time: float, eta: float = 1.0) -> Applied:
        """Representer weights of gradient flow at a time, with their estimated error."""
        return self._in_time(partial(flow_weights, time=finite(time, "The time", least=0), eta=eta))

    def descent_weights(self, steps: int, eta: float) -> Applied:
        """Representer weights of gradient descent after whole steps."""
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            found = self._in_time(partial(descent_weights, steps=steps, eta=eta))
        if not np.isfinite(found.value).all():
            raise NumericError(f"gradient descent diverges at eta = {eta:g}")
        return found

    def _in_time(self, g: Callable[[Array], Array]) -> Applied:
        kernel = _Shifted(self.operator, self.ridge) if self.ridge else self.operator
        found = apply_function(kernel, self._columns, g, memory=self.memory, progress=self.progress)
        return Applied(found.value.reshape(self.y.shape), found.error, found.products)

    def _solve(self, b: Array) -> Solution:
        precondition = None if self.sketch is None else self.sketch.preconditioner(self.ridge)
        return conjugate_gradients(
            self.operator, b, self.ridge, precondition, tolerance=self.tolerance, progress=self.progress
        )
