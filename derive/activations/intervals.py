"""Interval arithmetic in double precision on the extended line: what a formula's values can be for z in a box.

A box may be unbounded; every operation is widened by more than its rounding. The arguments of sin and cos may be given
as boxes of their own (`Angles`): on a half line they go round and round, and what holds for every angle holds there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive.errors import FormulaError
from derive.symbols import z

Interval = tuple[float, float]
Box = Mapping[object, Interval]
"""z, and the angle of sin(u) or cos(u) under the key (u,)."""
Enclosure = Callable[[Box], Interval]

WHOLE: Interval = (-math.inf, math.inf)
_SLACK = 1e-13


def widen(low: float, high: float) -> Interval:
    """Outward by more than the rounding of any elementary function."""
    if math.isnan(low) or math.isnan(high):
        return WHOLE
    down = low - _SLACK * abs(low) - 1e-300 if math.isfinite(low) else low
    up = high + _SLACK * abs(high) + 1e-300 if math.isfinite(high) else high
    return down, up


def add(a: Interval, b: Interval) -> Interval:
    return widen(a[0] + b[0], a[1] + b[1])


def multiply(a: Interval, b: Interval) -> Interval:
    products = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return widen(min(products), max(products))


def _safe(function: Callable[[float], float], beyond: Callable[[float], float]) -> Callable[[float], float]:
    def wrapped(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return beyond(x)

    return wrapped


def _signed(x: float) -> float:
    return math.copysign(math.inf, x)


def _erfc(x: float) -> float:
    return math.erfc(x) if x < 26 else 0.0


_exp = _safe(math.exp, lambda x: math.inf)
_cosh = _safe(math.cosh, lambda x: math.inf)
_RISING: dict[str, Callable[[float], float]] = {
    "exp": _exp,
    "tanh": math.tanh,
    "sinh": _safe(math.sinh, _signed),
    "erf": math.erf,
    "atan": math.atan,
    "asinh": math.asinh,
}


def _function(name: str, u: Interval) -> Interval:
    low, high = u
    if name in _RISING:
        found = widen(_RISING[name](low), _RISING[name](high))
        return (max(found[0], 0.0), found[1]) if name == "exp" else found
    if name == "log":
        return widen(-math.inf if low <= 0 else math.log(low), -math.inf if high <= 0 else math.log(high))
    if name in ("erfc", "Complement"):
        found = widen(_erfc(high), math.erfc(low))
        return max(0.0, found[0]), found[1]
    if name == "cosh":
        far = max(abs(low), abs(high))
        near = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return widen(_cosh(near), _cosh(far))
    if name == "sech":
        bottom, top = _function("cosh", u)
        return widen(0.0 if math.isinf(top) else 1 / top, 1 / bottom)
    if name in ("sin", "cos"):
        return _wave(low + (math.pi / 2 if name == "cos" else 0.0), high + (math.pi / 2 if name == "cos" else 0.0))
    if name == "Abs":
        return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if name == "sign":
        return (1.0 if low > 0 else 0.0 if low == 0 else -1.0), (-1.0 if high < 0 else 0.0 if high == 0 else 1.0)
    raise FormulaError(f"The function {name} is not among those an activation may hold.")


def _wave(low: float, high: float) -> Interval:
    """sin on [low, high]."""
    if not high - low < 2 * math.pi or max(abs(low), abs(high)) > 1e8:
        return -1.0, 1.0
    slack = 1e-13 * (1 + max(abs(low), abs(high)))

    def meets(peak: float) -> bool:
        return math.floor((high + slack - peak) / (2 * math.pi)) >= math.ceil((low - slack - peak) / (2 * math.pi))

    ends = (math.sin(low), math.sin(high))
    bottom = -1.0 if meets(-math.pi / 2) else max(-1.0, min(ends) - slack)
    top = 1.0 if meets(math.pi / 2) else min(1.0, max(ends) + slack)
    return bottom, top


def power(base: Interval, exponent: sp.Rational) -> Interval:
    low, high = base
    if exponent < 0:
        bottom, top = power(base, -exponent)
        if bottom <= 0 <= top:
            return (0.0 if bottom == 0 else -math.inf), math.inf
        return widen(0.0 if math.isinf(top) else 1 / top, 0.0 if math.isinf(bottom) else 1 / bottom)

    def raised(x: float) -> float:
        if not exponent.is_Integer:
            return max(x, 0.0) ** float(exponent)
        try:
            return x ** int(exponent)
        except OverflowError:
            return math.inf if x > 0 or int(exponent) % 2 == 0 else -math.inf

    ends = [raised(low), raised(high)]
    if exponent.is_Integer and int(exponent) % 2 == 0:
        found = widen(0.0 if low <= 0 <= high else min(ends), max(ends))
        return max(0.0, found[0]), found[1]
    return widen(*ends)


@lru_cache(maxsize=2048)
def enclosure(expression: sp.Expr) -> Enclosure:
    """An expression in z as a function from boxes to intervals.

    >>> enclosure(1 + sp.exp(-(z**2)))({z: (1.0, math.inf)})[1] < 1.4
    True
    """
    if expression == z:
        return lambda box: box[z]
    if not expression.has(z):
        value = float(expression.evalf(20))
        fixed = widen(value, value)
        return lambda box: fixed
    if expression.is_Pow and not isinstance(expression, sp.exp):
        if not expression.exp.is_Rational:
            raise FormulaError(f"The power {expression} is not supported: exponents are rational numbers.")
        base, exponent = enclosure(expression.base), expression.exp
        return lambda box: power(base(box), exponent)
    parts = [enclosure(argument) for argument in expression.args]
    if expression.is_Add or expression.is_Mul:
        combine = add if expression.is_Add else multiply

        def folded(box: Box) -> Interval:
            total = parts[0](box)
            for part in parts[1:]:
                total = combine(total, part(box))
            return total

        return folded
    name, inner = expression.func.__name__, parts[0]
    if name in ("sin", "cos"):
        argument = expression.args[0]
        return lambda box: _function(name, box[(argument,)] if (argument,) in box else inner(box))
    return lambda box: _function(name, inner(box))


@dataclass(frozen=True)
class Angles:
    """The arguments of sin and cos: `turns` holds, for each independent angle, {argument: (multiple, offset)}."""

    turns: tuple[dict[sp.Expr, tuple[int, float]], ...]

    def box(self, angles: tuple[Interval, ...]) -> dict[object, Interval]:
        found: dict[object, Interval] = {}
        for turn, (low, high) in zip(self.turns, angles):
            for argument, (multiple, offset) in turn.items():
                ends = sorted((multiple * low, multiple * high))
                found[(argument,)] = (ends[0] + offset, ends[1] + offset)
        return found


def angles_of(expression: sp.Expr) -> Angles:
    """Arguments with commensurate frequencies turn together; any other argument has an angle of its own."""
    linear: dict[sp.Expr, list[sp.Expr]] = {}
    alone = []
    for argument in sorted({n.args[0] for n in expression.atoms(sp.sin, sp.cos) if n.has(z)}, key=str):
        rate = sp.diff(argument, z)
        if rate.has(z):
            alone.append({argument: (1, 0.0)})
            continue
        leader = next((r for r in linear if (rate / r).is_Rational), rate)
        linear.setdefault(leader, []).append(argument)
    turns = []
    for leader, arguments in linear.items():
        ratios = [sp.diff(a, z) / leader for a in arguments]
        unit = sp.Rational(1, sp.ilcm(*(r.q for r in ratios))) if len(ratios) > 1 else sp.Rational(1, ratios[0].q)
        turns.append(
            {a: (int(r / unit), float(a.xreplace({z: sp.S.Zero}).evalf(20))) for a, r in zip(arguments, ratios)}
        )
    return Angles((*turns, *alone))
