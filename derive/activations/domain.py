"""Whether a formula is a real, finite, analytic function on each of its pieces and has Gaussian expectations.

Denominators, logarithms and roots are shown to keep away from zero: by SymPy's assumptions, by counting the real roots
of polynomials, or by interval arithmetic over the whole line; what cannot be shown is refused with the place.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import sympy as sp

from derive.errors import FormulaError
from derive.symbols import z

ANALYTIC = (sp.exp, sp.log, sp.sin, sp.cos, sp.tanh, sp.sinh, sp.cosh, sp.erf, sp.atan, sp.asinh)
MAX_BOXES = 4000

Interval = tuple[float, float]


def check_pieces(kinks: tuple[sp.Expr, ...], pieces: tuple[sp.Expr, ...]) -> None:
    """Raise a FormulaError unless each piece is real and analytic up to its ends and grows slower than a Gaussian."""
    borders = [-sp.oo, *kinks, sp.oo]
    for piece, low, high in zip(pieces, borders, borders[1:]):
        for node in sp.preorder_traversal(piece):
            _check_node(node, low, high)
        for end in (low, high):
            if end.is_infinite:
                _check_growth(piece, 1 if end is sp.oo else -1)


def _check_node(node: sp.Basic, low: sp.Expr, high: sp.Expr) -> None:
    if not isinstance(node, sp.Expr) or not node.has(z) or node == z or node.is_Add or node.is_Mul:
        return
    if node.is_Pow:
        power = node.exp
        if power.is_Integer and power > 0:
            return
        if not power.is_Rational:
            raise FormulaError(f"The power {node} is not supported: exponents are rational numbers.")
        _require(node, node.base, low, high, positive=not power.is_Integer)
    elif isinstance(node, sp.log):
        _require(node, node.args[0], low, high, positive=True)
    elif not isinstance(node, ANALYTIC):
        raise FormulaError(f"The function {node.func.__name__} is not among those an activation may hold.")


def _require(node: sp.Expr, inner: sp.Expr, low: sp.Expr, high: sp.Expr, positive: bool) -> None:
    """`inner` does not vanish on [low, high], and is positive there if asked for."""
    place = _bad_place(inner, low, high, positive)
    if place is not None:
        real = "is not a smooth real function" if positive else "has a pole"
        raise FormulaError(f"{node} {real} at z = {place}: an activation must be defined on the whole real line.")


def _bad_place(inner: sp.Expr, low: sp.Expr, high: sp.Expr, positive: bool) -> str | None:
    if inner.is_positive or (inner.is_negative and not positive):
        return None
    if inner.is_polynomial(z) and all(c.is_Rational for c in sp.Poly(inner, z).all_coeffs()):
        roots = [root for root in sp.Poly(inner, z).real_roots() if low <= root <= high]
        if roots:
            return str(roots[0]) if roots[0].is_Rational else f"{float(roots[0]):.6g}"
    left, right = (float(end) for end in (low, high))
    boxes = [(0.0, left, right)]  # a heap: what is nearest to the origin is looked at first
    for _ in range(MAX_BOXES):
        if not boxes:
            return None
        _, a, b = heapq.heappop(boxes)
        bottom, top = _enclose(inner, (a, b))
        if bottom > 0 or (top < 0 and not positive):
            continue
        middle = _middle(a, b)
        if abs(middle) > 1e12:
            return "large |z| (it cannot be shown to keep away from zero there)"
        if top < 0 or middle in (a, b) or (b - a) < 1e-9 * max(1.0, abs(middle)):
            return f"{middle:.6g}"
        for box in ((a, middle), (middle, b)):
            heapq.heappush(boxes, (0.0 if box[0] <= 0 <= box[1] else min(abs(box[0]), abs(box[1])), *box))
    return f"about {_middle(*boxes[0][1:]):.6g}" if boxes else None


def _middle(a: float, b: float) -> float:
    if math.isinf(a) and math.isinf(b):
        return 0.0
    if math.isinf(a):
        return min(2 * b, b - 1.0) if b < 0 else min(-1.0, b - 1.0)
    if math.isinf(b):
        return max(2 * a, a + 1.0) if a > 0 else max(1.0, a + 1.0)
    return (a + b) / 2


def _widen(low: float, high: float) -> Interval:
    """Outward by more than the rounding of any elementary function."""
    slack = 1e-13
    return low - slack * abs(low) if math.isfinite(low) else low, high + slack * abs(high) if math.isfinite(
        high
    ) else high


def _safe(function: Callable[[float], float]) -> Callable[[float], float]:
    def wrapped(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf if x > 0 or function is math.cosh else -math.inf

    return wrapped


_MONOTONE: dict[type, Callable[[float], float]] = {
    sp.exp: _safe(math.exp),
    sp.tanh: math.tanh,
    sp.sinh: _safe(math.sinh),
    sp.erf: math.erf,
    sp.atan: math.atan,
    sp.asinh: math.asinh,
}


def _enclose(expression: sp.Expr, box: Interval) -> Interval:
    """An interval that holds all values of an expression for z in a box."""
    if expression == z:
        return box
    if not expression.has(z):
        value = float(expression)
        return _widen(value, value)
    parts = [_enclose(argument, box) for argument in expression.args]
    if expression.is_Add:
        return _widen(sum(low for low, _ in parts), sum(high for _, high in parts))
    if expression.is_Mul:
        total = parts[0]
        for part in parts[1:]:
            products = [0.0 if 0.0 in (x, y) else x * y for x in total for y in part]
            total = _widen(min(products), max(products))
        return total
    if expression.is_Pow:
        return _enclose_power(parts[0], expression.exp)
    low, high = parts[0]
    monotone = _MONOTONE.get(expression.func)
    if monotone is not None:
        return _widen(monotone(low), monotone(high))
    if isinstance(expression, sp.log):
        return _widen(-math.inf if low <= 0 else math.log(low), -math.inf if high <= 0 else math.log(high))
    if isinstance(expression, sp.cosh):
        far = max(abs(low), abs(high))
        near = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return _widen(_safe(math.cosh)(near), _safe(math.cosh)(far))
    if high - low > 1:  # sin and cos
        return -1.0, 1.0
    middle = expression.func(sp.Float((low + high) / 2))
    return max(-1.0, float(middle) - (high - low) / 2 - 1e-13), min(1.0, float(middle) + (high - low) / 2 + 1e-13)


def _enclose_power(base: Interval, power: sp.Expr) -> Interval:
    low, high = base
    if power < 0:
        bottom, top = _enclose_power(base, -power)
        if bottom <= 0 <= top:
            return (0.0 if bottom == 0 else -math.inf), math.inf
        return _widen(0.0 if math.isinf(top) else 1 / top, 0.0 if math.isinf(bottom) else 1 / bottom)
    exponent = float(power)

    def raised(x: float) -> float:
        if not power.is_Integer:
            return max(x, 0.0) ** exponent
        try:
            return x ** int(power)
        except OverflowError:
            return math.inf if x > 0 or int(power) % 2 == 0 else -math.inf

    ends = [raised(low), raised(high)]
    if power.is_Integer and int(power) % 2 == 0:
        return _widen(0.0 if low <= 0 <= high else min(ends), max(ends))
    return _widen(*ends)


def _check_growth(piece: sp.Expr, side: int) -> None:
    """Gaussian expectations at every K need log|sigma| to grow slower than z^2."""
    for node in piece.atoms(sp.exp, sp.sinh, sp.cosh):
        inner = node.args[0]
        if not inner.has(z) or (inner.is_polynomial(z) and sp.degree(inner, z) == 1):
            continue
        sizes = [_log_size(piece, side * x) for x in (24.0, 48.0, 96.0)]
        if sizes[2] > 40 and (math.isinf(sizes[2]) or sizes[2] - sizes[1] > 2.5 * (sizes[1] - sizes[0]) > 0):
            raise FormulaError(
                f"The formula grows like {node} as z goes to {'+' if side > 0 else '-'}infinity: "
                "faster than any Gaussian falls, so its expectations do not exist."
            )


def _log_size(expression: sp.Expr, point: float) -> float:
    """log |expression(point)|; what is beyond exp(1e7) counts as infinite."""
    import mpmath

    def evaluate(node: sp.Expr) -> mpmath.mpf:
        if node == z:
            return mpmath.mpf(point)
        if not node.has(z):
            return mpmath.mpf(str(node.evalf(20)))
        values = [evaluate(argument) for argument in node.args]
        if node.is_Add:
            return mpmath.fsum(values)
        if node.is_Mul:
            return mpmath.fprod(values)
        if node.is_Pow:
            return values[0] ** (mpmath.mpf(int(node.exp.p)) / int(node.exp.q))
        if isinstance(node, sp.exp | sp.sinh | sp.cosh) and abs(values[0]) > 1e7:
            if isinstance(node, sp.exp) and values[0] < 0:
                return mpmath.mpf(0)
            return mpmath.inf
        return getattr(mpmath, node.func.__name__)(values[0])

    with mpmath.workdps(20):
        value = abs(evaluate(expression))
        if mpmath.isnan(value) or mpmath.isinf(value):
            return math.inf
        return float(mpmath.log(value)) if value else -math.inf
