"""Exact eigenvalues on the sphere of a two-layer network's kernel, where its closed form is a polynomial in the angle.

That is the case for scale-invariant activations without bias variance. The kernel is not typed: it is the recursion of
K or Theta with its brackets in closed form, at inputs with |x|^2 = n_0.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.gaussian import Bracket, exact
from derive.given import Number, number
from derive.network import Component
from derive.network import recursion as network_recursion
from derive.symbols import C_W, C_b, lambda_b, lambda_W


def two_layer_kernel(
    activation: str | sp.Expr | Activation, kernel: str, values: Mapping[str, Number], angle: sp.Symbol
) -> sp.Expr | None:
    """K or Theta of the second layer as an expression in the angle, or None where there is no such closed form.

    `values` holds C_b, C_W, lambda_b and lambda_W.
    """
    numbers = {name: number(value, name) for name, value in values.items()}
    if make_activation(activation).scale_invariant is None or numbers["C_b"] != 0:
        return None
    cosine = sp.Symbol("c", real=True)
    first = numbers["C_W"]
    covariance = [[first, first * cosine], [first * cosine, first]]
    recursion = network_recursion(kernel)
    expression = recursion.expression
    for bracket in expression.atoms(Bracket):
        closed = exact(bracket, activation, covariance)
        if closed is None:
            return None
        expression = expression.subs(bracket, closed)
    below = numbers["lambda_b"] + numbers["lambda_W"] * cosine
    expression = expression.subs({part: below for part in expression.atoms(Component)})
    symbols = {C_b: numbers["C_b"], C_W: first, lambda_b: numbers["lambda_b"], lambda_W: numbers["lambda_W"]}
    in_angle = sp.simplify(expression.subs(symbols).subs(cosine, sp.cos(angle)))
    # the angle runs from 0 to pi, where the sine is positive
    in_angle = in_angle.replace(sp.Abs, lambda x: x).subs(sp.asin(sp.cos(angle)), sp.pi / 2 - angle)
    in_angle = sp.expand(sp.simplify(in_angle))
    return in_angle if in_angle.is_polynomial(angle, sp.sin(angle), sp.cos(angle)) else None
