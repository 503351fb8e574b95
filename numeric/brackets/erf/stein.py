"""Brackets of activations made of Phi, phi and powers (gelu, erf, ...), for two and for four labels, in closed form.

With eps standard normal, Phi(a z) = (1 + <sgn(z + eps/a)>_eps)/2, so sigma(z) = p(z) + q(z) Phi(a z) is a polynomial
plus a polynomial times the sign of u = z + eps/a, and every derivative of the sign is a derivative of a delta function.
Stein's identity <z_i f> = sum_j K_ij <d_j f> removes the powers of z. For delta functions it reads, with S the
covariance of u, m_i >= 1 derivatives of the sign at i: sum_j S_ij <... m_j + 1 ...> = -(m_i - 1) <... m_i - 1 ...>, a
linear system that lowers the orders until only densities at zero and expectations of signs remain. S = K + 1/a^2 is
well conditioned for every K: coincident labels are nothing special, since each label carries its own eps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.close import determinant as exact_determinant
from numeric.brackets.orthant import arcsine, conditionals, correlation, sign2, sign4
from numeric.brackets.program import Program, Term

Form = tuple[tuple[float, ...], tuple[float, ...], float]  # p, q and the scale a
Slot = tuple[int, int | None]  # power of z, derivatives of the sign (None: no sign at all)


def slot_terms(form: Form, order: int) -> list[tuple[float, Slot]]:
    """sigma^(order) = sum of coefficient z^power sgn^(m)(u), each m at most `order`."""
    p, q, _ = form
    size = max(len(p), len(q))
    plain = np.zeros(size)
    plain[: len(p)] += p
    plain[: len(q)] += np.array(q) / 2
    signed = np.array(q) / 2
    terms: list[tuple[float, Slot]] = []

    def derivative(c: np.ndarray, times: int) -> np.ndarray:
        return np.polynomial.polynomial.polyder(c, times) if times < len(c) else np.zeros(0)

    terms += [(float(c), (k, None)) for k, c in enumerate(derivative(plain, order)) if c]
    for m in range(order + 1):
        factor = math.comb(order, m)
        terms += [(factor * float(c), (k, m)) for k, c in enumerate(derivative(signed, order - m)) if c]
    return terms


Key = tuple[str, tuple]


def _signs_rule(orders: tuple[int | None, ...]) -> list[Term] | None:
    """<product of sgn^(m_i)(u_i)> over the slots with m_i not None, in terms of lower ones; None for a base value."""
    deltas = tuple(i for i, m in enumerate(orders) if m)
    bare = tuple(i for i, m in enumerate(orders) if m == 0)
    high = [i for i in deltas if orders[i] != 1]
    if not high:
        return None
    i = high[0]
    below = _shift(orders, i, -1)
    terms: list[Term] = []
    for k in deltas:
        times = below[k]
        assert times is not None
        if times > 1:
            terms.append((1.0 - times, ("inverse", deltas, i, k), ("signs", _shift(below, k, -1))))
    terms += [(-1.0, ("regression", deltas, i, j), ("signs", _shift(below, j, 1))) for j in bare]
    return [term for term in terms if not _vanishes(term[2][1])]


def _vanishes(orders: tuple[int | None, ...]) -> bool:
    return sum(m + 1 for m in orders if m is not None) % 2 == 1


def _rule(key: Key) -> list[Term] | None:
    """Stein's identity for powers of z; then the recursion for signs and delta functions."""
    kind, slots = key
    if kind == "signs":
        return _signs_rule(slots)
    powered = [i for i, (p, _) in enumerate(slots) if p]
    if not powered:
        return [(1.0, None, ("signs", tuple(m for _, m in slots)))]
    i = powered[0]
    lowered = list(slots)
    lowered[i] = (slots[i][0] - 1, slots[i][1])
    terms: list[Term] = []
    for j, (p, m) in enumerate(lowered):
        coefficient = ("K", min(i, j), max(i, j))
        for factor, new in ((p, (p - 1, m)), (0 if m is None else 1, (p, None if m is None else m + 1))):
            if factor:
                changed = tuple(new if k == j else s for k, s in enumerate(lowered))
                terms.append((float(factor), coefficient, ("powers", changed)))
    return terms


def _shift(orders: tuple[int | None, ...], i: int, by: int) -> tuple[int | None, ...]:
    return tuple(m + by if k == i and m is not None else m for k, m in enumerate(orders))


@lru_cache(maxsize=64)
def _compiled(form: Form, patterns: tuple[tuple[int, ...], ...]) -> tuple[Program, list[int]]:
    program = Program(_rule)
    slot = {k: slot_terms(form, k) for k in {k for p in patterns for k in p}}
    wanted: dict[tuple[int, ...], list[Term]] = {}
    for pattern in patterns:
        sums: dict[tuple[Slot, ...], float] = {}
        for terms in product(*(slot[k] for k in pattern)):
            key = tuple(s for _, s in terms)
            if sum(p + (0 if m is None else m + 1) for p, m in key) % 2 == 0:
                sums[key] = sums.get(key, 0.0) + math.prod(c for c, _ in terms)
        wanted[pattern] = [(number, None, ("powers", key)) for key, number in sums.items()]
    inner = program.rule
    program.rule = lambda key: wanted[key[1]] if key[0] == "output" else inner(key)
    return program, [program.state(("output", p)) for p in patterns]


Covariances = Array | Sequence[Sequence[Array]]  # (d, d, B), or entries of any one shape


def stein_brackets(
    form: Form, patterns: tuple[tuple[int, ...], ...], K: Covariances, nodes: Array, weights: Array
) -> list[Array]:
    """<product of sigma^(k_i)(z_i)> for each pattern, from the covariances of d = 2 or 4 labels.

    `nodes`, `weights`: the rule for the four-variate sign expectation. For two labels everything stays elementwise on
    the entries (nothing is stacked), which the compiler turns into one vectorized loop; the variances may then be a
    column and a row, of which alone roots and quotients are taken.
    """
    program, outputs = _compiled(form, patterns)
    xp = module_of(K[0][1])
    size = len(K)
    noise = form[2] ** -2.0
    S = [[K[i][j] + noise if i == j else K[i][j] for j in range(size)] for i in range(size)]
    counts = range(1, size if size == 2 else size + 1)  # of two labels both together come from _pair
    blocks = {which: _inverse(S, which) for count in counts for which in combinations(range(size), count)}
    two = sorted({split for split in (_split(key[1]) for key in program.bases) if len(split[1]) == 2})
    asines: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}
    if size == 2:
        blocks[0, 1], asine = _pair(K, S, noise)
        asines = dict.fromkeys(two, asine)
    elif two:
        given = {(): S} | conditionals(xp.stack([xp.stack(row) for row in S]))
        found = [correlation(c[i][j], c[i][i], c[j][j]) for c, (i, j) in ((given[d], bare) for d, bare in two)]
        asines = dict(zip(two, sign2(xp.stack(found))))

    def coefficient(key: tuple) -> Array:
        if key[0] == "K":
            return K[key[1]][key[2]]
        _, deltas, i, j = key
        row = blocks[deltas].inverse[deltas.index(i)]
        return row[deltas.index(j)] if key[0] == "inverse" else sum(row[x] * S[k][j] for x, k in enumerate(deltas))

    def base(key: Key) -> Array:
        deltas, bare = _split(key[1])
        if len(bare) == 4:
            return sign4(xp.stack([xp.stack(row) for row in S]), nodes, weights)
        value = (2 / math.sqrt(2 * np.pi)) ** len(deltas) * blocks[deltas].density if deltas else xp.ones_like(K[0][1])
        return value * asines[deltas, bare] if bare else value

    keys = [k for k in program.coefficients if k is not None]  # in the order of their numbers
    return program.run([coefficient(k) for k in keys], [base(k) for k in program.bases], outputs)


def _split(orders: tuple[int | None, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(i for i, m in enumerate(orders) if m), tuple(i for i, m in enumerate(orders) if m == 0)


class _Block(NamedTuple):
    """The inverse of a block of the covariance, and 1/sqrt of its determinant."""

    inverse: list[list[Array]]
    density: Array


def _inverse(S: Covariances, which: tuple[int, ...]) -> _Block:
    """By Gauss-Jordan elimination (positive definite: no pivoting)."""
    xp, size = module_of(S[0][0]), len(which)
    both: list[list] = [[S[i][j] for j in which] + [float(x == y) for y in range(size)] for x, i in enumerate(which)]
    determinant = xp.ones_like(S[0][0])
    for x in range(size):
        pivot = both[x][x]
        determinant = determinant * pivot
        both[x] = [entry / pivot for entry in both[x]]
        for y in range(size):
            if y != x:
                factor = both[y][x]
                both[y] = [entry - factor * other for entry, other in zip(both[y], both[x])]
    return _Block([row[size:] for row in both], 1 / xp.sqrt(determinant))


def _pair(K: Covariances, S: Covariances, noise: float) -> tuple[_Block, Array]:
    """The block of two labels, and <s_1 s_2>: one root and one quotient for each pair, the others for each input.

    The determinant is that of K, to full accuracy, and the rest: it would cancel for parallel inputs of large variance.
    """
    xp, (a, b, c) = module_of(S[0][1]), (S[0][0], S[1][1], S[0][1])
    determinant = exact_determinant(K[0][0], K[1][1], K[0][1]) + noise * (K[0][0] + K[1][1]) + noise**2
    root, inverse = xp.sqrt(determinant), 1 / determinant
    scale = 1 / xp.sqrt(a) * (1 / xp.sqrt(b))
    asine = (2 / np.pi) * arcsine(xp.clip(c * scale, -1, 1), root * scale)
    off = -c * inverse
    return _Block([[b * inverse, off], [off, a * inverse]], root * inverse), asine
