"""Pair brackets by the Mehler series, for all pairs of rows and columns: plan and evaluation.

With c_n the Hermite coefficients at the two variances and rho the correlation,
<f(z_a) g(z_b)> = sum_n rho^n c_n[f](K_aa) c_n[g](K_bb). It holds for every |rho| <= 1 and needs no inverse. The series
is cut where its own measured coefficients fall below the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of, sigma
from numeric.brackets.calculus import Order, PairPlan, PairQuestion, Rectangle
from numeric.brackets.close import ClosePairs, at_one_input, no_close_pairs, plan_close
from numeric.brackets.functions import Functions
from numeric.brackets.rules import converged_step, evaluate, half_line, hermite_table, ladder, reach
from numeric.brackets.series.hermite import coefficients

LONGEST_SERIES = 1 << 12
TILE = 128
FEW = 64  # inputs up to which all orders go through one loop: little code, nothing spared by parity
UNROLL = 8


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SeriesPairs(PairPlan):
    """Nodes and length of the Mehler series; `close` are the pairs that are too nearly parallel for it."""

    nodes: Array
    step: Array
    tail: Array
    close: ClosePairs
    n: int = field(metadata={"static": True})
    on_host = True

    def refined(self) -> SeriesPairs:
        """A smaller step and a longer series."""
        step = 0.8 * float(self.step)
        nodes = half_line(step, 1.05 * float(self.nodes[-1]))
        nodes = half_line(step, step * ladder(nodes.size))
        return replace(self, nodes=jnp.asarray(nodes), step=jnp.asarray(step), n=ladder(1.15 * self.n + 16))

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        nodes = self.nodes.astype(variances.dtype)
        return at_one_input(functions, orders, variances, module_of(nodes).concatenate([nodes, -nodes]), self.step)

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        xp = module_of(pairs.c)
        nodes = self.nodes.astype(pairs.c.dtype)
        rho = correlation(pairs)
        wanted = tuple(pair for pair in dict.fromkeys(_once(orders, symmetric)) if not _vanishes(functions, pair))
        sides = [{j for j, _ in wanted}, {k for _, k in wanted}]
        if symmetric:
            left = right = self._coefficients(functions, sides[0] | sides[1], pairs.a, nodes)
        else:
            left, right = (self._coefficients(functions, *side, nodes) for side in zip(sides, (pairs.a, pairs.b)))
        if max(pairs.c.shape) <= FEW or xp is np:
            found = _together(rho, wanted, left, right)
        else:
            found = {
                (j, k): _mehler(rho, left[j], right[k], _parity(functions, j), symmetric and j == k) for j, k in wanted
            }
        single = self.single(functions, wanted, pairs.a)
        found = {order: xp.where(pairs.same, single[order][:, None], total) for order, total in found.items()}
        found = self.close.put_in(functions, found, pairs, symmetric)
        zero = xp.zeros_like(pairs.c)
        return {
            (j, k): found[j, k] if (j, k) in found else found[k, j].T if (k, j) in found and symmetric else zero
            for j, k in orders
        }

    def _coefficients(self, functions: Functions, orders: set[int], variances: Array, nodes: Array) -> dict[int, Array]:
        needed = sorted(orders)
        if not needed:
            return {}
        xp = module_of(variances)
        scale = xp.sqrt(xp.maximum(variances, 0))
        c = coefficients(lambda z: [sigma(functions, z, k) for k in needed], scale, nodes, self.step, self.n)
        return dict(zip(needed, c))


def _once(orders: tuple[Order, ...], symmetric: bool) -> tuple[Order, ...]:
    """Without the orders that are transposes of others."""
    out: list[Order] = []
    for j, k in orders:
        if not (symmetric and (k, j) in out):
            out.append((j, k))
    return tuple(out)


def _vanishes(functions: Functions, order: Order) -> bool:
    """An odd function times an even one."""
    return bool(functions.parity) and sum(order) % 2 == 1


def _parity(functions: Functions, order: int) -> int | None:
    """Whether sigma^(order) has even (0) or odd (1) coefficients only."""
    return None if functions.parity == 0 else (order + (functions.parity < 0)) % 2


def correlation(pairs: Rectangle) -> Array:
    """K_ab / sqrt(K_aa K_bb), clipped to [-1, 1]; zero where an input vanishes."""
    xp = module_of(pairs.c)
    product = xp.sqrt(pairs.a)[:, None] * xp.sqrt(pairs.b)[None, :]
    rho = xp.where(product > 0, pairs.c / xp.where(product > 0, product, 1), 0)
    return xp.clip(rho, -1, 1)


def _together(
    rho: Array, orders: tuple[Order, ...], left: dict[int, Array], right: dict[int, Array]
) -> dict[Order, Array]:
    """All orders in one loop."""
    if not orders:
        return {}
    xp = module_of(rho)
    terms = tuple(xp.stack(side, axis=1) for side in ([left[j] for j, _ in orders], [right[k] for _, k in orders]))

    def horner(total: Array, term: tuple[Array, Array]) -> tuple[Array, None]:
        return total * rho[None] + term[0][:, :, None] * term[1][:, None, :], None

    start = xp.zeros((len(orders), *rho.shape), rho.dtype)
    return dict(zip(orders, loop(horner, start, terms, reverse=True)[0]))


def _power_sum(rho: Array, left: Array, right: Array, parity: int | None) -> Array:
    """sum_n rho^n left[n] right[n] (outer product of the columns), only even (0) or odd (1) n if `parity` says so."""
    if parity is None:
        variable, first = rho, None
    else:
        left, right, variable, first = left[parity::2], right[parity::2], rho * rho, (rho if parity else None)
    missing = -left.shape[0] % UNROLL
    left, right = (jnp.pad(x, ((0, missing), (0, 0))).reshape(-1, UNROLL, x.shape[1]) for x in (left, right))

    def horner(total: Array, terms: tuple[Array, Array]) -> tuple[Array, None]:
        for m in reversed(range(UNROLL)):
            total = total * variable + terms[0][m][:, None] * terms[1][m][None, :]
        return total, None

    total, _ = jax.lax.scan(horner, jnp.zeros_like(rho), (left, right), reverse=True)
    return total if first is None else total * first


def _mehler(rho: Array, left: Array, right: Array, parity: int | None, symmetric: bool) -> Array:
    """The series for all pairs, tile by tile so that a tile stays in the cache; half of them if symmetric."""
    rows, columns = rho.shape
    if max(rows, columns) <= TILE:
        return _power_sum(rho, left, right, parity)
    counts = -(-rows // TILE), -(-columns // TILE)
    pads = counts[0] * TILE - rows, counts[1] * TILE - columns
    rho = jnp.pad(rho, ((0, pads[0]), (0, pads[1])))
    left, right = (jnp.pad(x, ((0, 0), (0, pad))) for x, pad in zip((left, right), pads))
    tiles = jnp.asarray(
        [(i, j) for i in range(counts[0]) for j in range(i if symmetric else 0, counts[1])], dtype=jnp.int32
    )

    def fill(total: Array, where: Array) -> tuple[Array, None]:
        i, j = where[0] * TILE, where[1] * TILE
        own = jax.lax.dynamic_slice_in_dim(left, i, TILE, axis=1)
        other = jax.lax.dynamic_slice_in_dim(right, j, TILE, axis=1)
        tile = _power_sum(jax.lax.dynamic_slice(rho, (i, j), (TILE, TILE)), own, other, parity)
        total = jax.lax.dynamic_update_slice(total, tile, (i, j))
        return (jax.lax.dynamic_update_slice(total, tile.T, (j, i)) if symmetric else total), None

    total, _ = jax.lax.scan(fill, jnp.zeros_like(rho), tiles)
    return total[:rows, :columns]


def plan_series(functions: Functions, question: PairQuestion) -> SeriesPairs:
    """The step at which integrals of one input stop moving, and a series as long as the largest correlation asks."""
    orders, tolerance, variance = question.orders, question.tolerance, question.variance
    rho = question.kernels.rho
    products = [(k, k) for k in orders]
    step = converged_step(functions, products, variance, tolerance)
    n, close = 64, no_close_pairs()
    radius = reach(functions, products, variance, tolerance * 1e-2)
    while True:
        fine = 2 * np.pi / (2 * np.pi / step + np.sqrt(n))
        nodes = half_line(fine, radius)
        nodes = half_line(fine, fine * ladder(nodes.size))
        weights = fine / np.sqrt(2 * np.pi) * np.exp(-(nodes**2) / 2)
        table = hermite_table(nodes, n) * weights
        squares = []
        for k in orders:
            plus, minus = (evaluate(functions, k, sign * np.sqrt(variance) * nodes) for sign in (1, -1))
            c = table @ plus
            squares.append((c + np.where(np.arange(n) % 2, -1, 1) * (table @ minus)) ** 2)
        tail = _tail(squares, rho)
        if n == LONGEST_SERIES and not _enough(tail, tolerance):
            rho = _longest_correlation(squares, tolerance)
            table_of_rho = question.kernels.correlations
            close = plan_close(functions, question, table_of_rho > rho, step)
            rho = float(table_of_rho[table_of_rho <= rho].max())
            tail = _tail(squares, rho)
        length = _enough(tail, tolerance)
        if length:
            size = min(ladder(length + 1), n)
            return SeriesPairs(jnp.asarray(nodes), jnp.asarray(fine), jnp.asarray(tail[length - 1]), close, size)
        n *= 2


def _tail(squares: list[np.ndarray], rho: float) -> np.ndarray:
    """What the series still holds from the term n on, relative to the whole: the largest over the orders."""
    terms = [rho ** np.arange(c.size) * c for c in squares]
    return np.max([np.cumsum(t[::-1])[::-1] / max(t.sum(), 1e-300) for t in terms], axis=0)


def _enough(tail: np.ndarray, tolerance: float) -> int:
    """Number of terms that suffice, or 0 if that is (nearly) the end of the table: then the cut would mean nothing."""
    enough = np.flatnonzero(tail <= 0.01 * tolerance)
    return int(enough[0]) + 1 if enough.size and enough[0] <= 0.8 * tail.size else 0


def _longest_correlation(squares: list[np.ndarray], tolerance: float) -> float:
    """The largest correlation at which the longest series is long enough."""
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _enough(_tail(squares, middle), tolerance) else (low, middle)
    return low
