"""One label's factor of an integrand as a distribution: analytic pieces between knots plus delta functions on knots.

sigma^(k) of a kinked activation holds delta functions; products of distributions exist only where a delta meets
something smooth enough. `product` decides that, and says in a sentence why an expectation diverges.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb

import gmpy2
import sympy as sp

from derive.activations import Activation, Delta
from derive.activations.features import features
from derive.activations.taylor import taylor_coefficients
from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian.compiled import compiled
from derive.symbols import z


@dataclass(frozen=True)
class Distribution:
    """pieces[i] between knots[i-1] and knots[i], plus the deltas. `text` names it in error messages."""

    knots: tuple[sp.Expr, ...]
    pieces: tuple[sp.Expr, ...]
    deltas: tuple[Delta, ...] = ()
    text: str = field(default="", compare=False)

    @property
    def is_regular(self) -> bool:
        return not self.deltas

    @property
    def regular(self) -> Distribution:
        return Distribution(self.knots, self.pieces, (), self.text)

    def piece_at(self, point: sp.Expr, side: int) -> sp.Expr:
        """The piece that holds just to the right (side = +1) or left (-1) of a point."""
        return self.pieces[sum(1 for k in self.knots if _less(k, point) or (side > 0 and _equal(k, point)))]

    def taylor(self, point: sp.Expr, side: int, order: int) -> list[sp.Expr]:
        """c_0 ... c_order of the regular part at a point, from one side."""
        return taylor_coefficients(self.piece_at(point, side), z, point, order)

    def smooth_taylor(self, point: sp.Expr, order: int) -> list[sp.Expr] | None:
        """c_0 ... c_order of the regular part if it has that many continuous derivatives at the point, else None."""
        right = self.taylor(point, +1, order)
        if not any(_equal(k, point) for k in self.knots):
            return right
        left = self.taylor(point, -1, order)
        return right if all(_equal(a, b) for a, b in zip(left, right)) else None

    def at(self, point: sp.Expr) -> sp.Expr:
        """The value where the variable is fixed (zero variance); it must be continuous there."""
        if any(_equal(delta.at, point) for delta in self.deltas):
            raise DivergentExpectation(
                f"The expectation diverges: {self.text} holds a delta function at z = {point}, where z is fixed."
            )
        coefficients = self.smooth_taylor(point, 0)
        if coefficients is None:
            raise DivergentExpectation(
                f"The expectation is not defined: {self.text} jumps at z = {point}, where z is fixed."
            )
        return coefficients[0]

    def derivative(self) -> Distribution:
        """d/dz, jumps turning into delta functions."""
        jumps = [
            Delta(knot, 0, jump)
            for knot in self.knots
            if not _equal(jump := self.taylor(knot, 1, 0)[0] - self.taylor(knot, -1, 0)[0], sp.S.Zero)
        ]
        raised = [Delta(d.at, d.order + 1, d.coefficient) for d in self.deltas]
        pieces = tuple(sp.diff(piece, z) for piece in self.pieces)
        return Distribution(self.knots, pieces, tuple(jumps + raised), f"({self.text})'")

    def affine(self, c: sp.Expr, shift: sp.Expr) -> Distribution:
        """The distribution of z -> F(c z + shift), c != 0."""
        order = 1 if c.is_positive else -1
        return Distribution(
            tuple((k - shift) / c for k in self.knots)[::order],
            tuple(p.xreplace({z: c * z + shift}) for p in self.pieces)[::order],
            tuple(Delta((d.at - shift) / c, d.order, d.coefficient / (abs(c) * c**d.order)) for d in self.deltas),
            self.text,
        )

    @property
    def parity(self) -> int:
        """+1 even, -1 odd, 0 neither (the regular part; a distribution with deltas says 0)."""
        if self.deltas or not all(_equal(a, -b) for a, b in zip(self.knots, reversed(self.knots))):
            return 0
        return _parity(self.pieces)


@lru_cache(maxsize=1024)
def _parity(pieces: tuple[sp.Expr, ...]) -> int:
    """Analytic pieces agree with their mirror images if they do, to 45 digits, on all scales and at their features."""
    with gmpy2.context(precision=200):
        functions = [compiled(piece, 200) for piece in pieces]
        points = [gmpy2.mpfr((k * 377) % 1009 + 1) / 505 * gmpy2.exp2(2 - k) for k in range(34)]
        points += [
            gmpy2.mpfr(place + step / rate)
            for piece in pieces
            for place, rate in features(piece)
            for step in (0.31, -0.17)
        ]
        pairs = [(f(x), g(-x)) for f, g in zip(functions, reversed(functions)) for y in points for x in (y, -y)]
        for sign in (1, -1):
            if all(abs(a - sign * b) <= gmpy2.exp2(-150) * (abs(a) + abs(b)) for a, b in pairs):
                return sign
    return 0


def _equal(a: sp.Expr, b: sp.Expr) -> bool:
    if a == b:
        return True
    difference = a - b
    if difference.is_Rational:
        return bool(difference == 0)
    return bool(abs(difference.evalf(60, maxn=400)) < sp.Float("1e-45"))


def _less(a: sp.Expr, b: sp.Expr) -> bool:
    return bool(a < b) and not _equal(a, b)


@lru_cache(maxsize=512)
def sigma_distribution(activation: Activation, order: int) -> Distribution:
    """sigma^(order) as a distribution."""
    name = {0: "sigma", 1: "sigma'", 2: "sigma''"}.get(order, f"sigma^({order})")
    return Distribution(
        activation.kinks, activation.derivative_pieces(order), activation.deltas(order), f"{name} of {activation.name}"
    )


def monomial(power: int) -> Distribution:
    """z^power."""
    return Distribution((), (z**power,), (), f"z^{power}")


def product(factors: Sequence[Distribution]) -> Distribution:
    """The product; `DivergentExpectation` where a delta meets another one or something not smooth enough."""
    if len(factors) == 1:
        return factors[0]
    knots = merge_knots([k for f in factors for k in f.knots])
    pieces = []
    for point in between(knots):
        pieces.append(sp.Mul(*(f.piece_at(point, +1) for f in factors)))
    deltas: dict[tuple[sp.Expr, int], sp.Expr] = {}
    for i, factor in enumerate(factors):
        others = [f for j, f in enumerate(factors) if j != i]
        for delta in factor.deltas:
            for at, order, coefficient in _reduce(factor, delta, others):
                deltas[at, order] = deltas.get((at, order), sp.S.Zero) + coefficient
    kept = tuple(Delta(at, order, c) for (at, order), c in deltas.items() if not _equal(c, sp.S.Zero))
    return Distribution(knots, tuple(pieces), kept, " times ".join(f.text for f in factors))


def _reduce(factor: Distribution, delta: Delta, others: Sequence[Distribution]) -> list[tuple[sp.Expr, int, sp.Expr]]:
    """delta^(m) g = sum_j (-1)^j C(m, j) g^(j)(x) delta^(m-j), g the product of the others' regular parts."""
    where = f"at z = {delta.at}"
    for other in others:
        if any(_equal(d.at, delta.at) for d in other.deltas):
            raise DivergentExpectation(
                f"The expectation diverges: {factor.text} and {other.text} both hold a delta function {where},"
                " and its square is not integrable."
            )
    rest = product([other.regular for other in others])
    values = rest.smooth_taylor(delta.at, delta.order)
    if values is None:
        kind = "a delta function" if delta.order == 0 else f"the delta function's derivative of order {delta.order}"
        raise DivergentExpectation(
            f"The expectation is not defined: {factor.text} holds {kind} {where},"
            f" where {rest.text} is not smooth enough to multiply it."
        )
    m = delta.order
    return [
        (delta.at, m - j, delta.coefficient * (-1) ** j * comb(m, j) * values[j] * sp.factorial(j))
        for j in range(m + 1)
    ]


def merge_knots(knots: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    """The distinct knots in increasing order."""
    merged: list[sp.Expr] = []
    for knot in sorted(knots, key=lambda k: k.evalf(40)):
        if not merged or not _equal(merged[-1], knot):
            merged.append(knot)
    return tuple(merged)


def between(knots: Sequence[sp.Expr]) -> list[sp.Expr]:
    """A point inside each of the intervals that the knots cut the line into."""
    if not knots:
        return [sp.S.Zero]
    inner = [(low + high) / 2 for low, high in itertools.pairwise(knots)]
    return [knots[0] - 1, *inner, knots[-1] + 1]


def activations_of(activation: object, names: set[str]) -> dict[str, Activation]:
    """The activation of each function name in a bracket: one for all, or a mapping by name."""
    from collections.abc import Mapping

    from derive.activations import activation as make

    if isinstance(activation, Mapping):
        missing = names - set(activation)
        if missing:
            raise DeriveError(f"The bracket holds {', '.join(sorted(missing))}, for which no activation was given.")
        return {name: make(activation[name]) for name in names}
    return {name: make(activation) for name in names}
