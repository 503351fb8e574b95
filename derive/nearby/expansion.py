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
from derive.nearby.deviation import MIDPOINT, TWO_INDEX, Deviation, deviate, on_signs, parts
from derive.network import recursion
from derive.network.component import Component

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


def covariance_change(places: tuple[sp.Expr, ...], order: int) -> dict[tuple[int, int], Powers]:
    """K_ab - K_00 for inputs at the given places, numbered from 1."""
    numbered = list(enumerate(places, start=1))
    return {
        (a, b): [sp.S.Zero, *(deviate("K", (p, q), n) for n in range(1, order + 1))]
        for a, p in numbered
        for b, q in numbered
    }


@lru_cache(maxsize=4096)
def expand_bracket(bracket: Bracket, pattern: tuple[tuple[int, sp.Expr], ...], order: int) -> tuple[sp.Expr, ...]:
    """<f> around the midpoint; `pattern` holds (label, place of its input)."""
    places = tuple(dict.fromkeys(place for _, place in pattern))
    number: dict[object, object] = {label: 1 + places.index(place) for label, place in pattern}
    merge = {n: MIDPOINT for n in number.values()}
    change = covariance_change(places, order)
    term: Powers = [bracket.relabel(number).integrand, *[sp.S.Zero] * order]
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


def expand_at(tensor: str, places: tuple[sp.Expr | int, ...], order: int) -> Powers:
    """The right-hand side of a tensor's recursion with its inputs at x_0 + place dx/2, by powers of delta."""
    derived = recursion(tensor)
    pattern = {int(label): sp.sympify(place, strict=True) for label, place in zip(derived.labels, places)}
    table: dict[sp.Expr, Powers] = {}
    for bracket in derived.expression.atoms(Bracket):
        used = tuple((int(label), pattern[int(label)]) for label in bracket.labels)
        table[bracket] = list(expand_bracket(bracket, used, order))
    for component in derived.expression.atoms(Component):
        where = tuple(pattern[int(label)] for label in component.labels)
        table[component] = [deviate(component.name, where, n) for n in range(order + 1)]
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


@lru_cache(maxsize=16)
def line_recursions(tensor: str, order: int = 2) -> dict[str, DeltaRecursion]:
    """The recursions of the Taylor coefficients T_mn of a two-index tensor along the line x_0 + p dx/2, m + n <= order.

    >>> sorted(line_recursions("K"))
    ['dK_10', 'ddK_11', 'ddK_20']
    """
    if tensor not in TWO_INDEX:
        raise DeriveError(f"the line expansion is for tensors of two inputs, not for {tensor}")
    p, q = sp.symbols("p q")
    powers = expand_at(tensor, (p, q), order)
    found = {}
    for n in range(1, order + 1):
        polynomial = sp.Poly(powers[n], p, q)
        for m in range(n, (n - 1) // 2, -1):
            deviation = Deviation(tensor, n, f"{m}{n - m}")
            found[deviation.name] = DeltaRecursion(deviation, sp.expand(polynomial.coeff_monomial(p**m * q ** (n - m))))
    return found


def first_layer(order: int = 2) -> dict[str, sp.Expr]:
    """The deviations of K and Theta at the first layer, in those of x.x/n_0: dGram_1 = x_0.dx/n_0 and
    ddGram_2 = dx.dx/(4 n_0); all others vanish, the layer being bilinear."""
    from derive.network.tensor_recursion import initial

    values = {}
    for tensor in ("K", "Theta"):
        gram = next(c for c in initial(tensor).expression.atoms(Component) if c.name == "Gram")
        slope = initial(tensor).expression.coeff(gram)
        for n in range(1, order + 1):
            for deviation in parts(tensor, n):
                seed = {(1, "1"): Deviation("Gram", 1, "1"), (2, "2"): Deviation("Gram", 2, "2")}
                values[deviation.name] = slope * seed.get((n, deviation.part), sp.S.Zero)
    return values
