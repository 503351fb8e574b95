r"""Hermite coefficients of a function of a Gaussian variable as balls, and pairs by Mehler's series.

a_k = E[F(m + s y) He_k(y)]/sqrt(k!), y ~ N(0, 1), for all k at once: Gauss-Legendre rules on panels between the knots
share the values of F. On a panel where F is analytic and bounded by M in a Bernstein ellipse of parameter rho the
n-point rule errs by at most 64 M/(15 (rho - 1) rho^(2n-1)); panels are halved until that is below the tolerance. For
two variables of correlation rho, E[F G] = sum_k rho^k a_k b_k, and what the first N terms leave out is at most
|rho|^N sqrt(E F^2 - sum a_k^2) sqrt(E G^2 - sum b_k^2).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.enclosure import BallFunction, available, constant_ball
from derive.errors import DeriveError
from derive.gaussian.balls import LineIntegral, precision
from derive.gaussian.distribution import Distribution
from derive.gaussian.support import GaussianIntegral

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

POINTS = (12, 20, 32, 48)
ELLIPSES = (2.0, 3.5, 6.0)
MAX_PANELS = 4000
MOST_TERMS = 600
MOST_WORK = 1_500_000
"""Nodes times orders of one set of coefficients: about ten seconds."""


@lru_cache(maxsize=32)
def _rule(points: int, bits: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss-Legendre nodes and weights as balls."""
    with precision(bits):
        return tuple(flint.arb.legendre_p_root(points, k, weight=True) for k in range(points))


class Coefficients:
    """a_0 ... a_(N-1) of F over N(mean, variance), and E F^2, at one precision and tolerance."""

    def __init__(
        self, factor: Distribution, mean: sp.Expr, variance: sp.Expr, terms: int, tolerance: arb, ratio: float
    ) -> None:
        self.line = LineIntegral(factor, mean, variance)
        self.mean, self.deviation = constant_ball(mean), constant_ball(variance).sqrt()
        self.terms, self.tolerance = terms, tolerance
        self.ratio = flint.arb(ratio)  # the error of a_k may grow as ratio^-k: it is multiplied by the correlation^k
        square = Distribution(factor.knots, tuple(p**2 for p in factor.pieces))
        self.square = LineIntegral(square, mean, variance).ball(tolerance)
        self.values = self._coefficients()

    def _coefficients(self) -> list[arb]:
        arb = flint.arb
        reach = [self._edge(side) for side in (-1, 1)]
        low, high = (arb(x) for x in reach)
        inside = [
            (constant_ball(k) - self.mean) / self.deviation
            for k, x in zip(self.line.factor.knots, self.line.knots)
            if reach[0] < (x - self.line.centre) / self.line.spread < reach[1]
        ]
        first = sum(1 for x in self.line.knots if (x - self.line.centre) / self.line.spread <= reach[0])
        totals = [arb(0)] * self.terms
        errors = [arb(0)] * self.terms
        norm = (2 * arb.pi()).rsqrt()
        roots = [arb(k).sqrt() for k in range(self.terms + 1)]
        for i, (a, b) in enumerate(pairwise([low, *inside, high])):
            if self.line.factor.pieces[first + i] == 0:
                continue
            panels = self._panels(self.line.functions[first + i], a, b)
            if self.terms * sum(points for _, _, points, _ in panels) > MOST_WORK:
                raise DeriveError("The pair's series converges too slowly to be certified: it would take minutes.")
            for left, right, points, bounds in panels:
                middle, half = (left + right) / 2, (right - left) / 2
                real = self.line.functions[first + i].real
                for node, weight in _rule(points, flint.ctx.prec):
                    y = middle + half * node
                    value = real(self.mean + self.deviation * y) * (-(y**2) / 2).exp() * weight * half * norm
                    before, here = arb(0), value
                    for k in range(self.terms):
                        totals[k] += here
                        before, here = here, (y * here - roots[k] * before) / roots[k + 1]
                errors = [e + b for e, b in zip(errors, bounds)]
        rest = self._beyond(reach)
        return [t + arb(0, (e + r).upper()) for t, e, r in zip(totals, errors, rest)]

    def _edge(self, side: int) -> float:
        end = self.line._reach(side, self.tolerance**2 / 2**20)
        return (end - self.line.centre) / self.line.spread

    def _beyond(self, reach: list[float]) -> list[arb]:
        """|integral beyond of F h_k| <= sqrt(integral beyond of F^2), since h_k has norm one (Cauchy-Schwarz)."""
        square = LineIntegral(
            Distribution(self.line.factor.knots, tuple(p**2 for p in self.line.factor.pieces)),
            self.mean,
            self.deviation**2,
        )
        variance = self.deviation**2
        total = flint.arb(0)
        for side, y in zip((-1, 1), reach):
            start = float((self.mean + self.deviation * y).mid())
            slack = 1e-9 * (1 + abs(start))
            total += square._beyond(start - side * slack, side, self.mean, variance)
        return [total.sqrt()] * self.terms

    def _panels(self, function: BallFunction, a: arb, b: arb) -> list[tuple[arb, arb, int, list[arb]]]:
        """Panels with the number of points and a bound on the rule's error for each order."""
        found = []
        start = max(2, math.ceil(float((b - a).mid()) / 2))
        edges = [a, *(a + (b - a) * j / start for j in range(1, start)), b]
        work = list(pairwise(edges))
        width = float((b - a).mid())
        while work:
            left, right = work.pop()
            rule = self._choose(function, left, right, width)
            if rule is None:
                middle = (left + right) / 2
                work += [(left, flint.arb(middle.mid())), (flint.arb(middle.mid()), right)]
            else:
                found.append((left, right, *rule))
            if len(found) + len(work) > MAX_PANELS:
                raise DeriveError("The formula varies too fast to be certified in a pair: it takes too many panels.")
        return found

    def _choose(self, function: BallFunction, left: arb, right: arb, width: float) -> tuple[int, list[arb]] | None:
        middle, half = (left + right) / 2, (right - left) / 2
        best: tuple[int, list[arb]] | None = None
        for rho in ELLIPSES:
            big, small = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
            real = (middle - half * big).union(middle + half * big)
            imaginary = flint.arb(0, (half * small).upper())
            y = flint.acb(real, imaginary)
            value = function.complex(self.mean + self.deviation * y, True) * (-(y**2) / 2).exp()
            if not value.is_finite():
                break
            size = flint.arb(value.abs_upper())
            top = _hermite_bound(flint.arb(real.abs_upper()), flint.arb(imaginary.abs_upper()), self.terms)
            largest = max((t * self.ratio**k for k, t in enumerate(top)), key=lambda x: float(x.log().mid()))
            goal = self.tolerance / (width + 1)
            for points in POINTS:
                if best is not None and points >= best[0]:
                    break
                factor = size * half * 64 / (15 * (rho - 1) * flint.arb(rho) ** (2 * points - 1))
                if factor * largest < goal:
                    best = points, [factor * t for t in top]
                    break
        return best


def _hermite_bound(real: arb, imaginary: arb, terms: int) -> list[arb]:
    """Bounds on |He_k(x + i v)|/sqrt(k!) for |x| <= real, |v| <= imaginary.

    Cauchy's estimate of exp(y t - t^2/2) on |t| = sqrt(k): sqrt(k!) (e/k)^(k/2) exp(|v| sqrt(k) + x^2/4).
    """
    common = (real**2 / 4).exp()
    found = [common]
    for k in range(1, terms):
        size = (flint.arb(k + 1).lgamma() + k - k * flint.arb(k).log()) / 2 + imaginary * flint.arb(k).sqrt()
        found.append(common * size.exp())
    return [flint.arb(x.abs_upper()) for x in found]


def pair_ball(term: GaussianIntegral, digits: int) -> arb:
    """E[F(z_0) G(z_1)] for two correlated variables; the coefficient is not included."""
    f, g = term.factors
    v, w, c = term.covariance[0, 0], term.covariance[1, 1], term.covariance[0, 1]
    rho = float((c / sp.sqrt(v * w)).evalf(20))
    bits = int(digits * 3.33) + 60
    terms = 24
    while True:
        with precision(bits + terms // 2):
            goal = flint.arb(10) ** -(digits + 3)
            size = [LineIntegral(x, m, s).guess() for x, m, s in zip((f, g), term.mean, (v, w))]
            one = Coefficients(f, term.mean[0], v, terms, goal * size[0].max(flint.arb(2) ** -60), abs(rho))
            same = f == g and term.mean[0] == term.mean[1] and v == w
            two = (
                one
                if same
                else Coefficients(g, term.mean[1], w, terms, goal * size[1].max(flint.arb(2) ** -60), abs(rho))
            )
            correlation = constant_ball(c) / (constant_ball(v) * constant_ball(w)).sqrt()
            total, power = flint.arb(0), flint.arb(1)
            for a, b in zip(one.values, two.values):
                total += power * a * b
                power *= correlation
            left = [
                (x.square - sum((flint.arb(a.abs_lower()) ** 2 for a in x.values), flint.arb(0))).upper()
                for x in (one, two)
            ]
            left = [flint.arb(x) if flint.arb(x) > 0 else flint.arb(0) for x in left]
            rest = abs(power) * (left[0] * left[1]).sqrt()
            ball = total + flint.arb(0, rest.upper())
            norm = math.sqrt(abs(float(one.square.mid()) * float(two.square.mid())))
        wanted = max(abs(float(total.mid())) * 10.0**-digits, norm * 10.0 ** -(digits + 1))  # it may be zero
        if float(ball.rad()) <= wanted or terms >= MOST_TERMS:
            return ball
        missing = math.log(max(float(rest.mid()), 1e-300) / max(wanted / 4, 1e-300))
        more = missing / -math.log(min(abs(rho), 0.98)) if missing > 0 else 8
        terms = int(min(MOST_TERMS, terms + max(16, min(more, 2 * terms))))
