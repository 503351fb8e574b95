r"""Criticality of residual layers z' = xi z + b + W sigma(z): the plain network's points, C_b and C_W times 1 - xi^2.

K' = xi^2 K + C_b + C_W <s s> and chi = xi^2 + C_W <s' s'> + ... are linear in C_b and C_W, so that a fixed point with
chi_perp = chi_parallel = 1 is one of the plain network, at the same K*, with both scaled by 1 - xi^2. The equations are
those that the engine derives; `scaling` solves them. For |xi| = 1 nothing is left for the branch: K only grows.

>>> scaling(sp.Symbol("xi"))
1 - xi**2
>>> residual_criticality("tanh", sp.Rational(3, 5)).points[0].C_W
16/25
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.critical import Criticality, CriticalPoint, criticality
from derive.errors import DeriveError
from derive.gaussian import Bracket, Sigma
from derive.network import RESIDUAL, Component, recursion
from derive.network.definition import xi
from derive.steps import Step, words


def scaling(skip: sp.Expr) -> sp.Expr:
    """How C_b and C_W of a critical point change when a skip of this strength is added: one factor for both."""
    K, Theta = Component("K", 0, 0), Component("Theta", 0, 0)
    kernel = recursion("K", RESIDUAL).single_input().expression
    chi = recursion("Theta", RESIDUAL).single_input().expression.coeff(Theta)
    plain = {
        K: symbols.K,
        Bracket(Sigma(0), Sigma(0)): sp.Symbol("s00"),
        Bracket(Sigma(0, 1), Sigma(0, 1)): sp.Symbol("s11"),
    }
    equations = [(kernel - K).xreplace(plain), (chi - 1).xreplace(plain)]
    solution = sp.solve(equations, [symbols.C_b, symbols.C_W], dict=True)[0]
    ratios = {sp.simplify(value / value.subs(xi, 0)) for value in solution.values()}
    if len(ratios) != 1:
        raise DeriveError("C_b and C_W of a residual layer's critical point scale differently")
    return sp.sympify(ratios.pop(), strict=True).subs(xi, skip)


def residual_criticality(activation: str | sp.Expr | Activation, skip: sp.Expr) -> Criticality:
    """All critical points (K*, C_W, C_b) of a residual layer with this skip."""
    found = criticality(activation)
    factor = sp.nsimplify(sp.expand(scaling(skip))) if skip.is_Rational else sp.expand(scaling(skip))
    if not factor > 0:
        grow = (
            "K and Theta grow with depth; branches with C_W = c/L keep both finite at any depth L (K then follows "
            "dK/dt = C_b L + c <s s>_K from t = 0 to 1)."
            if abs(skip) == 1
            else f"K and Theta grow at least as {skip**2} to the power of the depth, whatever the branches are."
        )
        reason = words(
            f"With a skip of {skip} there is no critical point: chi_perp = {skip**2} + C_W <s' s'> exceeds 1 for every "
            f"C_W > 0, so {grow}"
        )
        return replace(found, points=(), reason=reason, steps=(Step(reason),), chi_parallel=None, chi_perp=None)
    points = tuple(_scaled(point, factor) for point in found.points)
    step = Step(
        words(
            f"With a skip xi = {skip}, K' = xi**2 K + C_b + C_W <s s> and chi_perp = xi**2 + C_W <s' s'>: the same K* "
            f"is critical with C_W and C_b times 1 - xi**2 = {factor}, and a layer counts as {factor} of a plain one."
        )
    )
    return replace(found, points=points, steps=(*found.steps, step), chi_parallel=None, chi_perp=None)


def _scaled(point: CriticalPoint, factor: sp.Expr) -> CriticalPoint:
    approach = None if point.approach is None else (point.approach[0], factor * point.approach[1])
    return replace(point, C_W=factor * point.C_W, C_b=factor * point.C_b, approach=approach)
