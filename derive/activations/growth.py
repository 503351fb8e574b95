r"""How large and how small a formula is far out, read off the formula: bounds for all z >= R, with nothing sampled.

A subexpression is bounded from above, and from below where it keeps away from zero, by exp(c + p log z + a z + b z^2):
sums by their largest term (or by interval arithmetic, with every angle of sin and cos, where no term is the largest),
products by adding, functions by their own inequalities. b > 0 means that Gaussian expectations exist only for small K.
The left tail is the right tail of the formula at -z. Numbers are rounded outward.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from derive.activations.enclosure import Complement, without_cancellation
from derive.activations.intervals import Interval, angles_of, enclosure
from derive.symbols import z

STARTS = (8.0, 64.0, 1024.0, 2.0**20)
"""Where tails may begin, tried one after the other."""
MAX_ANGLE_BOXES = 3000
_SLACK = 1e-13


@dataclass(frozen=True)
class Log:
    """c + p log z + a z + b z^2."""

    c: float = 0.0
    p: Fraction = Fraction(0)
    a: float = 0.0
    b: float = 0.0

    def __add__(self, other: Log) -> Log:
        return Log(self.c + other.c, self.p + other.p, self.a + other.a, self.b + other.b)

    def times(self, factor: Fraction | int) -> Log:
        size = float(factor)
        return Log(self.c * size, self.p * factor, self.a * size, self.b * size)

    def moved(self, upward: int) -> Log:
        """Outward by more than rounding."""
        c, a, b = (x + upward * _SLACK * abs(x) for x in (self.c, self.a, self.b))
        return Log(c, self.p, a, b)

    @property
    def order(self) -> tuple[float, float, Fraction, float]:
        return self.b, self.a, self.p, self.c

    def at(self, x: float) -> float:
        return self.c + float(self.p) * math.log(x) + self.a * x + self.b * x * x

    def falls(self, start: float) -> bool:
        """Whether it does not grow anywhere beyond the start."""
        return self.b <= 0 and max(float(self.p), 0.0) / start + self.a + 2 * self.b * start <= 0


@dataclass(frozen=True)
class Tail:
    """sign * |e| for z >= R: sign 0 is unknown, `below` None means that e may come near zero, `above` that no bound
    of this form is known."""

    sign: int
    below: Log | None
    above: Log | None


def _larger(a: Log, b: Log, start: float) -> Log:
    """A bound on exp(a) + exp(b) for z >= start: the larger one times a constant, if the other falls."""
    if math.isinf(a.c) or math.isinf(b.c):
        return b if a.c < b.c else a
    for one, two in ((a, b), (b, a)):
        ratio = two + one.times(-1)
        if ratio.falls(start):
            size = abs(ratio.c) + abs(float(ratio.p)) * math.log(start) + abs(ratio.a) * start + abs(ratio.b) * start**2
            most = ratio.at(start) + 1e-9 * size
            if most < 700:
                return Log(one.c + math.log1p(math.exp(most)), one.p, one.a, one.b)
    top = max(a.c, b.c)
    c = top + math.log(math.exp(a.c - top) + math.exp(b.c - top)) if math.isfinite(top) else top
    return Log(c, max(a.p, b.p), max(a.a, b.a), max(a.b, b.b))


class Far:
    """The tail z >= start of expressions without kinks."""

    def __init__(self, start: float) -> None:
        self.start = start
        self._known: dict[sp.Expr, Tail] = {}

    def tail(self, e: sp.Expr) -> Tail:
        if e not in self._known:
            self._known[e] = self._mended(e, self._tail(e))
        return self._known[e]

    def _mended(self, e: sp.Expr, found: Tail) -> Tail:
        """With interval arithmetic where the rules leave the sign or a bound open."""
        if (found.below is not None and found.above is not None) or not e.args or isinstance(e, sp.sin | sp.cos):
            return found
        low, high = self._range(e)
        if not (low > 0 or high < 0):
            bounded = math.isfinite(low) and math.isfinite(high)
            sign = found.sign or (1 if low >= 0 else -1 if high <= 0 else 0)
            size = Log(math.log(max(abs(low), abs(high), 1e-300))).moved(1) if bounded else None
            return Tail(sign, found.below, found.above or size)
        near, far = (low, high) if low > 0 else (-high, -low)
        below = found.below or Log(math.log(near)).moved(-1)
        above = found.above or (Log(math.log(far)).moved(1) if math.isfinite(far) else None)
        return Tail(1 if low > 0 else -1, below, above)

    def _range(self, e: sp.Expr) -> Interval:
        """An interval that holds e for z >= start, whatever its angles are."""
        function, angles = enclosure(e), angles_of(e)
        line = (self.start, math.inf)
        if not angles.turns or len(angles.turns) > 3:
            return function({z: line})
        first = tuple((0.0, 2 * math.pi) for _ in angles.turns)
        whole = function({z: line, **angles.box(first)})
        if not all(map(math.isfinite, whole)):
            return whole
        boxes = [(whole, first)]
        for keep in (1, -1):  # the side that could cross zero is refined until it does not, or the boxes are too many
            heap = [(keep * w[0] if keep > 0 else -w[1], w, b) for w, b in boxes]
            heapq.heapify(heap)
            for _ in range(MAX_ANGLE_BOXES // 2):
                worst = heap[0]
                if worst[0] > 0 or (keep > 0 and whole[1] < 0):
                    break
                heapq.heappop(heap)
                widest = max(range(len(worst[2])), key=lambda i: worst[2][i][1] - worst[2][i][0])
                low, high = worst[2][widest]
                for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
                    box = (*worst[2][:widest], half, *worst[2][widest + 1 :])
                    w = function({z: line, **angles.box(box)})
                    heapq.heappush(heap, (w[0] if keep > 0 else -w[1], w, box))
            found = min(w[0] for _, w, _ in heap), max(w[1] for _, w, _ in heap)
            if found[0] > 0 or found[1] < 0:
                return found
        return found

    def _tail(self, e: sp.Expr) -> Tail:
        if not e.has(z):
            value = float(e.evalf(20))
            if value == 0:
                return Tail(1, None, Log(-math.inf))
            size = Log(math.log(abs(value)))
            return Tail(1 if value > 0 else -1, size.moved(-1), size.moved(1))
        if e == z:
            return Tail(1, Log(p=Fraction(1)), Log(p=Fraction(1)))
        if e.is_Add:
            return self._sum([self.tail(a) for a in e.args])
        if e.is_Mul:
            return self._product([self.tail(a) for a in e.args])
        if e.is_Pow and not isinstance(e, sp.exp):
            return self._power(self.tail(e.base), e.exp)
        u = e.args[0]
        if isinstance(e, sp.exp):
            low, high = self.values(u)
            return Tail(1, low, high)
        if isinstance(e, sp.sinh | sp.cosh):
            return self._hyperbolic(e, u)
        if isinstance(e, sp.log):
            return self._log(u)
        if isinstance(e, Complement | sp.erfc):
            return self._complement(u)
        if isinstance(e, sp.tanh | sp.erf | sp.atan | sp.sin | sp.cos | sp.asinh):
            return self._bounded(e, self.tail(u))
        return Tail(0, None, None)

    def _sum(self, terms: list[Tail]) -> Tail:
        above: Log | None = Log(-math.inf)
        for t in terms:
            above = None if above is None or t.above is None else _larger(above, t.above, self.start)
        above = above.moved(1) if above is not None else None
        if all(t.sign == terms[0].sign != 0 for t in terms):
            known = [t.below for t in terms if t.below is not None]
            return Tail(terms[0].sign, max(known, key=lambda log: log.order, default=None), above)
        lower = [t for t in terms if t.below is not None and t.sign]
        if not lower:
            return Tail(0, None, above)
        largest = max(lower, key=lambda t: t.below.order if t.below else ())
        assert largest.below is not None
        left = 1.0
        for t in terms:
            if t is largest or (t.sign == largest.sign):
                continue
            if t.above is None:
                return Tail(0, None, above)
            ratio = t.above + largest.below.times(-1)
            if not ratio.falls(self.start):
                return Tail(0, None, above)
            left -= math.exp(min(700.0, ratio.at(self.start))) * (1 + 1e-9)
        if left < 1e-3:
            return Tail(0, None, above)
        return Tail(largest.sign, (largest.below + Log(math.log(left))).moved(-1), above)

    def _product(self, factors: list[Tail]) -> Tail:
        sign, below, above = 1, Log(), Log()
        lower = upper = True
        for f in factors:
            sign *= f.sign
            lower, upper = lower and f.below is not None, upper and f.above is not None
            below = below + (f.below or Log())
            above = above + (f.above or Log())
        return Tail(sign, below.moved(-1) if lower else None, above.moved(1) if upper else None)

    def _power(self, base: Tail, exponent: sp.Rational) -> Tail:
        n = Fraction(int(exponent.p), int(exponent.q))
        even = exponent.is_Integer and int(exponent) % 2 == 0
        sign = 1 if even or not exponent.is_Integer else base.sign
        low, high = (base.below, base.above) if n > 0 else (base.above, base.below)
        below = low.times(n).moved(-1) if low is not None and math.isfinite(low.c) else None
        return Tail(sign, below, high.times(n).moved(1) if high is not None else None)

    def values(self, u: sp.Expr) -> tuple[Log | None, Log | None]:
        """u itself, not its logarithm, between two forms c + p log z + a z + b z^2."""
        if u.is_polynomial(z) and sp.degree(u, z) <= 2:
            coefficients = [float(c.evalf(20)) for c in reversed(sp.Poly(u, z).all_coeffs())]
            c, a, b = (*coefficients, 0.0, 0.0)[:3]
            exact = Log(c, Fraction(0), a, b)
            return exact.moved(-1), exact.moved(1)
        if u.is_Add and not u.is_polynomial(z):
            pairs = [self.values(a) for a in u.args]
            total: list[Log | None] = [Log(), Log()]
            for pair in pairs:
                total = [None if t is None or v is None else t + v for t, v in zip(total, pair)]
            found = (total[0].moved(-1) if total[0] else None, total[1].moved(1) if total[1] else None)
            if None not in found:
                return found
        if isinstance(u, sp.log):
            inner = self.tail(u.args[0])
            return inner.below, inner.above
        t = self.tail(u)
        far, near = self._outer(t.above), self._inner(t.below)
        if t.sign > 0:
            return near, far
        if t.sign < 0:
            return (far.times(-1) if far else None), near.times(-1)
        return (far.times(-1) if far else None), far

    def _outer(self, size: Log | None) -> Log | None:
        """A form above exp(size)."""
        if size is None or size.a > 0 or size.b > 0:
            return None
        extra = size.c + size.a * self.start + size.b * self.start**2
        if extra > 600:
            return None
        scale, p = math.exp(extra) * (1 + 1e-12), float(size.p)
        if p <= 0:
            return Log(c=scale * self.start**p)
        if p <= 1:
            return Log(a=scale * self.start ** (p - 1))
        return Log(b=scale * self.start ** (p - 2)) if p <= 2 else None

    def _inner(self, size: Log | None) -> Log:
        """A form below exp(size), zero where nothing better is known."""
        if size is None or size.a < 0 or size.b < 0 or size.p < 0:
            return Log()
        extra = size.c + size.a * self.start + size.b * self.start**2
        scale, p = math.exp(min(600.0, extra)) * (1 - 1e-12), float(size.p)
        if size.b * self.start**2 > 2:  # exp(size)/z^2 rises
            return Log(b=math.exp(min(600.0, extra + (p - 2) * math.log(self.start))) * (1 - 1e-12))
        if size.a:  # exp(a z) >= a^2 z^2/2
            return Log(b=math.exp(min(600.0, size.c)) * size.a**2 / 2 * (1 - 1e-12))
        if p >= 2:
            return Log(b=scale * self.start ** (p - 2))
        return Log(a=scale * self.start ** (p - 1)) if p >= 1 else Log(c=scale * self.start**p)

    def _hyperbolic(self, e: sp.Expr, u: sp.Expr) -> Tail:
        """cosh and sinh: between exp(|u|)/2 (1 - exp(-2 |u|)) and exp(|u|)."""
        inner = self.tail(u)
        low, high = self.values(u)
        if inner.sign < 0:
            low, high = (high.times(-1) if high else None), (low.times(-1) if low else None)
        elif inner.sign == 0:
            size = self._outer(inner.above)
            low, high = Log(), size
        if isinstance(e, sp.cosh):
            return Tail(1, low + Log(-math.log(2)) if low else Log(), high)
        away = inner.below is not None and inner.below.times(-1).falls(self.start)
        least = math.exp(min(700.0, inner.below.at(self.start))) if away and inner.below else 0.0
        below = low + Log(math.log(-math.expm1(-2 * least) / 2)) if low and inner.sign and least > 1e-12 else None
        return Tail(inner.sign, below.moved(-1) if below else None, high)

    def _log(self, u: sp.Expr) -> Tail:
        low, high = self.tail(u).below, self.tail(u).above
        rest = self.tail(sp.expand(u - 1))
        above = None
        if low is not None and high is not None:
            c, a, b = (max(abs(x), abs(y)) for x, y in ((low.c, high.c), (low.a, high.a), (low.b, high.b)))
            p = float(max(abs(low.p), abs(high.p)))
            degree = 2 if b else 1 if a or p else 0
            scale = b + (a + p) * (self.start ** (1 - degree)) + c * self.start**-degree
            above = Log(math.log(max(scale, 1e-300)) + 1e-12, Fraction(degree))
        if rest.sign > 0 and rest.above is not None and rest.above.falls(self.start):
            above = rest.above if above is None or rest.above.order < above.order else above
        sign, below = (1 if rest.sign > 0 else 0), None
        parts = () if low is None else (low.a, low.b, low.c, float(low.p))
        if low is not None and min(parts) >= 0 and max(parts) > 0:
            sign, below = 1, self._inner_value(low)
        elif rest.sign > 0 and rest.below is not None and rest.above is not None and rest.above.falls(self.start):
            most = math.exp(min(700.0, rest.above.at(self.start)))
            below = (rest.below + Log(-math.log1p(most))).moved(-1)
        return Tail(sign, below, above)

    def _inner_value(self, value: Log) -> Log:
        """The logarithm of a lower bound of a value c + p log z + a z + b z^2 with non-negative parts."""
        if value.b > 0:
            return Log(math.log(value.b), Fraction(2)).moved(-1)
        if value.a > 0:
            return Log(math.log(value.a), Fraction(1)).moved(-1)
        return Log(math.log(value.c + float(value.p) * math.log(self.start))).moved(-1)

    def _complement(self, u: sp.Expr) -> Tail:
        """erfc(u) <= exp(-u^2), >= (2/sqrt(pi)) exp(-u^2)/(2 u + 2) for u >= 0; between 1 and 2 for u <= 0."""
        inner = self.tail(u)
        if inner.sign < 0:
            return Tail(1, Log(), Log(math.log(2)).moved(1))
        if inner.sign == 0:
            return Tail(1, None, Log(math.log(2)).moved(1))
        low, high = self.values(sp.expand(-(u**2)))
        size = self.tail(2 * u + 2).above
        below = low + Log(math.log(2 / math.sqrt(math.pi))) + size.times(-1) if low and size else None
        return Tail(1, below.moved(-1) if below else None, high or Log())

    def _bounded(self, e: sp.Expr, inner: Tail) -> Tail:
        """|tanh|, |erf|, |sin|, |cos| <= 1, |atan| <= 2, |asinh u| <= |u|; all but cos are below 1.2 |u| too."""
        tops = {sp.atan: Log(math.log(2)), sp.asinh: None}
        above = tops.get(e.func, Log())
        if not isinstance(e, sp.cos) and inner.above is not None:
            linear = inner.above + Log(math.log(1.2))
            above = linear if above is None or (linear.falls(self.start) and linear.order < above.order) else above
        if isinstance(e, sp.asinh) and inner.above is not None and (inner.above.a > 0 or inner.above.b > 0):
            size = inner.above  # log(2 exp(size) + 1) <= 2 + |size|
            degree = Fraction(2 if size.b > 0 else 1)
            above = Log(math.log(2 + abs(size.c) + abs(float(size.p)) + abs(size.a) + abs(size.b)) + 1e-12, degree)
        below = None
        if inner.sign and inner.below is not None and not isinstance(e, sp.sin | sp.cos):
            if inner.below.times(-1).falls(self.start):
                least = math.exp(min(700.0, inner.below.at(self.start)))
                below = Log(math.log(math.atan(least) / 2)) if least > 1e-12 else None
            elif inner.above is not None and inner.above.falls(self.start):
                below = inner.below + Log(-math.log(2 + math.exp(min(700.0, inner.above.at(self.start)))))
        sign = 0 if isinstance(e, sp.sin | sp.cos) else inner.sign
        return Tail(sign, below.moved(-1) if below else None, above)


@lru_cache(maxsize=64)
def _far(start: float) -> Far:
    return Far(start)


def tail(expression: sp.Expr, side: int, start: float) -> Tail:
    """Bounds on an analytic expression for side * z >= start (>= 1), as functions of |z|.

    >>> tail(sp.exp(z**2 / 1000), 1, 8.0).above.b > 0, tail(sp.tanh(z), -1, 8.0).sign
    (True, -1)
    """
    turned = expression if side > 0 else expression.xreplace({z: -z})
    return _far(start).tail(without_cancellation(turned))


def starts_from(at_least: float) -> tuple[float, ...]:
    """The starts that may be tried beyond a place."""
    return tuple(itertools.dropwhile(lambda s: s < at_least, STARTS)) or (at_least,)
