"""All critical initializations of an activation: chi_parallel = chi_perp = 1 at K* = C_b + C_W <s s>_{K*}, C_b >= 0."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical.points import (
    MARGINAL,
    NONE,
    SCALE_INVARIANT,
    STABLE,
    UNSTABLE,
    Criticality,
    CriticalPoint,
)
from derive.critical.positive import at_positive
from derive.critical.susceptibility import chi_parallel, chi_perp, closed_form, kernel_step
from derive.critical.zero import at_zero
from derive.symbols import C_W, C_b, K


def criticality(activation: Activation | str | sp.Expr) -> Criticality:
    """Critical points, class, stability, the reason and the steps.

    >>> found = criticality("tanh")
    >>> found.universality_class, found.points[0].C_W, found.points[0].stability
    ('K*=0', 1, 'stable')
    """
    return _criticality(make_activation(activation))


@lru_cache(maxsize=128)
def _criticality(activation: Activation) -> Criticality:
    definitions = (f"K' = {kernel_step()},  chi_parallel = dK'/dK = {chi_parallel()},  chi_perp = {chi_perp()}.",)
    if activation.first_delta_order == 1:
        reason = f"sigma jumps at z = {activation.kinks[0]}, so <s' s'> and with it chi_perp diverge for every C_W."
        return Criticality(activation, NONE, (), reason, (*definitions, reason))
    parallel, perp = (closed_form(chi, activation) for chi in (chi_parallel(), chi_perp()))
    steps = list(definitions)
    if parallel is not None and perp is not None:
        steps.append(f"In closed form chi_parallel = {parallel}, chi_perp = {perp}.")
    if activation.scale_invariant is not None:
        return _scale_invariant(activation, parallel, perp, steps)
    zero, positive = at_zero(activation), at_positive(activation)
    steps += [*zero.steps, *positive.steps]
    points = sorted([*positive.points, *([zero.point] if zero.point else [])], key=_preference)
    if points:
        name = points[0].universality_class
        reason = _recommendation(points, zero.failure, positive.failure)
    else:
        name = NONE
        reason = f"No critical point: {zero.failure}; {positive.failure}."
    return Criticality(activation, name, tuple(points), reason, tuple(steps), parallel, perp, positive.inadmissible)


def _preference(point: CriticalPoint) -> tuple[int, float]:
    """Stable points first, then those that attract from one side, unstable ones last; small K* before large."""
    rank = {STABLE: 0, MARGINAL: 1, UNSTABLE: 3}.get(point.stability, 2)
    return rank, float(point.K_star) if not point.K_star.free_symbols else 0.0


def _recommendation(points: list[CriticalPoint], at_zero_fails: str, positive_fails: str) -> str:
    first = points[0]
    where = "K* = 0" if first.K_star == 0 else f"K* = {first.K_star.evalf(10) if first.K_star.is_number else 'K'}"
    text = f"{where} is {first.stability}"
    if len(points) > 1:
        others = ", ".join(f"K* = {p.K_star.evalf(8)} ({p.stability})" for p in points[1:])
        text += f"; it is preferred to {others}"
    failures = [f for f in (at_zero_fails, positive_fails) if f]
    if failures:
        text += "; " + "; ".join(failures)
    return text[0].upper() + text[1:] + "."


def _scale_invariant(
    activation: Activation, parallel: sp.Expr | None, perp: sp.Expr | None, steps: list[str]
) -> Criticality:
    square = closed_form((kernel_step() - C_b) / C_W, activation)
    assert square is not None and activation.scale_invariant is not None
    weight = sp.radsimp(sp.simplify(K / square))
    a_plus, a_minus = activation.scale_invariant
    reason = (
        f"sigma(z) = ({a_plus}) z for z > 0 and ({a_minus}) z for z < 0 is scale-invariant: <s s> = {square}, so with "
        f"C_b = 0 and C_W = {weight} every K is a fixed point with chi_parallel = chi_perp = 1."
    )
    point = CriticalPoint(K, weight, sp.S.Zero, MARGINAL, SCALE_INVARIANT)
    return Criticality(activation, SCALE_INVARIANT, (point,), reason, (*steps, reason), parallel, perp)
