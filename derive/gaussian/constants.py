"""Fast exact arithmetic for series coefficients: sums of rational multiples of irrational (or symbolic) monomials.

A number is a dictionary {monomial: rational}, with products of monomials (sqrt(2)/sqrt(pi), log(2), sigma_1 sigma_3)
simplified by SymPy once and remembered. Power series are lists of such numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import sympy as sp
from sympy.polys.domains import QQ

Constant = dict[sp.Expr, object]


def to_constant(expression: sp.Expr) -> Constant:
    """A SymPy number as a dictionary."""
    result: Constant = {}
    for term in sp.Add.make_args(sp.expand(expression)):
        rational, monomial = term.as_coeff_Mul()
        if not rational.is_Rational:
            rational, monomial = sp.S.One, term
        if rational != 0:
            result[monomial] = result.get(monomial, QQ.zero) + QQ.from_sympy(rational)
    return {m: c for m, c in result.items() if c}


def from_constant(constant: Constant) -> sp.Expr:
    return sp.Add(*(QQ.to_sympy(c) * m for m, c in constant.items()))


@lru_cache(maxsize=65536)
def _times(a: sp.Expr, b: sp.Expr) -> tuple[tuple[sp.Expr, object], ...]:
    return tuple(to_constant(a * b).items())


def multiply_add(total: Constant, a: Constant, b: Constant) -> None:
    """total += a b, in place."""
    for ma, ca in a.items():
        for mb, cb in b.items():
            for monomial, c in _times(ma, mb):
                value = total.get(monomial, QQ.zero) + ca * cb * c  # type: ignore[operator]
                if value:
                    total[monomial] = value
                else:
                    total.pop(monomial, None)


def multiply_series(a: Sequence[Constant], b: Sequence[Constant]) -> list[Constant]:
    """The product of two power series, to the shorter one's length."""
    product: list[Constant] = []
    for k in range(min(len(a), len(b))):
        total: Constant = {}
        for j in range(k + 1):
            if a[j] and b[k - j]:
                multiply_add(total, a[j], b[k - j])
        product.append(total)
    return product
