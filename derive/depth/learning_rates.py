r"""How the learning rates depend on the layer: constant, a power law, or what the equivalence principle demands.

The contribution of layer l to the NTK of layer L is (lambda_b^(l) + lambda_W^(l) <ss>^(l-1)) prod_{l'=l}^{L-1}
chi_perp^(l'). With prod chi_perp ~ (l/L)^(p_perp) and <ss>^(l) ~ l^(-p_ss), all layers contribute equally if
lambda_b ~ l^(-p_perp) and lambda_W ~ l^(p_ss - p_perp); the sum of L such contributions is L^(1 - p_perp), which the
factor L^(p_perp - 1) makes of order one: PDLT (10.74), (infinity.29), (infinity.45), derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.errors import DeriveError
from derive.given import number
from derive.notation import P_PERP
from derive.symbols import C_W, C_b, L, ell, lambda_b, lambda_W

LARGEST_EXPONENT = 100


@dataclass(frozen=True)
class LearningRates:
    """lambda_b^(l) = lambda_b l^(-bias) L^(-depth) and lambda_W^(l) = lambda_W l^(-weight) L^(-depth)."""

    bias: sp.Expr
    weight: sp.Expr
    depth: sp.Expr
    rule: str

    @property
    def expressions(self) -> tuple[sp.Expr, sp.Expr]:
        """lambda_b^(l) and lambda_W^(l) as functions of the layer."""
        common = L**-self.depth
        return lambda_b * ell**-self.bias * common, lambda_W * ell**-self.weight * common

    def with_exponent(self, p_perp: sp.Expr | None) -> LearningRates:
        """The symbol p_perp, which stands for an irrational exponent, replaced by its value."""
        known = {} if p_perp is None else {P_PERP: p_perp}
        bias, weight, depth = (sp.expand(e.xreplace(known)) for e in (self.bias, self.weight, self.depth))
        return LearningRates(bias, weight, depth, self.rule)


def equivalence(p_perp: sp.Expr, p_ss: sp.Expr) -> LearningRates:
    """The learning rates of the equivalence principle, from the depth scaling of prod chi_perp and of <ss>.

    >>> equivalence(sp.Integer(1), sp.Integer(1)).expressions                # tanh
    (lambda_b/ell, lambda_W)
    >>> equivalence(sp.Integer(0), sp.Integer(0)).expressions                # relu
    (lambda_b/L, lambda_W/L)
    """
    return LearningRates(p_perp, p_perp - p_ss, 1 - p_perp, "equivalence")


CONSTANT = LearningRates(sp.S.Zero, sp.S.Zero, sp.S.Zero, "constant")


def power_law(bias: Any, weight: Any) -> LearningRates:
    """lambda_b^(l) = lambda_b l^(-bias), lambda_W^(l) = lambda_W l^(-weight), with rational exponents."""
    exponents = []
    for exponent in (bias, weight):
        found = number(exponent, "a learning rate's exponent")
        if not found.is_Rational or abs(found) > LARGEST_EXPONENT or found.q > LARGEST_EXPONENT:
            raise DeriveError(
                f"a learning rate's exponent is a rational number up to {LARGEST_EXPONENT} in size, not {exponent!r}"
            )
        exponents.append(found)
    return LearningRates(exponents[0], exponents[1], sp.S.Zero, f"power({exponents[0]},{exponents[1]})")


@dataclass(frozen=True)
class LastLayer(LearningRates):
    """Only the last layer learns, lambda_b^(L) = C_b and lambda_W^(L) = C_W: Theta = K, exact Bayesian inference,
    PDLT (10.46), (10.48)."""

    @property
    def expressions(self) -> tuple[sp.Expr, sp.Expr]:
        last = sp.KroneckerDelta(ell, L)
        return C_b * last, C_W * last

    def with_exponent(self, p_perp: sp.Expr | None) -> LearningRates:
        return self


LAST_LAYER = LastLayer(sp.S.Zero, sp.S.Zero, sp.S.Zero, "last-layer")


def parse_rule(rule: Any) -> LearningRates | None:
    """The rule that a user names; None for the equivalence principle, which the fixed point decides.

    >>> parse_rule("power(1/2,0)").bias
    1/2
    """
    if isinstance(rule, LearningRates):
        return rule
    text = str(rule).replace(" ", "")
    if text == "equivalence":
        return None
    if text == "constant":
        return CONSTANT
    if text.startswith("power(") and text.endswith(")") and text.count(",") == 1:
        return power_law(*text[6:-1].split(","))
    raise DeriveError(f"learning rates are 'equivalence', 'constant' or 'power(p_b,p_W)', not {rule!r}")
