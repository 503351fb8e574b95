"""Numbers that users give to `numeric`: the one place that checks them; each complaint is one sentence."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np

from numeric.errors import NonFinitePrediction, NumericError


def finite(
    value: object, name: str, *, least: float | None = None, above: float | None = None, below: float | None = None
) -> float:
    """A finite real number within bounds.

    >>> finite("0.5", "rate"), finite(1, "ridge", least=0)
    Traceback (most recent call last):
    ...
    numeric.errors.NumericError: rate is a finite real number, not '0.5'.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise NumericError(f"{name} is a finite real number, not {value!r}.")
    number = float(value)
    if least is not None and number < least:
        raise NumericError(f"{name} is a number from {least:g} on, not {number:g}.")
    if above is not None and number <= above:
        raise NumericError(f"{name} is a number above {above:g}, not {number:g}.")
    if below is not None and number >= below:
        raise NumericError(f"{name} is a number below {below:g}, not {number:g}.")
    return number


def whole(value: object, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
    """A whole number within bounds.

    >>> whole(np.int64(3), "seed")
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise NumericError(f"{name} is a whole number from {least} to {most}, not {value!r}.")
    return int(value)


def a_seed(value: object) -> int:
    """What random numbers start from: a whole number that NumPy and JAX both take."""
    return whole(value, "The seed", most=2**63 - 1)


def stays_finite(values: np.ndarray, name: str) -> np.ndarray:
    """The values; an error where a number has left the range of floating point, so that NaN never leaves silently."""
    if not np.isfinite(values).all():
        raise NonFinitePrediction(
            f"{name} leaves the range of floating-point numbers: scale the targets (or the learning rates) down."
        )
    return values
