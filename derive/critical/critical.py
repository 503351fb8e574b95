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
from derive.notation import CHI_PARALLEL, CHI_PERP, K_NEXT, K_STAR, SIGMA, SIGMA_Z, SLOPE
from derive.steps import Step, Words, equal, listed, relation, said
from derive.symbols import C_W, C_b, K, z


def criticality(activation: Activation | str | sp.Expr) -> Criticality:
    """Critical points, class, stability, the reason and the steps.

    >>> found = criticality("tanh")
    >>> found.universality_class, found.points[0].C_W, found.points[0].stability
    ('K*=0', 1, 'stable')
    """
    return _criticality(make_activation(activation))


@lru_cache(maxsize=128)
def _criticality(activation: Activation) -> Criticality:
    steps = [
        Step(
            said("The kernel's step and its susceptibilities, along {} and across it", K),
            (
                equal(K_NEXT, kernel_step()),
                equal(CHI_PARALLEL, SLOPE, chi_parallel()),
                equal(CHI_PERP, chi_perp()),
            ),
        )
    ]
    if activation.first_delta_order == 1:
        reason = said(
            "{} jumps at {}, so {} and with it {} diverge for every {}.",
            SIGMA,
            equal(z, activation.kinks[0]),
            chi_perp() / C_W,
            CHI_PERP,
            C_W,
        )
        return Criticality(activation, NONE, (), reason, (*steps, Step(reason)))
    parallel, perp = (closed_form(chi, activation) for chi in (chi_parallel(), chi_perp()))
    if parallel is not None and perp is not None:
        closed = (equal(CHI_PARALLEL, parallel), equal(CHI_PERP, perp))
        steps.append(Step(said("In closed form"), closed))
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
        reason = said("No critical point: {}; {}.", zero.failure, positive.failure)
    return Criticality(activation, name, tuple(points), reason, tuple(steps), parallel, perp, positive.inadmissible)


def _preference(point: CriticalPoint) -> tuple[int, float]:
    """Stable points first, then those that attract from one side, unstable ones last; small K* before large."""
    rank = {STABLE: 0, MARGINAL: 1, UNSTABLE: 3}.get(point.stability, 2)
    return rank, float(point.K_star) if not point.K_star.free_symbols else 0.0


def _recommendation(points: list[CriticalPoint], at_zero_fails: Words, positive_fails: Words) -> Words:
    first = points[0]
    clauses = [said("{} is {}", equal(K_STAR, first.K_star, digits=10), first.stability)]
    if len(points) > 1:
        others = listed(said("{} ({})", equal(K_STAR, p.K_star.evalf(8), digits=8), p.stability) for p in points[1:])
        clauses.append(said("it is preferred to {}", others))
    clauses += [f for f in (at_zero_fails, positive_fails) if f]
    return said("{}.", listed(clauses, "; "))


def _scale_invariant(
    activation: Activation, parallel: sp.Expr | None, perp: sp.Expr | None, steps: list[Step]
) -> Criticality:
    square = closed_form((kernel_step() - C_b) / C_W, activation)
    assert square is not None and activation.scale_invariant is not None
    weight = sp.radsimp(sp.simplify(K / square))
    a_plus, a_minus = activation.scale_invariant
    reason = said(
        "{} for {} and {} for {} is scale-invariant: {}, so with {} and {} every {} is a fixed point with {}.",
        equal(SIGMA_Z, a_plus * z),
        relation(">", z, 0),
        a_minus * z,
        relation("<", z, 0),
        equal((kernel_step() - C_b) / C_W, square),
        equal(C_b, 0),
        equal(C_W, weight),
        K,
        equal(CHI_PARALLEL, CHI_PERP, 1),
    )
    point = CriticalPoint(K, weight, sp.S.Zero, MARGINAL, SCALE_INVARIANT)
    return Criticality(activation, SCALE_INVARIANT, (point,), reason, (*steps, Step(reason)), parallel, perp)
