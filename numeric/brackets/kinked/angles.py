"""Pair brackets of kinked activations for many inputs: functions of two deviations and the angle, interpolated.

<sigma^(j)(z_a) sigma^(k)(z_b)> without delta functions depends on the deviations s_a, s_b and on the angle whose cosine
is the correlation. It is smooth in all three up to both ends of the angles, where as a function of the correlation it
has roots. Over <sigma^(j)^2>^(1/2) of either input it is a sum of products of Chebyshev polynomials of log s_a, log s_b
and the angle; their coefficients come from the rule in sectors. A pair then costs a thousand multiplications instead of
the hundred thousand evaluations of sigma that the sectors take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import chebvander

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.calculus import Order, PairPlan, PairQuestion, Rectangle
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.host import enough_angles, host_single, mean, sectors
from numeric.brackets.kinked.sectorrule import SIGNS, angular_rule, radial_rule, radii
from numeric.brackets.kinked.sectors import angles_between, sector_pairs
from numeric.brackets.rules import evaluate
from numeric.runtime import in_threads, one_thread

MANY, WORTH = 1000, 2
"""Pairs from which a table is thought of; it may have so many times more places (of two deviations, an angle) than they
are: what belongs to one deviation and angle serves all of the other's.
"""
RUNG = 0.5
"""Tables reach from one multiple of this to another in log s: kernels of several layers share them."""
DEVIATIONS, ANGLES = (8, 12, 16, 24, 32, 48, 64, 96), (32, 48, 64, 96, 128, 192, 256)
"""How many polynomials of log s and of the angle there may be; beyond, there is no table."""
CONVERGED = 1e-14
"""Coefficients below this do not count: a few units of rounding in the rule."""
PROBES, TINY = 24, 1e-37
FINER = 8
"""Angles of the rule in sectors and polynomials that a refined table has more."""


class Key(NamedTuple):
    """What a table is made from: derivatives up to `highest`, log s from `low` to `high`, angles of a sector."""

    functions: Functions
    highest: int
    low: float
    high: float
    angles: int


class Made(NamedTuple):
    """Coefficients of (j <= k, angle, s_a, s_b), those of log <sigma^(j)^2>^(1/2), and an error that was measured."""

    coefficients: np.ndarray
    logs: np.ndarray
    error: float


def orders_of(highest: int) -> tuple[Order, ...]:
    return tuple((j, k) for j, k in product(range(highest + 1), repeat=2) if j <= k)


def plan_angles(functions: Functions, question: PairQuestion) -> AngleTable | None:
    """A plan for many pairs of inputs; None for few, with delta functions, or where no table converges."""
    kernels, highest = question.kernels, question.highest_order
    pairs = kernels.c[0].size // (2 if kernels.symmetric else 1)
    if pairs < MANY or functions.has_delta(highest):
        return None
    least = float(min(kernels.a.min(), kernels.b.min()))
    if not least > 0:
        return None
    low, high = (np.log(variance) / 2 / RUNG for variance in (least, question.variance))
    low, high = RUNG * np.floor(low), RUNG * max(np.ceil(high), np.floor(low) + 1)
    angles, _ = enough_angles(functions, highest, int(np.ceil(2 * high / np.log(2))))
    key = Key(functions, highest, float(low), float(high), angles)
    sizes = _sizes(key, 2 ** int(np.log2(WORTH * pairs)))
    return None if sizes is None else _plan(key, *sizes)


def _plan(key: Key, deviations: int, angles: int) -> AngleTable | None:
    made = _made(key, deviations, angles)
    if made is None:
        return None
    numbers = {"tail": made.error, "coefficients": made.coefficients, "logs": made.logs}
    numbers |= {"low": key.low, "high": key.high}
    arrays = {name: jnp.asarray(value) for name, value in numbers.items()}
    return AngleTable(**arrays, functions=key.functions, highest=key.highest, angles=key.angles)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AngleTable(PairPlan):
    """Interpolation inside the table's deviations; the rule in sectors outside of them and for other orders. Where the
    table begins and ends are numbers, so that one program serves the tables of several layers.
    """

    tail: Array
    coefficients: Array
    logs: Array
    low: Array
    high: Array
    functions: Functions = field(metadata={"static": True})
    highest: int = field(metadata={"static": True})
    angles: int = field(metadata={"static": True})
    on_host = True

    def refined(self) -> PairPlan:
        """A table of more polynomials, from a rule with more angles."""
        _, angles, deviations, _ = self.coefficients.shape
        key = Key(self.functions, self.highest, float(self.low), float(self.high), self.angles + FINER)
        return _plan(key, deviations + FINER, angles + FINER) or self

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        held, rest = self._known(orders)
        x, y = self._places(pairs.a), self._places(pairs.b)

        def direct(orders: tuple[Order, ...]) -> dict[Order, Array]:
            own = Rectangle(*(jnp.asarray(v) for v in pairs))
            return sector_pairs(functions, orders, own, symmetric, self.angles)

        found = direct(rest) if rest else {}
        inside = _reached(x) & _reached(y)
        if isinstance(pairs.c, np.ndarray):
            return found | (self._inside(held, pairs, x, y, symmetric) if inside else direct(held))
        return found | jax.lax.cond(inside, lambda: self._inside(held, pairs, x, y, symmetric), lambda: direct(held))

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        if isinstance(variances, np.ndarray):
            return cast(dict[Order, Array], host_single(functions, orders, variances, self.angles))
        held, rest = self._known(orders)
        x, direct = self._places(variances), super().single

        def inside() -> dict[Order, Array]:
            logs = jnp.asarray(self.logs, variances.dtype)
            rows, found = _polynomials(x, logs.shape[1]), {}
            for j, k in held:
                own = self._of(j, k, variances.dtype, jnp)
                together = own[::2].sum(axis=0) - own[1::2].sum(axis=0)  # the angle is zero
                found[j, k] = ((rows @ together) * rows).sum(axis=1) * jnp.exp(rows @ (logs[j] + logs[k]))
            return found

        found = direct(functions, rest, variances) if rest else {}
        return found | jax.lax.cond(_reached(x), inside, lambda: direct(functions, held, variances))

    def _known(self, orders: tuple[Order, ...]) -> tuple[tuple[Order, ...], tuple[Order, ...]]:
        """Those in the table, and the others."""
        held = tuple(order for order in orders if max(order) <= self.highest)
        return held, tuple(order for order in orders if order not in held)

    def _places(self, variances: Array) -> Array:
        """Where log s lies between the table's ends, -1 and 1."""
        xp = module_of(variances)
        low, high = (xp.asarray(v, variances.dtype) for v in (self.low, self.high))
        return (xp.log(xp.maximum(variances, TINY)) - high - low) / (high - low)

    def _of(self, j: int, k: int, kind: Any, xp: Any) -> Array:
        """The coefficients of one order: (angles, deviations of a, deviations of b)."""
        own = xp.asarray(self.coefficients[orders_of(self.highest).index((min(j, k), max(j, k)))], kind)
        return own if j <= k else xp.swapaxes(own, 1, 2)

    def _inside(
        self, orders: tuple[Order, ...], pairs: Rectangle, x: Array, y: Array, symmetric: bool
    ) -> dict[Order, Array]:
        xp, kind = module_of(pairs.c), pairs.c.dtype
        logs, turn = xp.asarray(self.logs, kind), 2 * angles_between(pairs) / np.pi - 1
        rows, columns = (_polynomials(v, logs.shape[1]) for v in (x, y))
        upper, found = np.triu(np.ones(turn.shape, bool)), {}
        for j, k in orders:
            value = _clenshaw(self._of(j, k, kind, xp), rows, columns, turn)
            value = value * xp.exp(rows @ logs[j])[:, None] * xp.exp(columns @ logs[k])[None]
            found[j, k] = xp.where(upper, value, value.T) if symmetric and j == k else value
        return found


def _reached(places: Array) -> Array:
    return abs(places).max() <= 1 + 1e-6


def _polynomials(x: Array, count: int) -> Array:
    """T_n(x), (inputs, count)."""
    xp = module_of(x)
    rows = [xp.ones_like(x), x]
    while len(rows) < count:
        rows.append(2 * x * rows[-1] - rows[-2])
    return xp.stack(rows[:count], axis=1)


def _clenshaw(coefficients: Array, rows: Array, columns: Array, turn: Array) -> Array:
    """sum_n T_n(turn) (rows C_n columns^T)."""
    xp = module_of(turn)

    def step(carry: tuple[Array, Array], own: Array) -> tuple[tuple[Array, Array], None]:
        last, before = carry
        return (2 * turn * last - before + rows @ own @ columns.T, last), None

    nothing = xp.zeros_like(turn)
    (last, before), _ = loop(step, (nothing, nothing), coefficients[1:], reverse=True)
    return turn * last - before + rows @ coefficients[0] @ columns.T


@lru_cache(maxsize=64)
@one_thread()
def _sizes(key: Key, most: int) -> tuple[int, int] | None:
    """How many polynomials of log s and of the angle are enough, each measured with a few of the other; None if none
    are, or if there were more than `most` of both together.
    """
    found: list[int] = []
    for ladder, table in ((DEVIATIONS, lambda n: (n, 3)), (ANGLES, lambda n: (2, n))):
        for size in (size for size in ladder if size * np.prod(found or [ANGLES[0]]) <= most):
            coefficients = np.abs(_table(key, *table(size))[0])
            largest = coefficients.max(axis=(0, 1, 2) if ladder is DEVIATIONS else (0, 2, 3))
            if largest[-2:].max() < CONVERGED:
                found.append(size)
                break
    return (found[0], found[1]) if len(found) == 2 else None


@lru_cache(maxsize=32)
@one_thread()
def _made(key: Key, deviations: int, angles: int) -> Made | None:
    """The coefficients and their error; None if they leave the range of floating point."""
    with np.errstate(all="ignore"):
        coefficients, logs = _table(key, deviations, angles)
        error = _error(key, coefficients, logs)
    return Made(coefficients, logs, error) if np.isfinite(coefficients).all() and np.isfinite(error) else None


def _points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points and the matrix that takes values at them to coefficients."""
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    return points, np.linalg.inv(chebvander(points, count - 1))


def _table(key: Key, deviations: int, angles: int) -> tuple[np.ndarray, np.ndarray]:
    """(coefficients, logs) of so many polynomials."""
    (x, to_x), (y, to_y) = _points(deviations), _points(angles)
    sizes = np.exp((key.high + key.low) / 2 + (key.high - key.low) / 2 * x)
    norms = np.array(
        [[mean(key.functions, (j, j), s, key.angles) ** 0.5 for s in sizes] for j in range(key.highest + 1)]
    )
    values = in_threads(lambda turn: _in_sectors(key, sizes, np.pi * (turn + 1) / 2), list(y))
    scaled = np.stack([[own[j, k] / norms[j][:, None] / norms[k] for own in values] for j, k in orders_of(key.highest)])
    return np.einsum("ft,xa,yb,otab->ofxy", to_y, to_x, to_x, scaled, optimize=True), np.log(norms) @ to_x.T


def _in_sectors(key: Key, sizes: np.ndarray, angle: float) -> dict[Order, np.ndarray]:
    """`host.sectors` for all pairs of deviations at one angle: a product of matrices for each sector."""
    r, wr = radial_rule(radii(key.angles))
    near, weight = angular_rule(key.angles, cast(Any, np.asarray(1 / max(sizes.max(), 1.0))))
    found: dict[Order, Any] = dict.fromkeys(orders_of(key.highest), 0.0)
    for sign, start, width in zip(
        SIGNS, (angle - np.pi / 2, np.pi / 2, angle + np.pi / 2, -np.pi / 2), (np.pi - angle, angle) * 2
    ):
        t = start + width / 2 * np.concatenate([near, 2 - near])
        w = (width / 2 * np.tile(weight, 2)[:, None] * wr / (2 * np.pi)).ravel()
        left, right = (
            sizes[:, None] * (side * np.abs(np.cos(turn))[:, None] * r).ravel()
            for side, turn in zip(sign, (t, t - angle))
        )
        f = [evaluate(key.functions, j, left) * w for j in range(key.highest + 1)]
        g = [evaluate(key.functions, k, right) for k in range(key.highest + 1)]
        for j, k in found:
            found[j, k] = found[j, k] + f[j] @ g[k].T
    return found


def _error(key: Key, coefficients: np.ndarray, logs: np.ndarray) -> float:
    """The largest error at random places, over the norms, against a finer rule in sectors."""
    random, orders, worst = np.random.default_rng(5), orders_of(key.highest), 0.0
    for x, y, turn in random.uniform(-1, 1, (PROBES, 3)):
        first, second = (float(np.exp((key.high + key.low) / 2 + (key.high - key.low) / 2 * v)) for v in (x, y))
        exact = sectors(key.functions, orders, (first, second), float(np.pi * (turn + 1) / 2), key.angles + FINER // 2)
        left, right = (_polynomials(cast(Any, np.array([v])), logs.shape[1]) for v in (x, y))
        for place, (j, k) in enumerate(orders):
            scale = float(np.exp(left @ logs[j] + right @ logs[k])[0])
            value = float(_clenshaw(cast(Any, coefficients[place]), left, right, cast(Any, np.array([[turn]])))[0, 0])
            worst = max(worst, abs(value - exact[j, k] / scale))
    return worst
