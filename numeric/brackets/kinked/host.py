r"""Pair brackets of kinked activations on the host: nothing is differentiated, so nothing has to be compiled.

A derivative of sigma is a function with jumps and what the jumps J_k of lower derivatives leave at zero,
sigma^(n) = r_n + sum_{k<n} J_k delta^(n-1-k). In a pair bracket the functions r are integrated in sectors
(`sectorrule`); a delta function takes one label to zero, where the other is a Gaussian of its conditional variance; two
give the density and its derivatives at the origin. Coincident inputs have the values that `kinkpairs` gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise, product
from math import comb, factorial, pi
from typing import Any, cast

import numpy as np

from numeric.brackets.calculus import Order, Rectangle
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.kinkpairs import COINCIDENT, check_deltas
from numeric.brackets.kinked.sectorrule import SIGNS, angular_rule, radial_rule, radii
from numeric.brackets.rules import evaluate

HIGHEST = 6
"""Derivatives at zero that are looked at, from either side."""
TINY = 1e-300
ANGLES = (28, 40, 56, 80, 120, 176)
"""On either side of a sector's middle."""
ENOUGH = 2e-13
"""What more angles may change: a few units of rounding in the sums."""


@lru_cache(maxsize=64)
def _at_zero(functions: Functions) -> np.ndarray:
    """sigma^(k)(0-) and sigma^(k)(0+), (HIGHEST, 2)."""
    return np.array([evaluate(functions, k, np.array([-TINY, TINY])) for k in range(HIGHEST)])


def _jump(functions: Functions, order: int) -> float:
    """J_k, which is zero below the lowest derivative that jumps."""
    return float(np.diff(_at_zero(functions)[order])[0]) if functions.kinks_at(order) else 0.0


def density(order: int, variance: float) -> float:
    """The order-th derivative of the Gaussian density at zero."""
    if order % 2:
        return 0.0
    half = order // 2
    return (-1) ** half * factorial(order) / (factorial(half) * 2**half) / variance**half / (2 * pi * variance) ** 0.5


def mean(functions: Functions, factors: tuple[int, ...], deviation: float, count: int) -> float:
    """<product of r_k(z)> over N(0, deviation^2), without delta functions."""
    r, w = radial_rule(radii(count))
    z = deviation * np.concatenate([r, -r])
    values = np.prod([evaluate(functions, k, z) for k in factors], axis=0)
    return float((np.concatenate([w / r, w / r]) * values).sum() / (2 * pi) ** 0.5)


def sectors(
    functions: Functions, orders: tuple[Order, ...], roots: tuple[float, float], angle: float, count: int
) -> dict[Order, float]:
    """<r_j(z_a) r_k(z_b)>, as `sectorrule.sector_integrals` has them."""
    r, wr = radial_rule(radii(count))
    width = np.array([pi - angle, angle, pi - angle, angle])
    start = np.array([angle - pi / 2, pi / 2, angle + pi / 2, -pi / 2])
    near, weight = angular_rule(count, cast(Any, np.asarray(1 / max(*roots, 1.0))))
    half = width[:, None] / 2
    t = np.concatenate([half * near, 2 * half - half * near], axis=1) + start[:, None]
    wt = np.concatenate([half * weight, half * weight], axis=1)
    z = [
        size * sign[:, None, None] * np.abs(np.cos(turn))[:, :, None] * r
        for size, sign, turn in zip(roots, SIGNS.T, (t, t - angle))
    ]
    f = {j: evaluate(functions, j, z[0]) * (wt[:, :, None] * wr / (2 * pi)) for j in {j for j, _ in orders}}
    g = {k: evaluate(functions, k, z[1]) for k in {k for _, k in orders}}
    return {(j, k): float(np.einsum("sta,sta->", f[j], g[k])) for j, k in orders}


@lru_cache(maxsize=128)
def enough_angles(functions: Functions, highest: int, rung: int) -> tuple[int, float]:
    """How many angles the rule takes for variances up to 2^rung and derivatives up to `highest` (those before delta
    functions), and what more of them still change, relative: two of the largest deviation, and one with a tenth of it.
    """
    size, top = 2.0 ** (rung / 2), max(k for k in range(highest + 1) if not functions.has_delta(k))
    orders, places = ((0, 0), (top, top)), ((size, 1e-3), (size, 1.5), (size / 10, 0.5))
    now = _probed(functions, orders, places, ANGLES[0])
    for count, more in pairwise(ANGLES):
        before, now = now, _probed(functions, orders, places, more)
        worst = float(np.max(np.abs(now - before) / np.maximum(np.abs(now[0]), TINY)))
        if worst < ENOUGH:
            return count, worst
    return ANGLES[-1], worst


def _probed(
    functions: Functions, orders: tuple[Order, ...], places: tuple[tuple[float, float], ...], count: int
) -> np.ndarray:
    """Brackets of the first place's larger deviation with another at an angle: (places, orders)."""
    size = places[0][0]
    with np.errstate(all="ignore"):
        own = [sectors(functions, orders, (size, other), angle, count) for other, angle in places]
    return np.array([[found[order] for order in orders] for found in own])


def _delta_against(
    functions: Functions, m: int, order: int, own: float, both: float, determinant: float, count: int
) -> float:
    """<delta^(m)(z_a) r_order(z_b)> for the variance of z_a, its covariance with z_b and the determinant of both."""
    slope, rest = both / own, determinant / own
    total = 0.0
    for n in range(m + 1):  # d^n of <r(slope x + xi)>, d^(m-n) of the density of z_a
        if (outer := density(m - n, own)) == 0:
            continue
        inner = mean(functions, (order + n,), rest**0.5, count)
        inner += sum(_jump(functions, order + q) * (-1) ** (n - 1 - q) * density(n - 1 - q, rest) for q in range(n))
        total += comb(m, n) * outer * slope**n * inner
    return (-1) ** m * total


def _two_deltas(m: int, n: int, a: float, c: float, determinant: float) -> float:
    """<delta^(m)(z_a) delta^(n)(z_b)>: derivatives of the density of both at the origin."""
    slope, rest = c / a, determinant / a
    total = 0.0
    for k in range(m + 1):  # the density of z_b given z_a = x is shifted by slope x
        total += comb(m, k) * density(m - k, a) * (-slope) ** k * density(n + k, rest)
    return (-1) ** (m + n) * total


def distinct(
    functions: Functions, orders: tuple[Order, ...], a: float, b: float, c: float, determinant: float, count: int
) -> dict[Order, float]:
    """The brackets of two inputs that are not parallel, delta functions included."""
    angle = float(np.arctan2(determinant**0.5, c))
    found = sectors(functions, orders, (a**0.5, b**0.5), angle, count)
    for j, k in orders:
        left = [(j - 1 - p, _jump(functions, p)) for p in range(j) if _jump(functions, p)]
        right = [(k - 1 - p, _jump(functions, p)) for p in range(k) if _jump(functions, p)]
        for m, size in left:
            found[j, k] += size * _delta_against(functions, m, k, a, c, determinant, count)
        for n, size in right:
            found[j, k] += size * _delta_against(functions, n, j, b, c, determinant, count)
        for (m, size), (n, other) in product(left, right):
            found[j, k] += size * other * _two_deltas(m, n, a, c, determinant)
    return found


def coincident(functions: Functions, K: float, count: int) -> Callable[[Order], float]:
    """The values that stand for <sigma^(j) sigma^(k)>, j <= k, at one input of variance K."""
    below, above = _at_zero(functions).T
    p = density(0, K)

    def square(order: int) -> float:
        return mean(functions, (order, order), K**0.5, count)

    def jump(order: int, which: int) -> float:
        """Of the first or third derivative of sigma^(order)^2 at zero."""
        values = [
            2 * s[order] * s[order + 1]
            if which == 1
            else 2 * (3 * s[order + 1] * s[order + 2] + s[order] * s[order + 3])
            for s in (below, above)
        ]
        return float(values[1] - values[0])

    def inner(*terms: tuple[float, int, int]) -> float:
        return sum(factor * mean(functions, (j, k), K**0.5, count) for factor, j, k in terms)

    def slope(o: int) -> float:
        """d/dK <sigma^(o)^2> = <F''>/2."""
        return inner((1, o + 1, o + 1), (1, o, o + 2)) + jump(o, 1) * p / 2

    def curvature(o: int) -> float:
        """d^2/dK^2 of it, <F''''>/4."""
        smooth = inner((1.5, o + 2, o + 2), (2, o + 1, o + 3), (0.5, o, o + 4))
        return smooth + (jump(o, 3) * p - jump(o, 1) * p / K) / 4

    def value(order: Order) -> float:
        match order:
            case (0, 2):
                return slope(0) - square(1)
            case (2, 2):
                return square(2)
            case (1, 3):
                return slope(1) - square(2)
            case (0, 4):
                return 2 * curvature(0) - 4 * value((1, 3)) - 3 * square(2)
            case (1, 5):
                return 2 * curvature(1) - 4 * value((2, 4)) - 3 * value((3, 3))
            case (3, 3) if not functions.has_delta(3):
                return square(3)
            case (2, 4) if not functions.has_delta(4):
                return slope(2) - square(3)
        return 0.0  # (2, 4) and (3, 3): left out of all orders but the last

    return value


def _parallel(
    functions: Functions, orders: tuple[Order, ...], a: float, b: float, c: float, determinant: float, count: int
) -> dict[Order, float]:
    """The brackets of inputs with (nearly) equal or opposite directions, or without a variance."""
    if a * b == 0:
        plain = tuple(o for o in orders if not any(map(functions.has_delta, o)))
        return dict.fromkeys(orders, 0.0) | sectors(functions, plain, (a**0.5, b**0.5), pi / 2, count)
    roots, r_w = (a**0.5, (b if c > 0 else -b) * abs(b) ** -0.5), radial_rule(radii(count))
    x, w = np.concatenate([r_w[0], -r_w[0]]), np.tile(r_w[1] / r_w[0], 2) / (2 * pi) ** 0.5
    sides = [{k: evaluate(functions, k, root * x) for k in set(own)} for root, own in zip(roots, zip(*orders))]
    one = [coincident(functions, v, count) for v in ((a,) if a == b else (a, b))]
    found = {}
    for j, k in orders:
        if functions.has_delta(j) or functions.has_delta(k):
            sign = functions.parity * (-1) ** max(j, k) if c < 0 else 1  # opposite: only odd or even functions
            found[j, k] = sign * sum(value((min(j, k), max(j, k))) for value in one) / len(one)
        else:
            found[j, k] = float((w * sides[0][j] * sides[1][k]).sum())
    if determinant > 0:  # what exists at every angle, at this one
        plain = tuple(o for o in orders if not any(map(functions.has_delta, o)))
        found |= sectors(functions, plain, (a**0.5, b**0.5), float(np.arctan2(determinant**0.5, c)), count)
    return found


def host_single(
    functions: Functions, orders: tuple[Order, ...], variances: np.ndarray, count: int
) -> dict[Order, np.ndarray]:
    """{(j, k): (N,)} at single inputs."""
    one = np.ones((1, 1), dtype=bool)
    own = [
        host_pairs(functions, orders, cast(Any, Rectangle)(v, v, v[None], one), True, count)
        for v in variances.reshape(-1, 1)
    ]
    return {order: np.array([found[order][0, 0] for found in own]) for order in orders}


def host_pairs(
    functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool, count: int
) -> dict[Order, np.ndarray]:
    """`sectors.sector_pairs` on NumPy arrays, pair by pair."""
    check_deltas(functions, orders)
    both = tuple(sorted({*orders, *((k, j) for j, k in orders)})) if symmetric else orders
    found = {order: np.zeros(pairs.c.shape) for order in orders}
    for i, j in np.ndindex(*pairs.c.shape):
        if symmetric and i > j:
            continue
        a, b, c = float(pairs.a[i]), float(pairs.b[j]), float(pairs.c[i, j])
        root = (a * b) ** 0.5
        gap = 0.0 if pairs.same[i, j] else (root - c) * (root + c)
        if gap > COINCIDENT * a * b:
            values = distinct(functions, both, a, b, c, gap, count)
        else:
            values = _parallel(functions, both, a, b, root if pairs.same[i, j] else c, gap, count)
        for left, right in orders:
            found[left, right][i, j] = values[left, right]
            if symmetric:
                found[left, right][j, i] = values[right, left]
    return found
