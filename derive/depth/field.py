"""The exact field that the coefficients of depth series live in: rationals, algebraic or transcendental numbers,
rational functions of sigma_1, sigma_2, ..., or floating-point numbers of stated precision where nothing is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.polys.constructor import construct_domain

from derive.depth.precision import MeasuredField

GAUSS_ROOT = sp.Symbol("_g", positive=True)
"""Stands for sqrt(2/pi), the one irrational number in half-line moments of a Gaussian."""


class Field:
    """A SymPy domain with conversions both ways; `digits` is None for exact fields.

    >>> field = Field.containing([sp.sqrt(2) / sp.sqrt(sp.pi), 1 / sp.pi])
    >>> field.to_sympy(field(sp.sqrt(2 / sp.pi)) ** 2)
    2/pi
    >>> Field.containing([sp.Float("0.25", 40)]).digits
    40
    """

    def __init__(self, domain: Any, digits: int | None = None, gauss_root: bool = False) -> None:
        self.domain = domain
        self.digits = digits
        self._gauss_root = gauss_root

    @classmethod
    def containing(cls, numbers: Iterable[sp.Expr]) -> Field:
        """The smallest field at hand that holds all the given numbers."""
        exprs = [sp.sympify(n, strict=True) for n in numbers] or [sp.S.One]
        floats = [f for e in exprs for f in e.atoms(sp.Float)]
        if floats:
            digits = int(min(f._prec for f in floats) / 3.3219280948873626)
            return cls(MeasuredField(min(f._prec for f in floats)), digits)
        domain, _ = construct_domain([sp.S.Half, *exprs], field=True, extension=True)
        if not domain.is_EX:
            return cls(_rational(domain))
        rooted = [_to_gauss_root(e) for e in exprs]
        if not any(e.has(sp.pi) for e in rooted):
            domain, _ = construct_domain([GAUSS_ROOT / 2, *rooted], field=True, extension=True)
            if not domain.is_EX:
                return cls(_rational(domain), gauss_root=True)
        return cls(sp.EX)

    @property
    def exact(self) -> bool:
        return self.digits is None

    def __call__(self, number: Any) -> Any:
        """The field's element for a SymPy number, an integer or a fraction; an element stays what it is."""
        if not isinstance(number, sp.Basic | int | Fraction) and self.domain.of_type(number):
            return number
        if isinstance(number, Fraction):
            number = sp.Rational(number.numerator, number.denominator)
        expr = sp.sympify(number, strict=True)
        if self._gauss_root:
            expr = _to_gauss_root(expr)
        if self.digits is not None:
            return self.domain.from_sympy(expr)
        if not self.domain.is_EX:
            expr = sp.together(expr)
        return self.domain.convert(self.domain.from_sympy(expr))

    def to_sympy(self, element: Any) -> sp.Expr:
        expr = self.domain.to_sympy(element)
        if self._gauss_root:
            expr = sp.expand(sp.cancel(expr)).subs(GAUSS_ROOT, sp.sqrt(2 / sp.pi))
        return expr

    def negligible(self, element: Any) -> bool:
        """Whether a coefficient is zero: exactly, or within the error that its own arithmetic left in it."""
        if self.digits is None:
            return self.domain.is_zero(element) if not self.domain.is_EX else sp.simplify(element.ex) == 0
        return bool(element.is_zero)

    def fraction(self, element: Any) -> Fraction | None:
        """The element as a fraction if it is one, else None."""
        expr = self.to_sympy(element)
        if expr.is_Rational:
            return Fraction(int(expr.p), int(expr.q))
        if self.digits is None:
            expr = sp.nsimplify(sp.simplify(expr)) if self.domain.is_EX else expr
            return Fraction(int(expr.p), int(expr.q)) if expr.is_Rational else None
        guess = Fraction(float(expr)).limit_denominator(24)
        return guess if abs(element - self(guess)) < 10.0 ** (-0.6 * self.digits) else None


def _rational(domain: Any) -> Any:
    """Fields of fractions over the integers and over the rationals are the same; the latter holds every constant."""
    if domain.is_FractionField:
        return domain.dom.get_field().frac_field(*domain.symbols)
    return domain


def _to_gauss_root(expr: sp.Expr) -> sp.Expr:
    root = sp.Symbol("_r", positive=True)
    return sp.expand(sp.powdenest(sp.expand(expr).subs(sp.pi, root**2).subs(root, sp.sqrt(2) / GAUSS_ROOT), force=True))
