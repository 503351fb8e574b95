"""Quadruples whose inputs lie in a plane, in space or hardly outside: in which order, by which rule; their evaluation.

The first two inputs are those that are least alike, the third is the one that has most left. Rules are refined on the
hardest of the quadruples until their values stop moving.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.calculus import QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.plane import farthest
from numeric.brackets.kinked.space import LEAST, SHARE, SpaceRule, SpaceSetting, geometry, grains, space
from numeric.brackets.nested.deltas import Component, with_deltas, without_deltas
from numeric.brackets.nested.plan import scale_of
from numeric.brackets.patterns import arrangements, sorted_quadruples
from numeric.brackets.series.conditioning import POSITIONS

RULES = tuple(
    SpaceRule(*sizes)
    for sizes in (
        (8, 6, 12), (10, 7, 14), (13, 8, 16), (16, 10, 18), (20, 12, 22), (25, 15, 26), (32, 20, 32), (40, 26, 40),
        (52, 34, 52),
    )
)  # fmt: skip
ORDERS = tuple(p for p in permutations(range(4)) if p[0] < p[1])
HARDEST = 3  # quadruples a group with the smallest angles, as many of the largest variance: rules are compared there
SOFT_RULES = 6  # rules that are tried where something is left to the fourth input: further ones take too long
SOFTEST = 1e-3  # the smallest angle in four dimensions: below, nodes would be too many
TABLES = 2e-12  # the smallest tolerance of averages
ALIKE = 1e-4  # 1 - rho^2 of a second choice of the first two inputs, relative to the best: below, it is no better
ROUNDED = 1e-11  # differences below may be rounding


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SpaceBucket:
    """Quadruples that share a rule."""

    labels: jax.Array  # (Q, 4), in the order of integration
    orders: jax.Array  # (Q,) which of ORDERS
    slots: jax.Array  # (Q,) index of the sorted quadruple
    setting: SpaceSetting = field(metadata={"static": True})

    def options(self) -> np.ndarray:
        """Which of POSITIONS has the first two inputs."""
        index = {tuple(sorted(p[:2])): i for i, p in enumerate(POSITIONS)}
        return np.array([index[p[:2]] for p in ORDERS])[np.asarray(self.orders)]


@lru_cache(maxsize=64)
def _reordered(components: tuple[Component, ...]) -> np.ndarray:
    """[order, component]: the one with the orders at (a, b, c, d), for the one with those at the sorted slots."""
    index = {p: i for i, p in enumerate(components)}
    return np.array([[index[tuple(p[x] for x in where)] for p in components] for where in ORDERS])


def fill_space(functions: Functions, wanted: tuple[Component, ...], bucket: SpaceBucket, K: Array, out: Array) -> Array:
    """Write the bucket's quadruples into (U + 1, wanted)."""
    xp, table = module_of(K), module_of(K).asarray(_reordered(wanted))

    def one(out: Array, item: tuple[Array, ...]) -> tuple[Array, None]:
        labels, order, slot = item
        found = space(functions, wanted, bucket.setting, K[labels][:, labels])[table[order]]
        if xp is np:
            out[slot] = found
            return out, None
        return out.at[slot].set(found), None

    return loop(one, out, (bucket.labels, bucket.orders, bucket.slots))[0]


def plan_space(
    functions: Functions, question: QuadrupleQuestion, members: np.ndarray
) -> tuple[tuple[SpaceBucket, ...], float, np.ndarray]:
    """Buckets, what the rules still differ by, and the members that are left."""
    left_out = max(SHARE * question.tolerance, LEAST)
    radius = farthest(functions, question)
    scale, precision = scale_of(functions), max(0.1 * question.tolerance, TABLES)
    order = _order(question, members)
    labels = np.take_along_axis(sorted_quadruples(question.size)[members], np.array(ORDERS)[order], axis=1)
    kinds = [_kind(question.K, row, left_out, scale) for row in labels]
    buckets, moved, rest = [], 0.0, [members[[kind is None for kind in kinds]]]
    for kind in sorted({kind for kind in kinds if kind is not None}):
        own = np.flatnonzero([k == kind for k in kinds])
        found, error = _rule(
            functions, question, labels[own], lambda rule: SpaceSetting(rule, radius, scale, left_out, precision)
        )
        if found is None:
            rest.append(members[own])
            continue
        moved = max(moved, error)
        one, two, three = (jnp.asarray(x[own].astype(np.int32)) for x in (labels, order, members))
        buckets.append(SpaceBucket(one, two, three, found))
    return tuple(buckets), moved, np.sort(np.concatenate(rest))


def _order(question: QuadrupleQuestion, members: np.ndarray) -> np.ndarray:
    """Which of ORDERS, for each member: by the correlations of all kernels at worst."""
    roots = np.sqrt(np.diagonal(question.K, axis1=1, axis2=2))
    with np.errstate(all="ignore"):
        rho = question.K / (roots[:, :, None] * roots[:, None, :])
    quadruples = sorted_quadruples(question.size)[members]
    out = np.zeros(len(members), dtype=np.int32)
    for place, row in enumerate(quadruples):
        own = rho[:, row][:, :, row]
        gaps = {p: float(np.min(1 - own[:, p[0], p[1]] ** 2)) for p in {order[:2] for order in ORDERS}}
        if question.avoid is not None:
            before = tuple(sorted(POSITIONS[question.avoid[members[place]]][:2]))
            others = {p: gap for p, gap in gaps.items() if p != before}
            gaps = others if max(others.values()) > ALIKE * max(gaps.values()) else gaps
        best = max(gaps, key=lambda p: gaps[p])
        both = [order for order in ORDERS if order[:2] == best]
        left = [min(_left(own_kernel, order) for own_kernel in own) for order in both]
        out[place] = ORDERS.index(both[int(np.argmax(left))])
    return out


def _left(rho: np.ndarray, order: tuple[int, ...]) -> float:
    """What is left of the variance of the third given the first two."""
    a, b, c, _ = order
    gap = max(1 - rho[a, b] ** 2, 1e-15)
    return float(1 - rho[a, c] ** 2 - (rho[b, c] - rho[a, b] * rho[a, c]) ** 2 / gap)


def _kind(K: np.ndarray, labels: np.ndarray, left_out: float, scale: float) -> tuple[int, int] | None:
    """Dimensions, and how many half digits the smallest angle has; None: another way.

    That is where a label is zero or too little is left, and where nested quadrature takes less time: one label and two,
    three in space.
    """
    distinct = len(set(labels.tolist()))
    if distinct < 3 or not np.all(K[:, labels, labels] > 0):
        return None
    found = [geometry(cast(Any, kernel[labels][:, labels]), left_out) for kernel in K]
    smallest = min(float(grains(own, scale).angle) for own in found)
    dimensions = max(2 + int(own.s > 0) + int(own.tau > 0) for own in found)
    if (distinct == 3 and dimensions > 2) or (dimensions == 4 and smallest < SOFTEST):
        return None
    return dimensions, int(np.ceil(-2 * np.log10(smallest)))


def _rule(
    functions: Functions, question: QuadrupleQuestion, labels: np.ndarray, setting: Any
) -> tuple[SpaceSetting | None, float]:
    """The first rule that the next one agrees with on the hardest quadruples; a `finer` question gets the next one."""
    components = arrangements(question.patterns)
    wanted = without_deltas(functions, components)
    kernel = question.K[int(np.argmax(np.diagonal(question.K, axis1=1, axis2=2).max(axis=1)))]
    angle = [
        float(grains(geometry(cast(Any, kernel[row][:, row]), LEAST), scale_of(functions)).angle) for row in labels
    ]
    total = -np.diagonal(kernel)[labels].sum(axis=1)
    hardest = dict.fromkeys(np.concatenate([np.argsort(x, kind="stable")[:HARDEST] for x in (angle, total)]).tolist())
    cases = [kernel[row][:, row] for row in labels[list(hardest)]]

    def values(rule: SpaceRule) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = [space(functions, wanted, setting(rule), cast(Any, C)) for C in cases]
            return np.stack(
                [
                    np.asarray(with_deltas(functions, components, dict(zip(wanted, x)), cast(Any, C)))
                    for x, C in zip(found, cases)
                ]
            )

    before, smallest = values(RULES[0]), np.inf
    soft = any(geometry(cast(Any, C), LEAST).tau > 0 for C in cases)
    for coarse, fine in pairwise(RULES[:SOFT_RULES] if soft else RULES):
        now = values(fine)
        size = np.maximum(np.abs(now).max(axis=0), 1e-300)
        size = np.array([max(size[j] for j, q in enumerate(components) if sorted(q) == sorted(p)) for p in components])
        moved = float(np.max(np.abs(now - before) / size))
        if moved <= 0.1 * question.tolerance or (moved < ROUNDED and moved > smallest / 2):
            return setting(fine if question.finer else coarse), moved
        before, smallest = now, min(moved, smallest)
    return None, np.inf
