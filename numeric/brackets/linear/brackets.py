"""Piecewise-linear activations: arc-cosine pair brackets; quadruples by Stein's identity and sign expectations.

sigma(z) = z (mu + nu s) with s = sgn z, so a label that occurs r times, p of them undifferentiated, contributes
z^p (mu + nu s)^r = z^p (e_r + o_r s). Repeated labels are merged before anything else, so that they cost no accuracy.
Second derivatives are delta functions: pair brackets that hold them follow by differentiating the closed form with
respect to K; four-point brackets that hold them are refused.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import Rectangle
from numeric.brackets.orthant import arcsine, conditionals, correlation, sign2, sign4
from numeric.brackets.program import Program, Term
from numeric.errors import NumericError

COINCIDENT = 1e-14  # 1 - rho^2 below which two inputs are one


Slopes = tuple[float, float]  # for z > 0 and for z < 0


def _mean_and_half_difference(slopes: Slopes) -> tuple[float, float]:
    plus, minus = slopes
    return (plus + minus) / 2, (plus - minus) / 2


def _gap(a: Array, b: Array, c: Array) -> Array:
    """a b - c^2 without needless cancellation, never negative; zero to the last bit where a = b = |c|."""
    xp = module_of(c)
    large, small, size = xp.maximum(a, b), xp.minimum(a, b), xp.abs(c)  # symmetric to the last bit
    return xp.maximum((large - size) * small + size * (small - size), 0)


def _even(slopes: Slopes, a: Array, b: Array, c: Array) -> Array:
    """<sigma sigma> for variances a, b and covariance c, smooth part of the domain (used for its K-derivatives)."""
    mu, nu = _mean_and_half_difference(slopes)
    gap = jnp.sqrt(a * b - c * c)
    return mu**2 * c + nu**2 * (2 / np.pi) * (gap + c * jnp.arctan2(c, gap))


def _odd(slopes: Slopes, a: Array, b: Array, c: Array) -> Array:
    """<sigma(z_a) sigma'(z_b)>."""
    mu, nu = _mean_and_half_difference(slopes)
    return mu * nu * math.sqrt(2 / np.pi) * (c / jnp.sqrt(b) + jnp.sqrt(a))


def _differentiated(function, x: int, y: int, z: int):
    for argument, times in ((2, x), (0, y), (1, z)):
        for _ in range(times):
            function = jax.grad(function, argument)
    return function


def linear_pair(slopes: Slopes, j: int, k: int, pairs: Rectangle) -> Array:
    """<sigma^(j)(z_a) sigma^(k)(z_b)> for all pairs, (R, C).

    Where the two inputs coincide, brackets with two delta functions, or more derivatives than two in all, diverge one
    by one; in the recursions they occur only in combinations that are derivatives along the coincident direction,
    and those vanish by scale invariance. They are given as zero there.
    """
    if j > k:
        return linear_pair(slopes, k, j, Rectangle(pairs.b, pairs.a, pairs.c.T, pairs.same.T)).T
    xp, shape = module_of(pairs.c), pairs.c.shape
    a, b = xp.broadcast_to(pairs.a[:, None], shape), xp.broadcast_to(pairs.b[None, :], shape)
    if (j, k) in ((0, 0), (1, 1)):
        return square(slopes, j, a, b, pairs.c, pairs.same)
    mu, nu = _mean_and_half_difference(slopes)
    coincident = (_gap(a, b, pairs.c) <= COINCIDENT * a * b) | pairs.same
    if (j, k) in ((0, 1), (0, 2), (1, 2)):
        positive = b > 0
        root = xp.sqrt(xp.where(positive, b, 1))
        if (j, k) == (0, 1):
            slope = xp.where(positive, pairs.c / root, 0)
            return mu * nu * math.sqrt(2 / np.pi) * (slope + xp.sqrt(a))
        gap = xp.where(pairs.same, 0, xp.sqrt(_gap(a, b, pairs.c)))
        value = gap / root**2 * (2 * nu**2 / np.pi) if j == 0 else mu * nu * math.sqrt(2 / np.pi) / root
        return xp.where(positive, value, 0)
    usable = ~coincident & (a > 0) & (b > 0)
    a, b, c = xp.where(usable, a, 1), xp.where(usable, b, 1), xp.where(usable, pairs.c, 0)
    if (j + k) % 2 == 0:  # j = x + 2 y, k = x + 2 z
        x, base = j % 2, _even
        y, z = (j - x) // 2, (k - x) // 2
    else:  # j = x + 2 y, k = 1 + x + 2 z
        x, base = j % 2, _odd
        y, z = (j - x) // 2, (k - 1 - x) // 2
    function = _differentiated(lambda *args: base(slopes, *args), x, y, z)
    value = 2.0 ** (y + z) * jax.vmap(jax.vmap(function))(a, b, c)
    return jnp.where(usable, value, 0)


def square(slopes: Slopes, order: int, a: Array, b: Array, c: Array, same: Array) -> Array:
    """<sigma sigma> (order 0) or <sigma' sigma'> (order 1) for variances, covariances and `same`.

    The variances may be a column and a row, (R, 1) and (1, C): roots and quotients are then taken of these alone.
    """
    xp = module_of(c)
    mu, nu = _mean_and_half_difference(slopes)
    inverse = _inverse(xp, xp.sqrt(a)) * _inverse(xp, xp.sqrt(b))
    gap = xp.where(same, 0, xp.sqrt(_gap(a, b, c)))
    angle = xp.where(same & (a > 0), np.pi / 2, arcsine(xp.clip(c * inverse, -1, 1), gap * inverse))
    if order == 1:
        return mu**2 + nu**2 * (2 / np.pi) * angle
    return mu**2 * c + nu**2 * (2 / np.pi) * (gap + c * angle)


def _inverse(xp, x: Array) -> Array:
    """1/x; zero where x is zero."""
    return xp.where(x > 0, 1 / xp.where(x > 0, x, 1), 0)


def _rule(key: tuple) -> list[Term] | None:
    """<z^p product of signs | given variables vanish>: Stein's identity; sgn' = 2 delta conditions on one more."""
    given, powers, signs = key
    powered = [i for i, p in enumerate(powers) if p]
    if not powered:
        return None
    i = powered[0]
    lowered = _changed(powers, i, -1)
    terms: list[Term] = []
    for j in range(len(powers)):
        if j in given:
            continue
        coefficient = ("cov", given, min(i, j), max(i, j))
        if lowered[j]:
            terms.append((float(lowered[j]), coefficient, (given, _changed(lowered, j, -1), signs)))
        elif j in signs:
            rest = tuple(x for x in signs if x != j)
            density = ("density", given, i, j)
            terms.append((1.0, density, (tuple(sorted((*given, j))), lowered, rest)))
    return [t for t in terms if not _vanishes(t[2])]


def _vanishes(key) -> bool:
    given, powers, signs = key
    return (sum(powers) + len(signs)) % 2 == 1 or any(powers[i] for i in given)


def _changed(powers: tuple[int, ...], i: int, by: int) -> tuple[int, ...]:
    return tuple(p + by if k == i else p for k, p in enumerate(powers))


@lru_cache(maxsize=256)
def _program(
    requests: tuple[tuple[tuple[int, ...], tuple[tuple[float, float], ...]], ...],
) -> tuple[Program, list[int]]:
    """Requests: powers and (e, o) of every merged label."""
    wanted: dict = {}
    for request in requests:
        powers, factors = request
        terms: list[Term] = []
        for choice in product((0, 1), repeat=len(powers)):
            signs = tuple(i for i, c in enumerate(choice) if c)
            number = float(np.prod([factors[i][c] for i, c in enumerate(choice)]))
            if number and not _vanishes(((), powers, signs)):
                terms.append((number, None, ((), powers, signs)))
        wanted["output", request] = terms
    program = Program(lambda key: wanted[key] if key[0] == "output" else _rule(key))
    return program, [program.state(("output", r)) for r in requests]


def linear_quadruples(
    slopes: Slopes,
    patterns: tuple[tuple[int, ...], ...],
    K: Array,
    groups: tuple[int, ...],
    nodes: Array,
    weights: Array,
) -> Array:
    """Brackets of quadruples whose slots fall on the merged labels `groups` (e.g. (0, 0, 1, 2)); K is (d, d, B).

    Returns (patterns, B).
    """
    xp = module_of(K)
    mu, nu = _mean_and_half_difference(slopes)
    size = K.shape[0]
    requests = []
    for pattern in patterns:
        if max(pattern) > 1:
            raise NumericError(
                f"The four-point bracket of a piecewise linear activation with derivative orders {pattern} holds a "
                "delta function and does not exist where inputs coincide; tensors that need it are not available."
            )
        powers = tuple(sum(1 for s, g in enumerate(groups) if g == i and pattern[s] == 0) for i in range(size))
        counts = [groups.count(i) for i in range(size)]
        factors = tuple((((mu + nu) ** r + (mu - nu) ** r) / 2, ((mu + nu) ** r - (mu - nu) ** r) / 2) for r in counts)
        requests.append((powers, factors))
    program, outputs = _program(tuple(requests))
    given = conditionals(K)
    full = tuple(range(size))
    given[full] = xp.zeros_like(K)

    def coefficient(key: tuple) -> Array:
        kind, before, i, j = key
        c = given[before]
        if kind == "cov":
            return c[i, j]
        variance = c[j, j]
        positive = variance > 0
        return xp.where(positive, c[i, j] * 2 / xp.sqrt(2 * np.pi * xp.where(positive, variance, 1)), 0)

    pairs: dict[tuple, Array] = {}
    known: list[tuple] = list(program.bases)
    for before, _, signs in known:
        if len(signs) == 2:
            i, j = signs
            c = given[before]
            pairs[before, signs] = correlation(c[i, j], c[i, i], c[j, j])
    asines = dict(zip(pairs, sign2(xp.stack(list(pairs.values()))))) if pairs else {}

    def base(key: tuple) -> Array:
        before, _, signs = key
        if len(signs) == 4:
            return sign4(K, nodes, weights)
        return asines[before, signs] if signs else xp.ones_like(K[0, 0])

    keys = [k for k in program.coefficients if k is not None]  # in the order of their numbers
    return xp.stack(program.run([coefficient(k) for k in keys], [base(k) for k in program.bases], outputs))


def merged(quadruple: tuple[int, ...]) -> tuple[int, ...]:
    """(5, 5, 7, 9) -> (0, 0, 1, 2)."""
    order = sorted(set(quadruple))
    return tuple(order.index(x) for x in quadruple)


__all__ = ["linear_pair", "linear_quadruples", "merged"]
