"""Powers of the width from noisy means: weighted least squares in log-log, with an error bar that owns its misfit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError

Array = np.ndarray


@dataclass(frozen=True)
class PowerLaw:
    """value = coefficient * width^power, with standard errors; `chi2` (per degree of freedom) measures misfit."""

    power: float
    power_error: float
    coefficient: float
    chi2: float
    points: int

    def agrees(self, power: float, sigmas: float = 2.0, systematic: float = 0.0) -> bool:
        """Whether a power lies within so many standard errors (plus an allowance for the next order in 1/width)."""
        return abs(self.power - power) <= sigmas * self.power_error + systematic


def power_law(widths: Array, means: Array, errors: Array) -> PowerLaw:
    """Fit log |mean| against log width, weighted by the relative errors; points below two errors are left out.

    The error bar is enlarged by sqrt(chi2) when the points scatter more than their errors say.

    >>> fit = power_law(np.array([8, 16, 32]), np.array([1 / 8, 1 / 16, 1 / 32]), np.array([1e-3, 1e-3, 1e-3]))
    >>> round(fit.power, 10), fit.points
    (-1.0, 3)
    """
    n, m, e = (np.asarray(x, float) for x in (widths, means, errors))
    seen = np.isfinite(m) & (np.abs(m) > 2 * e) & (m != 0)
    if seen.sum() < 2:
        raise NumericError("a power needs at least two widths at which the mean is larger than twice its error")
    x, y = np.log(n[seen]), np.log(np.abs(m[seen]))
    sigma = np.maximum(e[seen] / np.abs(m[seen]), 1e-12)
    weight = 1 / sigma**2
    center = np.average(x, weights=weight)
    spread = float(np.sum(weight * (x - center) ** 2))
    power = float(np.sum(weight * (x - center) * y) / spread)
    offset = float(np.average(y, weights=weight) - power * center)
    freedom = int(seen.sum()) - 2
    chi2 = float(np.sum(weight * (y - offset - power * x) ** 2)) / freedom if freedom else 0.0
    return PowerLaw(power, float(np.sqrt(max(chi2, 1.0) / spread)), float(np.exp(offset)), chi2, int(seen.sum()))
