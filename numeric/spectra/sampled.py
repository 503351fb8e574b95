"""Kernel regression on sampled training sets: the measurement that `selfconsistent` predicts, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError
from numeric.given import a_seed
from numeric.spectra.eigensystem import Array, Eigensystem
from numeric.spectra.transfer import transfer_matrix


@dataclass(frozen=True)
class MeasuredLearnability:
    """Means over training sets and their standard errors.

    `mode_mse[i]` is the test error on the target phi_i; `mse` the one on the target that was given, if any; the
    worst departure of sum_i L_i from n over the training sets is `sum_rule_error` (only meaningful without ridge).
    """

    samples: int
    learnabilities: Array
    learnabilities_error: Array
    mode_mse: Array
    mode_mse_error: Array
    mse: float | None
    mse_error: float | None
    sum_rule_error: float


def measure_learnability(
    space: Eigensystem,
    samples: int,
    trials: int = 100,
    ridge: float = 0.0,
    target: Array | None = None,
    noise: float = 0.0,
    seed: int = 0,
    average_levels: bool = False,
) -> MeasuredLearnability:
    """Fit `trials` random training sets of `samples` distinct points and average what each learned.

    `target` gives the values of one more function on all points; its training labels carry independent Gaussian noise
    of variance `noise`, its test error is against the clean function. `average_levels` averages modes of equal level
    within each trial (one number for each level), which is what their symmetry allows.
    """
    if trials < 2:
        raise NumericError("a standard error needs at least two trials")
    rng = np.random.default_rng(a_seed(seed))
    v = None if target is None else space.coefficients(target)
    learned, errors, target_errors, sum_rule = [], [], [], 0.0
    for _ in range(trials):
        train = rng.choice(space.size, samples, replace=False)
        T = transfer_matrix(space, train, ridge)
        diagonal = np.diag(T).copy()
        residual = T - np.eye(space.size)
        mode_error = np.einsum("ij,ij->j", residual, residual)
        sum_rule = max(sum_rule, abs(float(diagonal.sum()) - samples))
        learned.append(_by_level(diagonal, space.levels) if average_levels else diagonal)
        errors.append(_by_level(mode_error, space.levels) if average_levels else mode_error)
        if v is not None:
            noisy = v + space.coefficients(np.sqrt(noise) * rng.standard_normal(space.size))
            target_errors.append(float(np.sum((T @ noisy - v) ** 2)))
    L, L_error = _mean(np.array(learned))
    E, E_error = _mean(np.array(errors))
    mse, mse_error = (None, None) if v is None else map(float, _mean(np.array(target_errors)))
    return MeasuredLearnability(samples, L, L_error, E, E_error, mse, mse_error, sum_rule)


def _by_level(values: Array, levels: Array) -> Array:
    return np.bincount(levels, values) / np.bincount(levels)


def _mean(rows: Array) -> tuple[Array, Array]:
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
