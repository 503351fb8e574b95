r"""Gaussian integrals of one variable as balls that contain them: E[F(z)], z ~ N(m, v), F piecewise analytic.

Between the knots FLINT integrates rigorously (acb.integral: Gauss-Legendre with bounds on ellipses). Beyond the range
of integration |F| is bounded from its formula, |F| <= exp(c + p log z + a z + b z^2) (`derive.activations.growth`), and
the Gaussian tail of that bound, a complementary error function, is added to the radius. Nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import mpmath
import sympy as sp

from derive.activations.enclosure import BallFunction, ComplexBall, available, ball_function, constant_ball, require
from derive.activations.growth import STARTS, Log, tail
from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian.distribution import Distribution
from derive.gaussian.saturation import without_saturated
from derive.gaussian.support import GaussianIntegral

if TYPE_CHECKING:
    from flint import acb, arb

if available():
    import flint

MAX_EVALUATIONS = 400_000
MAX_BOXES = 400
MAX_ROUNDS = 12
FAR = 8.0
"""Beyond this, sections double in length and functions that are constant there are left out."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """FLINT's working precision inside the block."""
    require()
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def integral(integrand: ComplexBall, left: arb, right: arb, tolerance: arb) -> arb:
    """FLINT's rigorous integral; an exception in the integrand (an interrupt among them) ends it and is raised."""
    stopped: list[BaseException] = []
    nothing = flint.acb("nan")

    def guarded(x: acb, analytic: bool) -> acb:
        if stopped:
            return nothing
        try:
            return integrand(x, analytic)
        except BaseException as error:  # FLINT's C code cannot pass it on
            stopped.append(error)
            return nothing

    found = flint.acb.integral(
        guarded, left, right, rel_tol=flint.arb(2) ** -flint.ctx.prec, abs_tol=tolerance, eval_limit=MAX_EVALUATIONS
    ).real
    if stopped:
        raise stopped[0]
    return found


class LineIntegral:
    """E[F(z)] over N(mean, variance) for a regular distribution F, to any accuracy; the two may be balls."""

    def __init__(self, factor: Distribution, mean: sp.Expr | arb, variance: sp.Expr | arb) -> None:
        self.factor, self.mean, self.variance = factor, mean, variance
        self.functions = [ball_function(piece) for piece in factor.pieces]
        with precision(64):
            self.centre, self.spread = (float(constant_ball(x).mid()) for x in (mean, variance))
            self.knots = [float(constant_ball(k).mid()) for k in factor.knots]
        self.spread = math.sqrt(self.spread)

    def guess(self) -> arb:
        """The size of F near the Gaussian's centre: where tolerances start, never part of a result."""
        largest = flint.arb(0)
        for y in (0.01, -0.02, 0.3, -0.4, 1.1, -1.3, 2.2, -2.5):
            x = self.centre + y * self.spread
            value = self.functions[sum(1 for k in self.knots if k <= x)].real(flint.arb(x))
            if value.is_finite():
                largest = largest.max(flint.arb(value.abs_upper()))
        return largest if largest > 0 else flint.arb(1)

    def ball(self, tolerance: arb) -> arb:
        """The integral at the present precision; its radius is near the absolute tolerance if the precision allows."""
        m, v = constant_ball(self.mean), constant_ball(self.variance)
        half, scale = 1 / (2 * v), (2 * flint.arb.pi() * v).rsqrt()
        ends = [self._reach(side, tolerance) for side in (-1, 1)]
        total = saturated = flint.arb(0)
        low, high = (flint.arb(e) for e in ends)
        borders = [low, *(constant_ball(k) for k, x in zip(self.factor.knots, self.knots) if ends[0] < x < ends[1])]
        first = sum(1 for x in self.knots if x <= ends[0])
        for i, (a, b) in enumerate(pairwise([*borders, high])):
            if self.factor.pieces[first + i] == 0:
                continue
            for left, right in self._sections(a, b):
                function, error = self.simplest(first + i, left, right, tolerance)

                def integrand(x, analytic, function=function):
                    return function(x, analytic) * (-((x - m) ** 2) * half).exp()

                total += integral(integrand, left, right, tolerance / scale.upper() / 8)
                saturated += error
        rest = self._beyond(ends[0], -1, m, v) + self._beyond(ends[1], 1, m, v)
        return total * scale + flint.arb(0, (rest + saturated).upper())

    def _sections(self, a: arb, b: arb) -> list[tuple[arb, arb]]:
        """Cut around the centre of the Gaussian, so that no bisections are wasted on a far narrow peak, and far out."""
        low, high = float(a.mid()), float(b.mid())
        cuts = {self.centre - 2 * self.spread, self.centre + 2 * self.spread}
        if max(abs(low), abs(high)) > 2 * FAR:
            cuts |= {side * FAR * 2.0**j for side in (-1, 1) for j in range(12)}
        return list(pairwise([a, *(flint.arb(x) for x in sorted(cuts) if low < x < high), b]))

    def simplest(self, index: int, left: arb, right: arb, tolerance: arb) -> tuple[ComplexBall, arb]:
        """The piece on a section, without what is constant there, and a bound on what that changes."""
        if left > FAR / 2 or right < -FAR / 2:
            found = without_saturated(self.factor.pieces[index], left, right, tolerance / 2**20)
            if found is not None and found[1] < tolerance / 16:
                return ball_function(found[0]).complex, found[1]
        return self.functions[index].complex, flint.arb(0)

    def _reach(self, side: int, tolerance: arb) -> float:
        """Where the tail may begin so that what lies beyond is below the tolerance."""
        piece = self.factor.pieces[-1 if side > 0 else 0]
        above = next((t for s in STARTS if (t := tail(piece, side, s).above) is not None), Log())
        square = 1 / (2 * self.spread**2) - max(0.0, above.b)
        if square <= 0:
            raise DivergentExpectation(
                "The expectation diverges: the integrand grows as fast as the Gaussian of this K decays."
            )
        shift = (max(0.0, above.a) + max(0.0, side * self.centre) / self.spread**2) / (2 * square)
        nats = -float(tolerance.log().mid()) + square * shift**2 + 4
        nats += max(0.0, float(above.p)) * math.log(2 + shift + 6 * self.spread) + max(0.0, above.c)
        return side * max(shift + math.sqrt(max(nats, 4.0) / square), side * self.centre + 2 * self.spread)

    def _beyond(self, end: float, side: int, m: arb, v: arb) -> arb:
        """A bound on the integral of |F| times the density beyond an end of the range."""
        total = flint.arb(0)
        here = side * end
        knots = sorted(x for x in (side * k for k in self.knots) if x > here)
        pieces = [*self.factor.pieces] if side > 0 else [*reversed(self.factor.pieces)]
        functions = [*self.functions] if side > 0 else [*reversed(self.functions)]
        first = len(pieces) - 1 - len(knots)
        exact = [k for k, x in zip(self.factor.knots, self.knots) if side * x > here]
        borders = [constant_ball(k) * side for k in (exact if side > 0 else reversed(exact))]
        a = flint.arb(here)
        for i, b in enumerate(borders):
            total += self._panel(functions[first + i], side, a, b, m, v)
            a = b
        start = next((s for s in STARTS if tail(pieces[-1], side, s).above is not None), None)
        if start is None:
            raise DeriveError("No bound on the formula's growth is known: the expectation cannot be certified.")
        if not a > start:
            total += self._panel(functions[-1], side, a, flint.arb(start), m, v)
            a = flint.arb(start)
        above = tail(pieces[-1], side, start).above
        assert above is not None
        return total + tail_integral(above, a, side * m, v)

    def _panel(self, function: BallFunction, side: int, a: arb, b: arb, m: arb, v: arb) -> arb:
        """A bound on the integral over a <= side z <= b: the largest |F| on a box times the mass beyond its start."""
        total, step = flint.arb(0), flint.arb(self.spread / 2)
        while a < b:
            high = (a + step).mid()
            end = b if not high < b else flint.arb(high)
            total += largest(function, side, a, end) * ((a - side * m) / (2 * v).sqrt()).erfc() / 2
            a, step = end, 2 * step
        return total


def largest(function: BallFunction, side: int, a: arb, b: arb) -> arb:
    """A bound on |F| for a <= side z <= b."""
    boxes, largest = [(a, b)], flint.arb(0)
    for _ in range(MAX_BOXES):
        if not boxes:
            return largest
        low, high = boxes.pop()
        value = function.real(side * low.union(high))
        if value.is_finite() and value.rad() < 16 * (1 + abs(value.mid())):
            largest = largest.max(flint.arb(value.abs_upper()))
        else:
            middle = flint.arb((low.mid() + high.mid()) / 2)
            boxes += [(low, middle), (middle, high)]
    raise DeriveError("The formula could not be bounded where the Gaussian is small: it cannot be certified.")


Term = tuple[sp.Expr, LineIntegral | None]
"""A coefficient and the integral it multiplies (None: the number 1)."""


def tail_integral(above: Log, start: arb, mean: arb, variance: arb) -> arb:
    """The integral over z >= start of exp(c + p log z + a z + b z^2) times the density of N(mean, variance).

    log z <= log start + (z - start)/start, so the exponent is below a quadratic and the bound is an erfc.
    """
    arb = flint.arb
    p = arb(flint.fmpq(above.p.numerator, above.p.denominator))
    c, a, b = arb(above.c) + p * start.log(), arb(above.a), arb(above.b)
    if above.p > 0:
        c, a = c - p, a + p / start
    square = 1 / (2 * variance) - b
    if not square > 0:
        raise DivergentExpectation(
            "The expectation diverges: the integrand grows as fast as the Gaussian of this K decays."
        )
    linear = a + mean / variance
    constant = c - mean**2 / (2 * variance) + linear**2 / (4 * square)
    edge = square.sqrt() * (start - linear / (2 * square))
    # exp(constant) erfc(edge), each of which may be huge or tiny: the product is taken in logarithms if need be
    return constant.exp() * edge.erfc() / (2 * (2 * square * variance).sqrt())


def line_integral(term: GaussianIntegral) -> LineIntegral | None:
    """The integral of a term with at most one factor."""
    if not term.factors:
        return None
    return LineIntegral(term.factors[0], term.mean[0], term.covariance[0, 0])


def middle_and_radius(ball: arb) -> tuple[mpmath.mpf, mpmath.mpf]:
    """A ball as two mpmath numbers, exactly."""
    middle, radius = (mpmath.mp.make_mpf(x._mpf_) for x in (ball.mid(), ball.rad()))
    return middle, radius


def sum_of_terms(terms: Sequence[Term], digits: int) -> arb:
    """The sum of coefficient * integral to `digits` significant digits, at the precision that this takes.

    What cannot be told from zero at twice the digits and 40 more is returned as a ball around zero.
    """
    with precision(64):
        sizes = [abs(constant_ball(c)) * (integral.guess() if integral else 1) for c, integral in terms]
        size = sum(sizes[1:], sizes[0]).abs_upper()
        goal = flint.arb(size) / 2**16
    smallest = 2 * digits + 40
    bits = 80
    for _ in range(MAX_ROUNDS):
        with precision(bits):
            total = flint.arb(0)
            for c, integral in terms:
                weight = constant_ball(c)
                total += weight * (integral.ball(goal / (2 * len(terms) * weight.abs_upper())) if integral else 1)
            radius, middle = total.rad(), abs(total.mid())
            if not total.is_finite():
                raise DeriveError("The integral could not be enclosed: the formula's balls grow too wide.")
            if radius * flint.arb(10) ** digits <= middle:
                return total
            if middle > 16 * radius:
                goal = (goal / 2**10).min(middle / flint.arb(10) ** (digits + 2))
            elif radius * flint.arb(10) ** smallest < size:
                return total
            else:
                goal = goal.min(flint.arb(radius)) / 2**40
            lost = float((size / goal).log().mid()) / math.log(2)
            bits = max(bits + (0 if radius <= 4 * goal else 32), int(lost) + 40)
    raise DeriveError("The integral could not be enclosed to that precision: rounding errors dominate.")
