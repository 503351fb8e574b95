r"""E[prod_a F_a(z_a)] of two, three and four correlated labels as a ball: conditioned on common Gaussian variables.

With K = Lambda Lambda^T + D (`loadings`) the expectation is the integral over w ~ N(0, 1)^r of the product of
G_a(m_a + Lambda_a w), G_a the factor averaged over its own noise (`smoothed`), and, for three and four labels, of the
pair that stays correlated, Mehler's series sum_n eps^n g_n(x_c) h_n(x_d), whose rest is at most |eps|^N times norms.
All these are entire functions of w. The trapezoidal rule with step h errs by at most 2 C exp(-2 pi^2/(h^2 S))/(1 -
exp(-4 pi^2/(h^2 S))) in a direction, S = 1 + (Lambda^T D^-1 Lambda)_jj, where C bounds the integral of the product's
envelope: shift the line by 2 pi/(h S) i. Beyond a radius the envelope is summed. Kinks, steps and poles of F cost
little here; labels close to perfectly correlated do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.enclosure import available, constant_ball
from derive.errors import DeriveError
from derive.gaussian.balls import LineIntegral, line_integral, precision, sum_of_terms
from derive.gaussian.loadings import Choice, choose, loadings, sharpness
from derive.gaussian.moments import components
from derive.gaussian.smoothed import Smoothed, envelope
from derive.gaussian.support import GaussianIntegral

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

MOST_LABELS = 4
MOST_SECONDS = 90.0
MOST_BITS = 8000
A_FACTOR = 4e-6
"""CPU seconds that one factor at one node takes, about, at some 20 digits."""
A_CELL = 2.5e-3
"""CPU seconds that one cell of a smoothed factor takes, about."""
SHARE = 16
"""Of the envelope's exponent, one part in so many is kept for the sum beyond the radius."""


def terms_ball(terms: Sequence[GaussianIntegral], digits: int, seconds: float = MOST_SECONDS) -> arb:
    """The sum of regular integrals to about `digits` digits: wider where terms cancel, or where it is zero."""
    if all(len(t.factors) <= 1 for t in terms):
        return sum_of_terms([(t.coefficient, line_integral(t)) for t in terms], digits)
    for extra in (1, 12, 40):
        with precision(int((digits + extra) * 3.33) + 60):
            total = flint.arb(0)
            for t in terms:
                total += constant_ball(t.coefficient) * _product(t, digits + extra, seconds)
            if total.rad() * flint.arb(10) ** digits <= abs(total.mid()) or total.rad() == 0:
                break
            if (extra > 1 or len(terms) == 1) and total.contains(0):
                break
    return total


def _product(term: GaussianIntegral, digits: int, seconds: float) -> arb:
    """The product over groups of correlated variables."""
    total = flint.arb(1)
    for group in components(term.covariance):
        part = GaussianIntegral(
            sp.S.One,
            tuple(term.factors[i] for i in group),
            tuple(term.mean[i] for i in group),
            term.covariance.extract(group, group),
        )
        if len(group) == 1:
            total *= sum_of_terms([(sp.S.One, line_integral(part))], digits)
        else:
            total *= group_ball(part, digits, seconds)
    return total


def group_ball(term: GaussianIntegral, digits: int, seconds: float = MOST_SECONDS) -> arb:
    """The expectation of correlated labels, without the coefficient, to about `digits` digits.

    What would take longer than `seconds` is refused in a sentence that says how long.
    """
    n = len(term.factors)
    if n > MOST_LABELS:
        raise DeriveError(
            f"Certifying {n} correlated labels without a closed form would take days, an integral over {n - 1}"
            f" common variables: up to {MOST_LABELS} labels are certified."
        )
    choice = choose(term.covariance)
    if choice is None:
        raise DeriveError("The covariance of these labels is singular, or so nearly so that it cannot be certified.")
    lines = [LineIntegral(f, m, term.covariance[i, i]) for i, (f, m) in enumerate(zip(term.factors, term.mean))]
    with precision(64):
        size = flint.arb(1)
        for line in lines:
            size *= line.guess()
        least = size * flint.arb(10) ** -(digits + 2)
        tolerance = size / 1000  # the first, cheap sum tells how large the expectation is
    CommonIntegral(term, lines, choice, least).refuse_beyond(seconds)
    for _ in range(5):
        ball = CommonIntegral(term, lines, choice, tolerance).ball()
        with precision(64):
            wanted = abs(ball.mid()) * flint.arb(10) ** -digits
            if ball.rad() <= wanted or (ball.contains(0) and tolerance <= least):
                return ball
            goal = least if ball.contains(0) else flint.arb((wanted / 4).mid())
            tolerance = flint.arb(goal.min(tolerance / 8).mid())
    return ball


class CommonIntegral:
    """One sum of the trapezoidal rule, with an absolute tolerance.

    The product's envelope is total * exp(-fall |w|^2); `depth` is log(total/tolerance), `terms` the length of the
    pair's series.
    """

    def __init__(self, term: GaussianIntegral, lines: list[LineIntegral], choice: Choice, tolerance: arb) -> None:
        self.term, self.lines, self.choice, self.tolerance = term, lines, choice, tolerance
        variances = [term.covariance[i, i] for i in range(len(lines))]
        with precision(64):
            bounds = [envelope(line, constant_ball(v)) for line, v in zip(lines, variances)]
            lost = sum(float(b.size.log().mid()) for b in bounds) - float(tolerance.log().mid())
        self.bits = int(1.4427 * max(lost, 0.0)) + 50
        if self.bits > MOST_BITS:
            raise DeriveError("The integrand's bound is too large against its integral to be certified.")
        with precision(self.bits):
            self.found = loadings(term.covariance, choice)
            if not all(d > 0 for d in self.found.own):
                raise DeriveError("These labels are too close to perfectly correlated to be certified.")
            self.bounds = [envelope(line, constant_ball(v)) for line, v in zip(lines, variances)]
            self._plan()

    def _plan(self) -> None:
        arb, found, pair = flint.arb, self.found, self.choice.paired or ()
        self.total, growth = arb(1), arb(0)
        for a, (bound, row, own) in enumerate(zip(self.bounds, found.rows, found.own)):
            # E exp(beta (x + sqrt(D) u)^2), or for the pair the root of the same with twice beta
            left = 1 - (4 if a in pair else 2) * bound.beta * own
            if not left > 0:
                raise DeriveError("The integrand grows too fast against the Gaussian of this K to be certified.")
            self.total *= bound.size * (left.rsqrt().sqrt() if a in pair else left.rsqrt())
            growth += bound.beta / left * sum((x**2 for x in row), arb(0))
        self.fall = arb((arb(1) / 2 - growth).lower())
        if not self.fall > 0.05:
            raise DeriveError("The integrand grows too fast against the Gaussian of this K to be certified.")
        self.depth = max(float((self.total / self.tolerance).log().mid()) + 2, 3.0)
        axes = range(self.choice.common)
        self.sharp = [1 + sharpness(found.rows, found.own, self.choice.paired, found.correlation, j, j) for j in axes]
        self.steps = [math.pi * math.sqrt(2 / (self.depth * float(s.mid()))) for s in self.sharp]
        self.radius = math.sqrt((self.depth + len(axes)) / (float(self.fall.mid()) * (1 - 1 / SHARE)))
        self.norms = [math.sqrt(sum(float(x.mid()) ** 2 for x in row)) for row in found.rows]
        self.correlation = float(abs(found.correlation).upper())
        if not self.correlation < 1:
            raise DeriveError("These labels are too close to perfectly correlated to be certified.")
        self.terms = math.ceil((self.depth + 1) / -math.log(self.correlation)) if self.correlation > 1e-300 else 1

    def refuse_beyond(self, seconds: float) -> None:
        """Refuse what would take longer, with the cost."""
        r, n = self.choice.common, len(self.lines)
        nodes = (2.0 if r == 1 else math.pi) * self.radius**r / math.prod(self.steps)
        cells = sum(2 * self.radius * x / math.sqrt(float(d.mid())) for x, d in zip(self.norms, self.found.own))
        factors = n if n == 2 else n - 2 + 2 * self.terms
        cost = nodes * factors * A_FACTOR * (self.bits / 100) + cells * A_CELL * (self.depth / 45) ** 2 * (
            1 + self.terms / 40
        )
        if cost > seconds:
            long = f"{cost / 60:.0f} minutes" if cost < 7200 else f"{cost / 3600:.3g} hours"
            raise DeriveError(
                f"Certifying these {n} correlated labels would take about {long}, a sum over {nodes:.1e}"
                f" values of {r} common variable{'s' * (r > 1)}: ask for fewer digits or less correlated labels."
            )

    def ball(self) -> arb:
        """The sum, with all that it leaves out in the radius."""
        with precision(self.bits):
            share = self.tolerance / self.total / (4 * len(self.lines))
            factors = []
            for a, (line, own, norm, bound) in enumerate(zip(self.lines, self.found.own, self.norms, self.bounds)):
                pair = self.choice.paired is not None and a in self.choice.paired
                terms, ratio = (self.terms, max(math.sqrt(self.correlation), 1e-9)) if pair else (1, 1.0)
                reach = self.radius * norm * (1 + 1e-9)
                factors.append(Smoothed(line, own, reach, share * bound.size, bound, terms, ratio))
            return self._nodes(factors) + flint.arb(0, self._left_out().upper())

    def _left_out(self) -> arb:
        """The trapezoidal rule's error in each direction, the nodes beyond the radius, the pair's other terms."""
        arb, turn = flint.arb, 2 * flint.arb.pi()
        line = (2 * self.fall).rsqrt()
        sums = [line + arb(h) / turn.sqrt() for h in self.steps]
        error = arb(0)
        for j, (h, s) in enumerate(zip(self.steps, self.sharp)):
            exponent = turn**2 / (arb(h) ** 2 * s)  # 2 pi eta/h at eta = 2 pi/(h s)
            part = 2 * (-exponent / 2).exp() / (1 - (-exponent).exp()) * line
            for i, other in enumerate(sums):
                if i != j:
                    part *= other
            error += part
        outside = (-self.fall * (1 - arb(1) / SHARE) * arb(self.radius) ** 2).exp()
        series = arb(self.correlation) ** self.terms
        for h, whole in zip(self.steps, sums):
            outside *= (2 * self.fall / SHARE).rsqrt() + arb(h) / turn.sqrt()
            series *= whole
        return self.total * (error + outside + (series if self.choice.paired else 0))

    def _nodes(self, factors: list[Smoothed]) -> arb:
        arb, rows = flint.arb, self.found.rows
        axes = []
        for j, h in enumerate(self.steps):
            norm, count = arb(h) * (2 * arb.pi()).rsqrt(), int(self.radius / h) + 1
            axes.append(
                [
                    (k * h, norm * (-((arb(h) * k) ** 2) / 2).exp(), [row[j] * (arb(h) * k) for row in rows])
                    for k in range(-count, count + 1)
                ]
            )
        even, pair = self._even(), self.choice.paired
        total, limit = arb(0), self.radius**2 * (1 + 1e-12)
        for w, weight, shifts in axes[0]:
            if even and w < 0:
                continue
            line = arb(0)
            for others in product(*axes[1:]):
                if w * w + sum(o[0] * o[0] for o in others) > limit:
                    continue
                value, parts = arb(1), []
                for a, factor in enumerate(factors):
                    x = shifts[a]
                    for _, _, more in others:
                        x = x + more[a]
                    parts.append(factor(x))
                for _, density, _ in others:
                    value = value * density
                for a, part in enumerate(parts):
                    if pair is None or a not in pair:
                        value = value * part[0]
                if pair is not None:
                    value = value * _mehler(parts[pair[0]], parts[pair[1]], self.found.correlation)
                line += value
            total += line * weight * (2 if even and w > 0 else 1)
        return total

    def _even(self) -> bool:
        """Whether the product is the same at w and -w."""
        parities = [f.parity for f in self.term.factors]
        return all(m == 0 for m in self.term.mean) and math.prod(parities) == 1


def _mehler(one: list[arb], two: list[arb], correlation: arb) -> arb:
    """sum_n correlation^n g_n h_n, by Horner."""
    total = flint.arb(0)
    for g, h in zip(reversed(one), reversed(two)):
        total = total * correlation + g * h
    return total
