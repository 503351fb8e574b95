"""Where an activation has kinks: Abs, Max, Min, sign, Piecewise become analytic pieces between isolated kinks."""

from __future__ import annotations

from itertools import pairwise

import sympy as sp

from derive.activations.domain import check_domain
from derive.activations.features import features
from derive.activations.roots import real_zeros
from derive.errors import FormulaError
from derive.symbols import z

SPLITTING = (sp.Abs, sp.Max, sp.Min, sp.sign, sp.Heaviside, sp.Piecewise)
MAX_KINKS = 16


def vanishes(number: sp.Expr) -> bool:
    """Whether a real number is zero: exactly, or with no digit to be seen among 400."""
    if number.is_Rational:
        return bool(number == 0)
    if number.is_zero:
        return True
    value = number.evalf(20, maxn=400)
    return bool(value == 0 or (value.is_Float and value._prec < 10) or abs(value) < sp.Float("1e-300"))


def identically_zero(expression: sp.Expr, around: sp.Expr = sp.S.Zero) -> bool:
    """Whether an analytic expression in z vanishes: no digit is seen, on all scales around a place and at features.

    Functions that differ do so near the place where they meet, on the scale of their own steepness, whatever it is.
    """
    if expression == 0:
        return True
    if expression.is_polynomial(z):
        return all(vanishes(c) for c in sp.Poly(expression, z).all_coeffs())
    centre = around if around.is_Rational else sp.Rational(around.evalf(20))
    points = [
        centre + sp.Rational(side * (1 + 377 * (k + 3) % 1009), 505 * 2**k)
        for k in range(-3, 31, 3)
        for side in (1, -1)
    ]
    points += [sp.Rational(place + step / rate) for place, rate in features(expression) for step in (0.31, -0.17)]
    for point in points:
        value = sp.re(expression.xreplace({z: point}).evalf(20, maxn=200))
        if value.is_Float and value._prec >= 10 and value != 0:
            return False
    return True


UNDEFINED = (sp.zoo, sp.nan, sp.oo, -sp.oo)


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
        undefined = piece.has(*UNDEFINED) or merged[-1].has(*UNDEFINED)  # whose difference from anything is no number
        if piece != merged[-1] and (undefined or not identically_zero(piece - merged[-1], border)):
            kinks.append(border)
            merged.append(piece)
    return tuple(kinks), tuple(merged)


def _sorted(borders: set[sp.Expr]) -> list[sp.Expr]:
    return sorted(borders, key=lambda border: border.evalf(30))


def _between(borders: list[sp.Expr]) -> list[sp.Expr]:
    """One rational point inside each interval that the borders cut the line into."""
    if not borders:
        return [sp.S.Zero]
    numbers = [sp.Rational(border.evalf(30)) for border in borders]
    return [
        sp.floor(numbers[0]) - 1,
        *((low + high) / 2 for low, high in pairwise(numbers)),
        sp.ceiling(numbers[-1]) + 1,
    ]


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
            inner = _sorted(_borders(switch))  # kinks inside kinks: the switch is analytic between the inner ones
            found |= set(inner)
            ends = [-sp.oo, *inner, sp.oo]
            for point, low, high in zip(_between(inner), ends, ends[1:]):
                piece = _resolve(switch, point)
                check_domain(piece, low, high)
                found |= set() if identically_zero(piece, point) else _inside(real_zeros(piece), low, high)
    return found


def _inside(zeros: list[sp.Expr], low: sp.Expr, high: sp.Expr) -> set[sp.Expr]:
    return {
        x
        for x in zeros
        if (low is -sp.oo or low.evalf(30) <= x.evalf(30)) and (high is sp.oo or x.evalf(30) <= high.evalf(30))
    }


def _resolve(expression: sp.Expr, point: sp.Expr) -> sp.Expr:
    """The analytic expression that holds around a point which is not a border."""
    if not expression.atoms(*SPLITTING):
        return expression

    if isinstance(expression, sp.Piecewise):
        for value, condition in expression.args:
            if condition == sp.true or _holds(condition, point):
                return _resolve(value, point)
        raise FormulaError("The pieces of the formula do not cover the whole line.")
    arguments = [_resolve(argument, point) for argument in expression.args]
    if isinstance(expression, sp.Abs):
        return arguments[0] if _sign(arguments[0], point) >= 0 else -arguments[0]
    if isinstance(expression, sp.sign):
        return sp.Integer(_sign(arguments[0], point))
    if isinstance(expression, sp.Heaviside):
        return sp.S.One if _sign(arguments[0], point) > 0 else sp.S.Zero
    if isinstance(expression, sp.Max | sp.Min):
        largest = 1 if isinstance(expression, sp.Max) else -1
        best = arguments[0]
        for argument in arguments[1:]:
            best = argument if _sign(argument - best, point) * largest > 0 else best
        return best
    return expression.func(*arguments)


def _holds(condition: sp.Basic, point: sp.Expr) -> bool:
    if not isinstance(condition, sp.core.relational.Relational):
        return bool(condition.xreplace({z: point}) == sp.true)
    difference = _sign(_resolve(condition.lhs - condition.rhs, point), point)
    return {"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[condition.rel_op]


def _sign(expression: sp.Expr, point: sp.Expr) -> int:
    """The sign at a point between borders; zero where the expression vanishes identically."""
    number = expression.xreplace({z: point})
    if vanishes(number):
        return 0
    value = number.evalf(20, maxn=400)
    if not value.is_Float:
        raise FormulaError(f"{expression} is not a real number at z = {point}.")
    return 1 if value > 0 else -1
