"""The six projectors of an algorithm as a table: for one training input, at the edge of stability, over eigenvalues.

With one training input all modes are one, and a projector is a function of x = η h alone, in units of h: Z_A and Z_B of
1/h², the others of 1/h³, (infinity.168)-(infinity.171). At η → 2/h some of them diverge as 1/(2 - x): descent then
dwells on the differentials that they multiply.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from derive.training.projectors import GradientDescent, Rule, eta, h, projectors

x = sp.Symbol("x", positive=True)
"""The learning rate in units of 1/h."""
POWERS = {"Z_A": 2, "Z_B": 2, "Z_IA": 3, "Z_IB": 3, "Z_IIA": 3, "Z_IIB": 3}
"""Powers of 1/h that a projector has."""


def single_input(rule: Rule) -> dict[str, sp.Expr]:
    """h² or h³ times each projector for one training input, as a function of x = η h.

    >>> single_input(GradientDescent())["Z_A"]
    (x - 1)/(x - 2)
    """
    own = h("a")
    same = {h("b"): own, h("c"): own, eta: x / own}
    return {name: sp.factor(sp.simplify(own ** POWERS[name] * z.subs(same))) for name, z in projectors(rule).items()}


@lru_cache(maxsize=1)
def edge_of_stability() -> dict[str, sp.Expr]:
    """The leading term of each projector of descent as η → 2/h, in units of h: a constant, or one over 2 - x.

    >>> edge_of_stability()["Z_A"], edge_of_stability()["Z_B"]
    (1/(x - 2), 1/2)
    """
    found = {}
    for name, z in single_input(GradientDescent()).items():
        residue = sp.limit((2 - x) * z, x, 2)
        found[name] = sp.factor(residue / (2 - x)) if residue != 0 else z
    return found
