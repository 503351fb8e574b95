r"""Hermite moments of factors with a kink at zero, tabulated as functions of a conditional mean.

Given the other labels a preactivation is m + s y, y standard normal, and a factor f enters by its moments
C_n(mu) = <f(s (mu + y)) h_n(y)>, mu = m / s, entire functions of mu however f jumps. They are computed by panels of
Gauss-Legendre nodes in y where the kink is an edge of the panels, mu = multiples of PANEL, and far away, where all of
the Gaussian is on one side. Anywhere else Taylor's series is exact, since C_n' = sqrt(n + 1) C_{n+1}:

    C_n(mu + delta) = sum_k sqrt((n + k)! / n!) delta^k / k! C_{n+k}(mu).

That gives them at mapped Chebyshev points, mu = GRAIN sinh(kappa t), and at thousands of nodes they are read by matrix
products (`series.chebyshev`). Everything but the factor itself depends on no covariance and is kept.
"""

from __future__ import annotations

from functools import lru_cache
from math import erf, lgamma
from typing import NamedTuple

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.rules import hermite_table, legendre
from numeric.brackets.series.chebyshev import polynomials, transform

PANEL = 0.5  # of the rule for y, in standard deviations
REACH = 9.5  # standard deviations of y
NEAR = 24.0  # up to here places are multiples of PANEL, so that their nodes fall on each other
STEP = 0.25  # of the trapezoidal rule for y beyond, where there is no kink
TAYLOR = 24  # terms of Taylor's series over half a panel
GRAIN = 3.0  # standard deviations: Chebyshev points are dense within
SIZES = (*range(40, 129, 8), *range(144, 257, 16), *range(288, 769, 32))  # of tables
Kind = tuple[int, ...]  # derivative orders of the factors at one label; -k stands for z sigma^(k)


class Table(NamedTuple):
    """How n moments are tabulated: up to `reach` conditional deviations, in so many `terms`, so many nodes a panel."""

    n: int
    reach: float
    terms: int
    nodes: int


class Scaffold(NamedTuple):
    """What tables of one kind share. U places and Y nodes of y near the kink, F far places, L different arguments, P
    Chebyshev points.
    """

    kappa: float
    line: np.ndarray  # (L,) arguments mu + y, in conditional deviations; those of the far places last
    where: np.ndarray  # (U, Y) on the line
    hermite: np.ndarray  # (n + TAYLOR, Y) h_n(y), weights included
    far: np.ndarray  # (n + TAYLOR, nodes) likewise, at far places
    nearest: np.ndarray  # (P,) index into the places, far ones last
    powers: np.ndarray  # (TAYLOR, P) delta^k
    taylor: np.ndarray  # (n, TAYLOR)
    matrix: np.ndarray  # (P, P) from values at the points to coefficients
    average: np.ndarray  # (L, P) from values on the line to coefficients of the zeroth moment


@lru_cache(maxsize=64)
def scaffold(table: Table) -> Scaffold:
    kappa = float(np.arcsinh(table.reach / GRAIN))
    points, matrix = transform(table.terms, None)
    mu = GRAIN * np.sinh(kappa * points)
    panels, x_w = round(2 * REACH / PANEL), legendre(table.nodes)
    y = (PANEL * np.arange(panels)[:, None] + PANEL * x_w[0]).ravel() - REACH
    weights = np.tile(PANEL * x_w[1], panels) * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
    hermite = hermite_table(y, table.n + TAYLOR) * weights
    near, step = np.abs(mu) < NEAR, np.round(mu / PANEL).astype(int)
    edges = np.arange(step[near].min(), step[near].max() + 1)
    nearest = np.where(near, step - edges[0], 0)
    nearest[~near] = edges.size + np.arange(np.sum(~near))
    shared = (PANEL * np.arange(edges.size + panels - 1)[:, None] + PANEL * x_w[0]).ravel() + (PANEL * edges[0] - REACH)
    steps = STEP * (np.arange(round(2 * REACH / STEP)) + 0.5) - REACH
    far = hermite_table(steps, table.n + TAYLOR) * (STEP / np.sqrt(2 * np.pi) * np.exp(-(steps**2) / 2))
    line = np.concatenate([shared, (mu[~near, None] + steps).ravel()])
    where = table.nodes * np.arange(edges.size)[:, None] + np.arange(y.size)
    logs = np.array([lgamma(k + 1) for k in range(table.n + TAYLOR)])
    k = np.arange(TAYLOR)
    taylor = np.exp((logs[np.arange(table.n)[:, None] + k] - logs[: table.n, None]) / 2 - logs[:TAYLOR])
    powers = np.where(near, mu - PANEL * step, 0.0) ** k[:, None]
    at_points = np.zeros((line.size, table.terms))
    columns = np.flatnonzero(near)
    at_points[where[nearest[near]], columns[:, None]] = (taylor[0] * powers[:, near].T) @ hermite[:TAYLOR]
    last = shared.size + np.arange(np.sum(~near) * steps.size).reshape(-1, steps.size)
    at_points[last, np.flatnonzero(~near)[:, None]] = far[0]
    return Scaffold(kappa, line, where, hermite, far, nearest, powers, taylor, matrix, at_points @ matrix.T)


@lru_cache(maxsize=256)
def enough_terms(n: int, reach: float, tolerance: float) -> int:
    """Terms of a table: the moments of a jump, C_n = h_{n-1}(-mu) phi(mu) / sqrt(n), between the points.

    The last of n moments are multiplied by r^n, which is small: they need fewer digits. Zero: no size is enough.
    """
    kappa = np.arcsinh(reach / GRAIN)
    mu = np.concatenate([np.linspace(-8, 8, 161), np.linspace(-1, 1, 41) * reach])
    mu = mu[np.abs(mu) <= reach]
    allowed = 0.1 * tolerance ** (1 - np.arange(n) / n)
    exact = _jump(mu, n)
    for terms in SIZES:
        points, matrix = transform(terms, None)
        c = _jump(GRAIN * np.sinh(kappa * points), n) @ matrix.T
        rows = np.asarray(polynomials(np.clip(np.arcsinh(mu / GRAIN) / kappa, -1, 1), terms, (None,))[0])
        if np.all(np.abs(c @ rows - exact).max(axis=1) <= allowed):
            return terms
    return 0


def _jump(mu: np.ndarray, n: int) -> np.ndarray:
    """Moments of the step function, (n, places)."""
    first = np.array([[(1 + erf(x / np.sqrt(2))) / 2 for x in mu]])
    others = hermite_table(-mu, max(n - 1, 1))[: n - 1] * np.exp(-(mu**2) / 2) / np.sqrt(2 * np.pi)
    return np.concatenate([first, others / np.sqrt(np.arange(1, n))[:, None]])


def _shifted(base: Array, own: Scaffold, n: int) -> Array:
    """Moments at the Chebyshev points from n + TAYLOR of them at the places: (M, n, P) from (M, n + TAYLOR, U)."""
    xp, at = module_of(base), base[..., own.nearest]
    total = at[:, :n]
    for k in range(1, TAYLOR):
        factor = own.taylor[None, :, k, None] * own.powers[k]
        total = total + xp.asarray(factor, base.dtype) * at[:, k : k + n]
    return total


class Moments:
    """C^k_n of M labels with conditional deviations s, for all orders k that have values, as functions of mu.

    From the values {k: (M, L)} of sigma^(k) on the line. Only moments of the highest order are read, and the zeroth of
    the others: C^k_{n+1} = s C^{k+1}_n / sqrt(n + 1).
    """

    def __init__(self, table: Table, highest: int, s: Array, values: dict[int, Array]) -> None:
        xp = module_of(s)
        self.own, self.table, self.highest, self.s = scaffold(table), table, highest, s
        self.lower = tuple(sorted((k for k in values if 0 <= k < highest), reverse=True))
        hermite, far, average, matrix = (
            xp.asarray(x, s.dtype) for x in (self.own.hermite, self.own.far, self.own.average, self.own.matrix)
        )
        high = values[highest][:, self.own.where]  # (M, U, Y)
        base = (high.reshape(-1, high.shape[-1]) @ hermite.T).reshape(*high.shape[:2], -1)
        last = values[highest][:, self.own.where[-1, -1] + 1 :].reshape(s.shape[0], -1, far.shape[1])
        base = xp.swapaxes(xp.concatenate([base, last @ far.T], axis=1), 1, 2)
        zeroth = [(values[k] @ average)[:, None] for k in self.lower]
        rows = [_shifted(base, self.own, table.n) @ matrix.T, *zeroth]
        self.coefficients = xp.concatenate(rows, axis=1)  # (M, n + highest, P)

    def at(self, means: Array) -> dict[int, Array]:
        """{k: (M, n, Q)} at conditional means (M, Q)."""
        xp, n = module_of(means), self.table.n
        found = _read(self.own, self.table, self.coefficients, means / self.s[:, None])
        current = found[:, :n]
        out = {self.highest: current}
        root = xp.sqrt(xp.arange(1, n, dtype=means.dtype))[None, :, None]
        for row, k in enumerate(self.lower):
            zeroth = found[:, n + row, None]
            current = xp.concatenate([zeroth, current[:, :-1] * (self.s[:, None, None] / root)], axis=1)
            out[k] = current
        return out


def times_z(moments: Array, means: Array, s: Array) -> Array:
    """The moments of z f(z), (M, n, Q), from those of f: y h_n = sqrt(n + 1) h_{n+1} + sqrt(n) h_{n-1}.

    The last one lacks a part, and is dropped.
    """
    xp, n = module_of(moments), moments.shape[1]
    root = xp.sqrt(xp.arange(1, n, dtype=means.dtype))[None, :, None]
    above = root * moments[:, 1:]
    below = xp.concatenate([xp.zeros_like(moments[:, :1]), root[:, :-1] * moments[:, :-2]], axis=1)
    return means[:, None] * moments[:, :-1] + s[:, None, None] * (above + below)


class Averages:
    """<product of factors> of M labels with conditional deviations s, one row a kind, as functions of the mean."""

    def __init__(self, table: Table, kinds: tuple[Kind, ...], s: Array, values: dict[int, Array]) -> None:
        self.own, self.table, self.s = scaffold(table), table, s
        xp = module_of(s)
        average = xp.asarray(self.own.average, s.dtype)
        self.coefficients = xp.stack(products(kinds, values), axis=1) @ average  # (M, kinds, P)

    def at(self, means: Array) -> Array:
        """(M, kinds, Q) at conditional means (M, Q)."""
        return _read(self.own, self.table, self.coefficients, means / self.s[:, None])


def products(kinds: tuple[Kind, ...], values: dict[int, Array]) -> list[Array]:
    """The products over the orders of each kind of the values of sigma^(k), z sigma^(k) at -k."""
    found: dict[Kind, Array] = {}
    for kind in kinds:
        for length in range(1, len(kind) + 1):
            part = kind[:length]
            if part not in found:
                found[part] = found[part[:-1]] * values[part[-1]] if length > 1 else values[part[0]]
    return [found[kind] for kind in kinds]


def line(table: Table, s: Array) -> Array:
    """(M, L): where the tables of M labels with conditional deviations s ask for values of sigma."""
    return s[:, None] * module_of(s).asarray(scaffold(table).line, s.dtype)[None]


def _read(own: Scaffold, table: Table, coefficients: Array, mu: Array) -> Array:
    xp = module_of(mu)
    t = xp.clip(xp.arcsinh(mu / GRAIN) / own.kappa, -1, 1)
    return coefficients @ polynomials(t, table.terms, (None,))[0]
