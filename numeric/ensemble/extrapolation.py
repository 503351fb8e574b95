"""From ordinary widths to the coefficient of 1/n: weighted fits in 1/n and 1/n², with standard errors.

First order in 1/n is not the last word at ordinary widths, so the theory's coefficient is compared with the limit of
n × (what was measured - its infinite-width value) over several widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError


@dataclass(frozen=True)
class Extrapolation:
    """value(n) = limit + c_1/n + c_2/n² + ...: the limit with its standard error, and how well the fit holds."""

    limit: np.ndarray
    error: np.ndarray
    coefficients: np.ndarray
    chi_squared: np.ndarray
    degrees_of_freedom: int


def extrapolate(widths: Sequence[float], values: np.ndarray, errors: np.ndarray, order: int = 2) -> Extrapolation:
    """Fit values (widths first) by a polynomial of the given order in 1/n, weighted by their standard errors.

    >>> n = np.array([16.0, 32.0, 64.0, 128.0])
    >>> fit = extrapolate(n, 3 + 5 / n - 7 / n**2, np.full(4, 0.01))
    >>> round(float(fit.limit), 10), fit.degrees_of_freedom
    (3.0, 1)
    """
    n, values, errors = np.asarray(widths, dtype=float), np.asarray(values), np.asarray(errors)
    if len(n) <= order or len(set(n.tolist())) != len(n):
        raise NumericError(f"A fit of order {order} in 1/n needs more than {order} different widths.")
    if values.shape != errors.shape or len(values) != len(n) or not (errors > 0).all():
        raise NumericError("values and errors (positive) need one entry for each width.")
    design = n[:, None] ** -np.arange(order + 1)
    flat, weights = values.reshape(len(n), -1), 1 / errors.reshape(len(n), -1)
    coefficients, limits, chi = [], [], []
    for column, weight in zip(flat.T, weights.T):
        scaled = design * weight[:, None]
        covariance = np.linalg.inv(scaled.T @ scaled)
        solution = covariance @ scaled.T @ (column * weight)
        coefficients.append(solution)
        limits.append(np.sqrt(covariance[0, 0]))
        chi.append(np.sum((scaled @ solution - column * weight) ** 2))
    shape = values.shape[1:]
    found = np.array(coefficients).T.reshape(order + 1, *shape)
    return Extrapolation(
        found[0], np.array(limits).reshape(shape), found, np.array(chi).reshape(shape), len(n) - order - 1
    )
