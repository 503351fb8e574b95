"""Exact Taylor coefficients by power-series arithmetic on the expression tree: fast, without derivative towers.

Each elementary function is applied to a series through its differential equation, so that order N costs O(N^2)
exact operations: on rationals, or on polynomials over them with one generator for each irrational constant that turns
up (sqrt(2), 1/sqrt(pi), exp(-1), tanh(1), 1/(1 + exp(-1)), ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ
from sympy.polys.rings import ring

from derive.errors import FormulaError

Series = list[Any]
"""Coefficients: rationals of the ground domain, or polynomials in the constants' generators."""

MAX_CONSTANTS = 8
_RING, *_GENERATORS = ring([f"g{k}" for k in range(MAX_CONSTANTS)], QQ)


def taylor_coefficients(expression: sp.Expr, variable: sp.Symbol, at: sp.Expr, order: int) -> list[sp.Expr]:
    """c_0 ... c_order with expression = sum c_k (variable - at)^k, for an expression analytic at that point.

    >>> z = sp.Symbol("z")
    >>> taylor_coefficients(sp.tanh(z), z, sp.S.Zero, 5)
    [0, 1, 0, -1/3, 0, 2/15]
    """
    expansion = _Expansion(variable, sp.sympify(at, strict=True), order)
    return [expansion.to_sympy(c) for c in expansion.expand(expression)]


class _Expansion:
    """One expansion: the point, the order, the constants met so far and the series of every subexpression."""

    def __init__(self, variable: sp.Symbol, at: sp.Expr, order: int) -> None:
        self.variable, self.order = variable, order
        self.constants: dict[sp.Expr, Any] = {}
        self.known: dict[sp.Expr, Series] = {variable: self._padded(self.constant(at), QQ.one)}

    def _padded(self, *start: Any) -> Series:
        return (list(start) + [QQ.zero] * (self.order + 1))[: self.order + 1]

    def constant(self, value: sp.Expr) -> Any:
        """A SymPy number as a rational or a polynomial in generators."""
        if value.is_Rational:
            return QQ.from_sympy(value)
        if value.is_Add:
            return sum((self.constant(a) for a in value.args), QQ.zero)
        if value.is_Mul:
            product: Any = QQ.one
            for a in value.args:
                product = product * self.constant(a)
            return product
        base, power = value.as_base_exp()
        if power.is_Integer and abs(power) != 1:
            return self.constant(base ** sp.sign(power)) ** int(abs(power))
        if value not in self.constants:
            if len(self.constants) == MAX_CONSTANTS:
                raise FormulaError(f"The formula holds more than {MAX_CONSTANTS} irrational constants.")
            self.constants[value] = _GENERATORS[len(self.constants)]
        return self.constants[value]

    def to_sympy(self, element: Any) -> sp.Expr:
        if QQ.of_type(element):
            return QQ.to_sympy(element)
        names = {generator.as_expr(): value for value, generator in self.constants.items()}
        return sp.expand(element.as_expr()).xreplace(names)

    def expand(self, expression: sp.Expr) -> Series:
        if expression not in self.known:
            self.known[expression] = self._expand(expression)
        return self.known[expression]

    def _expand(self, expression: sp.Expr) -> Series:
        if not expression.has(self.variable):
            return self._padded(self.constant(expression))
        if expression.is_Add:
            return [sum(column, QQ.zero) for column in zip(*(self.expand(a) for a in expression.args))]
        if expression.is_Mul:
            product = self._padded(QQ.one)
            for a in expression.args:
                product = _multiply(product, self.expand(a))
            return product
        if expression.is_Pow:
            if expression.exp.has(self.variable):
                return self._exp(self.expand(expression.exp * sp.log(expression.base)))
            return self._power(self.expand(expression.base), expression.exp)
        rule = _RULES.get(expression.func)
        if rule is None:
            raise FormulaError(f"No Taylor rule is known for {expression.func.__name__}.")
        return rule(self, self.expand(expression.args[0]))

    def start(self, function: Callable[[sp.Expr], sp.Expr], inner: Series) -> Any:
        """f(u_0); tanh(log 2) is recognised as 3/5."""
        argument = self.to_sympy(inner[0])
        value = function(argument)
        if argument.has(sp.log) and value.has(sp.tanh, sp.sinh, sp.cosh):
            rewritten = sp.cancel(value.rewrite(sp.exp))
            value = rewritten if rewritten.is_Rational else value
        return self.constant(value)

    def _exp(self, inner: Series) -> Series:
        """y' = u' y."""
        y = [self.start(sp.exp, inner)]
        for k in range(1, len(inner)):
            y.append(sum((j * inner[j] * y[k - j] for j in range(1, k + 1) if inner[j]), QQ.zero) * QQ(1, k))
        return y

    def _power(self, inner: Series, power: sp.Expr) -> Series:
        """u^p by u y' = p u' y; whole powers by repeated squaring, since u may vanish at the point."""
        if power.is_Integer and power >= 0:
            result, square, n = self._padded(QQ.one), inner, int(power)
            while n:
                result = _multiply(result, square) if n & 1 else result
                n >>= 1
                square = _multiply(square, square) if n else square
            return result
        if not inner[0]:
            raise FormulaError(f"The power {power} of something that vanishes there has no Taylor series.")
        p = QQ.from_sympy(power)
        y = [self.start(lambda u: u**power, inner)]
        inverse = self.constant(1 / self.to_sympy(inner[0]))
        for k in range(1, len(inner)):
            terms = ((p * j - (k - j)) * inner[j] * y[k - j] for j in range(1, k + 1) if inner[j])
            y.append(sum(terms, QQ.zero) * inverse * QQ(1, k))
        return y

    def _log(self, inner: Series) -> Series:
        slope = _multiply(_differentiate(inner), self._power(inner, sp.S.NegativeOne))
        return _integrate(slope, self.start(sp.log, inner))

    def _erf(self, inner: Series) -> Series:
        """y' = 2/sqrt(pi) exp(-u^2) u'."""
        slope = _multiply(self._exp([-c for c in _multiply(inner, inner)]), _differentiate(inner))
        scale = self.constant(2 / sp.sqrt(sp.pi))
        return _integrate([scale * c for c in slope], self.start(sp.erf, inner))

    def _atan(self, inner: Series) -> Series:
        return self._from_slope(inner, sp.atan, sp.S.NegativeOne)

    def _asinh(self, inner: Series) -> Series:
        return self._from_slope(inner, sp.asinh, -sp.S.Half)

    def _from_slope(self, inner: Series, function: Callable[[sp.Expr], sp.Expr], power: sp.Expr) -> Series:
        """y' = (1 + u^2)^power u'."""
        base = _multiply(inner, inner)
        slope = _multiply(self._power([base[0] + 1, *base[1:]], power), _differentiate(inner))
        return _integrate(slope, self.start(function, inner))

    def _tanh(self, inner: Series) -> Series:
        """y' = (1 - y^2) u', coefficient by coefficient."""
        slope = _differentiate(inner)
        y, w = [self.start(sp.tanh, inner)], []  # w = 1 - y^2
        for k in range(len(inner) - 1):
            w.append((1 if k == 0 else 0) - sum((y[j] * y[k - j] for j in range(k + 1)), QQ.zero))
            y.append(sum((slope[j] * w[k - j] for j in range(k + 1) if slope[j]), QQ.zero) * QQ(1, k + 1))
        return y

    def _circular(self, inner: Series, sign: int) -> tuple[Series, Series]:
        """(sin, cos) with sign -1, (sinh, cosh) with +1: s' = c u', c' = sign s u'."""
        odd, even = (sp.sin, sp.cos) if sign < 0 else (sp.sinh, sp.cosh)
        slope = _differentiate(inner)
        s, c = [self.start(odd, inner)], [self.start(even, inner)]
        for k in range(len(inner) - 1):
            s.append(sum((slope[j] * c[k - j] for j in range(k + 1) if slope[j]), QQ.zero) * QQ(1, k + 1))
            c.append(sign * sum((slope[j] * s[k - j] for j in range(k + 1) if slope[j]), QQ.zero) * QQ(1, k + 1))
        return s, c


def _multiply(a: Series, b: Series) -> Series:
    return [sum((a[j] * b[k - j] for j in range(k + 1) if a[j] and b[k - j]), QQ.zero) for k in range(len(a))]


def _integrate(slope: Series, start: Any) -> Series:
    return [start, *(c * QQ(1, k) for k, c in enumerate(slope[:-1], start=1))]


def _differentiate(series: Series) -> Series:
    return [k * c for k, c in enumerate(series) if k] + [QQ.zero]


_RULES: dict[type, Callable[[_Expansion, Series], Series]] = {
    sp.exp: _Expansion._exp,
    sp.log: _Expansion._log,
    sp.tanh: _Expansion._tanh,
    sp.erf: _Expansion._erf,
    sp.atan: _Expansion._atan,
    sp.asinh: _Expansion._asinh,
    sp.sin: lambda e, u: e._circular(u, -1)[0],
    sp.cos: lambda e, u: e._circular(u, -1)[1],
    sp.sinh: lambda e, u: e._circular(u, 1)[0],
    sp.cosh: lambda e, u: e._circular(u, 1)[1],
}
