r"""A factor averaged over its own part of the noise: G(x) = E[F(x + sqrt(D) u)], u ~ N(0, 1), as balls for many x.

Whatever kinks F has, G is entire, |G(x + i y)| <= exp(y^2/(2 D)) E|F(x + sqrt(D) u)|. It and its Hermite coefficients
g_n(x) = E[F(x + sqrt(D) u) He_n(u)]/sqrt(n!) = D^(n/2) G^(n)(x)/sqrt(n!) are Gauss-Legendre sums over values of F that
all x share; the error is bounded on ellipses. On cells one deviation wide the sums are Taylor polynomials in x, the
remainder bounded by Cramer's |He_n(u)| <= 1.0865 sqrt(n!) exp(u^2/4). F itself is bounded on the whole line by
A exp(beta (t - m)^2), from balls near the centre and from the formula's growth far out.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from derive.activations.enclosure import ComplexBall, available, constant_ball
from derive.activations.growth import STARTS, tail
from derive.errors import DeriveError
from derive.gaussian.balls import LineIntegral, largest, precision

if TYPE_CHECKING:
    from flint import arb, arb_poly

if available():
    import flint

POINTS = (8, 12, 16, 20, 26, 32, 40, 52, 68, 90)
ELLIPSES = (1.6, 2.2, 3.2, 5.0, 8.0)
MAX_PANELS = 6000
MAX_SPLITS = 40
HALF = 0.5 + 1e-6
"""Of a cell's width, in deviations: cells overlap by more than rounding."""
BETA = 64
"""F is bounded by a multiple of exp((t - m)^2/(64 K)) if its growth allows."""


@lru_cache(maxsize=64)
def legendre_rule(points: int, bits: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss-Legendre nodes and weights as balls."""
    with precision(bits):
        return tuple(flint.arb.legendre_p_root(points, k, weight=True) for k in range(points))


class Envelope(NamedTuple):
    """|F(t)| <= size exp(beta (t - m)^2) for every real t."""

    size: arb
    beta: arb


class Panel(NamedTuple):
    """A Gauss-Legendre rule: nodes with weight * F, and for its error the ellipse's extent and bound."""

    low: float
    high: float
    nodes: list[tuple[arb, arb]]
    reach: tuple[float, float]
    height: float
    """Of the ellipse, in deviations."""
    error: arb
    """Of the sum against a function that is at most 1 on the ellipse."""


class Cell(NamedTuple):
    """Its middle, counted from the mean, and g_0, g_1, ... as polynomials in (x - middle)/sqrt(D) with their errors."""

    middle: arb
    polynomials: list[arb_poly]
    errors: list[arb]


class Smoothed:
    """g_0 ... g_(terms-1) at real x with |x - mean| <= reach, to an absolute tolerance, at the present precision.

    The error of g_n may be larger by `ratio`^-n.
    """

    def __init__(
        self,
        line: LineIntegral,
        own: arb,
        reach: float,
        tolerance: arb,
        envelope: Envelope,
        terms: int = 1,
        ratio: float = 1.0,
    ) -> None:
        self.line, self.tolerance, self.envelope, self.terms = line, tolerance, envelope, terms
        self.mean, self.own = constant_ball(line.mean), own
        self.root = own.sqrt()
        self.width = float(self.root.mid())
        self.density = (2 * flint.arb.pi() * own).rsqrt()
        self.digits = max(4.0, -float((tolerance / envelope.size).log().mid()))
        wider = 1 if terms == 1 else 2
        self.window = math.sqrt(2 * wider * self.digits * 1.15) + 1.5  # in deviations; what it leaves out is bounded
        self.ratio = ratio
        self.centre = float(self.mean.mid())
        self.count = max(1, math.ceil(reach / self.width))
        self.panels = self._panels()
        self._cells: dict[int, Cell] = {}

    def __call__(self, shift: arb) -> list[arb]:
        """g_0, g_1, ... at mean + shift."""
        index = round(float(shift.mid()) / self.width)
        cell = self._cells.get(index)
        if cell is None:
            cell = self._cells[index] = self._cell(index)
        step = (shift - cell.middle) / self.root
        assert abs(step) < HALF
        return [p(step) + e for p, e in zip(cell.polynomials, cell.errors)]

    def _panels(self) -> list[Panel]:
        line, found = self.line, []
        ends = [self.centre + side * (self.count + 1 + self.window) * self.width for side in (-1, 1)]
        knots = [constant_ball(k) for k, x in zip(line.factor.knots, line.knots) if ends[0] < x < ends[1]]
        first = sum(1 for x in line.knots if x <= ends[0])
        for i, (a, b) in enumerate(pairwise([flint.arb(ends[0]), *knots, flint.arb(ends[1])])):
            if line.factor.pieces[first + i] == 0:
                continue
            count = max(1, math.ceil(float((b - a).mid()) / (2 * self.width)))
            if count > MAX_PANELS:
                raise DeriveError("Labels this close to perfectly correlated take too long to be certified.")
            edges = [a, *(flint.arb((a + (b - a) * j / count).mid()) for j in range(1, count)), b]
            work = [(left, right, 0) for left, right in pairwise(edges)]
            while work:
                left, right, depth = work.pop()
                panel = self._panel(first + i, left, right)
                if panel is not None:
                    found.append(panel)
                elif depth == MAX_SPLITS or len(found) + len(work) > MAX_PANELS:
                    raise DeriveError("The formula varies too fast for several labels to be certified.")
                else:
                    middle = flint.arb(((left + right) / 2).mid())
                    work += [(left, middle, depth + 1), (middle, right, depth + 1)]
        return sorted(found, key=lambda p: p.low)

    def _panel(self, index: int, left: arb, right: arb) -> Panel | None:
        function, replaced = self.line.simplest(index, left, right, self.tolerance)
        middle, half = (left + right) / 2, (right - left) / 2
        goal = self.tolerance * min(1.0, float(half.mid()) / self.width) / 16
        best: tuple[int, arb, float, float] | None = None
        for rho in ELLIPSES:
            across, up = half * (rho + 1 / rho) / 2, flint.arb((half * (rho - 1 / rho) / 2).upper())
            box = flint.acb((middle - across).union(middle + across), flint.arb(0, up.upper()))
            value = _bound(function, box)
            if value is None:
                break
            height = float((up / self.root).upper()) * (1 + 1e-9)
            most = max(self.ratio**n * float(_hermite(n, height)) for n in {0, self.terms // 2, self.terms - 1})
            size = value * half * self.density * (up**2 / (2 * self.own)).exp()
            for points in POINTS:
                if best is not None and points >= best[0]:
                    break
                error = size * 64 / (15 * (rho - 1) * flint.arb(rho) ** (2 * points - 1))
                if error * most < goal:
                    best = points, flint.arb(error.upper()), float(across.upper()), height
                    break
        if best is None:
            return None
        points, error, extent, height = best
        evaluate = function if replaced > 0 else None
        real = self.line.functions[index].real
        nodes = []
        for node, weight in legendre_rule(points, flint.ctx.prec):
            t = middle + half * node
            value = evaluate(flint.acb(t), False).real if evaluate else real(t)
            nodes.append((t, value * weight * half))
        low, high, centre = float(left.mid()), float(right.mid()), float(middle.mid())
        slack = 1e-12 * (1 + abs(low) + abs(high))
        own = error + replaced * self.density * 2 * flint.arb(half.upper())
        return Panel(low - slack, high + slack, nodes, (centre - extent - slack, centre + extent + slack), height, own)

    def _cell(self, index: int) -> Cell:
        arb, terms = flint.arb, self.terms
        shift = arb(index * self.width)
        x, at = self.mean + shift, self.centre + index * self.width
        wide = self.window + HALF
        degrees = [self._degree(n) for n in range(terms)]
        orders = max(n + d for n, d in enumerate(degrees))
        inverse = [arb(1) / k for k in range(1, orders + 1)]
        totals = [arb(0)] * orders
        errors = [arb(0)] * terms
        size = arb(0)
        for panel in self.panels:
            if panel.high < at - wide * self.width or panel.low > at + wide * self.width:
                continue
            gap = max(0.0, max(panel.reach[0] - at, at - panel.reach[1]) / self.width - HALF)
            errors[0] += panel.error * (-(arb(gap) ** 2) / 2).exp()
            if terms > 1:
                error = panel.error * (-(arb(gap) ** 2) / 4).exp()
                for n in range(1, terms):
                    errors[n] += error * _hermite(n, panel.height)
            for t, weight in panel.nodes:
                tau = (t - x) / self.root
                bell = (-(tau**2) / 4).exp()
                size += abs(weight) * bell
                before, here = arb(0), weight * self.density * bell**2
                for k in range(orders):
                    totals[k] += here
                    before, here = here, (tau * here - before) * inverse[k]
        size = arb((size * self.density).upper()) * 1.0865
        outside = self._outside(float(abs(shift).upper()) + HALF * self.width)
        polynomials = []
        for n, degree in enumerate(degrees):
            root = arb(n).fac().sqrt()
            choose = [arb.bin_uiui(n + j, n) * root for j in range(degree)] if n else [arb(1)] * degree
            polynomials.append(flint.arb_poly([c * totals[n + j] for j, c in enumerate(choose)]))
            rest = errors[n] + outside[min(n, 1)] + size * _remainder(n, degree)
            errors[n] = arb(0, rest.upper())
        return Cell(shift, polynomials, errors)

    def _degree(self, n: int) -> int:
        """How many Taylor coefficients bring the remainder of g_n below its tolerance."""
        allowed = -self.digits - 3 - n * math.log(self.ratio)
        degree = 4
        while float(_remainder(n, degree).log().mid()) > allowed:
            degree += 2
        return degree

    def _outside(self, shift: float) -> tuple[arb, arb]:
        """What |t - x| > window leaves out of g_0 and of the others: (s + sqrt(D) u)^2 <= 2 s^2 + 2 D u^2."""
        size, beta = self.envelope
        found = []
        for factor in (4, 8):  # for the others by Cauchy-Schwarz: the root of the same with twice beta
            left = 1 - factor * beta * self.own
            if not left > 0:
                raise DeriveError("The integrand grows too fast against the Gaussian of this K to be certified.")
            edge = flint.arb(self.window * (1 - 1e-9)) * (left / 2).sqrt()
            found.append(left.rsqrt() * edge.erfc())
        growth = size * (2 * beta * flint.arb(shift) ** 2).exp()
        return growth * found[0], growth * found[1].sqrt()


@lru_cache(maxsize=4096)
def _hermite(n: int, height: float) -> arb:
    """A bound on |He_n(a + i b)|/sqrt(n!) exp(-a^2/4) for |b| <= height: Cauchy's estimate on |t| = sqrt(n)."""
    if n == 0:
        return flint.arb(1)
    with precision(64):
        return flint.arb(
            ((2 * flint.arb.pi() * n).sqrt().sqrt() * 1.1 * (flint.arb(height) * flint.arb(n).sqrt()).exp()).upper()
        )


@lru_cache(maxsize=4096)
def _remainder(n: int, degree: int) -> arb:
    """A bound on sum_(j >= degree) sqrt(binomial(n + j, j)/j!) HALF^j: what Taylor's polynomial of g_n leaves out."""
    with precision(64):
        total, j = flint.arb(0), degree
        term = (flint.arb.bin_uiui(n + j, j) / flint.arb(j).fac()).sqrt() * flint.arb(HALF) ** j
        while True:  # until the ratio of neighbours, which falls with j, is below a half
            total += term
            ratio = HALF * (flint.arb(n + j + 1) / flint.arb(j + 1) ** 2).sqrt()
            j, term = j + 1, term * ratio
            if ratio < 0.5:
                return flint.arb((total + 2 * term).upper())


def _bound(function: ComplexBall, box: object) -> arb | None:
    assert isinstance(box, flint.acb)
    value = function(box, True)
    return flint.arb(value.abs_upper()) if value.is_finite() else None


def envelope(line: LineIntegral, variance: arb) -> Envelope:
    """A bound on |F| by a Gaussian that grows slowly against the density of N(mean, variance)."""
    mean = constant_ball(line.mean)
    beta = 1 / (BETA * flint.arb(variance.mid()))
    tops = []
    for side in (-1, 1):
        piece = line.factor.pieces[-1 if side > 0 else 0]
        start, above = next(
            ((s, t.above) for s in STARTS if (t := tail(piece, side, s)).above is not None), (None, None)
        )
        if start is None or above is None:
            raise DeriveError("No bound on the formula's growth is known: the expectation cannot be certified.")
        if above.b > 0:
            beta = beta.max(flint.arb(1.25 * above.b))
        tops.append((side, start, above))
    size = flint.arb(0)
    for side, start, above in tops:
        outermost = max([start, *(side * k for k in line.knots)]) * (1 + 1e-12) + 1e-12
        begin = max(outermost, side * line.centre)
        p = flint.arb(flint.fmpq(above.p.numerator, above.p.denominator))
        edge = flint.arb(begin)
        m, bend = side * mean, beta - flint.arb(above.b)
        c, a = flint.arb(above.c), flint.arb(above.a)
        if above.p > 0:  # log t <= log x + (t - x)/x for any x: that where t^p exp(-bend t^2) is largest
            x = edge.max(flint.arb((p / (2 * bend)).sqrt().mid()))
            c, a = c + p * x.log() - p, a + p / x
        else:
            c += p * edge.log()
        # c + a t + b t^2 - beta (t - m)^2 for t >= begin, the mean being on the same side: side * m
        linear, constant = a + 2 * beta * m, c - beta * m**2
        vertex = linear / (2 * bend)
        at = vertex if vertex > edge else edge if vertex < edge else vertex.union(edge)
        size = size.max(flint.arb((constant + linear * at - bend * at**2).exp().abs_upper()))
        size = size.max(_near(line, side, begin, mean, beta))
    if not size.is_finite():
        raise DeriveError("The formula could not be bounded on the whole line: the expectation cannot be certified.")
    return Envelope(size if size > 0 else flint.arb(1), beta)


def _near(line: LineIntegral, side: int, end: float, mean: arb, beta: arb) -> arb:
    """The bound between the mean and an end, on boxes that grow away from the mean."""
    size, a, step = flint.arb(0), side * line.centre, line.spread
    a -= 1e-9 * (abs(a) + line.spread)
    while a < end:
        b = min(end, a + step)
        away = (flint.arb(a) - side * mean).max(flint.arb(0))
        factor = (-beta * away**2).exp()
        low, high = sorted((side * a, side * b))
        cuts = [low, *(x for x in line.knots if low < x < high), high]
        for left, right in pairwise(cuts):
            index = sum(1 for x in line.knots if x <= (left + right) / 2)
            slack = 1e-12 * (1 + abs(left) + abs(right))
            top = largest(line.functions[index], 1, flint.arb(left - slack), flint.arb(right + slack))
            size = size.max(flint.arb((top * factor).abs_upper()))
        a, step = b, 2 * step
    return size
