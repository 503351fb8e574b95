"""Exact Taylor coefficients by power-series arithmetic on the expression tree: fast, without derivative towers.

Each elementary function is applied to a series through its differential equation, so that order N costs O(N^2)
rational operations. Coefficients are SymPy numbers; all-rational series run on the rationals of SymPy's ground domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp
from sympy.polys.domains import QQ

from derive.errors import FormulaError

Coefficients = list[sp.Expr]


def taylor_coefficients(expression: sp.Expr, variable: sp.Symbol, at: sp.Expr, order: int) -> Coefficients:
    """c_0 ... c_order with expression = sum c_k (variable - at)^k, for an expression analytic at that point.

    >>> z = sp.Symbol("z")
    >>> taylor_coefficients(sp.tanh(z), z, sp.S.Zero, 5)
    [0, 1, 0, -1/3, 0, 2/15]
    """
    return _expand(expression, variable, sp.sympify(at), order, {})


def _expand(
    expression: sp.Expr, variable: sp.Symbol, at: sp.Expr, order: int, known: dict[sp.Expr, Coefficients]
) -> Coefficients:
    if expression not in known:
        known[expression] = _expand_node(expression, variable, at, order, known)
    return known[expression]


def _expand_node(
    expression: sp.Expr, variable: sp.Symbol, at: sp.Expr, order: int, known: dict[sp.Expr, Coefficients]
) -> Coefficients:
    if expression == variable:
        return ([at, sp.S.One] + [sp.S.Zero] * order)[: order + 1]
    if not expression.has(variable):
        return [expression] + [sp.S.Zero] * order
    series = [_expand(argument, variable, at, order, known) for argument in expression.args if argument.has(variable)]
    if expression.is_Add:
        constant = sp.Add(*(a for a in expression.args if not a.has(variable)))
        return [sp.Add(*column) + (constant if k == 0 else 0) for k, column in enumerate(zip(*series))]
    if expression.is_Mul:
        constant = sp.Mul(*(a for a in expression.args if not a.has(variable)))
        product = series[0]
        for factor in series[1:]:
            product = multiply(product, factor)
        return [_tidy(constant * c) for c in product] if constant != 1 else product
    if expression.is_Pow:
        if expression.exp.has(variable):
            base = expression.base
            return _exp(_expand(expression.exp * sp.log(base), variable, at, order, known))
        return _power(series[0], expression.exp)
    rule = _RULES.get(expression.func)
    if rule is None:
        raise FormulaError(f"No Taylor rule for {expression.func.__name__} at {variable} = {at}.")
    return rule(series[0])


def _tidy(value: sp.Expr) -> sp.Expr:
    return value if value.is_Rational else sp.expand(value)


def _rational(*series: Sequence[sp.Expr]) -> bool:
    return all(c.is_Rational for s in series for c in s)


def multiply(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> Coefficients:
    """The product of two series, to the shorter one's order."""
    count = min(len(a), len(b))
    if _rational(a, b):
        left, right = [QQ.from_sympy(c) for c in a], [QQ.from_sympy(c) for c in b]
        sums = [sum((left[j] * right[k - j] for j in range(k + 1) if left[j]), QQ.zero) for k in range(count)]
        return [QQ.to_sympy(c) for c in sums]
    return [
        _tidy(sp.Add(*(a[j] * b[k - j] for j in range(k + 1) if a[j] != 0 and b[k - j] != 0))) for k in range(count)
    ]


def _linear_equation(start: sp.Expr, inner: Sequence[sp.Expr], power: sp.Expr | None = None) -> Coefficients:
    """y = exp(u) (power None) from y' = u' y, or y = u^p from u y' = p u' y; y_0 = start."""
    count = len(inner)
    exact_rational = _rational(inner, [start] + ([power] if power is not None else []))
    convert: Callable = QQ.from_sympy if exact_rational else (lambda c: c)
    u, y = [convert(c) for c in inner], [convert(start)]
    p = convert(power) if power is not None else None
    for k in range(1, count):
        zero = QQ.zero if exact_rational else sp.S.Zero
        if p is None:
            total = sum((j * u[j] * y[k - j] for j in range(1, k + 1) if u[j] != 0), zero) / k
        else:
            total = sum(((p * j - (k - j)) * u[j] * y[k - j] for j in range(1, k + 1) if u[j] != 0), zero) / (k * u[0])
        y.append(total if exact_rational else _tidy(total))
    return [QQ.to_sympy(c) for c in y] if exact_rational else y


def _exp(inner: Sequence[sp.Expr]) -> Coefficients:
    return _linear_equation(sp.exp(inner[0]), inner)


def _power(inner: Coefficients, power: sp.Expr) -> Coefficients:
    if power.is_Integer and power >= 0:
        result, square, n = [sp.S.One] + [sp.S.Zero] * (len(inner) - 1), inner, int(power)
        while n:
            if n & 1:
                result = multiply(result, square)
            n >>= 1
            square = multiply(square, square) if n else square
        return result
    start = sp.nsimplify(inner[0]) if inner[0].is_Rational else inner[0]
    if start.is_zero:
        raise FormulaError(f"The power {power} of something that vanishes there has no Taylor series.")
    value = start**power
    return _linear_equation(value if value.is_Rational else sp.radsimp(sp.expand(value)), inner, power)


def integrate(slope: Sequence[sp.Expr], start: sp.Expr) -> Coefficients:
    """The series with the given derivative (whose last coefficient is not needed) and constant term."""
    return [start, *(c / k for k, c in enumerate(slope[:-1], start=1))]


def differentiate(series: Sequence[sp.Expr]) -> Coefficients:
    """The derivative, padded with a zero so that its length is unchanged."""
    return [k * c for k, c in enumerate(series) if k] + [sp.S.Zero]


def _constant(function: Callable[[sp.Expr], sp.Expr], argument: sp.Expr) -> sp.Expr:
    value = function(argument)
    if value.is_Rational or argument.is_Rational:
        return value
    rewritten = sp.simplify(value.rewrite(sp.exp))  # tanh(log 2) is 3/5
    return rewritten if rewritten.is_Rational else value


def _riccati(function: Callable[[sp.Expr], sp.Expr]) -> Callable[[Coefficients], Coefficients]:
    def tanh(inner: Coefficients) -> Coefficients:
        """y' = (1 - y^2) u', coefficient by coefficient."""
        start = _constant(function, inner[0])
        fast = _rational(inner, [start])
        convert: Callable = QQ.from_sympy if fast else (lambda c: c)
        zero = convert(sp.S.Zero)
        du = [convert(c) for c in differentiate(inner)]
        y, w = [convert(start)], []  # w = 1 - y^2
        for k in range(len(inner) - 1):
            square = sum((y[j] * y[k - j] for j in range(k + 1)), zero)
            w.append((1 if k == 0 else 0) - square if fast else _tidy((sp.S.One if k == 0 else zero) - square))
            total = sum((du[j] * w[k - j] for j in range(k + 1) if du[j] != 0), zero) / (k + 1)
            y.append(total if fast else _tidy(total))
        return [QQ.to_sympy(c) for c in y] if fast else y

    return tanh


def _pair(
    first: Callable[[sp.Expr], sp.Expr], second: Callable[[sp.Expr], sp.Expr], sign: int, which: int
) -> Callable[[Coefficients], Coefficients]:
    """(sin, cos) with sign -1 or (sinh, cosh) with +1: s' = c u', c' = sign s u'."""

    def rule(inner: Coefficients) -> Coefficients:
        start = (_constant(first, inner[0]), _constant(second, inner[0]))
        fast = _rational(inner, start)
        convert: Callable = QQ.from_sympy if fast else (lambda c: c)
        du = [convert(c) for c in differentiate(inner)]
        s, c = [convert(start[0])], [convert(start[1])]
        zero = convert(sp.S.Zero)
        for k in range(len(inner) - 1):
            ds = sum((du[j] * c[k - j] for j in range(k + 1) if du[j] != 0), zero) / (k + 1)
            dc = sign * sum((du[j] * s[k - j] for j in range(k + 1) if du[j] != 0), zero) / (k + 1)
            s.append(ds if fast else _tidy(ds))
            c.append(dc if fast else _tidy(dc))
        result = (s, c)[which]
        return [QQ.to_sympy(v) for v in result] if fast else result

    return rule


def _log(inner: Coefficients) -> Coefficients:
    return integrate(multiply(differentiate(inner), _power(inner, sp.S.NegativeOne)), sp.log(inner[0]))


def _erf(inner: Coefficients) -> Coefficients:
    gauss = _exp([-c for c in multiply(inner, inner)])
    slope = multiply(gauss, differentiate(inner))
    return integrate([2 / sp.sqrt(sp.pi) * c for c in slope], sp.erf(inner[0]))


def _from_slope(function: Callable[[sp.Expr], sp.Expr], power: sp.Expr) -> Callable[[Coefficients], Coefficients]:
    def rule(inner: Coefficients) -> Coefficients:
        """y' = (1 + u^2)^power u': arctan (-1) and asinh (-1/2)."""
        base = multiply(inner, inner)
        base = [base[0] + 1, *base[1:]]
        return integrate(multiply(_power(base, power), differentiate(inner)), function(inner[0]))

    return rule


_RULES: dict[type, Callable[[Coefficients], Coefficients]] = {
    sp.exp: _exp,
    sp.log: _log,
    sp.tanh: _riccati(sp.tanh),
    sp.sin: _pair(sp.sin, sp.cos, -1, 0),
    sp.cos: _pair(sp.sin, sp.cos, -1, 1),
    sp.sinh: _pair(sp.sinh, sp.cosh, 1, 0),
    sp.cosh: _pair(sp.sinh, sp.cosh, 1, 1),
    sp.erf: _erf,
    sp.atan: _from_slope(sp.atan, sp.S.NegativeOne),
    sp.asinh: _from_slope(sp.asinh, -sp.S.Half),
}
