"""Powers of the width from noisy means: weighted least squares in log-log, with an error bar that owns its misfit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError

Array = np.ndarray


@dataclass(frozen=True)
class PowerLaw:
    """value = coefficient * width^power * exp(correction/width), with the power's standard error.

    `chi2` (per degree of freedom) measures misfit; `correction` is zero where it was not fitted.
    """

    power: float
    power_error: float
    coefficient: float
    correction: float
    chi2: float
    points: int

    def __call__(self, width: Array) -> Array:
        """The fitted value."""
        return self.coefficient * np.asarray(width, float) ** self.power * np.exp(self.correction / width)

    def agrees(self, power: float, sigmas: float = 2.0, systematic: float = 0.0) -> bool:
        """Whether a power lies within so many standard errors (plus an allowance for higher orders in 1/width)."""
        return abs(self.power - power) <= sigmas * self.power_error + systematic


def power_law(widths: Array, means: Array, errors: Array, next_order: bool = False) -> PowerLaw:
    """Fit log |mean| = c + power log(width) [+ b/width], weighted by the errors; points below two errors are left out.

    With `next_order` and at least four points the term in 1/width is fitted too: the first order in 1/n is not the
    last word at ordinary widths. The error bar is enlarged by sqrt(chi2) when the points scatter more than their
    errors say.

    >>> fit = power_law(np.array([8, 16, 32]), np.array([1 / 8, 1 / 16, 1 / 32]), np.array([1e-3, 1e-3, 1e-3]))
    >>> round(fit.power, 10), fit.points
    (-1.0, 3)
    """
    n, m, e = (np.asarray(x, float) for x in (widths, means, errors))
    seen = np.isfinite(m) & (np.abs(m) > 2 * e) & (m != 0)
    count = int(seen.sum())
    if count < 2:
        raise NumericError("a power needs at least two widths at which the mean is larger than twice its error")
    columns = [np.ones(count), np.log(n[seen])]
    if next_order and count >= 4:
        columns.append(1 / n[seen])
    y = np.log(np.abs(m[seen]))
    sigma = np.maximum(e[seen] / np.abs(m[seen]), 1e-12)
    design = np.stack(columns, axis=1) / sigma[:, None]
    covariance = np.linalg.inv(design.T @ design)
    answer = covariance @ design.T @ (y / sigma)
    freedom = count - len(columns)
    chi2 = float(np.sum((design @ answer - y / sigma) ** 2)) / freedom if freedom else 0.0
    return PowerLaw(
        power=float(answer[1]),
        power_error=float(np.sqrt(max(chi2, 1.0) * covariance[1, 1])),
        coefficient=float(np.exp(answer[0])),
        correction=float(answer[2]) if len(columns) == 3 else 0.0,
        chi2=chi2,
        points=count,
    )
