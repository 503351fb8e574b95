"""`derive.criticality`, `exponents`, `asymptotics`, `generalization`: large depth."""

from __future__ import annotations

from typing import TypeAlias, overload

import sympy as sp

from derive import critical, depth, nearby
from derive.activations import Activation
from derive.certificates import with_balls
from derive.critical import Criticality, FixedPoints
from derive.depth import Asymptotics, ExponentTable, OffCritical
from derive.depth.exponent_table import problem
from derive.design.residual import residual_criticality
from derive.design.residual_depth import residual_exponents
from derive.design.residual_growth import ResidualGrowth, residual_growth
from derive.errors import DeriveError
from derive.given import Number
from derive.nearby import Generalization
from derive.verbs.residual import read_skip, with_depth_numbers, with_growth_numbers

Given: TypeAlias = str | sp.Expr | Activation
"""An activation: a built-in name, a name with parameters, a formula in z, a SymPy expression in z, or the object."""
BOTH = "Give both --C-b and --C-W, or neither."


@overload
def criticality(activation: Given, *, layer: str = "mlp", skip: Number | None = None) -> Criticality: ...
@overload
def criticality(activation: Given, C_b: Number, C_W: Number) -> FixedPoints: ...
def criticality(
    activation: Given,
    C_b: Number | None = None,
    C_W: Number | None = None,
    *,
    layer: str = "mlp",
    skip: Number | None = None,
) -> Criticality | FixedPoints:
    """All critical points (K*, C_W, C_b) and their class; with C_b and C_W the kernel's fixed points there.

    `layer="residual"` asks for those of z' = skip z + b + W sigma(z).

    >>> criticality("tanh").universality_class, criticality("relu", 1, 1).points[0].K_star
    ('K*=0', 2)
    """
    if layer == "residual" and (C_b is not None or C_W is not None):
        raise DeriveError("Fixed points at given C_b and C_W are those of the plain layer: leave --layer out.")
    strength = read_skip(layer, skip, "Critical points")
    if strength is not None:
        return residual_criticality(activation, strength)
    if C_b is None and C_W is None:
        return critical.criticality(activation)
    if C_b is None or C_W is None:
        raise DeriveError(BOTH)
    return critical.fixed_points(activation, C_b, C_W)


def fixed_points(activation: Given, C_b: Number, C_W: Number) -> FixedPoints:
    """The kernel's fixed points at given hyperparameters: `criticality` with both of them."""
    return critical.fixed_points(activation, C_b, C_W)


def exponents(
    activation: Given,
    learning_rates: str = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
    plateau: bool = False,
    C_b: Number | None = None,
    C_W: Number | None = None,
    layer: str = "mlp",
    skip: Number | None = None,
) -> ExponentTable | OffCritical | ResidualGrowth:
    """How every tensor behaves at large depth; with C_b and C_W, exponentially, off criticality.

    Coefficients that are numbers come with the intervals in which they are proved to lie. `layer="residual"` is for
    z' = skip z + b + W sigma(z): exponents where |skip| < 1, the laws by which K and Theta grow where it is one.

    >>> exponents("tanh").p_perp
    1
    """
    strength = read_skip(layer, skip, "Exponents")
    if strength is not None:
        if plateau or C_b is not None or C_W is not None:
            raise DeriveError("--plateau, --C-b and --C-W are for plain layers: leave --layer out.")
        if abs(strength) == 1:
            return with_growth_numbers(residual_growth(activation, strength))
        return with_depth_numbers(
            residual_exponents(activation, strength, learning_rates, point, lambda_b, lambda_W), point
        )
    if C_b is None and C_W is None:
        table = depth.exponents(activation, learning_rates, point, lambda_b, lambda_W, plateau)
        if table.digits is None:
            return table
        return with_balls(table, problem(activation, learning_rates, point, lambda_b, lambda_W, plateau))
    if C_b is None or C_W is None:
        raise DeriveError(BOTH)
    bias, weight = (1 if rate is None else rate for rate in (lambda_b, lambda_W))
    return depth.off_criticality(activation, C_b, C_W, lambda_b=bias, lambda_W=weight)


def asymptotics(
    activation: Given,
    tensor: str,
    order: int = 2,
    learning_rates: str = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
    plateau: bool = False,
) -> Asymptotics:
    """One tensor's series through `order` powers of 1/l, the leading one included, with the steps.

    >>> print(asymptotics("tanh", "Theta", order=1))
    Theta = (lambda_W + 2*lambda_b)/2 + O(ell**(-1))
    """
    return depth.asymptotics(activation, tensor, order, learning_rates, point, lambda_b, lambda_W, plateau)


def generalization(
    activation: Given, learning_rates: str = "equivalence", point: int = 0, unequal_norms: bool = False
) -> Generalization:
    """Robustness and variance of a trained network on a nearby input of equal norm, against depth.

    "last-layer" learning rates are exact Bayesian inference; `unequal_norms` adds inputs of unequal norm.

    >>> print(generalization("tanh").variance)
    4/L * delta^2
    """
    return nearby.generalization(activation, learning_rates, point, unequal_norms)
