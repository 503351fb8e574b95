"""Which two inputs of a quadruple are integrated in their plane, and which are left, for activations with a kink.

Four labels are conditioned on one of their six pairs, with a series in the correlation of the other two: the pairs are
chosen as those of smooth activations are (`series.conditioning`), at the price of such a series. Three labels leave the
one that the other two determine least. What no pair suits, nearly coincident or coplanar inputs, is left over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numeric.brackets.kinked.conditioned import LEFT, SHAPES
from numeric.brackets.patterns import sorted_quadruples
from numeric.brackets.series.conditioning import POSITIONS, choose_others, choose_pairs
from numeric.brackets.series.lengths import LONGEST

SINGULAR = 1e-10  # 1 - rho^2 of a pair: below, its plane is not known
SHARPEST = 0.012  # conditional deviation over the spread of the mean: below, nodes would be too many
TERMS = (36, 76, 160, 240)  # lengths of tables of moments; series end where they may
UNUSABLE = LONGEST + 1.0


class Conditions(NamedTuple):
    """Of a stack of kernels, at worst: s_c over the deviation of its mean given (a, b); |r_cd|; 1 - rho_ab^2."""

    ratio: np.ndarray  # (N, N, N)
    r: np.ndarray  # (N, N, N, N)
    gap: np.ndarray  # (N, N)


class Choice(NamedTuple):
    """Of the sorted quadruples: distinct labels (0: by another way); option of POSITIONS, the label that is left first
    (three labels) and the kind of case; terms of the series; `ratio` of Conditions.
    """

    labels: np.ndarray
    option: np.ndarray
    left: np.ndarray
    case: np.ndarray
    terms: np.ndarray
    ratio: np.ndarray


def conditions(K: np.ndarray) -> Conditions:
    """What conditioning on any pair leaves; nothing usable where a label is one of the pair."""
    size = K.shape[-1]
    ratio, r, gap = np.full((size,) * 3, np.inf), np.zeros((size,) * 4, dtype=np.float32), np.ones((size, size))
    for kernel in K:
        variance = np.diagonal(kernel)
        root = np.sqrt(variance)
        for a, b in np.argwhere(np.triu(np.ones((size, size), dtype=bool), 1)):
            both = np.sqrt(variance[a] * variance[b])
            rest = (both - kernel[a, b]) * (both + kernel[a, b])
            gap[a, b] = gap[b, a] = min(gap[a, b], max(rest, 0.0) / both**2 if both > 0 else 0.0)
            if gap[a, b] < SINGULAR:
                ratio[a, b] = ratio[b, a] = 0.0
                continue
            first = kernel[a] / root[a]
            second = (kernel[b] * root[a] - kernel[a, b] * first) / np.sqrt(rest)
            mean = first**2 + second**2
            s = np.sqrt(np.maximum(variance - mean, 1e-15 * variance))
            product = np.maximum(s[:, None] * s, 1e-300)
            found = np.abs(kernel - first[:, None] * first - second[:, None] * second) / product
            ratio[a, b] = ratio[b, a] = np.minimum(ratio[a, b], s / np.sqrt(np.maximum(mean, 1e-300)))
            r[a, b] = r[b, a] = np.maximum(r[a, b], np.minimum(found, 1))
        ratio[:, :, variance == 0] = 0.0
    own = np.arange(size)
    ratio[own, :, own] = ratio[:, own, own] = ratio[own, own, :] = 0.0
    return Conditions(ratio, r, gap)


def terms_needed(r: np.ndarray, tolerance: float) -> np.ndarray:
    """Terms after which r^n is below the tolerance: coefficients of kinks fall by a hundred and more on top of that."""
    r = np.clip(r.astype(float), 1e-3, 1 - 1e-9)
    return np.ceil(np.log(min(tolerance, 0.1)) / np.log(r)) + 4


def choose(K: np.ndarray, tolerance: float, wanted: np.ndarray, avoid: np.ndarray | None) -> Choice:
    """For every sorted quadruple that is wanted; on another pair than `avoid` says, where another one is any good."""
    quadruples = sorted_quadruples(K.shape[-1])
    count = len(quadruples)
    steps = np.diff(quadruples, axis=1) > 0
    distinct = steps.sum(axis=1) + 1
    found = conditions(K)
    labels = np.zeros(count, dtype=int)
    option, left, case, terms = (np.zeros(count, dtype=np.int32) for _ in range(4))
    ratio = np.full(count, np.inf)
    positive = (np.diagonal(K, axis1=1, axis2=2)[:, quadruples] > 0).all(axis=(0, 2))

    rows = np.flatnonzero(wanted & positive & (distinct <= 2))
    labels[rows] = 2
    case[rows] = np.where(distinct[rows] == 1, 1, np.argmax(steps[rows][:, ::-1], axis=1))
    option[rows] = 2  # first and last label

    rows = np.flatnonzero(wanted & positive & (distinct == 3))
    if rows.size:
        _three(quadruples, rows, found, avoid, (labels, option, left, case, ratio))
    rows = np.flatnonzero(wanted & positive & (distinct == 4))
    if rows.size:
        least = np.minimum(found.ratio[:, :, :, None], found.ratio[:, :, None, :])
        need = terms_needed(found.r, tolerance)
        price = np.where((least < SHARPEST) | (need > TERMS[-1]), UNUSABLE, need * _dearer(least))
        price = np.minimum(price, UNUSABLE)
        known = (found.gap >= SINGULAR).astype(float)  # thin sectors are as good as others
        chosen, _ = choose_pairs(quadruples[rows], price, known)
        if avoid is not None:
            chosen, _ = choose_others(quadruples[rows], price, known, avoid[rows])
        every = np.stack([price[tuple(quadruples[rows][:, p].T)] for p in POSITIONS], axis=1)
        hard = np.take_along_axis(every, chosen[:, None], axis=1)[:, 0] >= UNUSABLE
        chosen = np.where(hard, np.argmin(every, axis=1), chosen)
        a, b, c, d = np.take_along_axis(quadruples[rows], np.array(POSITIONS)[chosen], axis=1).T
        usable = price[a, b, c, d] < UNUSABLE
        labels[rows] = np.where(usable, 4, 0)
        option[rows] = chosen
        terms[rows] = np.minimum(need[a, b, c, d], TERMS[-1])
        ratio[rows] = least[a, b, c, d]
    return Choice(labels, option, left, case, terms, ratio)


def _dearer(ratio: np.ndarray) -> np.ndarray:
    """How many more nodes, roughly, a label takes that the pair nearly determines."""
    return 1 + 0.5 * np.log2(1 / np.clip(ratio, SHARPEST, 1.0))


def _three(
    quadruples: np.ndarray, rows: np.ndarray, found: Conditions, avoid: np.ndarray | None, out: tuple[np.ndarray, ...]
) -> None:
    """Fill in the quadruples of three labels: what is left is the label with the largest conditional deviation."""
    labels, option, left, case, ratio = out
    own = quadruples[rows]
    shape = np.argmin(np.diff(own, axis=1), axis=1)  # where the repeated label stands
    position = np.array([[s.index(i) for i in range(3)] for s in SHAPES[3]])[shape]
    three = np.take_along_axis(own, position, axis=1)
    ratios = np.stack([found.ratio[three[:, i], three[:, j], three[:, k]] for i, j, k in LEFT], axis=1)
    which = np.argmax(ratios, axis=1)
    if avoid is not None:
        before = np.take_along_axis(own, np.array(POSITIONS)[avoid[rows], :2], axis=1)
        pairs = np.stack([np.sort(three[:, [i, j]], axis=1) for i, j, _ in LEFT], axis=1)
        same = (pairs == np.sort(before, axis=1)[:, None, :]).all(axis=2)
        others = np.where(same, 0.0, ratios)
        which = np.where(others.max(axis=1) >= SHARPEST, np.argmax(others, axis=1), which)
    best = np.take_along_axis(ratios, which[:, None], axis=1)[:, 0]
    labels[rows] = np.where(best >= SHARPEST, 3, 0)
    ratio[rows] = best
    case[rows] = 3 * shape + which
    places = np.take_along_axis(position, np.array(LEFT)[which], axis=1)
    left[rows] = np.take_along_axis(own, places[:, 2:], axis=1)[:, 0]
    index = {tuple(sorted(p[:2])): i for i, p in enumerate(POSITIONS)}
    option[rows] = [index[tuple(sorted(p))] for p in places[:, :2].tolist()]
