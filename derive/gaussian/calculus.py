"""Gaussian integration by parts on brackets: derivatives in K, removal of z insertions, single-input normal form.

For z ~ N(0, K): <z_a f> = sum_b K_ab <d_b f> (Stein), and d<f>/dK_ab = <d_a d_b f> for a != b (K_ab and K_ba move
together), <d_a d_a f>/2 for a = b (Price). Both hold for brackets of distributions.

>>> from derive.gaussian.bracket import Bracket, Sigma, Z
>>> kernel_derivative(Bracket(Sigma(0), Sigma(1)), 0, 1)
<s0' s1'>
>>> remove_insertions(Bracket(Z(0), Sigma(0), Sigma(1)))
K_00*<s0' s1> + K_01*<s0 s1'>
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from derive.gaussian.bracket import Bracket, Sigma, Z, expect, partial
from derive.symbols import K as K_SINGLE


def kernel_symbol(a: object, b: object) -> sp.Symbol:
    """The symbol K_ab, its labels in order: positive on the diagonal, real off it."""
    first, second = sorted(
        (sp.sympify(a, strict=True), sp.sympify(b, strict=True)), key=lambda x: (not x.is_Integer, str(x).zfill(4))
    )
    joint = "" if len(str(first)) == len(str(second)) == 1 else "_"
    return sp.Symbol(f"K_{first}{joint}{second}", **({"positive": True} if first == second else {"real": True}))


def kernel_derivative(expression: sp.Expr, a: object, b: object) -> sp.Expr:
    """d/dK_ab of an expression that holds brackets (other symbols are constants), by the product rule."""
    total = sp.S.Zero
    for bracket in expression.atoms(Bracket):
        dummy = sp.Dummy()
        outer = sp.diff(expression.xreplace({bracket: dummy}), dummy).xreplace({dummy: bracket})
        twice = expect(partial(partial(bracket.integrand, a), b))
        total += outer * (twice / 2 if sp.sympify(a, strict=True) == sp.sympify(b, strict=True) else twice)
    return sp.expand(total)


def remove_insertions(expression: sp.Expr, single: bool = False) -> sp.Expr:
    """The same expression with all z insertions removed by parts; K_ab are `kernel_symbol`s (K if `single`)."""
    for bracket in sorted(expression.atoms(Bracket), key=str):
        expression = expression.xreplace({bracket: _without_insertions(bracket, single)})
    return sp.expand(expression)


@lru_cache(maxsize=4096)
def _without_insertions(bracket: Bracket, single: bool) -> sp.Expr:
    insertion = next((atom for atom in bracket.args if isinstance(atom, Z)), None)
    if insertion is None:
        return bracket
    atoms = list(bracket.args)
    atoms.remove(insertion)
    rest = sp.Mul(*atoms)
    a = insertion.label
    total = sp.S.Zero
    for b in dict.fromkeys(atom.label for atom in atoms):
        kernel = K_SINGLE if single else kernel_symbol(a, b)
        total += kernel * expect(partial(rest, b))
    return remove_insertions(sp.expand(total), single)


def single_input_normal_form(expression: sp.Expr) -> sp.Expr:
    """A combination of one-label brackets with every linear highest derivative integrated away.

    <g s^(k) (s^(k-1))^m>, with g made of z and lower derivatives, is <g d(s^(k-1))^(m+1)>/(m+1), and one integration by
    parts lowers the order at the price of insertions of z/K. What is left has its highest derivative squared (or none
    at all), so sums of brackets that only exist together (kinked activations) become sums of brackets that exist.

    >>> from derive.gaussian.bracket import Bracket, Sigma
    >>> single_input_normal_form(Bracket(Sigma(0), Sigma(0, 2)) + Bracket(Sigma(0, 1), Sigma(0, 1)))
    -<s0 s0>/(2*K) + <s0 s0 z0 z0>/(2*K**2)
    """
    expression = sp.expand(expression)
    for bracket in sorted(expression.atoms(Bracket), key=_highest, reverse=True):
        if bracket in expression.atoms(Bracket):
            reduced = _lower(bracket)
            if reduced is not bracket:
                return single_input_normal_form(sp.expand(expression.xreplace({bracket: reduced})))
    return expression


def _highest(bracket: Bracket) -> tuple[int, str]:
    return max((atom.order for atom in bracket.args if isinstance(atom, Sigma)), default=0), str(bracket)


def _lower(bracket: Bracket) -> sp.Expr:
    """One step of the normal form; the bracket itself where there is nothing to lower."""
    top = _highest(bracket)[0]
    atoms = list(bracket.args)
    tops = [a for a in atoms if isinstance(a, Sigma) and a.order == top]
    if top == 0 or len(tops) != 1:
        return bracket
    (highest,) = tops
    label, function = highest.label, highest.args[2]
    below = Sigma(label, top - 1, function)
    count = atoms.count(below)
    rest = sp.Mul(*(a for a in atoms if a not in (highest, below)))
    power = below ** (count + 1)
    whole = Z(label) * rest * power / K_SINGLE - partial(rest, label) * power
    return sp.expand(expect(whole) / (count + 1))
