"""Numbers with their error: what a floating-point coefficient is worth after cancellations, so that what is left of one
is recognized as zero.

A `Measured` number carries a first-order bound on its error through +, -, *, /. `MeasuredField` is the SymPy domain of
such numbers, for polynomials over them.

>>> field = MeasuredField(100)
>>> third = field.from_sympy(sp.Float("0.333333333333333333333333333333", 30))
>>> (third - third / field.dtype(1)).is_zero, (third * 3).is_zero
(True, False)
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import sympy as sp
from sympy.polys.domains.characteristiczero import CharacteristicZero
from sympy.polys.domains.field import Field as DomainField
from sympy.polys.domains.simpledomain import SimpleDomain
from sympy.polys.polyerrors import CoercionFailed

DATA_DIGITS = 3
"""Digits of a given floating-point number that are not relied on: it was computed, by sums of other such numbers."""


class Measured:
    """A number of `value` with an absolute error of at most `error`."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any, error: float = 0.0) -> None:
        self.value, self.error = value, error

    @property
    def is_zero(self) -> bool:
        """Whether zero is within the error."""
        return bool(abs(self.value) <= self.error)

    def _rounding(self, value: Any) -> float:
        return float(abs(value)) * 2.0 ** (1 - value.context.prec)

    def _other(self, other: Any) -> Measured:
        return other if isinstance(other, Measured) else Measured(type(self.value)(int(other)))

    def __add__(self, other: Any) -> Measured:
        other = self._other(other)
        value = self.value + other.value
        return Measured(value, self.error + other.error + self._rounding(value))

    __radd__ = __add__

    def __neg__(self) -> Measured:
        return Measured(-self.value, self.error)

    def __sub__(self, other: Any) -> Measured:
        return self + (-self._other(other))

    def __rsub__(self, other: Any) -> Measured:
        return -self + other

    def __mul__(self, other: Any) -> Measured:
        other = self._other(other)
        value = self.value * other.value
        error = float(abs(self.value)) * other.error + (float(abs(other.value)) + other.error) * self.error
        return Measured(value, error + self._rounding(value))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Measured:
        other = self._other(other)
        value = self.value / other.value
        error = (self.error + float(abs(value)) * other.error) / float(abs(other.value))
        return Measured(value, error + self._rounding(value))

    def __rtruediv__(self, other: Any) -> Measured:
        return self._other(other) / self

    def __pow__(self, power: int) -> Measured:
        result = self._other(1)
        for _ in range(abs(power)):
            result = result * self
        return result if power >= 0 else self._other(1) / result

    def __abs__(self) -> Any:
        return abs(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, Measured) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.value} ± {self.error:.1e}"


class MeasuredField(DomainField, CharacteristicZero, SimpleDomain):
    """The SymPy domain of measured numbers of so many bits."""

    rep = "Measured"
    is_Exact = False
    is_Numerical = True
    is_PID = False
    has_assoc_Ring = False
    has_assoc_Field = True
    tp = Measured

    def __init__(self, bits: int) -> None:
        self._numbers = sp.RealField(prec=bits)
        self.bits = bits
        self.digits = int(bits / 3.3219280948873626)
        self.zero, self.one = self.dtype(0), self.dtype(1)

    def dtype(self, number: Any) -> Measured:
        return number if isinstance(number, Measured) else Measured(self._numbers.dtype(number))

    def from_sympy(self, expression: sp.Expr) -> Measured:
        if not expression.is_number:
            raise CoercionFailed(f"{expression} is not a number")
        value = self._numbers.from_sympy(expression)
        if not expression.has(sp.Float):
            return Measured(value, 0.0 if expression.is_Integer else float(abs(value)) * 2.0 ** (1 - self.bits))
        return Measured(value, float(abs(value)) * 10.0 ** (DATA_DIGITS - self.digits))

    def to_sympy(self, number: Measured) -> sp.Expr:
        """With the digits that are right (two at least)."""
        if not number.value:
            return sp.S.Zero
        known = self.digits
        if number.error:
            known = min(known, int(mpmath.log10(abs(number.value)) - math.log10(number.error)) + DATA_DIGITS)
        return sp.Float(number.value, max(2, known))

    def convert(self, element: Any, base: Any = None) -> Measured:
        return element if isinstance(element, Measured) else self.dtype(int(element))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeasuredField) and other.bits == self.bits

    def __hash__(self) -> int:
        return hash((MeasuredField, self.bits))

    def is_negative(self, a: Any) -> bool:
        return bool(a.value < 0)
