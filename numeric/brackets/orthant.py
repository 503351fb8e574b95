"""Expectations of products of signs, s = sgn(u), for up to four Gaussian variables: the arcsine law and its extension.

<s_1 s_2> = (2/pi) asin r; odd products vanish; <s_1 s_2 s_3 s_4> is a one-dimensional smooth integral over the scale t
of the cross-correlations between {1, 2} and {3, 4} (Plackett's identity). Nothing cancels when correlations are small.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of


def _arcsine_table() -> list[float]:
    """asin(x)/x as a polynomial in t = 4 x^2 - 1, for x^2 <= 1/2: power-series coefficients, highest first."""
    t = np.polynomial.chebyshev.chebpts1(22)
    x = np.sqrt((t + 1) / 4)
    fit = np.polynomial.chebyshev.chebfit(t, np.arcsin(x) / x, 21)
    return np.polynomial.chebyshev.cheb2poly(fit)[::-1].tolist()


_ARCSINE = _arcsine_table()


def arcsine(x: Array, complement: Array | None = None) -> Array:
    """asin x, elementwise and several times faster than the library's on CPU; relative error below 1e-15.

    `complement` is sqrt(1 - x^2) where it is known better than x tells: beyond 1/sqrt(2) the angle follows from it.
    """
    xp = module_of(x)
    size = xp.minimum(xp.abs(x), 1)
    if complement is None:
        complement = xp.sqrt((1 - size) * (1 + size))
    large = size > complement
    inner = xp.where(large, complement, size)
    t = 4 * inner * inner - 1
    total = xp.full_like(t, _ARCSINE[0])
    for c in _ARCSINE[1:]:
        total = total * t + c
    angle = xp.where(large, np.pi / 2 - inner * total, inner * total)
    return xp.where(x < 0, -angle, angle)


def conditionals(matrix: Array) -> dict[tuple[int, ...], Array]:
    """Covariance (d, d, B) of all variables given that those of a subset vanish, for every subset; conditioned on one
    variable at a time, so that nothing is inverted. Key (): the matrix itself.
    """
    xp, size = module_of(matrix), matrix.shape[0]
    out: dict[tuple[int, ...], Array] = {(): matrix}
    for count in range(1, size):
        for given in combinations(range(size), count):
            before = out[given[:-1]]
            i = given[-1]
            pivot = before[i, i]
            column = before[:, i] / xp.where(pivot > 0, pivot, 1)[None]
            out[given] = before - xp.where((pivot > 0)[None, None], column[:, None] * before[i][None, :], 0)
    return out


def correlation(covariance: Array, variance: Array, other: Array) -> Array:
    """covariance / sqrt(variance other), clipped; zero where a variance vanishes."""
    product = variance * other
    xp = module_of(product)
    return xp.where(product > 0, xp.clip(covariance / xp.sqrt(xp.where(product > 0, product, 1)), -1, 1), 0)


def sign2(r: Array) -> Array:
    """<s_1 s_2> from the correlation."""
    return (2 / np.pi) * arcsine(r)


CROSS = ((0, 2, 1, 3), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2))  # i, j crossing; k, l the rest
WAYS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))


def sign4(covariance: Array, nodes: Array, weights: Array) -> Array:
    """<s_1 s_2 s_3 s_4> for covariances (4, 4, B), with the integral over t in (0, 1) by the given rule.

    The strongest of the six correlations is held within a pair, so that the integrand stays smooth.
    """
    xp = module_of(covariance)
    variance = xp.stack([covariance[i, i] for i in range(4)])
    r = correlation(covariance, variance[:, None], variance[None, :])
    strength = xp.stack([xp.maximum(xp.abs(r[w[0], w[1]]), xp.abs(r[w[2], w[3]])) for w in WAYS])
    best = xp.argmax(strength, axis=0)
    turned = [r[np.ix_(w, w)] for w in WAYS]
    best = best[None, None]
    r = xp.where(best == 0, turned[0], xp.where(best == 1, turned[1], turned[2]))
    i, j, k, l = (np.array(x) for x in zip(*CROSS))
    crossing = np.zeros((4, 4), dtype=bool)
    crossing[i, j] = crossing[j, i] = True

    def integrand(total: Array, rule: tuple[Array, Array]) -> tuple[Array, None]:
        t, w = rule
        scaled = r * xp.where(crossing, t, 1.0)[:, :, None]
        ij, kl, ik, il, jk, jl = (scaled[x, y] for x, y in ((i, j), (k, l), (i, k), (i, l), (j, k), (j, l)))
        gap = xp.maximum(1 - ij * ij, np.finfo(r.dtype).tiny)
        c = kl * gap - (ik * il + jk * jl - ij * (ik * jl + il * jk))
        vk = gap - (ik * ik + jk * jk - 2 * ij * ik * jk)
        vl = gap - (il * il + jl * jl - 2 * ij * il * jl)
        rest = correlation(c, xp.maximum(vk, 0), xp.maximum(vl, 0))
        return total + w * (2 / np.pi) ** 2 * (r[i, j] / xp.sqrt(gap) * arcsine(rest)).sum(axis=0), None

    start = (2 / np.pi) ** 2 * arcsine(r[0, 1]) * arcsine(r[2, 3])
    return loop(integrand, start, (nodes, weights))[0]
