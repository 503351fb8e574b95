"""Functions with closed-form expectations: sums of c z^m exp(alpha z - beta z^2/2) prod erf(a z + b) prod sgn(z - x).

sin, cos, sinh, cosh are sums of exponentials; a step at a knot is (1 + sgn)/2. A function outside this algebra (tanh, a
logistic, arctan) has no closed form here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from derive.gaussian.distribution import Distribution
from derive.symbols import z


class NoClosedForm(Exception):
    """Raised inside `exact` when a rule does not apply; never leaves the package."""


@dataclass(frozen=True)
class Elementary:
    """coefficient z^power exp(alpha z - beta z^2/2) prod_j erf(a_j z + b_j) prod_k sgn(z - x_k)."""

    coefficient: sp.Expr
    power: int
    alpha: sp.Expr
    beta: sp.Expr
    erfs: tuple[tuple[sp.Expr, sp.Expr], ...]
    knots: tuple[sp.Expr, ...]


def elementary_terms(factor: Distribution) -> list[Elementary]:
    """A regular distribution in the algebra; raises NoClosedForm if a piece does not belong to it."""
    jumps = [after - before for before, after in zip(factor.pieces, factor.pieces[1:])]
    collected: dict[tuple, sp.Expr] = {}
    parts = [(factor.pieces[0] + sp.Add(*jumps) / 2, ()), *((j / 2, (x,)) for j, x in zip(jumps, factor.knots))]
    for expression, knots in parts:
        for term in _decompose(expression, knots):
            key = (term.power, term.alpha, term.beta, term.erfs, term.knots)
            collected[key] = collected.get(key, sp.S.Zero) + term.coefficient
    return [Elementary(sp.expand(c), *key) for key, c in collected.items() if sp.expand(c) != 0]


def _decompose(expression: sp.Expr, knots: tuple[sp.Expr, ...]) -> Iterator[Elementary]:
    for term in sp.Add.make_args(sp.expand(_as_exponentials(expression))):
        coefficient, power, alpha, beta = sp.S.One, 0, sp.S.Zero, sp.S.Zero
        erfs: list[tuple[sp.Expr, sp.Expr]] = []
        for part in sp.Mul.make_args(term):
            if not part.has(z):
                coefficient *= part
                continue
            base, exponent = (part, sp.S.One) if isinstance(part, sp.exp) else part.as_base_exp()
            if base == z and exponent.is_Integer and exponent > 0:
                power += int(exponent)
            elif isinstance(base, sp.exp):
                constant, linear, square = _quadratic(base.args[0])
                coefficient *= sp.exp(constant)
                alpha, beta = alpha + linear, beta - 2 * square
            elif isinstance(base, sp.erf) and exponent.is_Integer and exponent > 0:
                constant, linear, square = _quadratic(base.args[0])
                if square != 0:
                    raise NoClosedForm
                erfs += [(linear, constant)] * int(exponent)
            else:
                raise NoClosedForm
        yield Elementary(coefficient, power, sp.expand(alpha), sp.expand(beta), tuple(erfs), knots)


def _quadratic(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """(c_0, c_1, c_2) of a polynomial in z of degree at most 2."""
    if not expression.is_polynomial(z) or sp.degree(expression, z) > 2:
        raise NoClosedForm
    coefficients = sp.Poly(expression, z).all_coeffs()[::-1]
    c0, c1, c2 = (coefficients + [sp.S.Zero] * 3)[:3]
    return c0, c1, c2


def _as_exponentials(expression: sp.Expr) -> sp.Expr:
    i = sp.I
    rules = {
        sp.sin: lambda x: (sp.exp(i * x) - sp.exp(-i * x)) / (2 * i),
        sp.cos: lambda x: (sp.exp(i * x) + sp.exp(-i * x)) / 2,
        sp.sinh: lambda x: (sp.exp(x) - sp.exp(-x)) / 2,
        sp.cosh: lambda x: (sp.exp(x) + sp.exp(-x)) / 2,
        sp.erfc: lambda x: 1 - sp.erf(x),
    }
    for function, rule in rules.items():
        if expression.has(function):
            expression = expression.replace(function, rule)
    return expression
