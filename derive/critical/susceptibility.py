r"""The kernel's step K' = C_b + C_W <s s> and the susceptibilities that follow from it, as brackets and in closed form.

chi_parallel is dK'/dK of a single input; chi_perp is dK'_12/dK_12 of two inputs that coincide. Both are derived here
by Gaussian integration by parts from the kernel's step: chi_perp = C_W <s' s'>, chi_parallel = C_W (<s' s'> + <s s''>).

>>> chi_parallel(), chi_perp()
(C_W*<s0 s0''> + C_W*<s0' s0'>, C_W*<s0' s0'>)
"""

from __future__ import annotations

from functools import cache, lru_cache

import sympy as sp

from derive.activations import Activation
from derive.gaussian import Bracket, Sigma, Z, exact, expect, partial, value
from derive.symbols import C_W, C_b, K


@cache
def kernel_step() -> sp.Expr:
    """K' for one input."""
    return C_b + C_W * expect(Sigma(0) ** 2)


@cache
def chi_parallel() -> sp.Expr:
    """dK'/dK: d/dK <f> = <f''>/2."""
    return sp.expand(C_W * expect(partial(partial(Sigma(0) ** 2, 0), 0)) / 2)


@cache
def chi_perp() -> sp.Expr:
    """dK'_12/dK_12 where the two inputs coincide: d/dK_12 <f> = <d_1 d_2 f>."""
    mixed = expect(partial(partial(Sigma(0) * Sigma(1), 0), 1))
    return C_W * mixed.replace(lambda e: isinstance(e, Bracket), lambda e: e.relabel({1: 0}))


@cache
def condition() -> sp.Expr:
    """The bracket that must vanish for chi_parallel = chi_perp."""
    return sp.expand((chi_parallel() - chi_perp()) / C_W)


@cache
def curvature() -> sp.Expr:
    """d chi_parallel / dK, which decides from which side a fixed point attracts: d/dK <f> = <(z^2/K - 1) f>/(2 K)."""
    half = partial(partial(Sigma(0) ** 2, 0), 0) / 2
    return sp.expand(C_W * (expect(Z(0) ** 2 * half) / K - expect(half)) / (2 * K))


@lru_cache(maxsize=512)
def closed_form(expression: sp.Expr, activation: Activation) -> sp.Expr | None:
    """An expression in one-input brackets as an exact function of K, or None if one of them has no closed form."""
    table = {}
    for bracket in expression.atoms(Bracket):
        form = exact(bracket, activation, K)
        if form is None:
            return None
        table[bracket] = form
    return sp.factor_terms(expression.xreplace(table))


def number(expression: sp.Expr, activation: Activation, kernel: sp.Expr, digits: int = 30) -> sp.Float:
    """An expression in one-input brackets and K (no other symbol) at a number K, to the given digits."""
    more = digits + 8
    table = {b: sp.Float(value(b, activation, kernel, more), more) for b in expression.atoms(Bracket)}
    return sp.Float(expression.xreplace(table).xreplace({K: kernel}).evalf(more), digits)
