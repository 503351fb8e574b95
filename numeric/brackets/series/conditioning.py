"""Which pair to condition on for each quadruple of inputs.

A quadruple {a, b, c, d} can be conditioned on any of its six pairs. A repeated label is conditioned on itself, which
costs one dimension only. For distinct labels a third of all pairs suffices: split the inputs into three groups, then
two of any four share a group (Turan). Quadruples whose series would be long there (c and d nearly coincident given
a and b) get the pair that suits them best. Near-singular pairs (a, b) are used only when nothing else is left, which
happens only if all four inputs nearly coincide; then the conditional spread vanishes and the result is still right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numeric.brackets.series.lengths import CORRELATIONS, LONGEST, SPREADS

POSITIONS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2), (2, 3, 0, 1))
SINGULAR = 1e-6
BESIDES = 12  # terms of a series for the price of what conditioning on a pair takes besides
PLANE = 48  # terms of a series from which two labels, each twice, are integrated in their plane


class Geometry(NamedTuple):
    """Of a stack of kernels, at worst: series length for conditioning on (a, b) and expanding (c, d), largest spread
    s_c given (a, b) in units of sqrt(variance), smallest s_c, and 1 - rho_ab^2.
    """

    need: np.ndarray
    spread: np.ndarray
    lower: np.ndarray
    gap: np.ndarray


def geometry(K: np.ndarray, lengths: np.ndarray, variance: float) -> Geometry:
    """What conditioning on any pair would leave, from the table of series lengths."""
    size = K.shape[-1]
    need = np.zeros((size,) * 4, dtype=np.int16)
    spread = np.zeros((size,) * 3)
    lower = np.full((size,) * 3, np.inf)
    gap = np.ones((size, size))
    for kernel in K:
        diagonal = np.diagonal(kernel)
        for a in range(size):
            b = np.arange(a, size)  # all of them at once
            first = kernel[a] / np.sqrt(diagonal[a]) if diagonal[a] > 0 else np.zeros(size)
            rest = diagonal[b] - first[b] ** 2
            apart = (b > a) & (diagonal[b] > 0)
            gap[a, b[apart]] = np.minimum(gap[a, b[apart]], np.maximum(rest[apart] / diagonal[b[apart]], 0.0))
            second = np.zeros((b.size, size))
            own = (b > a) & (rest > 1e-14 * diagonal[b])
            second[own] = (kernel[b[own]] - first[b[own], None] * first) / np.sqrt(rest[own, None])
            s = np.sqrt(np.maximum(diagonal - first**2 - second**2, 1e-14 * diagonal))
            product = s[:, :, None] * s[:, None, :]
            kappa = kernel - np.outer(first, first) - second[:, :, None] * second[:, None, :]
            r = np.minimum(np.abs(np.divide(kappa, product, out=np.zeros_like(kappa), where=product > 0)), 1)
            relative = np.minimum(s / np.sqrt(variance), 1)
            i = np.minimum(np.searchsorted(CORRELATIONS, r), CORRELATIONS.size - 1)
            j = np.searchsorted(SPREADS, np.sqrt(relative[:, :, None] * relative[:, None, :]))
            need[a, b] = np.maximum(need[a, b], lengths[i, np.minimum(j, SPREADS.size - 1)])
            spread[a, b] = np.maximum(spread[a, b], relative)
            lower[a, b] = np.minimum(lower[a, b], s)
            need[b, a], spread[b, a], lower[b, a], gap[b, a] = need[a, b], spread[a, b], lower[a, b], gap[a, b]
    return Geometry(need, spread, lower, gap)


def choose_pairs(quadruples: np.ndarray, need: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every sorted quadruple the option (index into POSITIONS) and its series length."""
    size = need.shape[0]
    picked = np.stack([quadruples[:, p] for p in POSITIONS], axis=1)  # (U, 6, 4)
    a, b, c, d = np.moveaxis(picked, 2, 0)
    length = need[a, b, c, d].astype(float)
    singular = (a != b) & (gap[a, b] < SINGULAR)
    cost = length + np.where(singular, 1e6 * (2 - gap[a, b]), 0.0)
    group = np.arange(size) % 3
    distinct = (a != b).all(axis=1)
    cheap = (a == b) | ((group[a] == group[b]) & ~singular & distinct[:, None])
    restricted = np.where(cheap, cost, np.inf)
    best = restricted.min(axis=1)
    finite = best[np.isfinite(best)]
    cut = 2 * np.median(finite) + 16 if finite.size else 0.0
    four = np.flatnonzero(distinct & (best <= cut))
    shared = additional_pairs(
        best[four], cost[four], a[four] * size + b[four], len(np.unique(a[cheap] * size + b[cheap]))
    )
    hard = (best > cut) & (best > 1.3 * cost.min(axis=1)) & (distinct | (best > 200))
    within = (a != b) & ((c == a) | (c == b)) & ((d == a) | (d == b)) & ~singular  # a plane, and no series at all
    hard |= within.any(axis=1) & (best > PLANE)
    used = cheap.copy()
    rows = np.flatnonzero(hard)
    chosen = np.argmin(cost[rows], axis=1)
    used[rows, chosen] = True
    others = ~within[rows, chosen]  # such pairs do not serve other quadruples: those would take all labels along
    extra = np.zeros((size, size), dtype=bool)
    extra[a[rows[others], chosen[others]], b[rows[others], chosen[others]]] = True
    extra.ravel()[shared] = True
    used |= extra[a, b] | extra[b, a]
    used &= (a == b) | distinct[:, None] | hard[:, None]
    final = np.where(used, cost, np.inf)
    option = np.argmin(final, axis=1)
    return option, np.take_along_axis(length, option[:, None], axis=1)[:, 0]


def additional_pairs(best: np.ndarray, cost: np.ndarray, pairs: np.ndarray, jobs: int) -> list[int]:
    """Pairs that spare all others the longest series: from `jobs` pairs, with series of `best` terms, on.

    `pairs` (U, 6) are the numbers of each quadruple's pairs, `cost` their terms. As many are added as make pairs, times
    terms and what a pair costs besides, the fewest; each is the one that serves most of the quadruples that are left.
    """
    longest = np.unique(best)[::-1]
    if not longest.size:
        return []
    price, found = jobs * (longest[0] + BESIDES), list[int]()
    for length in longest[1:]:
        rows = np.flatnonzero(best > length)
        good = cost[rows] <= length
        if not good.any(axis=1).all() or jobs * (length + BESIDES) >= price:
            break
        added, left = list[int](), np.ones(len(rows), dtype=bool)
        while left.any() and (jobs + len(added)) * (length + BESIDES) < price:
            most = int(np.bincount(pairs[rows][left][good[left]]).argmax())
            added.append(most)
            left &= ~((pairs[rows] == most) & good).any(axis=1)
        if left.any():
            break
        if (jobs + len(added)) * (length + BESIDES) < price:
            price, found = (jobs + len(added)) * (length + BESIDES), added
    return found


def choose_others(
    quadruples: np.ndarray, need: np.ndarray, gap: np.ndarray, avoid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Like `choose_pairs`, but on another pair than `avoid` says, where another one is any good."""
    a, b, c, d = np.moveaxis(np.stack([quadruples[:, p] for p in POSITIONS], axis=1), 2, 0)
    length = need[a, b, c, d].astype(float)
    usable = (length <= LONGEST) & ((a == b) | (gap[a, b] >= SINGULAR))
    rows = np.arange(len(quadruples))
    same = (a == a[rows, avoid][:, None]) & (b == b[rows, avoid][:, None])
    cost = np.where(usable & ~same, length, np.inf)
    option = np.where(np.isfinite(cost).any(axis=1), np.argmin(cost, axis=1), avoid)
    return option, length[rows, option]
