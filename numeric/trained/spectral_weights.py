"""How far training has moved along a mode of the kernel with eigenvalue h: g_t(h), for flow and descent.

    gradient flow      g_t(h) = (1 - exp(-eta h t)) / h
    gradient descent   g_t(h) = (1 - (1 - eta h)^t) / h

Both tend to 1/h, and to eta t where h is zero. They are evaluated without cancellation.
"""

from __future__ import annotations

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite

Array = np.ndarray


def flow_weights(h: Array, time: float | Array, eta: float = 1.0) -> Array:
    """(1 - exp(-eta h t)) / h for times of shape (...) and eigenvalues (m,): (..., m)."""
    finite(eta, "The learning rate", least=0)
    t = np.asarray(time, float)[..., None]
    if not np.isfinite(t).all() or (t < 0).any():
        raise NumericError("times of training are finite numbers from 0 on")
    safe = np.where(h > 0, h, 1.0)
    return np.where(h > 0, -np.expm1(-eta * h * t) / safe, eta * t)


def descent_weights(h: Array, steps: int | Array, eta: float) -> Array:
    """(1 - (1 - eta h)^t) / h for whole numbers of steps; infinite where it leaves the range of floating point."""
    finite(eta, "The learning rate", least=0)
    t = np.asarray(steps)[..., None]
    if not np.issubdtype(t.dtype, np.integer) or np.any(t < 0):
        raise NumericError("gradient descent has whole steps: give integers, not negative")
    safe = np.where(h > 0, h, 1.0)
    near = np.abs(eta * h) < 0.5
    with np.errstate(over="ignore"):
        # 1 - u^t loses digits when eta h t is small: there use expm1 and log1p
        small = -np.expm1(t * np.log1p(np.where(near, -eta * h, 0.0))) / safe
        large = (1 - (1 - eta * h) ** t.astype(float)) / safe
    return np.where(h > 0, np.where(near, small, large), eta * t)
