"""Ordinary differential equations of training: one home, SciPy's explicit Runge-Kutta pair of order 8."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from numeric.errors import NumericError


def solve(
    rate: Callable[[np.ndarray], np.ndarray], start: np.ndarray, time: float, tolerance: float = 1e-10
) -> np.ndarray:
    """x(time) of dx/dt = rate(x), x(0) = start, an array of any shape; each step's error below tolerance (1 + |x|).

    Explicit, so the cost grows with the largest rate of decay.

    >>> float(solve(lambda x: -x, np.array([1.0]), 1.0)[0] - np.exp(-1)) < 1e-9
    True
    """
    x = np.array(start, dtype=float)
    if time == 0:
        return x

    def flat(_: float, values: np.ndarray) -> np.ndarray:
        return rate(values.reshape(x.shape)).ravel()

    outside = "The training equation left the range of floating-point numbers"
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        if not np.isfinite(rate(x)).all():  # SciPy would look for a first step for ever
            raise NumericError(f"{outside}: it starts with a rate that is not finite.")
        found = solve_ivp(flat, (0.0, float(time)), x.ravel(), method="DOP853", rtol=tolerance, atol=tolerance)
    if not found.success or not np.isfinite(found.y[:, -1]).all():
        raise NumericError(f"{outside}: {found.message}")
    return found.y[:, -1].reshape(x.shape)
