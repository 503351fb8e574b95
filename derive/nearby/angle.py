r"""Scale-invariant activations at finite angle: (10.82)-(10.98), unequal norms included (footnote 38).

K_{+-} = sqrt(K_{++} K_{--}) cos psi. Scale invariance makes <s_+ s_-> = A_2 sqrt(K_{++} K_{--}) f(psi) and
<s'_+ s'_-> = A_2 g(psi) with functions of the angle alone, read off the closed forms of the brackets; the angle
flows by itself, psi' = arccos f(psi), and Theta_{+-} follows a linear recursion over it, whatever the norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import criticality
from derive.depth.balance import compose, solve_flow, solve_linear
from derive.depth.field import Field
from derive.depth.learning_rates import LearningRates, equivalence, parse_rule
from derive.depth.powers import binomial_power
from derive.depth.series import DepthRing, Series
from derive.errors import DeriveError
from derive.gaussian import Sigma, exact, expect
from derive.nearby.behaviour import Behaviour
from derive.notation import PSI
from derive.steps import Notation, Words, said
from derive.symbols import K, ell, lambda_b, lambda_W

K_MINUS = sp.Symbol("K_minus", positive=True)
"""The other input's kernel; K is the training input's."""
PSI_CONSTANT, NTK_CONSTANT = "c_psi", "c_Theta"


@dataclass(frozen=True)
class AngleFunctions:
    """`kernel` is f(psi) with C_W <s_+ s_-> = K f, `slope` is g(psi) with C_W <s'_+ s'_-> = g, at criticality."""

    kernel: sp.Expr
    slope: sp.Expr
    C_W: sp.Expr


@lru_cache(maxsize=16)
def angle_functions(sigma: Activation) -> AngleFunctions:
    """f and g of (10.85) and (10.86), from the arc-cosine closed forms of two-input brackets."""
    if sigma.scale_invariant is None:
        raise DeriveError(f"{sigma.name} is not scale-invariant: its angle does not flow by itself")
    C_W = criticality(sigma).points[0].C_W
    covariance = {(1, 1): sp.S.One, (1, 2): sp.cos(PSI), (2, 2): sp.S.One}
    brackets = (expect(Sigma(1) * Sigma(2)), expect(Sigma(1, 1) * Sigma(2, 1)))
    values = [exact(b, sigma, covariance) for b in brackets]
    if any(v is None for v in values):
        raise DeriveError(f"{sigma.name} has no closed form at two inputs")
    kernel, slope = (_in_angle(C_W * v) for v in values)
    return AngleFunctions(kernel, slope, C_W)


def _in_angle(expression: sp.Expr) -> sp.Expr:
    """Written in psi in (0, pi), where sin psi > 0: sqrt(1 - cos^2) = sin, asin(cos psi) = pi/2 - psi."""
    table = {
        sp.asin(sp.cos(PSI)): sp.pi / 2 - PSI,
        sp.acos(sp.cos(PSI)): PSI,
        sp.sqrt(1 - sp.cos(PSI) ** 2): sp.sin(PSI),
    }
    return sp.expand(sp.simplify(expression.subs(table)).subs(sp.Abs(sp.sin(PSI)), sp.sin(PSI)))


@dataclass(frozen=True)
class FiniteAngle:
    """The angle, the off-diagonal NTK and what they make of robustness (10.94) and variance (10.95).

    `ratio` is Theta_{-+}/Theta_{++} for inputs of any norms, `cos_zeta` the same for equal ones.
    """

    activation: str
    functions: AngleFunctions
    rates: LearningRates
    psi: sp.Expr
    ratio: sp.Expr
    cos_zeta: sp.Expr
    robustness: Behaviour
    variance: Behaviour
    notes: tuple[Words, ...] = ()


def psi_flow(functions: AngleFunctions, order: int) -> dict[int, sp.Expr]:
    """{j: a_j} of psi' = psi (1 + sum_j a_j psi^j), from cos psi' = f(psi): with u = 2 sin(psi'/2) = sqrt(2 (1 - f)),
    psi' = 2 asin(u/2) = u sum_k C(2k, k) (u/4)^(2k) / (2k + 1)."""
    f = _coefficients(functions.kernel, order + 2)
    square = {n - 2: -2 * c for n, c in f.items() if n > 2}  # (u/psi)^2 - 1
    if sp.simplify(-2 * f[2]) != 1:
        raise DeriveError("the angle is not marginal: this is not a critical initialization")
    total = {0: sp.S.One, **binomial_power(square, sp.Rational(1, 2), order + 1)}
    for k in range(1, order // 2 + 1):
        weight = sp.binomial(2 * k, k) / sp.Integer(16**k * (2 * k + 1))
        power = {0: sp.S.One, **binomial_power(square, sp.Rational(2 * k + 1, 2), order + 1)}
        for n, c in power.items():
            if n + 2 * k <= order:
                total[n + 2 * k] = total.get(n + 2 * k, sp.S.Zero) + weight * c
    return {n: sp.expand(c) for n, c in total.items() if n > 0 and sp.expand(c) != 0}


def _coefficients(expression: sp.Expr, order: int) -> dict[int, sp.Expr]:
    """Taylor coefficients at psi = 0, by differentiation: the functions are polynomials in psi, sin psi, cos psi."""
    found, derivative = {}, expression
    for n in range(order + 1):
        found[n] = sp.expand(derivative.subs(PSI, 0)) / sp.factorial(n)
        derivative = sp.expand(sp.diff(derivative, PSI))
    return {n: c for n, c in found.items() if c != 0}


def slope_coefficient(functions: AngleFunctions) -> sp.Expr:
    """g_1 of g(psi) = 1 + g_1 psi + ..., at criticality."""
    return _coefficients(functions.slope, 1).get(1, sp.S.Zero)


def _series(sigma: Activation, order: int) -> tuple[AngleFunctions, DepthRing, Series, Series, Series]:
    """The angle as a series in depth, and with it g and f."""
    functions = angle_functions(sigma)
    flow = psi_flow(functions, order + 1)
    slope, kernel = _coefficients(functions.slope, order + 1), _coefficients(functions.kernel, order + 1)
    field = Field.containing([*flow.values(), *slope.values(), *kernel.values()])
    ring = DepthRing(field, ["lambda_b", "lambda_W", PSI_CONSTANT, NTK_CONSTANT, "root"])
    psi = solve_flow(ring, flow, order + 1, PSI_CONSTANT)
    return functions, ring, psi, compose(slope, psi, order + 1), compose(kernel, psi, order + 1)


def psi_series(activation: Activation | str, order: int = 2) -> sp.Expr:
    """psi^(l) at criticality through `order` powers of 1/l, logarithms included: (10.90) and on.

    >>> psi_series("relu", 1)
    3*pi/ell
    """
    _, _, psi, _, _ = _series(make_activation(activation), order)
    return psi.to_sympy()


def finite_angle(activation: Activation | str, learning_rates: Any = "equivalence", order: int = 2) -> FiniteAngle:
    """The two-input theory of a scale-invariant activation at criticality."""
    sigma = make_activation(activation)
    rates = parse_rule(learning_rates) or equivalence(sp.S.Zero, sp.S.Zero)
    slopes = sigma.scale_invariant
    if slopes is None:
        raise DeriveError(f"{sigma.name} is not scale-invariant")
    if slopes[0] == slopes[1]:
        return _linear(sigma, rates)
    functions, ring, psi, g, f = _series(sigma, order)
    at = ring.value(ring.exponent(rates.bias)), ring.value(ring.exponent(rates.weight))
    if at != (0, 0):
        raise DeriveError("finite angles are worked out for learning rates that do not depend on the layer")
    # lambda_W <s s> = lambda_W sqrt(K K_-)/C_W f; "root" stands for that product's constant
    source = ring.term(ring.coefficient("lambda_b")) + ring.term(ring.coefficient("root")) * f
    off = solve_linear(g, source, NTK_CONSTANT, name="Theta").series
    p, c = off.leading
    root = lambda_W * sp.sqrt(K * K_MINUS) / functions.C_W
    lead = off.coefficient_expr(c) * ell ** (-ring.exponent_expr(p))
    lead = lead.subs({s: root for s in lead.free_symbols if s.name == "root"})
    diagonal = (lambda_b + lambda_W * K / functions.C_W) * ell
    ratio = sp.simplify(lead / diagonal)
    cos_zeta = sp.simplify(ratio.subs(K_MINUS, K))
    if ratio.has(ell):
        raise DeriveError("the NTK's angle does not settle to a constant")
    robustness = Behaviour(sp.S.Zero, 0, sp.simplify(cos_zeta - 1))
    variance = Behaviour(sp.S.Zero, 0, sp.factor(K * (1 - cos_zeta) ** 2))
    compared = Notation("Theta_(-+)/Theta_(++)", r"\Theta_{-+}/\Theta_{++}")
    notes = (
        said("For unequal norms {} tends to {}, with {} the training input's kernel.", compared, ratio, K),
        said("This holds at finite angle, for any separation of the inputs; the angle falls as {}.", 1 / ell),
    )
    return FiniteAngle(sigma.name, functions, rates, psi.to_sympy(), ratio, cos_zeta, robustness, variance, notes)


def _linear(sigma: Activation, rates: LearningRates) -> FiniteAngle:
    """Deep linear networks, exactly: the angle stays, and (10.97)-(10.98) hold at every layer."""
    functions = angle_functions(sigma)
    kernel = lambda_W * K / functions.C_W
    cos_zeta = (lambda_b + kernel * sp.cos(PSI)) / (lambda_b + kernel)
    robustness = sp.factor(sp.simplify(cos_zeta - 1))
    variance = sp.factor(sp.simplify(K * (1 - 2 * cos_zeta * sp.cos(PSI) + cos_zeta**2)))
    note = (said("The angle {} is the same in every layer: these are exact at any depth.", PSI),)
    return FiniteAngle(
        sigma.name,
        functions,
        rates,
        PSI,
        cos_zeta,
        cos_zeta,
        Behaviour(sp.S.Zero, 0, robustness),
        Behaviour(sp.S.Zero, 0, variance),
        note,
    )
