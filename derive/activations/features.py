"""Where a formula varies fast, read off its structure: (location, rate), the rate being the inverse of a width.

A function of u varies where u vanishes or turns, on the scale on which u changes by one; a denominator, a root or a
logarithm varies at the real part of its complex zeros, on the scale of their distance from the line. Quadratures are
cut there: a spike that is narrower than every spacing of points is seen because the formula says where it is.
"""

from __future__ import annotations

import heapq
import math
from functools import lru_cache

import numpy as np
import sympy as sp

from derive.activations.intervals import enclosure
from derive.errors import FormulaError
from derive.symbols import z

REACH = 40.0
MAX_BOXES = 600
MAX_FEATURES = 24
SLOWEST = 0.5
Feature = tuple[float, float]

_SINGULAR = (sp.log, sp.atan, sp.asinh)


@lru_cache(maxsize=1024)
def features(piece: sp.Expr) -> tuple[Feature, ...]:
    """The features of an analytic expression, slow ones first.

    >>> features(sp.tanh(1000 * (z - 3)))
    ((3.0, 1000.0),)
    >>> features(sp.tanh(z) + sp.exp(-(10**8) * z**2))
    ((0.0, 1.0), (0.0, 10000.0))
    """
    found: set[Feature] = set()
    for node in piece.atoms(sp.Function, sp.Pow):
        inner = node.base if node.is_Pow and not isinstance(node, sp.exp) else node.args[0]
        if not inner.has(z) or (node.is_Pow and node.exp.is_positive and node.exp.is_Integer):
            continue
        if not node.is_Pow:
            found |= set(_turns(inner))
        if (node.is_Pow and not isinstance(node, sp.exp)) or isinstance(node, _SINGULAR):
            found |= set(_singular(inner if not isinstance(node, sp.atan | sp.asinh) else 1 + inner**2))
    fast = {(place + 0.0, rate) for place, rate in found if rate > SLOWEST}
    return tuple(sorted(fast, key=lambda f: (f[1], f[0])))[-MAX_FEATURES:]


def _turns(u: sp.Expr) -> list[Feature]:
    """Real zeros of u and of its slope, each with the scale on which u changes by one."""
    found = []
    for place in {round(x, 14) for x in (*_zeros(u), *_zeros(sp.diff(u, z)))}:
        rates, derivative = [], u
        for k in range(1, 5):
            derivative = sp.diff(derivative, z)
            rates.append((_size(derivative, place) / math.factorial(k)) ** (1 / k))
        if max(rates) > 0:
            found.append((place, _rounded(max(rates))))
    return found


def _size(expression: sp.Expr, place: float) -> float:
    """|expression| at a place, zero where it is no finite number."""
    try:
        size = abs(complex(expression.xreplace({z: sp.Float(place)}).evalf(15)))
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return size if math.isfinite(size) else 0.0


def _singular(base: sp.Expr) -> list[Feature]:
    if not base.is_polynomial(z):
        return []
    return [(_rounded(float(x.real)), _rounded(1 / abs(x.imag))) for x in _roots(base) if abs(x.imag) > 1e-9]


def _roots(polynomial: sp.Expr) -> list[complex]:
    try:
        coefficients = [float(c.evalf(20)) for c in sp.Poly(polynomial, z).all_coeffs()]
    except TypeError:
        return []
    return [complex(x) for x in np.roots(coefficients)] if len(coefficients) > 1 else []


def _rounded(number: float) -> float:
    return float(f"{number:.12g}")


def _zeros(u: sp.Expr) -> list[float]:
    """Real zeros: of a polynomial all, of anything else those near the origin that intervals cannot exclude."""
    if not u.has(z):
        return []
    if u.is_polynomial(z):
        return [_rounded(x.real) + 0.0 for x in _roots(u) if abs(x.imag) <= 1e-7 * (1 + abs(x.real))]
    try:
        value = enclosure(u)
    except (FormulaError, TypeError):
        return []
    found: list[float] = []
    boxes = [(0.0, -REACH * 1.0071, REACH * 1.0093)]
    for _ in range(MAX_BOXES):  # what is nearest to the origin first
        if not boxes or len(found) >= MAX_FEATURES:
            break
        _, a, b = heapq.heappop(boxes)
        low, high = value({z: (a, b)})
        if low > 0 or high < 0:
            continue
        if b - a < 1e-9:
            found.append(_rounded(round((a + b) / 2, 8)) + 0.0)
            continue
        middle = (a + b) / 2
        for box in ((a, middle), (middle, b)):
            heapq.heappush(boxes, (0.0 if box[0] <= 0 <= box[1] else min(map(abs, box)), *box))
    return sorted(set(found))
