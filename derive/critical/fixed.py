"""Off criticality: the fixed points K* = C_b + C_W <s s>_{K*} at given (C_b, C_W), and how fast inputs forget.

A perturbation of the kernel's diagonal decays as chi_parallel^l, one of the angle between nearby inputs as chi_perp^l;
the correlation depths are xi = 1/|log chi|: of decay where chi < 1, of growth where chi > 1, infinite at chi = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import susceptibility
from derive.critical.points import MARGINAL, STABLE, UNSTABLE
from derive.critical.scan import HIGHEST, LOWEST, isolate, square_integrand
from derive.critical.susceptibility import chi_parallel, chi_perp, closed_form, kernel_step, number
from derive.errors import DeriveError
from derive.gaussian import series
from derive.given import Number
from derive.given import number as given
from derive.layout import Block, Equation, Table, Text
from derive.notation import CHI_PARALLEL, CHI_PERP, K_NEXT, K_STAR
from derive.numbers import exact
from derive.results import Result, cell, tex
from derive.steps import Words, equal, listed, relation, said, small, typeset
from derive.symbols import C_W, C_b, K, z

DIGITS = 30


@dataclass(frozen=True)
class FixedPoint:
    """A fixed point of the kernel's step with its susceptibilities; a depth is None where chi is 1 or 0."""

    K_star: sp.Expr
    chi_parallel: sp.Expr
    chi_perp: sp.Expr

    @property
    def stability(self) -> str:
        return {-1: STABLE, 0: MARGINAL, 1: UNSTABLE}[_compare(self.chi_parallel)]

    @property
    def phase(self) -> str:
        """Whether nearby inputs become equal (ordered) or different (chaotic)."""
        return {-1: "ordered", 0: "critical", 1: "chaotic"}[_compare(self.chi_perp)]

    @property
    def xi_parallel(self) -> sp.Expr | None:
        return _depth(self.chi_parallel)

    @property
    def xi_perp(self) -> sp.Expr | None:
        return _depth(self.chi_perp)

    def to_json(self) -> dict[str, object]:
        return {
            "K_star": exact(self.K_star),
            "chi_parallel": exact(self.chi_parallel),
            "chi_perp": exact(self.chi_perp),
            "xi_parallel": exact(self.xi_parallel),
            "xi_perp": exact(self.xi_perp),
            "stability": self.stability,
            "phase": self.phase,
        }


@dataclass(frozen=True)
class FixedPoints(Result):
    """All fixed points with K* <= 1000 at given hyperparameters, and where the kernel goes."""

    activation: Activation
    C_b: sp.Expr
    C_W: sp.Expr
    points: tuple[FixedPoint, ...]
    reason: Words

    def to_json(self) -> dict[str, object]:
        return {
            "activation": self.activation.name,
            "expression": str(self.activation.expression),
            "C_b": exact(self.C_b),
            "C_W": exact(self.C_W),
            "fixed_points": [point.to_json() for point in self.points],
            "reason": self.reason,
        }

    def blocks(self) -> tuple[Block, ...]:
        given_at = rf"C_b = {tex(self.C_b)}, \quad C_W = {tex(self.C_W)}"
        depths = (typeset(r"\xi_\parallel", "xi_parallel"), typeset(r"\xi_\perp", "xi_perp"))
        head = (*map(cell, (K_STAR, CHI_PARALLEL, CHI_PERP)), *depths, "stability", "phase")
        rows = []
        for p in self.points:
            numbers = (p.K_star, p.chi_parallel, p.chi_perp, p.xi_parallel, p.xi_perp)
            rows.append((*(cell(sp.oo if x is None else x) for x in numbers), p.stability, p.phase))
        return Equation(given_at), Table(head, tuple(rows)), Text(self.reason)


def _compare(chi: sp.Expr) -> int:
    """-1, 0 or 1 as |chi| is below, at or above 1 (30-digit numbers are compared to 24)."""
    difference = abs(chi.evalf(DIGITS)) - 1
    return 0 if abs(difference) < sp.Float("1e-24") else int(sp.sign(difference))


def _depth(chi: sp.Expr) -> sp.Expr | None:
    if chi == 0 or _compare(chi) == 0:
        return None
    return abs(1 / sp.log(abs(chi)))


def fixed_points(activation: Activation | str | sp.Expr, bias: Number, weight: Number) -> FixedPoints:
    """Fixed points at C_b = bias and C_W = weight: numbers, or text such as "1/3".

    >>> fixed_points("relu", 1, 1).points[0].K_star
    2
    >>> [p.stability for p in fixed_points("tanh", 0, 2).points]
    ['unstable', 'stable']
    """
    values = [given(v, name) for name, v in (("C_b", bias), ("C_W", weight))]
    if not values[0].is_nonnegative or not values[1].is_positive:
        raise DeriveError(f"C_b must be at least 0 and C_W above 0, not {values[0]} and {values[1]}.")
    return _fixed_points(make_activation(activation), values[0], values[1])


@lru_cache(maxsize=128)
def _fixed_points(activation: Activation, bias: sp.Expr, weight: sp.Expr) -> FixedPoints:
    if activation.first_delta_order == 1:
        jump = equal(z, activation.kinks[0])
        raise DeriveError(
            said("sigma jumps at {}, so {} diverges: {} does not exist.", jump, chi_perp() / C_W, CHI_PERP)
        )
    if activation.scale_invariant is not None:
        return _scale_invariant(activation, bias, weight)
    points: list[FixedPoint] = []
    start = series((kernel_step() - C_b) / C_W, activation, 1)
    linear = start.coefficient(1)
    if bias == 0 and start.coefficient(0) == 0:
        slope = series(chi_perp() / C_W, activation, 0).coefficient(0)
        points.append(FixedPoint(sp.S.Zero, sp.simplify(weight * linear), sp.simplify(weight * slope)))
    rest = square_integrand(activation, linear)
    b, w, growth = float(bias), float(weight), float(weight * linear - 1)

    def step(t: float) -> tuple[float, float, float]:
        """K' - K, its slope in t = log K, and the size of what was added up."""
        value, slope, size = rest.value_and_slope(t)
        kernel = math.exp(t)
        return (
            b + growth * kernel + w * value,
            growth * kernel + w * slope,
            b + abs(growth) * kernel + w * size,
        )

    def bound(low: float, high: float) -> float:
        return abs(growth) * math.exp(high) + w * rest.curvature_bound(low, high)

    found = isolate(step, bound, LOWEST, rest.highest)
    points += [_refine(activation, bias, weight, cell, step) for cell in found.brackets]
    return FixedPoints(
        activation, bias, weight, tuple(points), _reason(points, found.sign_high, found.high, found.unsettled)
    )


def _refine(activation: Activation, bias: sp.Expr, weight: sp.Expr, cell: tuple[float, float], step: Any) -> FixedPoint:
    low, high = map(math.log, cell)
    rising = step(high)[0] > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (step(middle)[0] > 0) == rising else (middle, high)
    root = sp.Float(math.exp((low + high) / 2), DIGITS + 8)
    given = {C_b: bias, C_W: weight}
    slope = number(chi_parallel().xreplace(given), activation, root, 20) - 1
    for _ in range(8):
        change = (number(kernel_step().xreplace(given), activation, root, DIGITS + 8) - root) / slope
        root = sp.Float(root - change, DIGITS + 8)
        if abs(change) < root * sp.Float(10) ** -(DIGITS + 3):
            break
    parallel, perp = (number(chi.xreplace(given), activation, root, DIGITS) for chi in (chi_parallel(), chi_perp()))
    return FixedPoint(sp.Float(root, DIGITS), parallel, perp)


def _reason(points: list[FixedPoint], sign: int, high: float, unsettled: tuple[tuple[float, float], ...]) -> Words:
    goes = "a larger kernel grows without a fixed point" if sign > 0 else "a larger kernel falls"
    count = {0: "No fixed point", 1: "One fixed point"}.get(len(points), f"{len(points)} fixed points")
    open_cells = [said("; not settled for {} from {} to {}", K, small(a, 3), small(b, 3)) for a, b in unsettled]
    return said(
        "{} with {} up to {}; there {}: {}{}.",
        count,
        K_STAR,
        small(min(high, HIGHEST), 4),
        relation(">" if sign > 0 else "<", K_NEXT, K),
        goes,
        listed(open_cells, ""),
    )


def _scale_invariant(activation: Activation, bias: sp.Expr, weight: sp.Expr) -> FixedPoints:
    """K' = C_b + C_W A K with A = <s s>/K: everything is exact."""
    square = closed_form((susceptibility.kernel_step() - C_b) / C_W, activation)
    assert square is not None
    chi = sp.simplify(weight * square / K)
    side = _compare(chi)
    if side == 0 and bias == 0:
        told = said("Critical: every {} is a fixed point.", K)
        return FixedPoints(activation, bias, weight, (FixedPoint(K, chi, chi),), told)
    if side != 0 and (bias == 0 or side < 0):
        root = sp.simplify(bias / (1 - chi))
        reason = said("{} has one fixed point.", equal(K_NEXT, bias + chi * K))
        return FixedPoints(activation, bias, weight, (FixedPoint(root, chi, chi),), reason)
    reason = said("{} grows without a fixed point.", equal(K_NEXT, bias + chi * K))
    return FixedPoints(activation, bias, weight, (), reason)
