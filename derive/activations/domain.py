"""Whether a formula is a real, finite, analytic function on each of its pieces and has Gaussian expectations.

Denominators, logarithms and roots are shown to keep away from zero, each on its own interval and out to infinity: by
SymPy's assumptions, by counting the real roots of polynomials, by interval arithmetic on the rest and by bounds read
off the formula on the tails. What cannot be shown is refused with the place. Growth is read off the formula as well.
"""

from __future__ import annotations

import math

import sympy as sp

from derive.activations.growth import STARTS, tail
from derive.activations.roots import bounded_away
from derive.errors import FormulaError
from derive.symbols import z

ANALYTIC = (sp.exp, sp.log, sp.sin, sp.cos, sp.tanh, sp.sinh, sp.cosh, sp.erf, sp.atan, sp.asinh)
FASTEST = 1e-9
"""A bound exp(b z^2) with b below this is one of rounding, not of growth."""


def check_pieces(kinks: tuple[sp.Expr, ...], pieces: tuple[sp.Expr, ...]) -> None:
    """Raise a FormulaError unless each piece is real and analytic up to its ends and grows slower than a Gaussian."""
    borders = [-sp.oo, *kinks, sp.oo]
    for piece, low, high in zip(pieces, borders, borders[1:]):
        check_domain(piece, low, high)
        for end in (low, high):
            if end.is_infinite:
                _check_growth(piece, 1 if end is sp.oo else -1)


def check_domain(piece: sp.Expr, low: sp.Expr, high: sp.Expr) -> None:
    """Raise a FormulaError unless an expression without kinks is real, finite and analytic on [low, high]."""
    if piece.has(sp.zoo, sp.nan, sp.oo, sp.S.NegativeInfinity, sp.I):
        raise FormulaError(f"The formula is not a finite real number {_where(low, high)}.")
    for node in sp.preorder_traversal(piece):
        if isinstance(node, sp.Expr):
            _check_node(node, low, high)


def _where(low: sp.Expr, high: sp.Expr) -> str:
    if low.is_infinite and high.is_infinite:
        return "for any z"
    if low.is_infinite:
        return f"for z < {_place(high)}"
    return f"for z > {_place(low)}" if high.is_infinite else f"for {_place(low)} < z < {_place(high)}"


def _place(number: sp.Expr) -> str:
    return str(number) if number.is_Rational else f"{float(number):.6g}"


def _check_node(node: sp.Expr, low: sp.Expr, high: sp.Expr) -> None:
    if node == z or node.is_Add or node.is_Mul or node.is_Rational:
        return
    if not node.has(z):
        _check_constant(node)
        return
    if node.is_Pow and not isinstance(node, sp.exp):
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


def _check_constant(node: sp.Expr) -> None:
    """A number inside the formula: real, and no division by what is zero."""
    inverted = node.is_Pow and node.exp.is_negative
    if inverted or isinstance(node, sp.log):
        inner = node.args[0].evalf(20, maxn=400)
        if inner == 0 or (inner.is_Float and inner._prec < 10):
            what = "divides by" if inverted else "takes the logarithm of"
            raise FormulaError(f"The formula {what} {node.args[0]}, which is zero.")
    value = node.evalf(20, maxn=400)
    if not value.is_Float or not math.isfinite(float(value)):
        raise FormulaError(f"The constant {node} is not a finite real number.")


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
        for root in sp.Poly(inner, z).real_roots():
            if (low.is_infinite or low.evalf(30) <= root.evalf(30)) and (
                high.is_infinite or root.evalf(30) <= high.evalf(30)
            ):
                return _place(root)
    place = bounded_away(inner, float(low), float(high), positive)
    if place is None:
        return None
    return "large |z| (it cannot be shown to keep away from zero there)" if math.isinf(place) else f"{place:.6g}"


def _check_growth(piece: sp.Expr, side: int) -> None:
    """Gaussian expectations at every K need log|sigma| to grow slower than z^2."""
    towards = "+" if side > 0 else "-"
    rate = math.inf
    for start in STARTS:
        above = tail(piece, side, start).above
        if above is not None and above.b <= FASTEST:
            return
        rate = min(rate, math.inf if above is None else above.b)
    if math.isfinite(rate):
        raise FormulaError(
            f"The formula may grow like exp({rate:.3g} z^2) as z goes to {towards}infinity: its Gaussian expectations "
            "exist for small K at most, and an activation must have them for every K."
        )
    raise FormulaError(
        f"The formula cannot be shown to grow slower than every Gaussian falls as z goes to {towards}infinity: its "
        "expectations need not exist."
    )
