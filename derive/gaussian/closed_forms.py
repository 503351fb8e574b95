r"""Closed forms of brackets, exact in K: polynomials, exponentials and trigonometric functions, erf families and GELU,
piecewise polynomials (arc-cosine kernels), ELU and SELU.

One path for all: delta functions are integrated (`support`), each label's function is written in the algebra of
`elementary`, exponentials are absorbed in the Gaussian (`tilt`), powers and signs are taken by `moments`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product as cartesian
from typing import Any

import sympy as sp

from derive.activations import activation as make_activation
from derive.gaussian.bracket import Bracket
from derive.gaussian.covariance import Covariance, covariance
from derive.gaussian.elementary import Elementary, NoClosedForm, elementary_terms
from derive.gaussian.moments import distribute, moment
from derive.gaussian.support import GaussianIntegral, regular_integrals
from derive.gaussian.tilt import tilt


def exact(bracket: sp.Expr, activation: Any, K: Any = None) -> sp.Expr | None:
    """The closed form of a bracket in terms of K, or None if there is none.

    K is a number or symbol (one label), a mapping {(a, b): entry}, a matrix for the sorted labels, or None for symbols
    (K for one label, K_00, K_01, ... else). Raises `DivergentExpectation` if the bracket does not exist.

    >>> from derive.gaussian.pattern import parse_bracket
    >>> exact(parse_bracket("s0 s0"), "sin")
    1/2 - exp(-2*K)/2
    >>> exact(parse_bracket("s0' s1'"), "relu", [[1, 0], [0, 1]])
    1/4
    >>> exact(parse_bracket("s0 s0"), "tanh") is None
    True
    """
    if bracket == 1:
        return sp.S.One
    if not isinstance(bracket, Bracket):
        raise TypeError(f"exact() takes a bracket, not {bracket}.")
    if not isinstance(activation, dict):
        activation = make_activation(activation)
        return _exact(bracket, activation, covariance(K, bracket.labels))
    return _exact.__wrapped__(bracket, activation, covariance(K, bracket.labels))


@lru_cache(maxsize=2048)
def _exact(bracket: Bracket, activation: Any, K: Covariance) -> sp.Expr | None:
    total = sp.S.Zero
    try:
        for integral in regular_integrals(bracket, activation, K):
            total += _integrate(integral)
    except NoClosedForm:
        return None
    return tidy(total)


def _integrate(integral: GaussianIntegral) -> sp.Expr:
    total = sp.S.Zero
    products = list(cartesian(*(elementary_terms(f) for f in integral.factors)))
    if len(products) > 1 and any(t.beta.is_negative for terms in products for t in terms):
        raise NoClosedForm  # exp(z^2) erfc(|z|): the terms diverge one by one, at large K at least, and not their sum
    for terms in products:
        coefficient = integral.coefficient * sp.Mul(*(t.coefficient for t in terms))
        total += distribute(coefficient * _elementary(terms, integral.mean, integral.covariance))
    return total


def _elementary(terms: tuple[Elementary, ...], mean: tuple[sp.Expr, ...], matrix: sp.ImmutableDenseMatrix) -> sp.Expr:
    """E of one product of elementary terms, coefficients aside: the u's are z_a - x and sqrt(2)(a z_a + b) + w."""
    n = len(terms)
    constant, m, S = tilt(mean, matrix, [t.alpha for t in terms], [t.beta for t in terms])
    signs = [(i, sp.S.One, -x, sp.S.Zero) for i, t in enumerate(terms) for x in t.knots]
    signs += [(i, sp.sqrt(2) * a, sp.sqrt(2) * b, sp.S.One) for i, t in enumerate(terms) for a, b in t.erfs]
    rows = [(i, sp.S.One, sp.S.Zero, sp.S.Zero) for i in range(n)] + signs
    size = len(rows)

    def entry(p: int, q: int) -> sp.Expr:
        (i, c, _, noise), (j, d, _, _) = rows[p], rows[q]
        return sp.factor(c * d * S[i, j] + (noise if p == q else 0))

    joint = sp.ImmutableDenseMatrix(size, size, entry)
    centre = tuple(sp.expand(c * m[i] + shift) for i, c, shift, _ in rows)
    return distribute(constant * moment(tuple(t.power for t in terms), centre, joint))


def tidy(expression: sp.Expr) -> sp.Expr:
    """Collect the coefficients of functions, radicals and powers of pi, factored; conjugate exponentials recombine."""
    if expression.has(sp.I):
        expression = sp.expand(expression.rewrite(sp.cos))
    collected: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(expression):
        coefficient, key = _split(term)
        collected[key] = collected.get(key, sp.S.Zero) + coefficient
    collected = {key: sp.factor(c) for key, c in collected.items()}
    _complementary(collected)
    return sp.Add(*(c * key for key, c in collected.items()))


def _split(term: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A product as (rational function, functions and radicals); sqrt(x)^3 is x sqrt(x)."""
    coefficient, key, exponentials = sp.S.One, sp.S.One, sp.S.Zero
    for part in sp.Mul.make_args(term):
        base, exponent = (part, sp.S.One) if isinstance(part, sp.exp) else part.as_base_exp()
        if isinstance(part, sp.exp):
            exponentials += part.args[0]
        elif base == sp.pi or base.has(*_FUNCTIONS):
            key *= part
        elif exponent.is_Rational and not exponent.is_Integer:
            whole = sp.floor(exponent + sp.S.Half) if base.free_symbols else sp.floor(exponent)
            coefficient, key = coefficient * base**whole, key * base ** (exponent - whole)
        else:
            coefficient *= part
    return coefficient, key * sp.exp(exponentials)


_FUNCTIONS = (sp.asin, sp.erf, sp.cos, sp.sin, sp.exp)


def _complementary(collected: dict[sp.Expr, sp.Expr]) -> None:
    """c f - c f erf(x) is c f erfc(x): the same, without the cancellation at large x."""
    for key in list(collected):
        for function in key.atoms(sp.erf):
            rest = key / function
            if not rest.has(function) and rest != 1 and collected.get(rest) and collected[key] == -collected[rest]:
                collected[rest * sp.erfc(*function.args)] = collected.pop(rest)
                del collected[key]
                break
