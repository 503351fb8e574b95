"""Moments as functions of a conditional mean: tabulated once, read at thousands of nodes by matrix products.

Given a pair of inputs, what a label contributes at a node depends on one number, its mean m there, |m| <= R. Evaluating
the activation at every node and every y takes longer than all matrix products together; so the moments are computed at
a few points, m = grain sinh(kappa t) with Chebyshev points t (dense where the activation has its poles), and at the
nodes they are sum_j c_j T_j(t). A function of known parity has every other coefficient only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import jax
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of, sigma
from numeric.brackets.functions import Functions
from numeric.brackets.rules import evaluate, gaussian_weights, half_line, hermite_table
from numeric.brackets.series.hermite import hermite_rows
from numeric.brackets.series.raised import of_orders, weighted

SIZES = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)  # beyond, functions are evaluated everywhere
SPREADS = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)  # conditional ones at which the table is tried
WIDE = 8  # angles in the smaller of two tables that are combined
COARSEST = 3.0  # grain of functions without near poles
RATIO = 1.1  # tables are tried at variances on a ladder of this ratio


class Table(NamedTuple):
    """How moments are tabulated: how many terms, up to how many standard deviations, with which grain."""

    terms: int
    reach: Array
    grain: Array


def choose_table(
    functions: Functions,
    orders: tuple[int, ...],
    n: int,
    variance: float,
    radius: float,
    step: float,
    tolerance: float,
    squares: tuple[tuple[int, int], ...] = (),
) -> tuple[int, float]:
    """(terms, grain) at which n moments of the highest order, the zeroth of the others and `squares` have converged.

    Zero terms: none of SIZES is enough, or sharp features stand at places that the points do not know.
    """
    grain = min(functions.strip, COARSEST)
    if functions.features or not grain > 0:
        return 0, 1.0
    rung = RATIO ** float(np.ceil(np.log(variance) / np.log(RATIO)))
    return _measured(functions, orders, n, rung, radius, step, tolerance, grain, squares), grain


@lru_cache(maxsize=256)
def _measured(
    functions: Functions,
    orders: tuple[int, ...],
    n: int,
    variance: float,
    radius: float,
    step: float,
    tolerance: float,
    grain: float,
    squares: tuple[tuple[int, int], ...],
) -> int:
    """The first of SIZES at which the moments between the points are right, weighted by the root of the Gaussian.

    In units of the fourth moment of sigma^(k): the brackets multiply four factors.
    """
    y = half_line(step, 8 + np.sqrt(n) / 2)
    y = np.concatenate([-y[::-1], y])
    table = hermite_table(y, n) * (step / np.sqrt(2 * np.pi) * np.exp(-(y**2) / 2))
    deviation = np.sqrt(variance)
    x = np.linspace(-5, 5, 201)
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    size = {k: max(float(weight @ evaluate(functions, k, deviation * x) ** 4) ** 0.25, 1e-300) for k in orders}
    top = radius * deviation
    kappa = np.arcsinh(top / grain)

    def moments(m: np.ndarray, spread: float) -> np.ndarray:
        z = m[:, None] + spread * deviation * y
        values = {k: evaluate(functions, k, z) / size[k] for k in orders}
        rows = [values[k] @ table[: n if k == orders[-1] else 1].T for k in orders]
        rows += [(values[j] * values[k]) @ table[:1].T for j, k in squares]
        return np.concatenate(rows, axis=1)

    with np.errstate(all="ignore"):
        checks = []
        for spread in SPREADS:
            rest = np.sqrt(1 - spread**2)
            m = np.linspace(-1, 1, 81) * top * rest
            checks.append((m, np.exp(-((m / (rest * deviation)) ** 2) / 4)[:, None], moments(m, spread)))
        for count in SIZES:
            points, matrix = transform(count, None)
            worst = 0.0
            for spread, (m, weights, exact) in zip(SPREADS, checks):
                c = matrix @ moments(grain * np.sinh(kappa * points), spread)
                rows = polynomials(np.clip(np.arcsinh(m / grain) / kappa, -1, 1), count, (None,))[0]
                found = np.asarray(rows).T @ c
                worst = max(worst, float((weights * np.abs(found - exact)).max()))
                if not worst <= tolerance:
                    break
            if worst <= tolerance:
                return count
    return 0


@lru_cache(maxsize=64)
def transform(count: int, parity: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(points, matrix): coefficients = matrix @ values at the points; even (0), odd (1) or even, then odd ones (None).

    With a parity the positive half of the points does.
    """
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    matrix = 2 * np.cos(np.pi * np.outer(np.arange(count), np.arange(count) + 0.5) / count) / count
    matrix[0] /= 2
    if parity is None:
        return points, np.concatenate([matrix[0::2], matrix[1::2]])
    half = count // 2
    return points[:half], 2 * matrix[parity::2, :half]


def polynomials(t: Array, count: int, parities: tuple[int | None, ...]) -> list[Array]:
    """T_j(t) = cos(j theta), j < count, on a new axis before the last: the even (0) and odd (1) ones, or all (None).

    All of them are the even ones, then the odd ones. cos(a + b) from tables of eight b and a few a: one pass over the
    result. (As one array of all j XLA would compute the tables again for every entry, whatever the barrier says.)
    """
    xp = module_of(t)
    if parities == (None,) and xp is not np:
        return [xp.concatenate(polynomials(t, count, (0, 1)), axis=-2)]
    t = t[..., None, :]
    turn = t, xp.sqrt(xp.maximum((1 - t) * (1 + t), 0))
    one, wanted = (2 * t * t - 1, 2 * t * turn[1]), count // 2
    near = _powers(one, WIDE)
    last = near[0][..., -1:, :], near[1][..., -1:, :]
    far = _powers(_product(last, one), -(-wanted // WIDE))
    if xp is np:
        if parities == (None,):
            return [_combined(near, (far, _product(far, turn)), wanted)]
        return [_combined(near, (_product(far, turn) if parity == 1 else far,), wanted) for parity in parities]
    # or every entry of the result would compute the tables again
    turn, near, far = jax.lax.optimization_barrier((turn, near, far))
    (u, v), found = (x[..., None, :, :] for x in near), []
    for parity in parities:
        c, s = (x[..., :, None, :] for x in (_product(far, turn) if parity == 1 else far))
        rows = c * u - s * v
        found.append(rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])[..., :wanted, :])
    return found


Angle = tuple[Array, Array]  # cosine and sine


def _product(one: Angle, other: Angle) -> Angle:
    return one[0] * other[0] - one[1] * other[1], one[0] * other[1] + one[1] * other[0]


def _combined(near: Angle, fars: Sequence[Angle], wanted: int) -> Array:
    """`wanted` rows cos(far + near) for each table of far angles, on the host: written where they belong, no copies."""
    (u, v), batch, count = near, near[0].shape[:-2], near[0].shape[-1]
    out, spare = np.empty((*batch, wanted * len(fars), count)), np.empty_like(u)
    for place, (c, s) in enumerate(fars):
        for row in range(c.shape[-2]):
            start, end = row * WIDE, min((row + 1) * WIDE, wanted)
            part, used = out[..., place * wanted + start : place * wanted + end, :], slice(end - start)
            np.multiply(c[..., row : row + 1, :], u[..., used, :], out=part)
            np.multiply(s[..., row : row + 1, :], v[..., used, :], out=spare[..., used, :])
            part -= spare[..., used, :]
    return cast(Array, out)


def _powers(one: Angle, count: int) -> Angle:
    """Cosines and sines of k one, k < count, along the axis before the last; each takes few products."""
    xp = module_of(one[0])
    rows, bit = [(xp.ones_like(one[0]), xp.zeros_like(one[0]))], one
    while len(rows) < count:
        rows += [_product(row, bit) for row in rows[: count - len(rows)]]
        bit = _product(bit, bit)
    return tuple(xp.concatenate(part, axis=-2) for part in zip(*rows))


class Tabulated:
    """C^k_{c,n} of M labels with deviations `size` and conditional ones `s`, as functions of the conditional mean."""

    def __init__(
        self,
        functions: Functions,
        table: Table,
        orders: range,
        n: int,
        size: Array,
        s: Array,
        y: Array,
        y_step: Array,
        squares: tuple[tuple[int, int], ...] = (),
    ) -> None:
        xp = module_of(s)
        self.n, self.orders, self.s, self.terms, self.grain = n, orders, s, table.terms, table.grain
        self.kappa = xp.arcsinh(table.reach * size / table.grain)
        weights = gaussian_weights(y, y_step)
        _, hermite = hermite_rows(y, (xp.zeros_like(weights), weights), xp.zeros((), y.dtype), n)
        split = bool(functions.parity) and n % 2 == 0
        self.parities: tuple[int | None, ...] = (0, 1) if split else (None,)
        points, _ = transform(table.terms, self.parities[0])
        m = table.grain * xp.sinh(self.kappa[:, None] * xp.asarray(points, s.dtype)[None])
        z = m[None] + s[None, :, None] * y[:, None, None]
        highest, self.lower = orders[-1], tuple(reversed(orders))[1:]
        high = weighted(hermite, sigma(functions, z, highest))
        zeroth = {k: weighted(hermite[:1], sigma(functions, z, k)) for k in self.lower}
        self.first: list[int] = []  # the lowest moment of each parity; then the zeroth ones that have it too
        self.own: list[list[int]] = []
        self.coefficients = []
        for parity in self.parities:
            even = [] if parity is None else [(k + (functions.parity < 0) + parity) % 2 == 0 for k in orders]
            self.first.append(0 if parity is None or even[-1] else 1)
            self.own.append([k for k in self.lower if parity is None or even[k - orders[0]]])
            rows = [high if parity is None else high[self.first[-1] :: 2], *(zeroth[k] for k in self.own[-1])]
            matrix = xp.asarray(transform(table.terms, parity)[1], s.dtype)
            self.coefficients.append(xp.einsum("jp,rmp->mrj", matrix, xp.concatenate(rows)))
        self.squares = {}
        for j, k in squares:
            which = (j + k) % 2 if split else 0
            matrix = xp.asarray(transform(table.terms, self.parities[which])[1], s.dtype)
            value = weighted(hermite[:1], sigma(functions, z, j) * sigma(functions, z, k))[0]
            self.squares[j, k] = which, xp.einsum("jp,mp->mj", matrix, value)

    def polynomials(self, means: Array) -> list[Array]:
        """The polynomials at conditional means (M, Q): they depend on `size`, on no moment."""
        xp = module_of(means)
        usable = (self.kappa > 0)[:, None]
        t = xp.where(usable, xp.arcsinh(means / self.grain) / xp.where(usable, self.kappa[:, None], 1), 0)
        return polynomials(xp.clip(t, -1, 1), self.terms, self.parities)

    def squared(self, known: list[Array], j: int, k: int) -> Array:
        """(M, Q): <sigma^(j) sigma^(k)> at each label, where the polynomials are `known`; one of `squares`."""
        which, c = self.squares[j, k]
        return module_of(c).einsum("mj,mjq->mq", c, known[which])

    def at(self, means: Array, known: list[Array] | None = None) -> dict[int, Array]:
        """{k: (n, M, Q)} at conditional means (M, Q), or where the polynomials are `known`."""
        return of_orders(self.rows(means, known), self.orders, self.n, False, self.s)

    def rows(self, means: Array, known: list[Array] | None = None) -> Array:
        """What all orders are multiples of (`series.raised`), (n + orders - 1, M, Q)."""
        xp = module_of(means)
        found = [
            xp.swapaxes(xp.matmul(c, rows), 0, 1)  # (rows, M, Q)
            for rows, c in zip(self.polynomials(means) if known is None else known, self.coefficients)
        ]
        count = self.n // len(found)
        high = [rows[:count] for _, rows in sorted(zip(self.first, found), key=lambda pair: pair[0])]
        zeroth = {k: rows[count + i][None] for rows, own in zip(found, self.own) for i, k in enumerate(own)}
        every = xp.stack(high, axis=1).reshape(self.n, *means.shape) if len(high) > 1 else high[0]
        return xp.concatenate([*(zeroth[k] for k in self.orders[:-1]), every])
