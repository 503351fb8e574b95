"""Single-input recursions in terms of chi_parallel and chi_perp, by substitution of their definitions.

>>> from derive.network import recursion
>>> in_susceptibilities(recursion("Theta").single_input().equal_widths())
chi_perp*Theta_00 + lambda_W*<s0 s0> + lambda_b
"""

from __future__ import annotations

import sympy as sp

from derive.critical import chi_parallel, chi_perp
from derive.gaussian import Bracket
from derive.network import Recursion
from derive.network.component import Component
from derive.notation import CHI_PARALLEL, CHI_PERP
from derive.symbols import C_W


def in_susceptibilities(single: Recursion) -> sp.Expr:
    """The right-hand side with <s' s'> and <s s''> eliminated wherever powers of C_W stand beside them."""
    slope = next(iter(chi_perp().atoms(Bracket)))
    (bend,) = chi_parallel().atoms(Bracket) - {slope}
    # chi_perp = C_W <s' s'>, chi_parallel = C_W <s' s'> + C_W <s s''>, solved for the brackets
    solved = {slope: CHI_PERP / C_W, bend: (CHI_PARALLEL - CHI_PERP) / C_W}
    shown = sp.Add(*(_eliminated(term, solved) for term in sp.Add.make_args(single.expression)))
    components = sorted(shown.atoms(Component), key=str)
    return sp.collect(sp.expand(shown), components, sp.factor_terms) if components else shown


def _eliminated(term: sp.Expr, solved: dict[Bracket, sp.Expr]) -> sp.Expr:
    """A term in which each bracket that meets a factor C_W is replaced; others stay."""
    powers = term.as_powers_dict()
    weights = powers.get(C_W, sp.S.Zero)
    count = sum((powers.get(b, sp.S.Zero) for b in solved), sp.S.Zero)
    return term.xreplace(solved) if 0 < count <= weights else term
