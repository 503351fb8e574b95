r"""Factor analysis of a covariance: z_a = m_a + sum_j Lambda_aj w_j + sqrt(D_a) u_a, the w independent N(0, 1).

K = Lambda Lambda^T + D, so that given the common variables w two labels are independent; of three and four, the last
two stay correlated, D = diag(D_0, ..) + a block of two. One common variable does for two and three labels, two for
four. D is chosen so that the common integral is cheap: the trapezoidal rule needs about sqrt(det K/det D) nodes times
a constant for each common variable, and the block's series in its correlation has few terms if that is small. The
choice is made in double precision; Lambda and D then follow from it as balls that solve K = Lambda Lambda^T + D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import atan2, inf, tan
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from derive.activations.enclosure import available, constant_ball

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

A_DIMENSION = 27.0
"""Nodes that one more common variable costs, about."""
DEPTH = 50.0
"""Digits, as natural logarithms, for which choices are compared."""
A_TERM = 1.2
"""What a term of the pair's series costs against a factor that stands alone."""
GRID = np.geomspace(1e-8, 0.95, 90)


@dataclass(frozen=True)
class Choice:
    """The labels in an order in which the first `common` are pivots, with their shares D_a/K_aa; the others follow.

    For two labels the share is the squared loading of the first.
    """

    common: int
    order: tuple[int, ...]
    shares: tuple[float, ...]
    cost: float = inf

    @property
    def paired(self) -> tuple[int, int] | None:
        """The two labels that stay correlated."""
        return (self.order[-2], self.order[-1]) if len(self.order) > 2 else None


@dataclass(frozen=True)
class Loadings:
    """Lambda (a row a label), the diagonal of D and the correlation of the pair that is left."""

    rows: list[list[arb]]
    own: list[arb]
    correlation: arb


def choose(matrix: sp.ImmutableDenseMatrix) -> Choice | None:
    """The cheapest choice for a numeric covariance of two to four labels; None where K is singular or nearly so."""
    n = matrix.shape[0]
    K = np.array([[float(x) for x in matrix.row(i)] for i in range(n)])
    scale = np.sqrt(np.diag(K))
    rho = K / np.outer(scale, scale)
    if not np.linalg.det(rho) > 1e-14:
        return None
    if n == 2:
        return Choice(1, (0, 1), (float(abs(rho[0, 1])),))
    best: Choice | None = None
    for order in permutations(range(n)):
        if order[-2] < order[-1] and (n == 3 or order[0] < order[1]):
            found = _cheapest(rho[np.ix_(order, order)], order)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
    return best


def _cheapest(r: np.ndarray, order: tuple[int, ...]) -> Choice | None:
    """The best shares of the pivots on a grid, for one order."""
    pivots = len(r) - 2
    shares = np.meshgrid(*[GRID] * pivots, indexing="ij")
    if pivots == 1:
        block = [[1 / (1 - shares[0])]]
        good = shares[0] < 1
    else:
        p, q = 1 - shares[0], 1 - shares[1]
        determinant = p * q - r[0, 1] ** 2
        good = determinant > 1e-9
        determinant = np.where(good, determinant, 1.0)
        block = [[q / determinant, -r[0, 1] / determinant], [-r[0, 1] / determinant, p / determinant]]

    def left(i: int, j: int) -> np.ndarray:
        common = sum(r[a, i] * block[a][b] * r[b, j] for a in range(pivots) for b in range(pivots))
        return r[i, j] - common

    one, two, cross = left(-2, -2), left(-1, -1), left(-2, -1)
    good &= (one > 1e-9) & (two > 1e-9) & (cross**2 < 0.95 * one * two)
    if not good.any():
        return None
    one, two, cross = (np.where(good, x, y) for x, y in ((one, 1.0), (two, 1.0), (cross, 0.0)))
    own = one * two - cross**2
    for share in shares:
        own = own * share
    nodes = A_DIMENSION**pivots * np.sqrt(np.linalg.det(r) / own)
    terms = 1 + DEPTH / np.maximum(0.02, -np.log(np.maximum(1e-20, np.abs(cross) / np.sqrt(one * two))))
    cost = np.where(good, nodes * (pivots + A_TERM * terms), inf)
    at = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return Choice(pivots, order, tuple(float(s[at]) for s in shares), float(cost[at]))


def loadings(matrix: sp.ImmutableDenseMatrix, choice: Choice) -> Loadings:
    """Lambda and D as balls at the present precision, turned to the axes in which the rule needs the fewest nodes."""
    n, r, order = matrix.shape[0], choice.common, choice.order
    deviation = [constant_ball(matrix[a, a]).sqrt() for a in range(n)]

    def rho(i: int, j: int) -> arb:
        a, b = order[i], order[j]
        return flint.arb(1) if a == b else constant_ball(matrix[a, b]) / (deviation[a] * deviation[b])

    if n == 2:
        square, c = flint.arb(choice.shares[0]), rho(0, 1)
        unit = [([square.sqrt()], 1 - square), ([c / square.sqrt()], 1 - c**2 / square)]
        correlation = flint.arb(0)
    else:
        unit = _lower(n, r, [flint.arb(x) for x in choice.shares], rho)
        (first, one), (second, two) = unit[-2:]
        common = sum((x * y for x, y in zip(first, second)), flint.arb(0))
        correlation = (rho(n - 2, n - 1) - common) / (one * two).sqrt()
    rows: list[list[arb]] = [[] for _ in range(n)]
    own = [flint.arb(0)] * n
    for i, (row, share) in enumerate(unit):
        rows[order[i]] = [x * deviation[order[i]] for x in row]
        own[order[i]] = share * deviation[order[i]] ** 2
    return Loadings(_turned(rows, own, choice.paired, correlation), own, correlation)


def sharpness(
    rows: list[list[arb]], own: list[arb], pair: tuple[int, int] | None, correlation: arb, i: int, j: int
) -> arb:
    """(Lambda^T D^-1 Lambda)_ij."""
    total = flint.arb(0)
    for a, (row, d) in enumerate(zip(rows, own)):
        if pair is None or a not in pair:
            total += row[i] * row[j] / d
    if pair is not None:
        x, y = ([rows[a][k] / own[a].sqrt() for k in (i, j)] for a in pair)
        total += (x[0] * x[1] + y[0] * y[1] - correlation * (x[0] * y[1] + x[1] * y[0])) / (1 - correlation**2)
    return total


def _lower(n: int, r: int, shares: list[arb], rho: Callable[[int, int], arb]) -> list[tuple[list[arb], arb]]:
    """Cholesky's factor of the pivots' block without D, and the other labels' rows."""
    rows: list[list[arb]] = []
    for i in range(n):
        row: list[arb] = []
        for j in range(min(i, r)):
            rest = rho(i, j) - sum((row[k] * rows[j][k] for k in range(j)), flint.arb(0))
            row.append(rest / rows[j][j])
        if i < r:
            row.append((1 - shares[i] - sum((x**2 for x in row), flint.arb(0))).sqrt())
        rows.append(row + [flint.arb(0)] * (r - len(row)))
    own = [*shares, *(1 - sum((x**2 for x in row), flint.arb(0)) for row in rows[r:])]
    return list(zip(rows, own))


def _turned(rows: list[list[arb]], own: list[arb], pair: tuple[int, int] | None, correlation: arb) -> list[list[arb]]:
    """Lambda Q with Q near the eigenvectors of Lambda^T D^-1 Lambda, a rotation with a rational tangent of the half."""
    if len(rows[0]) == 1:
        return rows
    a, b, c = (float(sharpness(rows, own, pair, correlation, i, j).mid()) for i, j in ((0, 0), (1, 1), (0, 1)))
    angle = atan2(2 * c, a - b) / 2
    t = flint.arb(tan(angle / 2))
    cosine, sine = (1 - t**2) / (1 + t**2), 2 * t / (1 + t**2)
    return [[x * cosine + y * sine, y * cosine - x * sine] for x, y in rows]
