r"""No zero of <f>_K for small K, proved: the series at K = 0 with its remainder bounded.

On each side of z = 0, f is its Taylor polynomial of degree N - 1 plus at most B |z|^N for |z| <= r, with B from balls.
So <f>_K = sum_n A_n K^(n/2) + O(K^(N/2)) plus what lies beyond |z| = r, which decreases faster than every power as K
goes to 0. The first A_n that is not zero wins for all K up to K0 when it wins at K0: every other part, divided by
K^(n/2), increases with K as long as K < r^2/(n + 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.enclosure import available, ball_function, constant_ball
from derive.activations.pieces import vanishes
from derive.certificates.kernel_function import KernelFunction
from derive.errors import DeriveError
from derive.gaussian.balls import LineIntegral, precision
from derive.symbols import K, z

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

ORDER = 4
RADII = (1.0, 0.5, 0.25, 0.1, 0.03)
CELLS = 24


def clear_below(function: KernelFunction) -> tuple[sp.Rational, int] | None:
    """(K0, sign): <f>_K has this sign for 0 < K <= K0; None where that cannot be shown."""
    with precision(64):
        for radius in RADII:
            try:
                found = _with_radius(function, radius)
            except DeriveError:
                continue
            if found is not None:
                return found
    return None


def _half_moment(n: int) -> arb:
    """E[y^n; y > 0] for y ~ N(0, 1)."""
    half = flint.arb(n) / 2
    return flint.arb(2) ** half * (half + flint.arb(1) / 2).gamma() / (2 * flint.arb.pi().sqrt())


def _with_radius(function: KernelFunction, radius: float) -> tuple[sp.Rational, int] | None:
    f = function.regular
    at_zero = [t for t in function.spikes if not t.coefficient.has(sp.exp)]
    elsewhere = [t for t in function.spikes if t.coefficient.has(sp.exp)]
    knots = [float(k) for k in f.knots if k != 0]
    if any(abs(k) <= radius * 1.001 for k in knots):
        return None
    powers: dict[int, arb] = {}
    for term in at_zero:  # coefficient c K^(-1/2 - m)
        for part in sp.Add.make_args(sp.expand(term.coefficient)):
            scale, rest = part.as_independent(K)
            power = int(2 * rest.as_base_exp()[1]) if rest != 1 else 0
            powers[power] = powers.get(power, flint.arb(0)) + constant_ball(scale)
    exact: dict[int, sp.Expr] = {}
    bounds = flint.arb(0)
    sides = []
    for side in (1, -1):
        piece = f.piece_at(sp.S.Zero, side)
        series = f.taylor(sp.S.Zero, side, ORDER - 1)
        sides.append((side, series))
        for n, c in enumerate(series):
            exact[n] = exact.get(n, sp.S.Zero) + c * side**n
        bounds += _remainder(piece, side, radius)
    for n, c in exact.items():
        if not vanishes(c):
            powers[n] = powers.get(n, flint.arb(0)) + constant_ball(c) * _half_moment(n)
    if not powers:
        return None
    leading = min(powers)
    first = powers.pop(leading)
    if first.contains(0):
        return None
    for halving in range(40):
        top = radius**2 / (max(leading, 0) + 2) / 4**halving
        kernel = flint.arb(top)
        rest = bounds * _half_moment(ORDER) * _root_power(kernel, ORDER - leading)
        for n, c in powers.items():
            rest += abs(c) * _root_power(kernel, n - leading)
        line = LineIntegral(f, sp.S.Zero, kernel)
        outside = flint.arb(0)
        for side, series in sides:
            outside += line._beyond(side * radius, side, flint.arb(0), kernel)
            for n, c in enumerate(series):
                outside += abs(constant_ball(c)) * _far_moment(n, radius, kernel)
        for term in elsewhere:
            outside += abs(ball_function(term.coefficient.xreplace({K: z})).real(kernel))
        if rest + outside * _root_power(kernel, -leading) < abs(first):
            return sp.Rational(top), 1 if first > 0 else -1
    return None


def _root_power(kernel: arb, n: int) -> arb:
    return kernel.sqrt() ** n


def _far_moment(n: int, radius: float, kernel: arb) -> arb:
    """A bound on E[z^n; z > radius]: by Cauchy-Schwarz from E z^(2n) and the Gaussian's tail."""
    moment = flint.arb(2 * n + 1) if n == 0 else flint.arb(int(sp.factorial2(2 * n - 1)))
    return (moment * kernel**n * ((flint.arb(radius) / (2 * kernel).sqrt()).erfc() / 2)).sqrt()


def _remainder(piece: sp.Expr, side: int, radius: float) -> arb:
    """A bound on |f^(N)|/N! between 0 and the radius."""
    derivative = ball_function(sp.diff(piece, z, ORDER) / sp.factorial(ORDER)).real
    largest = flint.arb(0)
    for i in range(CELLS):
        box = flint.arb(radius * i / CELLS).union(flint.arb(radius * (i + 1) / CELLS))
        value = derivative(side * box)
        if not value.is_finite():
            raise DeriveError("The derivative is not bounded near zero.")
        largest = largest.max(flint.arb(value.abs_upper()))
    return largest
