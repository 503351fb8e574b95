"""Criticality at K* = 0: the kernel's step as a series in K decides C_W, the class and the stability."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.critical.points import MARGINAL, STABLE, UNSTABLE, ZERO, ZERO_NON_ANALYTIC, CriticalPoint
from derive.gaussian import Bracket, KernelSeries, Sigma, series, value
from derive.symbols import K

ORDERS = (2, 3, 6)
"""Corrections to K' = K are looked for up to these powers of K, one after the other."""


@dataclass(frozen=True)
class AtZero:
    """The outcome at K* = 0: a critical point or the condition that fails, and the steps that show it."""

    point: CriticalPoint | None
    failure: str
    steps: tuple[str, ...]


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
    steps = [f"Near K = 0:  <s s> = {_text(kernel)},  <s' s'> = {_text(slope)}."]
    if not is_zero(sigma_0):
        failure = f"K* = 0 needs sigma(0) = 0, but sigma(0)^2 = {sigma_0}"
        return AtZero(None, failure, (*steps, failure + "."))
    if is_zero(mean_slope):
        failure = "at K* = 0 chi_perp = C_W sigma'(0)^2 vanishes for every C_W, since sigma'(0) = 0"
        return AtZero(None, failure, (*steps, failure[0].upper() + failure[1:] + "."))
    weight = short_form(1 / mean_slope)
    steps.append(
        f"K* = 0 is a fixed point with C_b = 0; there chi_parallel = chi_perp = C_W ({mean_slope}), so C_W = {weight}."
    )
    half_integers = kernel.has_half_integer_powers or slope.has_half_integer_powers
    name = ZERO_NON_ANALYTIC if half_integers else ZERO
    if not corrections:
        return AtZero(_beyond_all_powers(activation, weight, name, steps), "", tuple(steps))
    power = corrections[0]
    coefficient = short_form(weight * kernel.coefficient(power))
    stability = STABLE if coefficient.evalf(30) < 0 else UNSTABLE
    falls = "falls to" if stability == STABLE else "grows away from"
    steps.append(f"K' = K + ({coefficient}) K^{_power(power)} + ...: K {falls} 0, so K* = 0 is {stability}.")
    point = CriticalPoint(sp.S.Zero, weight, sp.S.Zero, stability, name, (power, coefficient))
    return AtZero(point, "", tuple(steps))


def _beyond_all_powers(activation: Activation, weight: sp.Expr, name: str, steps: list[str]) -> CriticalPoint:
    """K' = K to every power of K (a kink away from 0): the sign of K' - K is read off at small K."""
    square = Bracket(Sigma(0), Sigma(0))
    sizes = [
        weight * sp.Float(value(square, activation, k, 30), 30) / k - 1
        for k in (sp.Rational(1, 50), sp.Rational(1, 20))
    ]
    signs = {int(sp.sign(size)) if abs(size) > sp.Float("1e-25") else 0 for size in sizes}
    stability = {frozenset({-1}): STABLE, frozenset({1}): UNSTABLE}.get(frozenset(signs - {0}), MARGINAL)
    steps.append(f"K' = K to all powers of K checked; beyond all powers K* = 0 is {stability}.")
    return CriticalPoint(sp.S.Zero, weight, sp.S.Zero, stability, name)


def _power(power: sp.Expr) -> str:
    return str(power) if power.is_Integer else f"({power})"


def _text(expansion: KernelSeries, terms: int = 3) -> str:
    shown = [_shown(c) * K**p for p, c in sorted(expansion.coefficients.items())[:terms]]
    return " + ".join(f"({term})" if term.could_extract_minus_sign() else str(term) for term in shown) + " + ..."


def _shown(coefficient: sp.Expr) -> sp.Expr:
    return coefficient if len(str(coefficient)) <= 40 else coefficient.evalf(12)
