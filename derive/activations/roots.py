"""Real zeros of a formula, every one isolated: interval arithmetic excludes the rest of the line or shows monotony.

A zero that is no known number (abs(z^3 - pi z + 1) switches at three of them) becomes a `Root`: a SymPy number that
knows its formula and its isolating interval and evaluates to any precision.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import sympy as sp

from derive.activations.growth import STARTS, tail
from derive.activations.intervals import enclosure
from derive.errors import FormulaError
from derive.symbols import z

MAX_BOXES = 4000
_GUARD = 30


class Root(sp.NumberSymbol):
    """The one zero of `function` between `low` and `high`, where it is monotone."""

    __slots__ = ("_digits", "function", "high", "low")
    is_real = True
    is_finite = True
    function: sp.Expr
    low: sp.Rational
    high: sp.Rational

    def __new__(cls, function: sp.Expr, low: sp.Rational, high: sp.Rational) -> Root:
        found = sp.AtomicExpr.__new__(cls)
        found.function, found.low, found.high = function, low, high
        found._digits = {}
        return found

    def _hashable_content(self) -> tuple[sp.Expr, ...]:
        return self.function, self.low, self.high

    def __getnewargs__(self) -> tuple[sp.Expr, ...]:
        return self.function, self.low, self.high

    def _eval_is_positive(self) -> bool | None:
        return True if self.low >= 0 else False if self.high <= 0 else None

    def _eval_is_negative(self) -> bool | None:
        return True if self.high <= 0 else False if self.low >= 0 else None

    def _eval_is_zero(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and self._hashable_content() == other._hashable_content()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("Root", *self._hashable_content()))

    def _as_mpf_val(self, prec: int) -> tuple:
        """The zero to `prec` bits: bisection to double precision, then the secant rule, kept inside the interval."""
        bits = prec + _GUARD
        if bits not in self._digits:
            with mpmath.workprec(bits + _GUARD):
                f = sp.lambdify(z, self.function, "mpmath")
                low, high = (mpmath.mpf(int(x.p)) / int(x.q) for x in (self.low, self.high))
                rising = f(high) > 0
                for _ in range(60):
                    middle = (low + high) / 2
                    low, high = (low, middle) if (f(middle) > 0) == rising else (middle, high)
                slope, x = (f(high) - f(low)) / (high - low), (low + high) / 2
                for _ in range(200):
                    before, x = x, x - f(x) / slope
                    if abs(x - before) <= abs(x) * mpmath.mpf(2) ** -(bits + 5):
                        break
                    if x == before:
                        break
                    slope = (f(x) - f(before)) / (x - before) if f(x) != f(before) else slope
                self._digits[bits] = x._mpf_
        return mpmath.libmp.mpf_pos(self._digits[bits], prec, "n")

    def _eval_evalf(self, prec: int) -> sp.Float:
        return sp.Float._new(self._as_mpf_val(prec), prec)

    def approximation_interval(self, number_cls: type) -> tuple[sp.Rational, sp.Rational] | None:
        return (self.low, self.high) if issubclass(number_cls, sp.Rational) else None

    def enclose(self, prec: int) -> tuple[sp.Rational, sp.Rational]:
        """Two rationals around the zero, 2^-prec or so apart, with the signs of the function proved to differ."""
        import flint

        from derive.activations.enclosure import ball_function

        before = flint.ctx.prec
        try:
            flint.ctx.prec = prec + 2 * _GUARD
            middle = sp.Rational(self.evalf(int(prec * 0.302) + 12))
            slack = abs(middle) / sp.Integer(2) ** prec + sp.Rational(1, sp.Integer(2) ** (prec + 40))
            f = ball_function(self.function)
            for _ in range(prec):
                ends = middle - slack, middle + slack
                low, high = (f(flint.arb(flint.fmpq(int(x.p), int(x.q)))) for x in ends)
                if (low < 0 and high > 0) or (low > 0 and high < 0):
                    return max(ends[0], self.low), min(ends[1], self.high)
                slack *= 4
            return self.low, self.high
        finally:
            flint.ctx.prec = before

    def _sympystr(self, printer: object) -> str:
        return f"root({self.function}, {float(self.evalf(17)):.17g})"

    def _latex(self, printer: object) -> str:
        return f"{float(self.evalf(15)):.6g}"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__


def real_zeros(function: sp.Expr) -> list[sp.Expr]:
    """All real zeros of an analytic expression in z (not identically zero), or a FormulaError that says why not.

    >>> real_zeros(sp.exp(z) - 1), [float(x) for x in real_zeros(z**3 - sp.pi * z + 1)]
    ([0], [-1.91416..., 0.32971..., 1.58444...])
    """
    if not function.has(z):
        return []
    if function.is_Mul:
        return _distinct([x for factor in function.args for x in real_zeros(factor)])
    if function.is_Pow and not isinstance(function, sp.exp) and function.exp.is_Rational:
        return real_zeros(function.base) if function.exp.is_positive else []
    if function.is_polynomial(z):
        polynomial = sp.Poly(function, z)
        if all(c.is_Rational for c in polynomial.all_coeffs()):
            return _distinct(polynomial.real_roots())
        if polynomial.degree() <= 2:
            return _distinct([x for x in sp.roots(polynomial, z) if _is_real(x)])
        if polynomial.eval(0) == 0:
            return _distinct([sp.S.Zero, *real_zeros(sp.expand(sp.cancel(function / z)))])
    return [_recognized(function, low, high) for low, high in _isolated(function)]


def _is_real(number: sp.Expr) -> bool:
    return abs(sp.im(number.evalf(40))) < sp.Float("1e-35")


def _distinct(numbers: list[sp.Expr]) -> list[sp.Expr]:
    found: list[sp.Expr] = []
    for number in sorted(numbers, key=lambda x: x.evalf(30)):
        if not found or abs((number - found[-1]).evalf(50, maxn=400)) > sp.Float("1e-40"):
            found.append(number)
    return found


def _recognized(function: sp.Expr, low: float, high: float) -> sp.Expr:
    """A rational zero where a simple one is exact, else a `Root`."""
    simple = Fraction((low + high) / 2).limit_denominator(4096)
    candidate = sp.Rational(simple.numerator, simple.denominator)
    if low <= simple <= high and function.xreplace({z: candidate}).is_zero:
        return candidate
    return Root(function, sp.Rational(low), sp.Rational(high))


def _isolated(function: sp.Expr) -> list[tuple[float, float]]:
    """Intervals with one zero each; outside of them there is none."""
    left, right = (_settled(function, side) for side in (-1, 1))
    value, slope = enclosure(function), enclosure(sp.diff(function, z))
    boxes = [(-left * 1.0071, right * 1.0093)]
    found: list[tuple[float, float]] = []
    for _ in range(MAX_BOXES):
        if not boxes:
            return sorted(found)
        a, b = boxes.pop()
        low, high = value({z: (a, b)})
        if low > 0 or high < 0:
            continue
        down, up = slope({z: (a, b)})
        if down > 0 or up < 0:
            ends = [_sign(value({z: (x, x)})) for x in (a, b)]
            if 0 not in ends:
                if ends[0] != ends[1]:
                    found.append(_narrowed(value, a, b, ends[1]))
                continue
        middle = a + (b - a) * 0.4871
        if not a < middle < b or b - a < 1e-11 * max(1.0, abs(a)):
            raise FormulaError(
                f"The zeros of {function} near z = {middle:.6g} cannot be told apart: the formula's kinks are unclear."
            )
        boxes += [(a, middle), (middle, b)]
    raise FormulaError(f"The zeros of {function} are too many to be isolated: the formula's kinks are unclear.")


def _narrowed(value, a: float, b: float, sign: int) -> tuple[float, float]:
    """Bisected while the signs are certain."""
    for _ in range(60):
        middle = a + (b - a) * 0.4871
        here = _sign(value({z: (middle, middle)}))
        if here == 0 or not a < middle < b:
            break
        a, b = (a, middle) if here == sign else (middle, b)
    return a, b


def _sign(interval: tuple[float, float]) -> int:
    return 1 if interval[0] > 0 else -1 if interval[1] < 0 else 0


def _settled(function: sp.Expr, side: int) -> float:
    """A distance beyond which the function has no zero on one side."""
    for start in STARTS:
        far = tail(function, side, start)
        if far.sign and far.below is not None:
            return start
    where = "+" if side > 0 else "-"
    raise FormulaError(f"The zeros of {function} towards {where}infinity cannot be isolated: the kinks are unclear.")


def bounded_away(function: sp.Expr, low: float, high: float, positive: bool) -> float | None:
    """None where the function keeps away from zero (stays positive) on [low, high], ends included; else a bad place."""
    ends = []
    for side, end in ((-1, low), (1, high)):
        if math.isfinite(end):
            ends.append(end)
            continue
        start = _clear(function, side, positive, max(0.0, side * (low if side > 0 else high)))
        if start is None:
            return side * math.inf
        ends.append(side * start)
    value = enclosure(function)
    boxes = [(min(ends), max(ends))]
    for _ in range(MAX_BOXES):
        if not boxes:
            return None
        boxes.sort(key=lambda box: -_distance(box))
        a, b = boxes.pop()
        bottom, top = value({z: (a, b)})
        if bottom > 0 or (top < 0 and not positive):
            continue
        middle = (a + b) / 2
        if top < 0 or not a < middle < b or b - a < 1e-9 * max(1.0, abs(middle)):
            return middle
        boxes += [(a, middle), (middle, b)]
    return (boxes[-1][0] + boxes[-1][1]) / 2


def _distance(box: tuple[float, float]) -> float:
    return 0.0 if box[0] <= 0 <= box[1] else min(abs(box[0]), abs(box[1]))


def _clear(function: sp.Expr, side: int, positive: bool, beyond: float) -> float | None:
    for start in (s for s in (*STARTS, 2.0**30) if s > beyond):
        far = tail(function, side, start)
        if far.below is not None and (far.sign > 0 or (far.sign < 0 and not positive)):
            return start
    return None
