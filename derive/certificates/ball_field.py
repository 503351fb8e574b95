"""Balls as the coefficients of depth series: every sum, product and quotient of the solver encloses the exact one.

What is zero by the theory (chi - 1 at a critical point) arrives as a narrow ball around zero. Such a ball is taken for
zero, as the solver must decide which terms are there; one that is wider than `NARROW` is refused instead.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.polys.domains.characteristiczero import CharacteristicZero
from sympy.polys.domains.field import Field as DomainField
from sympy.polys.domains.simpledomain import SimpleDomain

from derive.activations.enclosure import available, constant_ball
from derive.depth.field import Field
from derive.errors import DeriveError

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

NARROW = 1e-20
"""The widest ball around zero that is taken for zero, next to the size of what it came from."""


class BallDomain(DomainField, CharacteristicZero, SimpleDomain):
    """The SymPy domain of FLINT's real balls, at the precision that is set when they are computed."""

    rep = "Ball"
    is_Exact = False
    is_Numerical = True
    is_PID = False
    has_assoc_Ring = False
    has_assoc_Field = True
    tp = flint.arb if available() else None

    def __init__(self) -> None:
        self.zero, self.one = flint.arb(0), flint.arb(1)

    def dtype(self, number: Any) -> arb:
        return number if isinstance(number, flint.arb) else flint.arb(int(number))

    def from_sympy(self, expression: sp.Expr) -> arb:
        return constant_ball(expression)

    def to_sympy(self, number: arb) -> sp.Expr:
        """The middle of the ball, to order and to show it by."""
        return sp.Float(float(number.mid()))

    def convert(self, element: Any, base: Any = None) -> arb:
        return self.dtype(element)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BallDomain)

    def __hash__(self) -> int:
        return hash(BallDomain)

    def is_negative(self, a: arb) -> bool:
        return bool(a < 0)


class BallField(Field):
    """The solver's field with balls for numbers; `zeros` is the widest ball that was taken for zero.

    >>> from derive.gaussian.balls import precision
    >>> field = BallField()
    >>> with precision(100):
    ...     third = field(sp.Rational(1, 3))
    ...     field.negligible(third * 3 - field(1)), field.negligible(third)
    (True, False)
    """

    def __init__(self) -> None:
        super().__init__(BallDomain(), digits=15)
        self.zeros = 0.0

    def negligible(self, element: Any) -> bool:
        if not element.contains(0):
            return False
        size = float(element.abs_upper())
        if not size < NARROW:
            raise DeriveError("A coefficient cannot be told from zero in balls: it takes more digits.")
        self.zeros = max(self.zeros, size)
        return True

    def fraction(self, element: Any) -> Fraction | None:
        """The one fraction with a small denominator in a narrow ball."""
        if not float(element.rad()) < NARROW:
            return None
        guess = Fraction(float(element.mid())).limit_denominator(24)
        return guess if element.contains(flint.fmpq(guess.numerator, guess.denominator)) else None
