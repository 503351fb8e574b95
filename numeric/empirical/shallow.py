"""How far a shallow network can be from its linearization: the bound of seed 001, for fixed second-layer signs.

f(x; w) = (1/sqrt(m)) sum_j a_j sigma(w_j . x) with |a_j| <= 1 and |x| <= 1 obeys
|f - f_lin| <= (beta / (2 sqrt(m))) |w - w_0|^2 for all w and w_0, where beta bounds |sigma''|.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.activations import load
from numeric.errors import NumericError


def smoothness(activation: Any, reach: float = 30.0) -> float:
    """beta = max |sigma''| over |z| <= reach, by a grid that is refined around its largest value (about 1e-12).

    >>> abs(smoothness("tanh") - 4 / 27**0.5) < 1e-12
    True
    """
    module = load(activation)
    functions = module.FUNCTIONS
    if functions.slopes is not None and functions.slopes[0] == functions.slopes[1]:
        return 0.0
    if functions.has_delta(2):
        raise NumericError(f"{functions.name} has a kink: no constant bounds its second derivative")
    low, high, best = -reach, reach, 0.0
    for _ in range(8):
        z = jnp.linspace(low, high, 4001)
        curvature = np.abs(np.asarray(module.sigma(z, 2)))
        top = int(np.argmax(curvature))
        best = max(best, float(curvature[top]))
        if abs(float(z[top])) >= reach and curvature[top] > 1e-9:
            raise NumericError(f"the second derivative of {functions.name} grows without bound")
        step = (high - low) / 4000
        low, high = float(z[top]) - step, float(z[top]) + step
    return best


def shallow_network(activation: Any, w: jax.Array, a: jax.Array, X: jax.Array) -> jax.Array:
    """f(x; w) of the seed: w has shape (m, d), a (m,), X (N, d)."""
    return load(activation).sigma(X @ w.T) @ a / jnp.sqrt(1.0 * len(a))


def linearization_bound(activation: Any, w: Any, w0: Any) -> float:
    """beta/(2 sqrt(m)) |w - w_0|^2, for inputs in the unit ball and second-layer weights within [-1, 1]."""
    w, w0 = np.asarray(w, float), np.asarray(w0, float)
    if w.shape != w0.shape or w.ndim != 2:
        raise NumericError("w and w_0 are the hidden weights, both of shape (width, dimension)")
    return smoothness(activation) / (2 * np.sqrt(len(w))) * float(np.sum((w - w0) ** 2))
