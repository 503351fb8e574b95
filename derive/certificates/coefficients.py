"""Leading coefficients of `derive exponents` that are numbers, as intervals that contain them.

The recursions are solved a second time, by the same solver over a field of balls. A coefficient is a polynomial in the
learning rates (and in constants that initial data decide): each of its numbers has an interval, under its monomial,
which is "1" where there are no rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.enclosure import available
from derive.certificates.enclosed_kernel import BITS, EnclosedConstant, EnclosedPoint, EnclosedSolution
from derive.certificates.outward import Interval, decimals
from derive.depth import ExponentTable
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import Problem
from derive.depth.learning_rates import equivalence
from derive.depth.ratios import Ratio, kernel_powers
from derive.depth.series import Series
from derive.depth.tensor_recursions import System
from derive.errors import DeriveError
from derive.gaussian.balls import precision
from derive.steps import words

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

Polynomial = dict[sp.Expr, "arb"]
"""{monomial of the learning rates and the free constants: ball}."""


def with_balls(table: ExponentTable, task: Problem) -> ExponentTable:
    """The table with an interval for each number in it; as it is where all is exact or FLINT is missing.

    The numbers of a ratio are those of two polynomials in the learning rates: the interval holds their quotient for all
    rates that are not negative.
    """
    if table.digits is None or task.activation is None or not available():
        return table
    try:
        known, p_perp = _leading(task)
    except (DeriveError, ArithmeticError):
        return replace(table, notes=(*table.notes, words("No interval could be proved for these numbers.")))
    tensors = {
        name: replace(tensor, balls=_intervals(known[name])) if name in known and tensor.digits else tensor
        for name, tensor in table.tensors.items()
    }
    ratios = {name: replace(ratio, ball=_quotient(ratio, known)) for name, ratio in table.ratios.items()}
    said = words("Each number lies in an interval that is proved; --json shows it.")
    plateau = None if table.plateau is None else with_balls(table.plateau, replace(task, plateau=True))
    return replace(
        table, tensors=tensors, ratios=ratios, p_perp_ball=p_perp, plateau=plateau, notes=(*table.notes, said)
    )


@lru_cache(maxsize=16)
def _leading(task: Problem) -> tuple[dict[str, Polynomial], Interval | None]:
    """The leading polynomials of the tensors, and p_perp; on a plateau those that initial data do not decide."""
    with precision(BITS):
        solved = EnclosedSolution(task, _point(replace(task, plateau=False)))
        found = {}
        system = _constant_system(solved, task) if task.plateau else None
        for name in solved.admitted.equations:
            try:
                series = system.solve(name) if system else solved.series(name, 1)[1]
            except NoApproach:
                continue
            polynomial = _polynomial(series) if series else {}
            if polynomial and not (system and any(_constants(m) for m in polynomial)):
                found[name] = polynomial
        p_perp = None if system else getattr(solved.background, "p_perp", None)
        return found, None if p_perp is None else decimals(p_perp)


@lru_cache(maxsize=16)
def _point(task: Problem) -> EnclosedPoint:
    return EnclosedPoint(task.point, task.C_b, task.C_W)


def _constant_system(solved: EnclosedSolution, task: Problem) -> System:
    background = EnclosedConstant(solved.enclosed, solved.admitted.brackets, solved.names)
    rates = task.rates if task.rates is not None else equivalence(sp.S.Zero, sp.S.Zero)
    return System(solved.admitted, background, rates, dict(task.fixed))


def _polynomial(series: Series) -> Polynomial:
    """The leading coefficient."""
    _, poly = series.leading
    logs = max(m[0] for m in poly)
    symbols = [sp.Symbol(name) for name in series.ring.names]
    return {sp.Mul(*(s**n for s, n in zip(symbols, m[1:]))): c for m, c in poly.items() if m[0] == logs}


def _constants(monomial: sp.Expr) -> bool:
    return any(s.name.startswith("c_") for s in monomial.free_symbols)


def _intervals(polynomial: Polynomial) -> dict[str, Interval]:
    with precision(BITS):
        return {str(m): decimals(c) for m, c in sorted(polynomial.items(), key=str)}


def _quotient(ratio: Ratio, known: Mapping[str, Polynomial]) -> Interval | None:
    """P/Q lies between the least and the largest p_m/q_m where all q_m > 0 and the rates are not negative."""
    if not {ratio.tensor, "K", "Theta"} <= set(known) or ratio.exponent is None:
        return None
    k, t = kernel_powers(ratio.tensor)
    with precision(BITS):
        above, below = known[ratio.tensor], {sp.S.One: flint.arb(1)}
        for name, power in (("K", k), ("Theta", t)):
            for _ in range(abs(power)):
                if power < 0:
                    above = _times(above, known[name])
                else:
                    below = _times(below, known[name])
        if not set(above) <= set(below) or any(_constants(m) or not c > 0 for m, c in below.items()):
            return None
        hull: arb | None = None
        for monomial, c in below.items():
            part = above.get(monomial, flint.arb(0)) / c
            hull = part if hull is None else hull.union(part)
        return None if hull is None else decimals(hull)


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for m, x in a.items():
        for n, y in b.items():
            total[m * n] = total.get(m * n, flint.arb(0)) + x * y
    return total
