r"""The delta-expansion as an operation on recursion objects: (10.58)-(10.61), (10.67)-(10.70), any tensor, any order.

A bracket at two nearby inputs is expanded around the midpoint, where both inputs coincide: a change dK of the
covariance acts as exp(1/2 sum_ab dK_ab d_a d_b) on the integrand, after which the labels merge. Components are replaced
by their own deviations, and powers of delta are collected.

>>> delta_recursions("K")["ddK_2"].expression
C_W*<s0' s0'>*ddK_2 + C_W*<s0' s0'''>*dK_1**2/2 + C_W*<s0'' s0''>*dK_1**2/2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import sympy as sp

from derive.errors import DeriveError
from derive.gaussian import Bracket, expect, partial
from derive.nearby.deviation import MIDPOINT, TWO_INDEX, Deviation, on_signs, parts
from derive.network import recursion
from derive.network.component import Component

PLUS, MINUS = 1, 2
"""Labels of the two inputs inside an integrand."""
HIGHEST_ORDER = 4


@dataclass(frozen=True)
class DeltaRecursion:
    """The recursion of one deviation; `expression` is in midpoint brackets, midpoint tensors and deviations."""

    deviation: Deviation
    expression: sp.Expr

    @property
    def name(self) -> str:
        return self.deviation.name

    @property
    def depends_on(self) -> tuple[str, ...]:
        return tuple(sorted({c.name for c in self.expression.atoms(Component)}))

    def latex(self) -> str:
        return f"{sp.latex(self.deviation)}' = {sp.latex(self.expression)}"


Powers = list[sp.Expr]
"""Coefficients of 1, delta, delta^2, ... up to the order that is kept."""


def multiply(a: Powers, b: Powers) -> Powers:
    """The product, cut at the same order."""
    return [sp.Add(*(a[k] * b[n - k] for k in range(n + 1))) for n in range(len(a))]


def expand_component(component: Component, signs: dict[int, int], order: int) -> Powers:
    """A component at signed inputs."""
    where = tuple(signs[int(label)] for label in component.labels)
    return [on_signs(component.name, where, n) for n in range(order + 1)]


def covariance_change(order: int) -> dict[tuple[int, int], Powers]:
    """K_ab - K_00 for the two inputs."""
    signs = {PLUS: 1, MINUS: -1}
    pairs = [(a, b) for a in signs for b in signs]
    return {
        (a, b): [sp.S.Zero, *(on_signs("K", (signs[a], signs[b]), n) for n in range(1, order + 1))] for a, b in pairs
    }


@lru_cache(maxsize=4096)
def expand_bracket(bracket: Bracket, pattern: tuple[tuple[int, int], ...], order: int) -> tuple[sp.Expr, ...]:
    """<f> at signed inputs around the midpoint; `pattern` holds (label, sign)."""
    place = {label: PLUS if sign > 0 else MINUS for label, sign in pattern}
    merge = {PLUS: MIDPOINT, MINUS: MIDPOINT}
    change = covariance_change(order)
    term: Powers = [bracket.relabel(place).integrand, *[sp.S.Zero] * order]
    total = list(term)
    for n in range(1, order + 1):
        moved = [sp.S.Zero] * (order + 1)
        for (a, b), dK in change.items():
            curved = [partial(partial(t, a), b) if t != 0 else t for t in term]
            moved = [m + x / (2 * n) for m, x in zip(moved, multiply(dK, curved))]
        term = [sp.expand(m) for m in moved]
        total = [t + x for t, x in zip(total, term)]
    merged = (expect(t).replace(lambda e: isinstance(e, Bracket), lambda e: e.relabel(merge)) for t in total)
    return tuple(sp.expand(m) for m in merged)


def expand_at(tensor: str, signs: tuple[int, ...], order: int) -> Powers:
    """The right-hand side of a tensor's recursion at signed inputs, by powers of delta."""
    derived = recursion(tensor)
    pattern = {int(label): sign for label, sign in zip(derived.labels, signs)}
    table: dict[sp.Expr, Powers] = {}
    for bracket in derived.expression.atoms(Bracket):
        used = tuple((int(label), pattern[int(label)]) for label in bracket.labels)
        table[bracket] = list(expand_bracket(bracket, used, order))
    for component in derived.expression.atoms(Component):
        table[component] = expand_component(component, pattern, order)
    total: list[list[sp.Expr]] = [[] for _ in range(order + 1)]
    for term in sp.Add.make_args(derived.expression):
        result: Powers = [sp.S.One, *[sp.S.Zero] * order]
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if base in table:
                for _ in range(int(power)):
                    result = multiply(result, table[base])
            else:
                result = [r * factor for r in result]
        for n, c in enumerate(result):
            total[n].append(c)
    return [sp.expand(sp.Add(*terms)) for terms in total]


@lru_cache(maxsize=64)
def delta_recursions(tensor: str, order: int = 2) -> dict[str, DeltaRecursion]:
    """The recursions of all deviations of a tensor from first to `order`-th power of delta, by name.

    Two-index tensors (K, Theta, G1, H1) come in the gamma basis, the others on patterns of signs.
    """
    if not isinstance(order, int) or not 1 <= order <= HIGHEST_ORDER:
        raise DeriveError(f"the order of the delta-expansion is a whole number from 1 to {HIGHEST_ORDER}")
    found: dict[str, DeltaRecursion] = {}
    if tensor in TWO_INDEX:
        same, opposite, other = (expand_at(tensor, s, order) for s in ((1, 1), (-1, -1), (1, -1)))
        for n in range(1, order + 1):
            combinations = {
                "0": (same[n] + opposite[n] + 2 * other[n]) / 4,
                "1": (same[n] - opposite[n]) / 2,
                "2": (same[n] + opposite[n] - 2 * other[n]) / 4,
            }
            for deviation in parts(tensor, n):
                found[deviation.name] = DeltaRecursion(deviation, sp.expand(combinations[deviation.part]))
        return found
    size = len(recursion(tensor).labels)
    for signs in product((1, -1), repeat=size):
        wanted = [n for n in range(1, order + 1) if isinstance(on_signs(tensor, signs, n), Deviation)]
        if not any(on_signs(tensor, signs, n).name not in found for n in wanted):
            continue
        powers = expand_at(tensor, signs, order)
        for n in wanted:
            deviation = on_signs(tensor, signs, n)
            found[deviation.name] = DeltaRecursion(deviation, powers[n])
    return found


def first_layer(order: int = 2) -> dict[str, sp.Expr]:
    """The deviations of K and Theta at the first layer, in those of x.x/n_0: dGram_1 = x_0.dx/n_0 and
    ddGram_2 = dx.dx/(4 n_0); all others vanish, the layer being bilinear."""
    from derive.network.recursion import initial

    values = {}
    for tensor in ("K", "Theta"):
        gram = next(c for c in initial(tensor).expression.atoms(Component) if c.name == "Gram")
        slope = initial(tensor).expression.coeff(gram)
        for n in range(1, order + 1):
            for deviation in parts(tensor, n):
                seed = {(1, "1"): Deviation("Gram", 1, "1"), (2, "2"): Deviation("Gram", 2, "2")}
                values[deviation.name] = slope * seed.get((n, deviation.part), sp.S.Zero)
    return values
