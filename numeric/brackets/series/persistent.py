"""Brackets of two activations at one layer and two at a later one, for a neuron that persists, on the host.

With z^(m) = rho z^(l) + a Gaussian that knows nothing of layer l, two expectations can be taken apart:

    <s^(j)_a s^(k)_b at m, s^(p)_c s^(q)_d at l> = <U_ab W_cd>,
    U_ab = <s^(j)_a s^(k)_b at m | z_a, z_b at l>,    W_cd = <s^(p)_c s^(q)_d at l | z_a, z_b at l>.

Both are functions on the plane of (z_a, z_b) at l. W does not depend on m, so that it is computed once a layer; U is a
Mehler series in the correlation of the noise whose terms depend on z_a alone times z_b alone. What is left for each
pair of layers is cheap; four labels of two layers at a time would take a conditioned series for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial
from typing import Any, NamedTuple, cast

import numpy as np

from numeric.brackets.arrays import sigma
from numeric.brackets.functions import Functions
from numeric.brackets.patterns import Pattern
from numeric.brackets.rules import converged_step, gaussian_weights, ladder, reach
from numeric.brackets.series.buckets import HOST, conditional_rule, node_steps, plane_nodes
from numeric.brackets.series.chebyshev import Table, Tabulated, choose_table
from numeric.brackets.series.conditioned import geometry
from numeric.brackets.series.conditioning import SINGULAR
from numeric.brackets.series.lengths import CORRELATIONS, ENOUGH, LONGEST, SPREADS, series_lengths, term_sizes
from numeric.brackets.series.raised import of_orders, rows_everywhere

Array = Any  # NumPy's
Pair = tuple[int, int]
MOST_NODES = 60_000
LOOKED_AT = (128, 256, LONGEST)  # terms
FLOOR = 1e-28  # of the variance: nothing is divided by zero
SHARE = 0.1  # of the tolerance, for each of several errors


def number(x: float) -> Array:
    """As the formulas that NumPy and JAX share take it."""
    return np.asarray(x)


class Everywhere(NamedTuple):
    """Moments without a table: sigma is evaluated at every node and every y."""

    functions: Functions
    orders: range
    n: int
    s: Array
    y: Array
    step: float

    def at(self, means: Array) -> dict[int, Array]:
        """{k: (n, M, Q)} at conditional means (M, Q)."""
        rule = (self.functions, self.s, self.orders, self.n, False, self.y, number(self.step))
        rows = cast(
            Any, np.concatenate([np.asarray(rows_everywhere(*rule, part)) for part in self._parts(means)], axis=2)
        )
        return of_orders(rows, self.orders, self.n, False, self.s)

    def _parts(self, means: Array) -> list[Array]:
        return np.array_split(means, max(means.size * self.y.size // HOST, 1), axis=1)

    def squares(self, means: Array, pairs: list[Pair]) -> dict[Pair, Array]:
        """{(j, k): (M, Q)}: <sigma^(j) sigma^(k)> of each label."""
        weights = gaussian_weights(self.y, self.step)
        found: dict[Pair, list[Array]] = {pair: [] for pair in pairs}
        for part in self._parts(means):
            z = part[None] + self.s[None, :, None] * self.y[:, None, None]
            values = {k: sigma(self.functions, z, k) for k in {k for pair in pairs for k in pair}}
            for j, k in pairs:
                found[j, k].append(np.einsum("y,ymq->mq", weights, values[j] * values[k]))
        return {pair: np.concatenate(parts, axis=1) for pair, parts in found.items()}


class Moments(NamedTuple):
    """How moments of sigma, ..., sigma^(highest) at labels of one layer are tabulated, at most so many deviations out;
    `lengths` of series as in `lengths`.
    """

    functions: Functions
    highest: int
    orders: range
    deviation: float
    smooth: float
    tolerance: float
    radius: float
    sizes: np.ndarray
    lengths: np.ndarray

    def length(self, r: Array, s: Array, other: Array) -> int:
        """Terms of series in correlations r of labels with conditional deviations s and other."""
        i = np.searchsorted(CORRELATIONS, np.minimum(np.abs(r), 1))
        spread = np.sqrt(np.minimum(s / self.deviation, 1) * np.minimum(other / self.deviation, 1))
        found = self.lengths[i, np.minimum(np.searchsorted(SPREADS, spread), SPREADS.size - 1)]
        return int(np.max(found)) + 1

    def everywhere(self, n: int, s: Array) -> Everywhere:
        """n moments of labels that vary by s around their means."""
        y, step = self.rule(n, float(np.max(s)) / self.deviation)
        return Everywhere(self.functions, self.orders, n, s, y, step)

    def rule(self, n: int, widest: float) -> tuple[Array, float]:
        """Nodes and step for n moments, and for products of two functions, at spreads up to `widest` deviations.

        Frequencies add up: the Gaussian's own, down to the tolerance, that of the n-th polynomial, and the functions',
        which is what the step at full spread has beyond the Gaussian's.
        """
        gaussian = np.sqrt(2 * np.log(1 / self.tolerance))
        functions = max(2 * np.pi / self.smooth - gaussian, 0.0)
        step = 2 * np.pi / (gaussian + np.sqrt(n) + widest * functions)
        return conditional_rule(self.sizes, n, widest, max(widest, 1e-3) * step, self.radius, self.tolerance)

    def table(self, n: int, size: Array, s: Array, squares: tuple[Pair, ...] = ()) -> Tabulated | None:
        """The same as a table, for means with deviations `size`; None if no table is long enough."""
        rule, rows = self.everywhere(n, s), ladder(n, 2)  # tables are tried for few n and one spread: it takes time
        _, step = self.rule(rows, 1.0)
        every, share = tuple(range(self.highest + 1)), SHARE * self.tolerance
        terms, grain = choose_table(self.functions, every, rows, self.deviation**2, self.radius, step, share, squares)
        if not terms:
            return None
        table = Table(terms, number(self.radius), number(grain))
        return Tabulated(self.functions, table, self.orders, n, size, s, rule.y, number(rule.step), squares)


def moments(functions: Functions, highest: int, variance: float, tolerance: float, radius: float) -> Moments:
    """For labels of this variance."""
    orders = range(highest + 1)
    factors: list[tuple[int, ...]] = [(k,) for k in orders]
    factors += [(j, k) for k in orders for j in range(k + 1)]
    smooth = converged_step(functions, factors, variance, 0.3 * tolerance, shift=0.4)
    for longest in LOOKED_AT:
        sizes = term_sizes(functions, orders, variance, smooth, longest)
        lengths = series_lengths(sizes, SHARE * tolerance)
        if lengths.max() <= ENOUGH * longest:
            break
    return Moments(functions, highest, orders, float(np.sqrt(variance)), smooth, tolerance, radius, sizes, lengths)


def conditional(c: dict[int, Array], orders: list[Pair], first: int, second: int, r: float, kappa: float) -> Array:
    """(orders, Q): <sigma^(j) sigma^(k)> of two labels from their moments, correlation r and covariance kappa.

    Orders that differ by as much share the products of the highest of them: d/dkappa raises both by one.
    """
    n = len(next(iter(c.values())))
    powers = float(r) ** np.arange(n)
    found: dict[Pair, Array] = {}
    for gap in sorted({k - j for j, k in orders}):
        own = sorted(min(pair) for pair in orders if pair[1] - pair[0] == gap)
        top = own[-1]
        j, k = (top, top + gap) if gap >= 0 else (top - gap, top)
        product = c[j][:, first] * c[k][:, second]
        depth = top - own[0]
        sums = (_integrals(n, depth) * powers) @ product
        for low in own:
            m = top - low
            value = kappa**m * sums[m]
            for t in range(m):
                value = value + kappa**t / factorial(t) * c[j - m + t][0, first] * c[k - m + t][0, second]
            found[j - m, k - m] = value
    return np.stack([found[pair] for pair in orders])


class Layer(NamedTuple):
    """The lower layer's kernel and nodes of its planes (and lines)."""

    K: Array
    plane: Array
    line: Array


def between_layers(
    functions: Functions,
    fours: tuple[tuple[Pair, Pair], ...],
    K: np.ndarray,
    products: np.ndarray,
    tolerance: float,
    tick: Callable[[float], None] = lambda share: None,
) -> dict[tuple[Pair, Pair], np.ndarray] | None:
    """{(upper orders, lower orders): (m, l, a, b, c, d)} of layers with kernels K (layers, N, N), zero unless m > l.

    `products` (m, l) are the products of the skips in between. None: series or tables would be too long, or two inputs
    are nearly one.
    """
    layers, size = K.shape[:2]
    upper = sorted({pair for up, _ in fours for pair in (up, up[::-1])})
    lower = sorted({pair for _, low in fours for pair in (low, low[::-1])})
    patterns = tuple(sorted({_sorted(up + low) for up, low in fours}))
    variances = np.diagonal(K, axis1=1, axis2=2).max(axis=1)
    if not (variances > 0).all() or _smallest_gap(K) < SINGULAR:
        return None  # two inputs of one direction span no plane: the general route conditions on others
    highest = max(k for pair in upper + lower for k in pair)
    out = {four: np.zeros((layers, layers, *[size] * 4)) for four in fours}
    rules = []
    radius = reach(functions, patterns, float(variances.max()), SHARE * tolerance)
    for variance in variances:
        rules.append(moments(functions, highest, float(variance), tolerance, radius))
    for l in range(layers - 1):
        carried = max(1.0, float(np.abs(products[l + 1 :, l]).max())) ** 2
        step, _ = node_steps(functions, patterns, float(variances[l]) * carried, tolerance, False)
        if np.pi * (radius / step) ** 2 > MOST_NODES:
            return None
        half = functions.parity != 0
        plane, line = (plane_nodes(step, radius, half, single, 2**20)[0] for single in (False, True))
        here = Layer(K[l], plane, line)
        for a in range(size):
            for b in range(a, size):
                found = _pair(here, rules, K, products, l, a, b, upper, lower)
                if found is None:
                    return None
                for m, values in found:  # (upper, lower, N, N)
                    for up, low in fours:
                        out[up, low][m, l, a, b] = values[upper.index(up), lower.index(low)]
                        out[up, low][m, l, b, a] = values[upper.index(up[::-1]), lower.index(low)]
        tick(1 / max(layers - 1, 1))
    return out


def _pair(
    here: Layer,
    rules: list[Moments],
    K: np.ndarray,
    products: np.ndarray,
    l: int,
    a: int,
    b: int,
    upper: list[Pair],
    lower: list[Pair],
) -> list[tuple[int, np.ndarray]] | None:
    """[(m, brackets)] of all later layers for one pair of inputs there."""
    size = len(here.K)
    nodes = here.line if a == b else here.plane
    x, w = nodes[:2], nodes[2]
    x, w = x[:, w > 0], w[w > 0]
    every: Array = np.arange(size)
    g = geometry(here.K, number(a), number(b), every, a == b)
    rule = rules[l]._replace(orders=range(max(k for pair in lower for k in pair) + 1))
    deviations = np.sqrt(np.diagonal(here.K))
    off = ~np.eye(size, dtype=bool)
    n = ladder(rule.length(np.where(off, g.r, 0), g.s[:, None], g.s[None, :]), 1.25)
    if n > LONGEST:
        return None
    means = g.labels.T @ x
    table = rule.table(n, deviations, g.s, tuple(lower))
    if table is None:
        direct = rule.everywhere(n, g.s)
        c, squares = direct.at(means), direct.squares(means, lower)
    else:
        polynomials = table.polynomials(means)
        c = table.at(means, polynomials)
        squares = {pair: table.squared(polynomials, *pair) for pair in lower}
    W = np.empty((len(lower), size, size, w.size))
    turned = [lower.index(pair[::-1]) for pair in lower]
    for i in range(size):
        W[:, i, i] = [squares[pair][i] for pair in lower]
        for j in range(i + 1, size):
            W[:, i, j] = conditional(c, lower, i, j, float(g.r[i, j]), float(g.kappa[i, j]))
            W[:, j, i] = W[turned, i, j]
    W = (W * w).reshape(-1, w.size).T
    labels = [a] if a == b else [a, b]
    z: Array = np.stack([g.a @ x, g.b @ x])[: len(labels)]
    known: dict[tuple, list[Array]] = {}
    found = []
    for m in range(l + 1, len(K)):
        rho = float(products[m, l])
        own = np.ix_(labels, labels)
        noise = K[m][own] - rho**2 * here.K[own]
        s = np.sqrt(np.maximum(np.diagonal(noise), FLOOR * np.diagonal(K[m][own])))
        rule = rules[m]
        if a == b:
            square = rule.everywhere(1, s).squares(rho * z, upper)
            U = np.stack([square[pair][0] for pair in upper])
        else:
            r = float(np.clip(noise[0, 1] / (s[0] * s[1]), -1, 1)) if s.all() else 0.0  # an input that is zero
            n = ladder(rule.length(np.asarray(r), s[0], s[1]), 1.25)
            if n > LONGEST:
                return None
            table = rule.table(n, abs(rho) * deviations[labels], s)
            if table is None:
                c = rule.everywhere(n, s).at(rho * z)
            else:
                key = (rho, table.terms, float(table.grain), table.parities, rule.radius)
                if key not in known:
                    known[key] = table.polynomials(rho * z)
                c = table.at(rho * z, known[key])
            U = conditional(c, upper, 0, 1, r, r * s[0] * s[1])
        found.append((m, (U @ W).reshape(len(upper), len(lower), size, size)))
    return found


def _smallest_gap(K: np.ndarray) -> float:
    """The least 1 - rho^2 of two inputs, over all layers; inputs that are zero do not count."""
    squares = np.einsum("lii,ljj->lij", K, K)
    off = ~np.eye(K.shape[1], dtype=bool) & (squares > 0)
    return float((1 - K[off] ** 2 / squares[off]).min(initial=1.0))


@lru_cache(maxsize=256)
def _integrals(n: int, depth: int) -> np.ndarray:
    """[m, p]: p! / (p + m)!, what integrating r^p m times brings."""
    return np.array([[factorial(p) / factorial(p + m) for p in range(n)] for m in range(depth + 1)])


def _sorted(orders: tuple[int, ...]) -> Pattern:
    return tuple(sorted(orders))
