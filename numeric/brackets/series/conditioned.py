"""Pair-conditioned Mehler series: brackets of four labels with two of them integrated by the trapezoidal rule.

Given the values of (z_a, z_b) at a node q, the other preactivations are Gaussian with means m_c(q), standard
deviations s_c and correlations r_cd that do not depend on the node. With
C^k_{c,n}(q) = <sigma^(k)(m_c + s_c y) h_n(y)>,

    <sigma^(i)_a sigma^(j)_b sigma^(k)_c sigma^(l)_d> = sum_n r_cd^n P_n,
    P_n[c, d] = sum_q w_q sigma^(i)_a sigma^(j)_b C^k_{c,n} C^l_{d,n},

one matrix product an order n. The C^k_n of all k are multiples of rows that k + n alone tells (`series.raised`), so
that the products are those of rows i and i + (l - k): they depend on (k, l) by their difference only. Lower
derivatives at c and d follow from the same products by integrating the series in kappa_cd = r_cd s_c s_d (the
derivative with respect to kappa raises both orders by one); this direction never divides by a small s, so coincident
labels, labels in the span of (a, b) and vanishing inputs need no special case.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of, only_if, sigma
from numeric.brackets.functions import Functions
from numeric.brackets.series.chebyshev import Table, Tabulated
from numeric.brackets.series.raised import factors, rows_everywhere

Pattern = tuple[int, ...]
FLOOR = 1e-14  # relative to the label's own variance: adding so little changes little, and no ratio blows up
SAME = 1e-30  # for a label of the pair itself, whose conditional variance is zero: a spike of 1e-2 feels FLOOR at 1e-9


class Family(NamedTuple):
    """Patterns (i, j; k - m, l - m), m = 0, 1, ..., depth, k <= l, that share the products of the highest (k, l)."""

    i: int
    j: int
    k: int
    l: int
    depth: int


def families(patterns: tuple[Pattern, ...]) -> tuple[Family, ...]:
    """The products needed for these patterns; the exchange of c and d is a transposition."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for i, j, k, l in patterns:
        found.setdefault((i, j, abs(k - l)), []).append(min(k, l))
    return tuple(Family(i, j, max(lows), max(lows) + gap, max(lows) - min(lows)) for (i, j, gap), lows in found.items())


def by_gap(families: tuple[Family, ...]) -> dict[int, list[Family]]:
    """The families by l - k: those with the same one differ by a weight only and make one larger product."""
    groups: dict[int, list[Family]] = {}
    for f in families:
        groups.setdefault(f.l - f.k, []).append(f)
    return groups


class Geometry(NamedTuple):
    """The Gaussian of (z_a, z_b, the labels): z = loading x + (conditional s, r, kappa)."""

    a: Array  # loadings of z_a on (x_1, x_2): (2,)
    b: Array
    labels: Array  # (2, M)
    s: Array  # (M,)
    r: Array  # (M, M)
    kappa: Array


def _ratio(numerator: Array, denominator: Array) -> Array:
    xp, positive = module_of(denominator), denominator > 0
    return xp.where(positive, numerator / xp.where(positive, denominator, 1), 0)


def geometry(K: Array, a: Array, b: Array, labels: Array, single: bool) -> Geometry:
    """Whiten the pair (a, b) and condition the labels on it; `single` says that b is the same input as a."""
    xp = module_of(K)
    floor = 16 * np.finfo(K.dtype).eps if K.dtype == np.float32 else FLOOR
    variances = xp.diagonal(K)[labels]
    size_a = xp.sqrt(K[a, a])
    first = _ratio(K[a][labels], size_a)
    if single:
        second = xp.zeros_like(first)
        on_a = on_b = xp.stack([size_a, xp.zeros_like(size_a)])
    else:
        b_first = _ratio(K[a, b], size_a)
        b_second = xp.sqrt(xp.maximum(K[b, b] - b_first**2, floor * K[b, b]))
        second = _ratio(K[b][labels] - b_first * first, b_second)
        on_a, on_b = xp.stack([size_a, xp.zeros_like(size_a)]), xp.stack([b_first, b_second])
    rest = xp.maximum(variances - first**2 - second**2, floor * variances)
    if K.dtype != np.float32:
        own = (labels == a.astype(labels.dtype)) | (labels == b.astype(labels.dtype))
        rest = xp.where(own, SAME * variances, rest)
    s = xp.sqrt(rest)
    kappa = K[labels][:, labels] - first[:, None] * first[None, :] - second[:, None] * second[None, :]
    size = s[:, None] * s[None, :]
    r = xp.clip(_ratio(kappa, size), -1, 1)
    return Geometry(on_a, on_b, xp.stack([first, second]), s, r, r * size)


def conditioned(
    functions: Functions,
    patterns: tuple[Pattern, ...],
    n: int,
    single: bool,
    upward: bool,
    K: Array,
    pair: Array,
    labels: Array,
    nodes: Array,
    y: Array,
    y_step: Array,
    table: Table | None = None,
) -> Array:
    """All brackets (i at a, j at b, k at c, l at d) for one pair (a, b) and all c, d in `labels`: (patterns, M, M).

    `nodes` has shape (chunks, 3, Q): x_1, x_2 and the weight; one chunk is held in memory at a time.
    `y` are the nodes of the conditional rule with step `y_step`, for each node of the plane or, with a `table`, for
    the points of that.
    """
    xp = module_of(K)
    g = geometry(K, pair[0], pair[1], labels, single)
    plan = families(patterns)
    orders = range(min(min(p[2:]) for p in patterns), max(max(p[2:]) for p in patterns) + 1)
    if table is not None and table.terms:
        size = xp.sqrt(xp.maximum(xp.diagonal(K)[labels], 0))
        rows, upward = Tabulated(functions, table, orders, n, size, g.s, y, y_step).rows, False
    else:
        rows = partial(rows_everywhere, functions, g.s, orders, n, upward, y, y_step)
    groups = by_gap(plan)
    count = n + max(f.k for f in plan) - orders[0]  # rows on the left of a product
    used = {gap: min(count, n + len(orders) - 1 - gap) for gap in groups}

    def add(total: list[Array], node: Array) -> list[Array]:
        x, w = node[:2], node[2]
        outer_a = {i: sigma(functions, g.a @ x, i) for i in {f.i for f in plan}}
        outer_b = {j: sigma(functions, g.b @ x, j) for j in {f.j for f in plan}}
        c = rows(g.labels.T @ x)
        weight = {(i, j): w * outer_a[i] * outer_b[j] for i, j in {(f.i, f.j) for f in plan}}
        stacked = {gap: xp.stack([weight[f.i, f.j] for f in own])[:, None, :] for gap, own in groups.items()}

        def row(_: None, i: Array) -> tuple[None, list[Array]]:
            """The products of one row with those that are a gap behind; past the last one nobody looks at them."""
            return None, [(own * c[i][None]).reshape(-1, w.size) @ c[i + gap].T for gap, own in stacked.items()]

        if xp is np:  # all rows at once: a loop of Python would take longer than its products
            for old, (gap, own) in zip(total, stacked.items()):
                left = (own * c[: used[gap], None]).reshape(used[gap], -1, w.size)
                old[: used[gap]] += np.matmul(left, np.swapaxes(c[gap : gap + used[gap]], 1, 2))
            return total
        _, added = loop(row, None, xp.arange(count))
        return [old + new for old, new in zip(total, added)]

    def chunk(total: list[Array], node: Array) -> tuple[list[Array], None]:
        return only_if((node[2] != 0).any(), lambda now: add(now, node), total), None

    size = labels.shape[0]
    start = [xp.zeros((count, len(own) * size, size), K.dtype) for own in groups.values()]
    together, _ = loop(chunk, start, nodes)
    scale, values = factors(orders, n, upward, g.s), dict[Pattern, Array]()
    for own, found in zip(groups.values(), together):
        for f, product in zip(own, xp.moveaxis(found.reshape(count, len(own), size, size), 1, 0)):
            place = f.k - orders[0]
            series = product[place : place + n] * scale[f.k][:, :, None] * scale[f.l][:, None, :]
            for m in range(f.depth + 1):
                integrated = [math.factorial(p) / math.factorial(p + m) for p in range(n)]
                value = _polynomial(g.r, series * xp.asarray(integrated, K.dtype)[:, None, None]) * g.kappa**m
                for t in range(m):  # the zeroth products of lower orders
                    low = f.k - m + t, f.l - m + t
                    zeroth = product[low[0] - orders[0]] * scale[low[0]][0][:, None] * scale[low[1]][0][None, :]
                    value = value + g.kappa**t / math.factorial(t) * zeroth
                values[f.i, f.j, f.k - m, f.l - m] = value
                values[f.i, f.j, f.l - m, f.k - m] = value.T
    return xp.stack([values[p] for p in patterns])


def within(functions: Functions, patterns: tuple[Pattern, ...], K: Array, pair: Array, nodes: Array) -> Array:
    """All brackets (i at a, j at b, k at c, l at d) with c and d in {a, b}: (patterns, 2, 2), mere quadrature."""
    xp = module_of(K)
    g = geometry(K, pair[0], pair[1], pair, False)
    orders = sorted({k for p in patterns for k in p})
    index = {k: row for row, k in enumerate(orders)}
    couples = sorted({p[:2] for p in patterns} | {p[2:] for p in patterns})

    def add(total: Array, node: Array) -> Array:
        values = xp.stack([xp.stack([sigma(functions, row @ node[:2], k) for k in orders]) for row in (g.a, g.b)])
        left = xp.stack([node[2] * values[0, index[i]] * values[1, index[j]] for i, j in couples])
        right = [values[c, index[k]] * values[d, index[l]] for k, l in couples for c in (0, 1) for d in (0, 1)]
        return total + left @ xp.stack(right).T

    def chunk(total: Array, node: Array) -> tuple[Array, None]:
        return only_if((node[2] != 0).any(), lambda now: add(now, node), total), None

    total, _ = loop(chunk, xp.zeros((len(couples), 4 * len(couples)), K.dtype), nodes)
    found = total.reshape(len(couples), len(couples), 2, 2)
    rows, columns = (np.array([couples.index(p[part]) for p in patterns]) for part in (slice(2), slice(2, 4)))
    return found[rows, columns]


def _polynomial(r: Array, coefficients: Array) -> Array:
    """sum_n r^n coefficients[n] by Horner's rule, or on the host at once."""
    if isinstance(r, np.ndarray):
        return np.einsum("nij,nij->ij", r ** np.arange(len(coefficients))[:, None, None], coefficients)
    return loop(lambda t, c: (t * r + c, None), module_of(r).zeros_like(r), coefficients, reverse=True)[0]
