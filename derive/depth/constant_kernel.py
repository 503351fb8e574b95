"""A kernel that is the same in every layer, at criticality: every multiplier is one, and the tensors are polynomials
in the layer, exact for every l from the first on. Scale-invariant activations ((infinity.45)-(infinity.51), (10.91)),
and the plateau of half-stable ones, K^(1) = K*.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from derive import symbols
from derive.depth.learning_rates import LearningRates
from derive.depth.powers import is_one
from derive.depth.tensor_recursions import Admitted
from derive.errors import DeriveError
from derive.gaussian import Bracket
from derive.network.component import Component
from derive.symbols import ell


def partial_sum(source: sp.Expr, first: sp.Expr) -> sp.Expr:
    """The polynomial T with T(l+1) - T(l) = source(l) and T(1) = first.

    >>> partial_sum(2 * ell, sp.S.Zero)
    ell**2 - ell
    """
    polynomial = sp.Poly(source, ell)
    degree = polynomial.degree() + 1 if polynomial else 0
    rest, total = polynomial, sp.Poly(0, ell)
    for k in range(degree, 0, -1):
        c = rest.coeff_monomial(ell ** (k - 1)) / k
        piece = sp.Poly(c * ell**k, ell)
        total += piece
        rest -= sp.Poly(sp.expand(c * (ell + 1) ** k), ell) - piece
    start = first - total.eval(1)
    return sp.expand(total.as_expr() + start)


def without_rounding(polynomial: sp.Expr) -> sp.Expr:
    """Terms whose floating-point coefficients are what is left of a cancellation, dropped."""
    if not polynomial.has(sp.Float):
        return polynomial
    terms = polynomial.as_coefficients_dict()
    size = max((abs(c) for c in terms.values()), default=0)
    return sp.Add(*(c * m for m, c in terms.items() if abs(c) > 1e-18 * size))


def solve_exactly(
    admitted: Admitted,
    values: Mapping[Bracket, sp.Expr],
    constants: Mapping[sp.Symbol, sp.Expr],
    kernel: sp.Expr,
    first_layer: Mapping[str, sp.Expr],
    rates: LearningRates,
    fixed: Mapping[str, sp.Expr],
) -> dict[str, sp.Expr]:
    """Every tensor that exists as a polynomial in ell. `values` are the brackets at the constant kernel; rates must be
    polynomials in the layer."""
    rate_b, rate_W = (e.subs({symbols.lambda_b: fixed.get("lambda_b", symbols.lambda_b)}) for e in rates.expressions)
    rate_b, rate_W = (e.subs({symbols.lambda_W: fixed.get("lambda_W", symbols.lambda_W)}) for e in (rate_b, rate_W))
    if not (rate_b.is_polynomial(ell) and rate_W.is_polynomial(ell)):
        raise DeriveError("learning rates that are not polynomials in the layer have no exact solution")
    at_next = {symbols.lambda_b: rate_b.subs(ell, ell + 1), symbols.lambda_W: rate_W.subs(ell, ell + 1)}
    at_first = {symbols.lambda_b: rate_b.subs(ell, 1), symbols.lambda_W: rate_W.subs(ell, 1)}
    solved: dict[str, sp.Expr] = {"K": kernel}
    table = {**values, symbols.K: kernel, **constants}
    for name, equation in admitted.equations.items():
        if name == "K":
            continue
        tensors = {c: solved[c.name] for c in equation.source.atoms(Component)}
        multiplier = sp.expand(equation.multiplier.xreplace(table))
        if not is_one(multiplier):
            raise DeriveError(f"the multiplier of {name} is {multiplier}, not 1: this point is not critical")
        source = without_rounding(sp.expand(equation.source.xreplace({**table, **tensors, **at_next})))
        solved[name] = partial_sum(source, sp.expand(first_layer[name].subs(at_first)))
    return solved
