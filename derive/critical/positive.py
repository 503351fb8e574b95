"""Criticality at K* > 0: every zero of <s s''>_K in (0, 1000], then C_W, C_b and from which side the point attracts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.critical.points import (
    FROM_ABOVE,
    FROM_BELOW,
    HALF_STABLE,
    MARGINAL,
    CriticalPoint,
    Inadmissible,
)
from derive.critical.scan import HIGHEST, LOWEST, Integrand, Isolation, condition_integrand, isolate
from derive.critical.susceptibility import chi_perp, closed_form, condition, curvature, kernel_step, number
from derive.gaussian import series
from derive.notation import CHI_PARALLEL, CHI_PERP, CURVED, K_NEXT, K_STAR
from derive.steps import Formula, Step, Words, as_written, equal, listed, relation, said, small, words
from derive.symbols import C_W, C_b, K, z

DIGITS = 30


@dataclass(frozen=True)
class AtPositive:
    """The outcome for K* > 0, with what fails where nothing is found."""

    points: tuple[CriticalPoint, ...]
    inadmissible: tuple[Inadmissible, ...]
    failure: Words
    steps: tuple[Step, ...]


def at_positive(activation: Activation) -> AtPositive:
    """All solutions of chi_parallel = chi_perp = 1 with K* in (0, 1000]."""
    beyond = relation(">", K_STAR, 0)
    head = said(
        "For {}, {}, so criticality needs {}.",
        beyond,
        equal(as_written(CHI_PARALLEL, -CHI_PERP), C_W * condition(), order="none"),
        equal(condition(), 0),
    )
    form = closed_form(condition(), activation)
    steps = [Step(head)]
    if form is not None:
        steps.append(Step(said("In closed form"), (equal(condition(), form),)))
    sign = one_sign(activation)
    if sign is not None:
        compared = relation(">" if sign == "non-negative" else "<", CHI_PARALLEL, CHI_PERP)
        failure = said(
            "for {}, {} is {} for every {}, so {} never vanishes and {}",
            beyond,
            CURVED,
            sign,
            z,
            condition(),
            compared,
        )
        return AtPositive((), (), failure, (*steps, _sentence(failure)))
    integrand = condition_integrand(activation)
    if integrand.identically_zero:
        return _line(activation, steps)
    integrand, low, below = _from_below(activation, integrand)
    found = isolate(integrand.value_and_slope, integrand.curvature_bound, low, integrand.highest)
    roots = [_refine(activation, integrand, cell, form) for cell in found.brackets]
    roots += _tangential(activation, integrand, found)
    steps.append(_searched(found, len(roots), below))
    solutions = [_point(activation, root) for root in sorted(roots, key=lambda r: r.evalf(20))]
    points = [p for p in solutions if isinstance(p, CriticalPoint)]
    inadmissible = [p for p in solutions if isinstance(p, Inadmissible)]
    steps += [_told(p) for p in solutions]
    failure = _failure(found, inadmissible) if not points else words("")
    return AtPositive(tuple(points), tuple(inadmissible), failure, tuple(steps))


def one_sign(activation: Activation) -> str | None:
    """ "non-negative" or "non-positive" where SymPy proves it of sigma sigma'' pointwise, for smooth sigma."""
    if not activation.is_smooth:
        return None
    integrand = activation.expression * activation.derivative(2)
    if not integrand.has(z) and integrand.is_zero:
        return None
    numbers = integrand.atoms(sp.Rational)
    tame = all(abs(n.p) <= 64 and n.q <= 64 for n in numbers)  # factor() takes exp(10^6 z) for a power of exp(z)
    for candidate in (integrand, sp.factor(integrand) if tame else integrand):
        if candidate.is_nonnegative:
            return "non-negative"
        if candidate.is_nonpositive:
            return "non-positive"
    return None


def _sentence(clause: Words) -> Step:
    return Step(said("{}.", clause.capitalized()))


def _refine(activation: Activation, integrand: Integrand, cell: tuple[float, float], form: sp.Expr | None) -> sp.Expr:
    """The zero in a cell: exact where the closed form's numerator is a polynomial with it as a root, else 30 digits."""
    low, high = map(math.log, cell)
    rising = integrand.value_and_slope(high)[0] > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (integrand.value_and_slope(middle)[0] > 0) == rising else (middle, high)
    start = math.exp((low + high) / 2)
    if form is not None:
        numerator = sp.fraction(sp.together(form))[0]
        for factor in sp.Mul.make_args(sp.factor(numerator)):
            if factor.is_polynomial(K) and factor.has(K):
                for root in sp.Poly(factor, K).real_roots():
                    if abs(float(root) / start - 1) < 1e-9:
                        return root
    slope = sp.Float(integrand.value_and_slope(math.log(start))[1] / start)
    root = sp.Float(start, DIGITS + 8)
    for _ in range(4):  # each chord step gains the slope's twelve or so digits
        step = number(condition(), activation, root, DIGITS + 8) / slope
        root = sp.Float(root - step, DIGITS + 8)
        if abs(step) < root * sp.Float(10) ** -(DIGITS + 4):
            break
    return sp.Float(root, DIGITS)


def _tangential(activation: Activation, integrand: Integrand, found: Isolation) -> list[sp.Expr]:
    """Cells that double precision could not settle: a zero only if 30 digits say that the condition vanishes there."""
    roots = []
    for low, high in found.unsettled:
        if high / low > 1.1:
            continue
        middle = sp.Float(math.sqrt(low * high), 40)
        residue = number(condition(), activation, middle, 40)
        if abs(residue) < sp.Float("1e-14") * integrand.value_and_slope(math.log(float(middle)))[2]:
            roots.append(sp.Float(middle, DIGITS))
    return roots


def _from_below(activation: Activation, integrand: Integrand) -> tuple[Integrand, float, Words]:
    """Where to start, so that nothing is missed below: where the leading term of the series in K has taken over."""
    lead = series(condition(), activation, 2).leading or series(condition(), activation, 6).leading
    if lead is None:  # beyond all powers: exp(-kink^2/(2K)) of the nearest kink
        low = LOWEST
        while integrand.value_and_slope(math.log(low))[2] < 1e-200 and low < 1:
            low *= 2
        return integrand, low, said("; below, the kink nearest to 0 dominates, beyond all powers of {}", K)
    power, coefficient = float(lead[0]), float(lead[1])
    low = LOWEST
    while True:
        ratio = integrand.value_and_slope(math.log(low))[0] / (coefficient * low**power)
        if abs(ratio - 1) < 0.1:
            return integrand, low, said("; below, its leading term {} has taken over", lead[1] * K ** lead[0])
        if low < 1e-30:
            return integrand, low, words("")
        low *= 1e-4
        integrand = condition_integrand(activation, low)


def _searched(found: Isolation, count: int, below: Words) -> Step:
    zeros = {0: "no zero", 1: "one zero"}.get(count, f"{count} zeros")
    unsettled = [said("; not settled for {} from {} to {}", K, small(a, 3), small(b, 3)) for a, b in found.unsettled]
    return Step(
        said(
            "Root isolation with a bound on the second derivative finds {} of {} for {} from {} to {}{}{}.",
            zeros,
            condition(),
            K,
            small(found.low, 1),
            small(found.high, 4),
            below,
            listed(unsettled, ""),
        )
    )


def _point(activation: Activation, root: sp.Expr) -> CriticalPoint | Inadmissible:
    slope = closed_form(chi_perp() / C_W, activation)
    square = closed_form((kernel_step() - C_b) / C_W, activation)
    if slope is not None and square is not None and not root.is_Float:
        weight = _tidy(1 / slope.xreplace({K: root}))
        bias = _tidy(root - square.xreplace({K: root}) / slope.xreplace({K: root}))
    else:
        weight = 1 / number(chi_perp() / C_W, activation, root, DIGITS + 5)
        bias = sp.Float(root - weight * number((kernel_step() - C_b) / C_W, activation, root, DIGITS + 5), DIGITS)
        weight = sp.Float(weight, DIGITS)
    if bias.evalf(DIGITS) < 0:
        return Inadmissible(root, weight, bias)
    bend = (
        sp.Float(
            weight.evalf(DIGITS + 5) * number(curvature() / C_W, activation, root.evalf(DIGITS + 10), DIGITS), DIGITS
        )
        / 2
    )
    stability = FROM_ABOVE if bend < 0 else FROM_BELOW
    if abs(bend) < sp.Float("1e-18"):
        stability = MARGINAL
    return CriticalPoint(root, weight, bias, stability, HALF_STABLE, (sp.Integer(2), bend))


def _tidy(value: sp.Expr) -> sp.Expr:
    """Algebraic numbers in their simplest form; what holds asin, exp or erf stays as it is."""
    return value if value.atoms(sp.Function) else sp.simplify(value)


def _told(point: CriticalPoint | Inadmissible) -> Step:
    slope, square = chi_perp() / C_W, (kernel_step() - C_b) / C_W
    values = said(
        "{}: {}, {}",
        _value(K_STAR, point.K_star),
        _value(C_W, 1 / slope, point.C_W),
        _value(C_b, as_written(K_STAR, -C_W * square), point.C_b),
    )
    if isinstance(point, Inadmissible):
        return Step(said("{} is negative: not admissible.", values))
    assert point.approach is not None
    bend = _short(point.approach[1])
    flow = equal(K_NEXT, as_written(K, bend * (K - K_STAR) ** 2), open_ended=True, order="none", digits=12)
    return Step(said("{}; {}, {}.", values, flow, point.stability))


def _value(*sides: sp.Expr) -> Formula:
    return equal(*sides[:-1], _short(sides[-1]), order="none", digits=12)


def _short(value: sp.Expr) -> sp.Expr:
    """As it is where that is a few letters, else its digits."""
    return value if len(str(value)) <= 24 and not value.is_Float else value.evalf(12)


def _failure(found: Isolation, inadmissible: list[Inadmissible]) -> Words:
    beyond = relation(">", K_STAR, 0)
    if inadmissible:
        needs = [said("{} needs {}", _value(K_STAR, p.K_star), _value(C_b, p.C_b)) for p in inadmissible]
        told = "for {}, {} only where a negative {} would be needed: {}"
        return said(told, beyond, equal(CHI_PARALLEL, CHI_PERP), C_b, listed(needs))
    word, sign = ("positive", ">") if found.sign_high > 0 else ("negative", "<")
    reach = small(min(found.high, HIGHEST), 4)
    told = "for {} up to {}, {} is {}, so {} for every {}"
    return said(told, beyond, reach, condition(), word, relation(sign, CHI_PARALLEL, CHI_PERP), C_W)


def _line(activation: Activation, steps: list[Step]) -> AtPositive:
    """<s s''> = 0 for every K: a line of critical points, with K* as its parameter."""
    slope = closed_form(chi_perp() / C_W, activation)
    square = closed_form((kernel_step() - C_b) / C_W, activation)
    sample = sp.S.One
    if slope is None or square is None or (sample - (square / slope).xreplace({K: sample})).evalf(30) < 0:
        slope_, square_ = chi_perp() / C_W, (kernel_step() - C_b) / C_W
        failure = said(
            "for {}, {} vanishes for every {}, but {} is negative",
            relation(">", K_STAR, 0),
            condition(),
            K,
            equal(C_b, as_written(K_STAR, -square_ / slope_), order="none"),
        )
        return AtPositive((), (), failure, (*steps, _sentence(failure)))
    weight, bias = sp.simplify(1 / slope), sp.simplify(K - square / slope)
    bend = (weight * sp.diff(slope, K) / 2).xreplace({K: sample}).evalf(30)
    stability = MARGINAL if bend == 0 else (FROM_ABOVE if bend < 0 else FROM_BELOW)
    told = Step(
        said(
            "{} vanishes for every {}: each {} is critical with {}, {}.",
            condition(),
            K,
            relation(">", K_STAR, 0),
            equal(C_W, weight),
            equal(C_b, bias),
        )
    )
    point = CriticalPoint(K, weight, bias, stability, HALF_STABLE, (sp.Integer(2), weight * sp.diff(slope, K) / 2))
    return AtPositive((point,), (), words(""), (*steps, told))
