"""Numbers that users give: the one place that reads them. Text is parsed by the whitelist, never evaluated."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import TypeAlias

import sympy as sp

from derive.activations.parser import parse_number
from derive.errors import DeriveError

Number: TypeAlias = str | int | float | Fraction | sp.Expr
"""What may stand for a real number: text such as "2/3" or "sqrt(2)", a Python number, an exact SymPy number."""


def number(value: Number, name: str = "the number") -> sp.Expr:
    """An exact real number; a float is the decimal number that it prints as.

    >>> number("0.1"), number(0.1), number(Fraction(2, 3)), number(sp.sqrt(2))
    (1/10, 1/10, 2/3, sqrt(2))
    """
    if isinstance(value, str):
        found = parse_number(value)
    elif isinstance(value, sp.Basic):
        found = value
    elif isinstance(value, Integral) and not isinstance(value, bool):
        found = sp.Integer(int(value))
    elif isinstance(value, Fraction):
        found = sp.Rational(value.numerator, value.denominator)
    elif isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        found = sp.Rational(repr(float(value)))
    else:
        raise DeriveError(f"{name} must be a finite real number, not {value!r}.")
    if not found.is_number or found.is_real is False or found.is_finite is False:
        raise DeriveError(f"{name} must be a finite real number, not {value}.")
    return found


def not_negative(value: Number, name: str) -> sp.Expr:
    """A number that is at least zero."""
    found = number(value, name)
    if found.is_negative or found < 0:
        raise DeriveError(f"{name} is a number that is not negative, not {value}.")
    return found
