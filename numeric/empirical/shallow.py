"""How far a shallow network can be from its linearization: a bound for fixed second-layer signs.

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


def smoothness(activation: Any) -> float:
    """beta >= |sigma''| on the whole line, proved by interval arithmetic and the formula's growth (about 1e-12 high).

    Where sigma'' has no bound, or none can be proved, the answer is a sentence.

    >>> abs(smoothness("tanh") - 4 / 27**0.5) < 1e-11
    True
    """
    from derive.activations.supremum import supremum
    from derive.errors import DeriveError

    module = load(activation)
    try:
        return supremum(module.FUNCTIONS.name, 2)[1]
    except DeriveError as error:
        raise NumericError(str(error)) from None


def shallow_network(activation: Any, w: jax.Array, a: jax.Array, X: jax.Array) -> jax.Array:
    """f(x; w): w has shape (m, d), a (m,), X (N, d)."""
    return load(activation).sigma(X @ w.T) @ a / jnp.sqrt(1.0 * len(a))


def linearization_bound(activation: Any, w: Any, w0: Any) -> float:
    """beta/(2 sqrt(m)) times the squared norm of w - w_0.

    Inputs are in the unit ball and second-layer weights within [-1, 1].
    """
    w, w0 = np.asarray(w, float), np.asarray(w0, float)
    if w.shape != w0.shape or w.ndim != 2:
        raise NumericError("w and w_0 are the hidden weights, both of shape (width, dimension)")
    return smoothness(activation) / (2 * np.sqrt(len(w))) * float(np.sum((w - w0) ** 2))
