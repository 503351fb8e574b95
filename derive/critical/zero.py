"""Criticality at K* = 0: the kernel's step as a series in K decides C_W, the class and the stability."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.critical.points import MARGINAL, STABLE, UNSTABLE, ZERO, ZERO_NON_ANALYTIC, CriticalPoint
from derive.gaussian import Bracket, KernelSeries, Sigma, series, value
from derive.notation import CHI_PARALLEL, CHI_PERP, K_NEXT, K_STAR, SIGMA_0, SIGMA_0_SQUARED, SLOPE_0
from derive.steps import Formula, Step, Words, as_written, equal, said, words
from derive.symbols import C_W, C_b, K

ORDERS = (2, 3, 6)
"""Corrections to K' = K are looked for up to these powers of K, one after the other."""


@dataclass(frozen=True)
class AtZero:
    """The outcome at K* = 0: a critical point or the condition that fails, and the steps that show it."""

    point: CriticalPoint | None
    failure: Words
    steps: tuple[Step, ...]


def is_zero(number: sp.Expr) -> bool:
    """Whether an exact number vanishes: 40 digits decide that it does not, `simplify` that it does."""
    if number.is_Rational:
        return bool(number == 0)
    return bool(abs(number.evalf(40)) < sp.Float("1e-30") and sp.simplify(number) == 0)


def short_form(value: sp.Expr) -> sp.Expr:
    """An exact number in a readable form, without an expensive search for one."""
    return sp.simplify(value) if value.count_ops() < 60 else sp.factor(value)


def at_zero(activation: Activation) -> AtZero:
    """K* = 0 needs sigma(0) = 0 (then C_b = 0) and a slope at 0 that C_W can bring to chi = 1."""
    for order in ORDERS:
        kernel = series(Bracket(Sigma(0), Sigma(0)), activation, order)
        slope = series(Bracket(Sigma(0, 1), Sigma(0, 1)), activation, order - 1)
        corrections = [p for p, c in sorted(kernel.coefficients.items()) if p > 1 and not is_zero(c)]
        if corrections:
            break
    sigma_0, mean_slope = kernel.coefficient(0), slope.coefficient(0)
    near = (
        _expansion(Bracket(Sigma(0), Sigma(0)), kernel),
        _expansion(Bracket(Sigma(0, 1), Sigma(0, 1)), slope),
    )
    steps = [Step(said("Near {}", equal(K, 0)), near)]
    at_origin = equal(K_STAR, 0)
    if not is_zero(sigma_0):
        failure = said("{} needs {}, but {}", at_origin, equal(SIGMA_0, 0), equal(SIGMA_0_SQUARED, sigma_0))
        return AtZero(None, failure, (*steps, Step(said("{}.", failure))))
    if is_zero(mean_slope):
        failure = said(
            "at {} {} vanishes for every {}, since {}",
            at_origin,
            equal(CHI_PERP, C_W * SLOPE_0**2),
            C_W,
            equal(SLOPE_0, 0),
        )
        return AtZero(None, failure, (*steps, Step(said("{}.", failure.capitalized()))))
    weight = short_form(1 / mean_slope)
    steps.append(
        Step(
            said(
                "{} is a fixed point with {}; there {}, so {}.",
                at_origin,
                equal(C_b, 0),
                equal(CHI_PARALLEL, CHI_PERP, C_W * mean_slope),
                equal(C_W, weight),
            )
        )
    )
    half_integers = kernel.has_half_integer_powers or slope.has_half_integer_powers
    name = ZERO_NON_ANALYTIC if half_integers else ZERO
    if not corrections:
        return AtZero(_beyond_all_powers(activation, weight, name, steps), words(""), tuple(steps))
    power = corrections[0]
    coefficient = short_form(weight * kernel.coefficient(power))
    stability = STABLE if coefficient.evalf(30) < 0 else UNSTABLE
    falls = "falls to" if stability == STABLE else "grows away from"
    flow = equal(K_NEXT, as_written(K, _shown(coefficient) * K**power), open_ended=True, order="none")
    steps.append(Step(said("{}: {} {} 0, so {} is {}.", flow, K, falls, at_origin, stability)))
    point = CriticalPoint(sp.S.Zero, weight, sp.S.Zero, stability, name, (power, coefficient))
    return AtZero(point, words(""), tuple(steps))


def _beyond_all_powers(activation: Activation, weight: sp.Expr, name: str, steps: list[Step]) -> CriticalPoint:
    """K' = K to every power of K (a kink away from 0): the sign of K' - K is read off at small K."""
    square = Bracket(Sigma(0), Sigma(0))
    sizes = [
        weight * sp.Float(value(square, activation, k, 30), 30) / k - 1
        for k in (sp.Rational(1, 50), sp.Rational(1, 20))
    ]
    signs = {int(sp.sign(size)) if abs(size) > sp.Float("1e-25") else 0 for size in sizes}
    stability = {frozenset({-1}): STABLE, frozenset({1}): UNSTABLE}.get(frozenset(signs - {0}), MARGINAL)
    told = "{} to all powers of {} that were looked at; beyond all powers {} is {}."
    steps.append(Step(said(told, equal(K_NEXT, K), K, equal(K_STAR, 0), stability)))
    return CriticalPoint(sp.S.Zero, weight, sp.S.Zero, stability, name)


def _expansion(bracket: sp.Expr, expansion: KernelSeries, terms: int = 3) -> Formula:
    shown = [_shown(c) * K**p for p, c in sorted(expansion.coefficients.items())[:terms]]
    return equal(bracket, as_written(*shown), open_ended=True, order="none")


def _shown(coefficient: sp.Expr) -> sp.Expr:
    return coefficient if len(str(coefficient)) <= 40 else coefficient.evalf(12)
