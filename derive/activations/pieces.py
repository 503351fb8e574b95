"""Where an activation has kinks: Abs, Max, Min, sign and Piecewise become analytic pieces between exact kinks."""

from __future__ import annotations

from itertools import pairwise

import sympy as sp

from derive.errors import FormulaError
from derive.symbols import z

SPLITTING = (sp.Abs, sp.Max, sp.Min, sp.sign, sp.Heaviside, sp.Piecewise)
MAX_KINKS = 16


def identically_zero(expression: sp.Expr, low: float = -4.0, high: float = 4.0) -> bool:
    """Whether an analytic expression in z vanishes on (low, high): 50-digit values at eleven scattered points."""
    if expression == 0:
        return True
    if expression.is_polynomial(z):
        return sp.expand(expression) == 0
    width = high - low
    for k in range(1, 12):
        point = sp.Rational(str(low)) + sp.Rational(str(width)) * sp.Rational((k * 377) % 1009, 1009)
        value = expression.xreplace({z: point}).evalf(50, maxn=200)
        if abs(value) > sp.Float("1e-35"):
            return False
    return True


def split(expression: sp.Expr) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    """(kinks, pieces): exact increasing kinks k_1 < ... < k_n and the n + 1 analytic expressions between them.

    >>> split(z / (1 + sp.Abs(z)))
    ((0,), (z/(1 - z), z/(z + 1)))
    """
    borders = _sorted(_borders(expression))
    if len(borders) > MAX_KINKS:
        raise FormulaError(f"The formula has more than {MAX_KINKS} kinks.")
    pieces = [_resolve(expression, point) for point in _between(borders)]
    kinks: list[sp.Expr] = []
    merged = [pieces[0]]
    for border, piece in zip(borders, pieces[1:]):
        if piece != merged[-1] and not identically_zero(piece - merged[-1]):
            kinks.append(border)
            merged.append(piece)
    return tuple(kinks), tuple(merged)


def _sorted(borders: set[sp.Expr]) -> list[sp.Expr]:
    return sorted(borders, key=lambda border: border.evalf(30))


def _between(borders: list[sp.Expr]) -> list[sp.Expr]:
    """One rational point inside each interval that the borders cut the line into."""
    if not borders:
        return [sp.S.Zero]
    points = [sp.floor(borders[0]) - 1]
    for low, high in pairwise(borders):
        points.append(sp.Rational(((low + high) / 2).evalf(30)) if low != high else low)
    return [*points, sp.ceiling(borders[-1]) + 1]


def _borders(expression: sp.Expr) -> set[sp.Expr]:
    found: set[sp.Expr] = set()
    for node in expression.atoms(*SPLITTING):
        if isinstance(node, sp.Piecewise):
            switches = [
                c.lhs - c.rhs for _, condition in node.args for c in condition.atoms(sp.core.relational.Relational)
            ]
        elif isinstance(node, sp.Max | sp.Min):
            switches = [a - b for i, a in enumerate(node.args) for b in node.args[i + 1 :]]
        else:
            switches = [node.args[0]]
        for switch in switches:
            inner = _sorted(_borders(switch))  # kinks inside kinks: the switch is a polynomial between the inner ones
            found |= set(inner)
            for point in _between(inner):
                found |= _roots(_resolve(switch, point), node)
    return found


def _roots(switch: sp.Expr, node: sp.Basic) -> set[sp.Expr]:
    if not switch.has(z):
        return set()
    if not switch.is_polynomial(z):
        raise FormulaError(
            f"Kinks must sit at the roots of a polynomial in z; {node} switches where {switch} vanishes."
        )
    return set(
        sp.Poly(switch, z, extension=True).real_roots() if _algebraic(switch) else sp.roots(switch, z, filter="R")
    )


def _algebraic(switch: sp.Expr) -> bool:
    return all(c.is_Rational for c in sp.Poly(switch, z).all_coeffs())


def _resolve(expression: sp.Expr, point: sp.Expr) -> sp.Expr:
    """The analytic expression that holds around a point which is not a border."""
    if not expression.atoms(*SPLITTING):
        return expression

    def at(inner: sp.Basic) -> sp.Basic:
        return inner.xreplace({z: point})

    if isinstance(expression, sp.Piecewise):
        for value, condition in expression.args:
            if at(condition) == sp.true:
                return _resolve(value, point)
        raise FormulaError("The pieces of the formula do not cover the whole line.")
    if isinstance(expression, sp.Abs):
        inner = _resolve(expression.args[0], point)
        return inner if at(inner).is_nonnegative else -inner
    if isinstance(expression, sp.sign):
        return sp.sign(at(_resolve(expression.args[0], point)))
    if isinstance(expression, sp.Heaviside):
        return sp.S.One if at(_resolve(expression.args[0], point)).is_positive else sp.S.Zero
    arguments = [_resolve(argument, point) for argument in expression.args]
    if isinstance(expression, sp.Max | sp.Min):
        values = [at(argument).evalf(30) for argument in arguments]
        best = max(values) if isinstance(expression, sp.Max) else min(values)
        return arguments[values.index(best)]
    return expression.func(*arguments)
