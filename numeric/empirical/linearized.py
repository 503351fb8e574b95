"""A network linearized at its parameters, f_lin(x; w) = f(x; w_0) + grad f(x; w_0) . (w - w_0), and its training.

For any JAX model and any diagonal learning-rate tensor (Lee et al. 2019): closed forms for gradient flow and gradient
descent at any time (`numeric.trained.frozen_kernel`) with the network's own NTK, and the parameters that go with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from numeric.empirical import empirical_ntk
from numeric.empirical.contractions import Apply, Params, flat_rates
from numeric.trained.frozen_kernel import FrozenKernelTraining


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

    def training(self, X: Any, y: Any, ridge: float = 0.0) -> LinearizedTraining:
        """Training of f_lin on (X, y) from its initial parameters."""
        return LinearizedTraining(self, jnp.asarray(X, float), np.asarray(y, float), ridge)


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
