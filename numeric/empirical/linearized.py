"""A network linearized at its parameters, f_lin(x; w) = f(x; w_0) + grad f(x; w_0) . (w - w_0), and its training.

The definition is (review.1). For any JAX model and any diagonal learning-rate tensor (Lee et al. 2019): closed forms
for gradient flow and gradient descent at any time (`numeric.trained.frozen_kernel`) with the network's own NTK, and
the parameters that go with them; for many inputs the same with products of the NTK alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from numeric.empirical.model import Apply, Params, flat_rates
from numeric.empirical.ntk import empirical_ntk
from numeric.empirical.products import NTKOperator
from numeric.errors import NumericError
from numeric.trained.conjugate_gradients import TOLERANCE
from numeric.trained.frozen_kernel import FrozenKernelTraining
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.operators import MEMORY

MATRICES = 5
"""Matrices of the NTK's size that the direct way holds: the kernel, its modes, what makes them."""
RANK = 64
"""Of the preconditioner: each of its columns costs as much as an iteration."""


@dataclass(frozen=True)
class Linearized:
    """f_lin of a model; call it with parameters and inputs."""

    apply: Apply
    params: Params
    rates: Params | None = None

    def __call__(self, params: Params, X: Any) -> jax.Array:
        """f_lin(X; params)."""
        move = jax.tree.map(jnp.subtract, params, self.params)
        value, slope = jax.jvp(lambda p: self.apply(p, jnp.asarray(X)), (self.params,), (move,))
        return value + slope

    def training(
        self, X: Any, y: Any, ridge: float = 0.0, *, memory: float = MEMORY, progress: bool | None = None
    ) -> LinearizedTraining | MatrixFreeTraining:
        """Training of f_lin on (X, y) from its initial parameters.

        With the NTK's matrix if that fits into `memory` bytes a few times over, else with products of it alone.
        """
        inputs, labels = jnp.asarray(X, float), np.asarray(y, float)
        if inputs.ndim < 1 or len(inputs) == 0 or len(labels) != len(inputs):
            raise NumericError(f"training needs inputs and as many labels, not {inputs.shape} and {labels.shape}")
        if not (np.isfinite(np.asarray(inputs)).all() and np.isfinite(labels).all()):
            raise NumericError("the inputs or the labels hold values that are not finite numbers")
        if MATRICES * 8 * labels.size**2 <= memory:
            return LinearizedTraining(self, inputs, labels, ridge)
        return MatrixFreeTraining(self, inputs, labels, ridge, memory=memory, progress=progress)


def linearize(apply: Apply, params: Params, rates: Params | None = None) -> Linearized:
    """Linearize `apply(params, X)` at `params`; `rates` is the diagonal of the learning-rate tensor.

    >>> lin = linearize(lambda w, X: X @ w**2, jnp.array([1.0, 2.0]))
    >>> float(lin(jnp.array([1.5, 2.0]), jnp.eye(2))[0])        # 1 + 2 (1.5 - 1), where f is 2.25
    2.0
    >>> fit = lin.training(jnp.eye(2), [3.0, 5.0])
    >>> fit.limit(jnp.eye(2)).round(12).tolist()
    [3.0, 5.0]
    """
    return Linearized(apply, params, rates)


@dataclass(frozen=True)
class LinearizedTraining:
    """f_lin trained on the loss (1/2) sum |f - y|^2 + (ridge/2) |w - w_0|^2 (norm with the inverse learning rates).

    Their loss carries 1/N, and their learning rate is N times ours. Predictions have shape (inputs[, outputs]), with
    a leading time axis for an array of times.
    """

    model: Linearized
    X: jax.Array
    y: np.ndarray
    ridge: float = 0.0

    @cached_property
    def frozen(self) -> FrozenKernelTraining:
        """The same problem in terms of the training NTK alone."""
        return FrozenKernelTraining(self._ntk(self.X), self.y, self._initial(self.X), self.ridge)

    def flow(self, X: Any, time: Any, eta: float = 1.0) -> np.ndarray:
        """f_lin after gradient flow."""
        return self.predict(X, self.frozen.flow_weights(time, eta))

    def descent(self, X: Any, steps: Any, eta: float) -> np.ndarray:
        """f_lin after whole steps of gradient descent."""
        return self.predict(X, self.frozen.descent_weights(steps, eta))

    def limit(self, X: Any) -> np.ndarray:
        """f_lin at the end of training: kernel regression with the network's NTK, ridgeless or with the ridge."""
        return self.predict(X, self.frozen.limit_weights())

    def predict(self, X: Any, alpha: np.ndarray) -> np.ndarray:
        """f_0(x) + H(x, training) alpha."""
        X = jnp.asarray(X, float)
        return self.frozen.predict(self._ntk(X), alpha, self._initial(X))

    def displacement(self, alpha: np.ndarray) -> Params:
        """w - w_0 = lambda grad f . alpha, as a tree like the parameters."""
        _, pull = jax.vjp(lambda p: self.model.apply(p, self.X), self.model.params)
        flat, unravel = ravel_pytree(pull(jnp.asarray(alpha))[0])
        return unravel(flat * flat_rates(self.model.params, self.model.rates))

    def _ntk(self, X: jax.Array) -> np.ndarray:
        return np.asarray(empirical_ntk(self.model.apply, self.model.params, X, self.model.rates, X2=self.X))

    def _initial(self, X: jax.Array) -> np.ndarray:
        return np.asarray(self.model.apply(self.model.params, X))


@dataclass(frozen=True)
class MatrixFreeTraining:
    """The same training with products of the NTK alone: conjugate gradients to the end, Lanczos' method in time.

    A prediction is one forward pass along the displacement of the parameters, on any number of inputs.
    """

    model: Linearized
    X: jax.Array
    y: np.ndarray
    ridge: float = 0.0
    tolerance: float = TOLERANCE
    rank: int = RANK
    memory: float = MEMORY
    progress: bool | None = None

    @cached_property
    def ntk(self) -> NTKOperator:
        """The training NTK as an operator on (sample, output) rows."""
        return NTKOperator(self.model.apply, self.model.params, self.X, self.model.rates, self.memory)

    @cached_property
    def fit(self) -> IterativeRegression:
        """Kernel regression with it."""
        start = np.asarray(self.model.apply(self.ntk.params, self.ntk.X), float)
        if start.shape != self.y.shape:
            raise NumericError(f"labels have the shape of the outputs, {start.shape}, not {self.y.shape}")
        return IterativeRegression(
            self.ntk,
            self.y.reshape(-1),
            self.ridge,
            start.reshape(-1),
            self.tolerance,
            self.rank,
            memory=self.memory,
            progress=self.progress,
        )

    def flow(self, X: Any, time: float, eta: float = 1.0) -> np.ndarray:
        """f_lin after gradient flow until one time."""
        return self.predict(X, self.fit.flow_weights(time, eta).value)

    def descent(self, X: Any, steps: int, eta: float) -> np.ndarray:
        """f_lin after whole steps of gradient descent."""
        return self.predict(X, self.fit.descent_weights(steps, eta).value)

    def limit(self, X: Any) -> np.ndarray:
        """f_lin at the end of training."""
        return self.predict(X, self.fit.alpha)

    def predict(self, X: Any, alpha: np.ndarray) -> np.ndarray:
        """f_0(x) + grad f(x) . displacement."""
        move = self.ntk.directions(np.reshape(alpha, (len(self.y), -1, 1)))
        start = np.asarray(self.model.apply(self.ntk.params, jnp.asarray(X, float)))
        return start + self.ntk.along(move, jnp.asarray(X, float))[..., 0].reshape(start.shape)

    def displacement(self, alpha: np.ndarray) -> Params:
        """w - w_0, as a tree like the parameters."""
        _, unravel = ravel_pytree(self.model.params)
        return unravel(self.ntk.directions(np.reshape(alpha, (len(self.y), -1, 1)))[0])
