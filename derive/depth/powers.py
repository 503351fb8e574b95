"""Power series in y with SymPy coefficients: the little that is needed before the coefficients' field is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from derive.depth.expansion import PowerSeries
from derive.gaussian import Bracket


def linear_combination(expression: sp.Expr, known: Mapping[Bracket, PowerSeries]) -> PowerSeries:
    """A combination of brackets, linear in them, as one power series.

    >>> from derive.gaussian import Sigma
    >>> b = Bracket(Sigma(0), Sigma(0))
    >>> linear_combination(2 * b + 3, {b: PowerSeries({1: sp.Integer(1)}, 3)}).coefficients
    {0: 3, 1: 2}
    """
    total: dict[int, sp.Expr] = {}
    order = min((known[b].order for b in expression.atoms(Bracket)), default=0)
    for term in sp.Add.make_args(sp.expand(expression)):
        brackets = list(term.atoms(Bracket))
        factor = term.xreplace({brackets[0]: sp.S.One}) if brackets else term
        coefficients = known[brackets[0]].coefficients if brackets else {0: sp.S.One}
        for j, c in coefficients.items():
            total[j] = total.get(j, sp.S.Zero) + factor * c
    tidy = {j: simplified(c) for j, c in sorted(total.items()) if j < order}
    return PowerSeries({j: c for j, c in tidy.items() if c != 0}, order)


def binomial_power(series: Mapping[int, sp.Expr], power: sp.Rational, length: int) -> dict[int, sp.Expr]:
    """(1 + sum_j c_j y^j)^power - 1 below y^length.

    >>> binomial_power({1: sp.Integer(2)}, sp.Rational(1, 2), 4)
    {1: 1, 2: -1/2, 3: 1/2}
    """
    total: dict[int, sp.Expr] = {}
    product: dict[int, sp.Expr] = {0: sp.S.One}
    for k in range(1, length):
        product = _multiply(product, series, length)
        weight = sp.binomial(power, k)
        if not product or weight == 0:
            break
        for j, c in product.items():
            total[j] = total.get(j, sp.S.Zero) + weight * c
    tidy = {j: simplified(c) for j, c in sorted(total.items())}
    return {j: c for j, c in tidy.items() if c != 0}


def _multiply(a: Mapping[int, sp.Expr], b: Mapping[int, sp.Expr], length: int) -> dict[int, sp.Expr]:
    result: dict[int, Any] = {}
    for i, x in a.items():
        for j, w in b.items():
            if i + j < length:
                result[i + j] = sp.expand(result.get(i + j, 0) + x * w)
    return result


def simplified(c: sp.Expr) -> sp.Expr:
    """Canonical enough to see a zero."""
    return sp.cancel(c) if c.free_symbols else sp.expand(c)


def is_one(c: sp.Expr) -> bool:
    """Exactly, or within the precision of a critical point that is known as a number."""
    return bool(abs(c - 1) < 1e-20) if c.has(sp.Float) else sp.simplify(c - 1) == 0
