"""Deviations of the kernel and the NTK at large depth, by the solver that solves the single-input tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.depth import Asymptotics
from derive.depth.critical_solution import FlowSolution, Problem, network_equations
from derive.depth.exponent_table import problem
from derive.errors import DeriveError
from derive.nearby.deviation import Deviation
from derive.nearby.expansion import delta_recursions

ORDERED = ("dK_1", "ddK_2", "ddK_0", "dTheta_1", "ddTheta_2", "ddTheta_0")
"""Deviations through second order, each after those that source it."""


@lru_cache(maxsize=2)
def nearby_equations(equal_norms: bool) -> dict[str, sp.Expr]:
    """K, Theta and their deviations; for inputs of equal norm the first-order ones vanish."""
    found = {name: network_equations()[name] for name in ("K", "Theta")}
    derived = {**delta_recursions("K"), **delta_recursions("Theta")}
    none = {Deviation("K", 1, "1"): sp.S.Zero, Deviation("Theta", 1, "1"): sp.S.Zero}
    for name in ORDERED:
        if equal_norms and name in ("dK_1", "dTheta_1"):
            continue
        expression = derived[name].expression
        found[name] = sp.expand(expression.xreplace(none)) if equal_norms else expression
    return found


@lru_cache(maxsize=64)
def _solution(task: Problem, equal_norms: bool) -> FlowSolution:
    return FlowSolution(task, nearby_equations(equal_norms))


def flow_solution(
    activation: Activation | str, learning_rates: Any, point: int, equal_norms: bool = True
) -> FlowSolution:
    """The solved system of an activation whose kernel flows (every class but the scale-invariant one)."""
    task = problem(activation, learning_rates, point)
    if task.universality_class == "scale-invariant":
        raise DeriveError("a scale-invariant activation is treated at finite angle, not by the delta-expansion")
    return _solution(replace(task), equal_norms)


def deviation_asymptotics(
    activation: Activation | str,
    name: str,
    order: int = 1,
    learning_rates: Any = "equivalence",
    point: int = 0,
    equal_norms: bool = True,
) -> Asymptotics:
    """The large-depth series of K, Theta or one of their deviations ("ddTheta_2", ...).

    >>> deviation_asymptotics("tanh", "ddTheta_2").coefficient
    c_ddK_2*lambda_W
    """
    solved = flow_solution(activation, learning_rates, point, equal_norms)
    known = ("K", "Theta", *ORDERED)
    if name not in known:
        raise DeriveError(f"there is no deviation {name!r}; choose one of {' '.join(known)}")
    if name not in solved.admitted.equations and name not in solved.admitted.missing:
        return Asymptotics(name, None, 0, sp.S.Zero, sp.S.Zero, None)
    return solved.tensor(name, order)
