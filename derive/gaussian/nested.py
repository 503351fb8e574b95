r"""E[prod_a F_a(z_a)] over a Gaussian by nested one-dimensional quadrature along the factorization K = L D L^T.

z_a = m_a + sum_{b<a} L_ab y_b + y_a with independent y_a ~ N(0, D_a): near-singular K is no special case, and a label
with D_a = 0 is a function of the earlier ones. Inner integrals get the absolute accuracy that their weight in the outer
one asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import gmpy2
import sympy as sp
from gmpy2 import mpfr

from derive.activations.features import features
from derive.errors import DivergentExpectation
from derive.gaussian.compiled import RealFunction, compiled, to_mpfr
from derive.gaussian.covariance import factorize
from derive.gaussian.distribution import Distribution
from derive.gaussian.quadrature import Estimate, Sum, gaussian_nodes, refine, sinh_node, tanh_sinh_nodes
from derive.gaussian.support import GaussianIntegral

Nodes = list[tuple[mpfr, mpfr]]
NodesOfLevel = Callable[[int], list[tuple[RealFunction, Nodes]]]
Weigh = Callable[[RealFunction, Nodes], list[mpfr]]

WIDE = 2
"""Standard deviations above this use the variable asinh(z): activations vary on the scale 1."""


class ExponentialGrowth(Exception):
    """Raised on request where the integrand's mass lies far out in the Gaussian's tail."""


@dataclass(frozen=True)
class Variable:
    """One label in the nest: its pieces, its knots, its conditional variance and its row of L."""

    knots: tuple[mpfr, ...]
    pieces: tuple[RealFunction, ...]
    mean: mpfr
    row: tuple[mpfr, ...]
    deviation: mpfr
    images: tuple[int, ...]
    splits: tuple[mpfr, ...]
    """The knots, and narrow features that only a rule clustered there is sure to see."""

    def __call__(self, value: mpfr) -> mpfr:
        return finite(self.pieces[sum(1 for k in self.knots if k <= value)], value)


def finite(function: RealFunction, value: mpfr) -> mpfr:
    """function(value), stepping aside by a hair from a removable singularity."""
    try:
        result = function(value)
    except ZeroDivisionError:
        result = gmpy2.nan()
    if gmpy2.is_finite(result):
        return result
    context = gmpy2.get_context()
    bits = context.precision
    with gmpy2.context(precision=4 * bits):
        nudged = value + gmpy2.exp2(-2 * bits) * max(abs(value), mpfr(1))
        return +function(nudged)


class Nest:
    """The nested integral of one `GaussianIntegral` at a working precision in bits, to an accuracy in digits."""

    def __init__(self, integral: GaussianIntegral, bits: int, digits: int, stop_at_growth: bool = False) -> None:
        self.bits = bits
        self.stop_at_growth = stop_at_growth
        self.radius = int(gmpy2.sqrt(2 * 2.303 * digits)) + 2  # the tail beyond is smaller than 10^-digits
        lower, diagonal = factorize(integral.covariance)
        n = len(integral.factors)
        variances = [to_mpfr(d, bits) for d in diagonal]
        rows = [tuple(to_mpfr(lower[i][j], bits) for j in range(i)) for i in range(n)]
        with gmpy2.context(precision=bits):
            self.variables = [
                Variable(
                    tuple(to_mpfr(k, bits) for k in factor.knots),
                    tuple(compiled(p, bits) for p in factor.pieces),
                    to_mpfr(integral.mean[i], bits),
                    rows[i],
                    gmpy2.sqrt(variances[i]),
                    tuple(k for k in range(i + 1, n) if _sharp(i, k, rows, variances)),
                    tuple(to_mpfr(x, bits) for x in (*factor.knots, *_narrow_features(factor, variances[i]))),
                )
                for i, factor in enumerate(integral.factors)
            ]
        self.symmetric = all(m == 0 for m in integral.mean) and _parity(integral) == 1

    def integrate(self, tolerance: mpfr | None) -> Estimate:
        """The integral with an absolute tolerance (None: roughly)."""
        with gmpy2.context(precision=self.bits):
            return self._level(0, (), tolerance)

    def _level(self, i: int, ys: tuple[mpfr, ...], tolerance: mpfr | None) -> Estimate:
        variable = self.variables[i]
        mean = variable.mean + sum((a * y for a, y in zip(variable.row, ys)), mpfr(0))
        last = i == len(self.variables) - 1
        if variable.deviation == 0:
            factor = variable(mean)
            if last or factor == 0:
                return Estimate(factor, abs(factor), mpfr(0))
            inner = self._level(i + 1, (*ys, mpfr(0)), None if tolerance is None else tolerance / abs(factor))
            return Estimate(factor * inner.value, abs(factor) * inner.magnitude, abs(factor) * inner.error)

        def weigh(function: RealFunction, nodes: Nodes) -> list[mpfr]:
            """The integrand at nodes (z, weight)."""
            try:
                values = [function(z) * weight for z, weight in nodes]
            except ZeroDivisionError:
                values = [gmpy2.nan()]
            if not all(map(gmpy2.is_finite, values)):
                values = [finite(function, z) * weight for z, weight in nodes]
            if last:
                return values
            for j, value in enumerate(values):
                if value != 0:
                    share = None if tolerance is None else tolerance / (32 * abs(value) * self.radius)
                    values[j] = value * self._level(i + 1, (*ys, nodes[j][0] - mean), share).value
            return values

        return self._line(i, variable, mean, ys, weigh, tolerance)

    def _line(
        self,
        i: int,
        variable: Variable,
        mean: mpfr,
        ys: tuple[mpfr, ...],
        weigh: Weigh,
        tolerance: mpfr | None,
    ) -> Estimate:
        deviation = variable.deviation
        radius = self._range(variable, mean, weigh, tolerance)
        low, high = mean - radius * deviation, mean + radius * deviation
        symmetric = self.symmetric and i == 0
        knots = sorted(k for k in {*variable.splits, *self._images(variable, i, ys, mean)} if low < k < high)
        if knots:
            nodes = self._pieces(variable, mean, [low, *knots, high], symmetric)
        elif deviation > WIDE:
            nodes = self._wide(variable, mean, low, high, symmetric)
        else:
            nodes = self._narrow(variable, mean, radius, symmetric)

        def new_sum(level: int) -> Sum:
            values = [value for function, some in nodes(level) for value in weigh(function, some)]
            return sum(values, mpfr(0)), sum(map(abs, values), mpfr(0))

        return refine(new_sum, tolerance, self.bits, margin=1000 if i == 0 else 10)

    def _images(self, variable: Variable, i: int, ys: tuple[mpfr, ...], mean: mpfr) -> list[mpfr]:
        """Where a later label's conditional mean crosses one of its knots: nearly a kink when nearly singular."""
        found = []
        for k in variable.images:
            later = self.variables[k]
            start = later.mean + sum((a * y for a, y in zip(later.row, ys)), mpfr(0))
            found += [mean + (knot - start) / later.row[i] for knot in later.splits]
        return found

    def _range(self, variable: Variable, mean: mpfr, weigh: Weigh, tolerance: mpfr | None) -> int:
        """How many standard deviations matter: more than usual where the integrand grows exponentially."""
        radius = self.radius

        def edge(r: int) -> mpfr:
            weight = gmpy2.exp(-(mpfr(r) ** 2) / 2)
            ends = (mean - r * variable.deviation, mean + r * variable.deviation)
            return max(abs(weigh(self._piece(variable, z), [(z, weight)])[0]) for z in ends)

        goal = tolerance
        if goal is None:
            goal = max(edge(r) for r in (0, 1, 2, 4, radius // 2)) * gmpy2.exp2(-30)
        here, beyond = edge(radius), edge(radius * 5 // 4)
        while here > goal / 16 > 0 or beyond > here:
            radius = radius * 5 // 4
            if radius > 2 * self.radius and self.stop_at_growth:
                raise ExponentialGrowth
            here, beyond = beyond, edge(radius * 5 // 4)
            if radius > 20000:
                raise DivergentExpectation(
                    "The expectation diverges: the integrand grows as fast as the Gaussian of this K decays."
                )
        return radius

    def _narrow(self, variable: Variable, mean: mpfr, radius: int, symmetric: bool) -> NodesOfLevel:
        """The trapezoidal rule in units of the standard deviation."""
        function, deviation = self._piece(variable, mean), variable.deviation

        def nodes(level: int) -> list[tuple[RealFunction, Nodes]]:
            table = gaussian_nodes(self.bits, radius, level)
            if symmetric:
                return [(function, [(deviation * y, 2 * weight if y else weight) for y, weight in table if y >= 0])]
            return [(function, [(mean + deviation * y, weight) for y, weight in table])]

        return nodes

    def _wide(self, variable: Variable, mean: mpfr, low: mpfr, high: mpfr, symmetric: bool) -> NodesOfLevel:
        """The trapezoidal rule in t = asinh(z), on the grid t = j h."""
        function = self._piece(variable, mean)
        start, stop = (mpfr(0) if symmetric else gmpy2.asinh(low)), gmpy2.asinh(high)
        count = max(16, 2 * (stop - start))
        if high - low > 2 * (self.radius + 1) * variable.deviation:  # exponential growth: the peak may be far out
            count = max(count, (stop - start) * max(abs(low), abs(high)) / variable.deviation)
        first_level = int(gmpy2.ceil(gmpy2.log2(count / (stop - start))))
        inverse = 1 / variable.deviation
        factor = inverse / gmpy2.sqrt(2 * gmpy2.const_pi())

        def nodes(level: int) -> list[tuple[RealFunction, Nodes]]:
            h = gmpy2.exp2(-first_level - level)
            step = 1 if level == 0 else 2
            j = int(gmpy2.ceil(start / h))
            j += (level > 0) and j % 2 == 0
            found = []
            for index in range(j, int(gmpy2.floor(stop / h)) + 1, step):
                z, slope = sinh_node(self.bits, index / 2 ** (first_level + level))
                weight = factor * h * slope * gmpy2.exp(-(((z - mean) * inverse) ** 2) / 2)
                found.append((z, 2 * weight if symmetric and index > 0 else weight))
            return [(function, found)]

        return nodes

    def _pieces(self, variable: Variable, mean: mpfr, borders: list[mpfr], symmetric: bool) -> NodesOfLevel:
        """The tanh-sinh rule between knots; at the outer ends the integrand is negligible: no clustering there."""
        inverse = 1 / variable.deviation
        factor = inverse / gmpy2.sqrt(2 * gmpy2.const_pi())
        spans = list(pairwise(borders))
        if symmetric and mpfr(0) in borders:
            factor, spans = 2 * factor, [(a, b) for a, b in spans if a >= 0]
        functions = [self._piece(variable, (a + b) / 2) for a, b in spans]
        near = variable.deviation

        def nodes(level: int) -> list[tuple[RealFunction, Nodes]]:
            found = []
            for (a, b), function in zip(spans, functions):
                half = (b - a) / 2
                points = []
                for complement, weight in tanh_sinh_nodes(self.bits, level):
                    step = half * complement
                    if step > near or a != borders[0]:
                        points.append((a + step, weight))
                    if complement < 1 and (step > near or b != borders[-1]):
                        points.append((b - step, weight))
                scale = factor * half
                gauss = [(z, scale * w * gmpy2.exp(-(((z - mean) * inverse) ** 2) / 2)) for z, w in points]
                found.append((function, gauss))
            return found

        return nodes

    def _piece(self, variable: Variable, point: mpfr) -> RealFunction:
        return variable.pieces[sum(1 for k in variable.knots if k < point)]


def _sharp(i: int, k: int, rows: list[tuple[mpfr, ...]], variances: list[mpfr]) -> bool:
    """Whether label k given y_i is narrow enough to make the outer integrand nearly kinked."""
    left = variances[k] + sum((rows[k][j] ** 2 * variances[j] for j in range(i + 1, k)), mpfr(0))
    return bool(rows[k][i] != 0 and left < rows[k][i] ** 2 * variances[i])


def _narrow_features(factor: Distribution, variance: mpfr) -> list[sp.Expr]:
    """Features of the pieces that are narrow against the Gaussian and not where the rules resolve them anyway."""
    deviation = gmpy2.sqrt(variance)
    found = []
    for location, rate in {feature for piece in factor.pieces for feature in features(piece)}:
        seen = deviation > WIDE and rate <= 4 and abs(location) <= 2
        if rate * float(deviation) > 8 and not seen:  # the spike itself gets panels of its own width
            found += [sp.Rational(location + side * 8 / rate) for side in (-1, 0, 1)]
    return found


def _parity(integral: GaussianIntegral) -> int:
    return prod(factor.parity for factor in integral.factors)
