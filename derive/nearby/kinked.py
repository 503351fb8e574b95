r"""Activations with a kink at the origin whose kernel still flows (selu, elu with alpha != 1): the delta-expansion
diverges, scale invariance does not hold, but near K* = 0 the two meet.

With K ~ l^(-p_0) and prod chi_perp ~ l^(-p_perp), a small angle grows as l^((p_0 - p_perp)/2) until the tangent
scale-invariant activation's own flow psi' = psi (1 + a_1 psi) holds it at psi = c/l, with
1 + (p_0 - p_perp)/2 + a_1 c = 0. The off-diagonal NTK then sees the multiplier 1 - (p_perp - g_1 c)/l where the
diagonal one sees 1 - p_perp/l, under the same sources: their ratio tends to
(p_perp - p_Theta)/(p_perp - p_Theta - g_1 c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.learning_rates import LearningRates
from derive.errors import DeriveError
from derive.nearby.angle import angle_functions, psi_flow, slope_coefficient
from derive.nearby.behaviour import Behaviour
from derive.nearby.flow import flow_solution
from derive.symbols import z


@dataclass(frozen=True)
class KinkedFlow:
    """psi = `psi` / l, Theta_{-+}/Theta_{++} -> `cos_zeta`."""

    p_perp: sp.Expr
    rates: LearningRates
    psi: sp.Expr
    cos_zeta: sp.Expr
    robustness: Behaviour
    variance: Behaviour


def tangent(sigma: Activation) -> Activation:
    """The scale-invariant activation with sigma's slopes at the origin."""
    right, left = (sigma.one_sided(1, sp.S.Zero, side)[1] for side in "+-")
    return make_activation(sp.Piecewise((left * z, z < 0), (right * z, True)))


def kinked_flow(sigma: Activation, learning_rates: Any, point: int = 0) -> KinkedFlow:
    """The two-input asymptotics of an activation with a kink at the origin and K* = 0."""
    solved = flow_solution(sigma, learning_rates, point)
    if not solved.problem.point.at_zero or sp.S.Zero not in sigma.kinks:
        raise DeriveError(f"{sigma.name} has no kink at the fixed point K* = 0")
    functions = angle_functions(tangent(sigma))
    kernel, ntk = solved.tensor("K"), solved.tensor("Theta")
    p_0, p_ntk, p_perp = kernel.exponent, ntk.exponent, solved.p_perp
    assert p_0 is not None and p_ntk is not None and p_perp is not None and kernel.coefficient is not None
    constant = -(1 + (p_0 - p_perp) / 2) / psi_flow(functions, 1)[1]
    drift = slope_coefficient(functions) * constant
    cos_zeta = sp.simplify((p_perp - p_ntk) / (p_perp - p_ntk - drift))
    return KinkedFlow(
        p_perp,
        solved.rates,
        sp.simplify(constant),
        cos_zeta,
        Behaviour(sp.S.Zero, 0, sp.simplify(cos_zeta - 1)),
        Behaviour(p_0, 0, sp.simplify(kernel.coefficient * (1 - cos_zeta) ** 2)),
    )
