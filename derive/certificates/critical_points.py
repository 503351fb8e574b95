"""Certified critical points: existence, local uniqueness and, on stated intervals of K, that there is no other one.

K* > 0 needs <s s''>_K = 0. The half line of K is covered by cells in t = log K; value, slope and a bound on the
curvature, all balls, prove of each cell that it holds no zero, or exactly one because the function is monotone there.
Below the first cell the series at K = 0 decides (`near_zero`). A zero is refined until the signs on its two sides,
10^-digits apart, are proved to differ; C_W = 1/<s' s'> and C_b = K* - C_W <s s> follow as balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.activations.enclosure import available, constant_ball, require
from derive.certificates.kernel_function import KernelFunction, at_kernel
from derive.certificates.near_zero import clear_below
from derive.certificates.outward import Interval, decimals
from derive.critical import criticality
from derive.critical.points import HALF_STABLE, SCALE_INVARIANT
from derive.critical.positive import one_sign
from derive.errors import DeriveError
from derive.gaussian.balls import precision

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

HIGHEST = 1000
LOWEST = 1e-8
MAX_CELLS = 3000
SMALLEST_CELL = 1e-5
EVERY: Interval = ("0", "inf")
"""K* of scale-invariant activations: every K."""


@dataclass(frozen=True)
class CertifiedPoint:
    """Intervals that contain K*, C_W and C_b."""

    K_star: Interval
    C_W: Interval
    C_b: Interval
    universality_class: str


@dataclass(frozen=True)
class Findings:
    """What was proved of an activation."""

    points: tuple[CertifiedPoint, ...]
    none_between: tuple[Interval, ...]
    proved: bool
    reason: str


@dataclass(frozen=True)
class _Cell:
    """A cell of t = log K with exactly one zero; `rising` tells in which direction it is crossed."""

    low: float
    high: float
    rising: bool


def certify_points(activation: Activation, digits: int) -> Findings:
    """All that can be proved about the critical points of an activation."""
    require()
    known = criticality(activation)
    exact = [
        CertifiedPoint(
            EVERY if p.universality_class == SCALE_INVARIANT else ("0", "0"),
            _exact(p.C_W, digits),
            _exact(p.C_b, digits),
            p.universality_class,
        )
        for p in known.points
        if p.universality_class == SCALE_INVARIANT or p.K_star == 0
    ]
    if activation.first_delta_order == 1:
        return Findings((), (("0", "inf"),), True, known.reason)
    if any(p.universality_class == SCALE_INVARIANT for p in known.points):
        reason = "Proved by its derivation: sigma(c z) = c sigma(z) for c > 0, so every K is a fixed point at this C_W."
        return Findings(tuple(exact), (), True, reason)
    if any(p.K_star.free_symbols for p in known.points):
        return Findings(tuple(exact), (), False, "The critical points form a line in K, which is not certified.")
    at_zero = "K* = 0 by the exact series at K = 0" if exact else f"none at K* = 0 ({_first(known.reason)})"
    sign = one_sign(activation)
    if sign is not None:
        reason = f"{at_zero}; for K > 0, sigma sigma'' is {sign} for every z, so <s s''> has no zero at any K."
        return Findings(tuple(exact), (("0", "inf"),), True, reason)
    return _searched(activation, digits, exact, at_zero)


def _first(reason: str) -> str:
    return reason.split(";")[0].split(":")[-1].strip().rstrip(".")


def _exact(number: sp.Expr, digits: int) -> Interval:
    with precision(int(digits * 3.33) + 40):
        return decimals(constant_ball(number))


def _searched(activation: Activation, digits: int, exact: list[CertifiedPoint], at_zero: str) -> Findings:
    function = KernelFunction(activation, 0, 2)
    start = clear_below(function)
    low = math.log(float(start[0]) * (1 - 1e-12)) if start else math.log(LOWEST)
    with precision(80):
        cells, open_cells = _isolate(function, low, math.log(HIGHEST))
    points, zeros = [(0.0, point) for point in exact], []
    excluded = 0
    for cell in sorted(cells, key=lambda c: c.low):
        ball, point, admissible = _refined(activation, function, cell, digits)
        if admissible:
            zeros.append(ball)
            points.append((float(ball.mid()), point))
        else:  # the zero needs C_b < 0: no critical point, so the cell stays excluded
            excluded += 1
    none = _gaps(zeros, open_cells, start is not None)
    proved = not open_cells and start is not None
    reason = f"{at_zero}; {_count(len(zeros))} of <s s''> with 0 < K <= {HIGHEST} and C_b >= 0"
    reason += f", {excluded} with C_b < 0" if excluded else ""
    reason += ", each by a change of sign where <s s''> is monotone in K" if zeros else ""
    if start:
        reason += f"; below K = {float(start[0]):.3g} by the series at K = 0 with its remainder"
    if open_cells:
        reason += "; not settled: " + ", ".join(f"[{math.exp(a):.6g}, {math.exp(b):.6g}]" for a, b in open_cells)
    elif not start:
        reason += f"; below K = {LOWEST:g} nothing is proved"
    order = [float(p.K_star) for p in criticality(activation).points]  # the recommended point first, as there
    points.sort(key=lambda found: min(range(len(order)), key=lambda i: abs(order[i] - found[0]), default=0))
    return Findings(tuple(point for _, point in points), none, proved, reason + ".")


def _count(n: int) -> str:
    return {0: "no zero", 1: "one zero"}.get(n, f"{n} zeros")


def _gaps(zeros: list[arb], open_cells: list[tuple[float, float]], from_zero: bool) -> tuple[Interval, ...]:
    """The intervals of K between zeros and unsettled cells, rounded inward."""
    borders: list[tuple[str, str]] = [("0", "0")] if from_zero else [("0", f"{LOWEST:g}")]
    with precision(400):
        marks = [(float(x.mid()), decimals(x)) for x in zeros]
        for a, b in open_cells:
            cell = flint.arb(a).exp().union(flint.arb(b).exp())
            marks.append((math.exp(a), decimals(cell)))
    borders += [interval for _, interval in sorted(marks)]
    borders.append((str(HIGHEST), str(HIGHEST)))
    return tuple((left[1], right[0]) for left, right in pairwise(borders))


def _isolate(function: KernelFunction, low: float, high: float) -> tuple[list[_Cell], list[tuple[float, float]]]:
    """Cells with exactly one zero, and cells that could not be settled."""
    count = max(2, math.ceil((high - low) / 0.4))
    edges = [low + (high - low) * i / count for i in range(count + 1)]
    work = list(pairwise(edges))
    found: list[_Cell] = []
    unsettled: list[tuple[float, float]] = []
    signs: dict[float, int] = {}

    def sign(t: float) -> int:
        if t not in signs:
            kernel = flint.arb(t).exp()
            goal = _size(function, kernel) / 2**30
            value = function.value(kernel, goal)
            signs[t] = 1 if value > 0 else -1 if value < 0 else 0
        return signs[t]

    for _ in range(MAX_CELLS):
        if not work:
            return found, unsettled
        a, b = work.pop()
        middle, half = (a + b) / 2, flint.arb((b - a) / 2) * (1 + flint.arb(2) ** -40)
        kernel = flint.arb(middle).exp()
        goal = _size(function, kernel) / 2**24
        value, slope = function.value(kernel, goal), function.slope(kernel, goal)
        bound = function.curvature_bound(flint.arb(a).exp(), flint.arb(b).exp())
        if abs(value) > abs(slope) * half + bound * half**2 / 2:
            continue
        if abs(slope) > bound * half:
            left, right = sign(a), sign(b)
            if left and right:
                if left != right:
                    found.append(_Cell(a, b, right > 0))
                continue
        if b - a < SMALLEST_CELL:
            unsettled.append((a, b))
        else:
            cut = a + (b - a) * 0.487
            work += [(a, cut), (cut, b)]
    return found, [*unsettled, *work]


def _size(function: KernelFunction, kernel: arb) -> arb:
    size = flint.arb(function.square(kernel).abs_upper()).sqrt()
    for term in function.spikes:
        size += abs(at_kernel(term.coefficient, kernel))
    return flint.arb(size.abs_upper()) if size > 0 else flint.arb(1)


def _refined(
    activation: Activation, function: KernelFunction, cell: _Cell, digits: int
) -> tuple[arb, CertifiedPoint, bool]:
    """The zero of a cell as a ball, the point that follows and whether C_b >= 0."""
    with precision(80):
        low, high = cell.low, cell.high
        for _ in range(4):  # a few halvings, so that Newton's method starts near
            middle = (low + high) / 2
            kernel = flint.arb(middle).exp()
            value = function.value(kernel, _size(function, kernel) / 2**40)
            low, high = (low, middle) if (value > 0) == cell.rising else (middle, high)
    with precision(int(digits * 3.33) + 80):
        ball, weight, bias = point_balls(activation, function, flint.arb((low + high) / 2).exp(), digits)
        point = CertifiedPoint(decimals(ball), decimals(weight), decimals(bias), HALF_STABLE)
        if bias.contains(0):
            raise DeriveError(f"Whether C_b at K = {float(ball.mid()):.10g} is negative could not be decided.")
    return ball, point, bool(bias > 0)


def point_balls(activation: Activation, function: KernelFunction, near: arb, digits: int) -> tuple[arb, arb, arb]:
    """K*, C_W and C_b at the zero of <s s''> close to a number, at the present precision: signs beside it differ."""
    kernel = flint.arb(near.mid())
    for step in range(1, 12):
        goal = _size(function, kernel) * flint.arb(10) ** -min(digits + 8, 6 * 2**step)
        slope = function.slope(kernel, _size(function, kernel) / 2**50) / kernel
        change = (function.value(kernel, goal) / slope).mid()
        kernel = flint.arb((kernel - change).mid())
        if 6 * 2**step >= digits + 8 and abs(change) < kernel * flint.arb(10) ** -(digits + 3):
            break
    slack = flint.arb((kernel * flint.arb(10) ** -(digits + 2)).mid())
    goal = abs(slope) * slack / 64
    below, above = (function.value(x, goal) for x in (kernel - slack, kernel + slack))
    if not ((below < 0 and above > 0) or (below > 0 and above < 0)):
        raise DeriveError(f"The zero near K = {float(kernel):.10g} could not be enclosed to {digits} digits.")
    ball = (kernel - slack).union(kernel + slack)
    goal = slack / 16
    weight = 1 / KernelFunction(activation, 1, 1).value(ball, goal)
    bias = ball - weight * KernelFunction(activation, 0, 0).value(ball, goal)
    return ball, weight, bias
