"""Four-point brackets by pair-conditioned series: the plan, with how many nodes and terms, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.calculus import Order, QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.nested import NestedBucket, fill_nested, plan_nested
from numeric.brackets.nested.calculus import seconds as nested_seconds
from numeric.brackets.patterns import Pattern, sorted_quadruples
from numeric.brackets.rules import converged_step, gaussian_radius, reach
from numeric.brackets.series import persistent
from numeric.brackets.series.buckets import FINER, HOST, Bucket, Work, make_bucket, node_steps, rechunked, thinner
from numeric.brackets.series.chebyshev import Table
from numeric.brackets.series.conditioned import conditioned, within
from numeric.brackets.series.conditioning import POSITIONS, Geometry, choose_others, choose_pairs, geometry
from numeric.brackets.series.lengths import ENOUGH, LONGEST, series_lengths, term_sizes

LARGE = 4.0  # variance from which nested quadrature may be cheaper
ROUNDING = 12.0  # steps are judged at 200 units in the last place: errors of a tenth of that are common to all of them
SHORT = 96  # terms that are looked at first; measuring as many as LONGEST takes a second
LEAST = 8  # halvings of the variance: below, the Gaussian alone decides
STRICTER = 0.1  # between layers: many brackets add up
DEARER = 10.0  # series share their work among quadruples and layers, and the guess at their cost is a high one


class Steps(NamedTuple):
    """What the nodes of a plan follow from, so that kernels of smaller variance can have fewer."""

    variance: float
    tolerance: float
    radius: float
    finer: float  # 1 or 0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConditionedQuadruples(QuadruplePlan):
    """Each quadruple is in one of the `buckets`, or in one of `nested`, where the series would be too long."""

    buckets: tuple[Bucket, ...]
    nested: tuple[NestedBucket, ...]
    error: Array
    follows: Array  # `Steps` that the nodes follow from, as numbers: no other program for other values
    size: int = field(metadata={"static": True})
    on_host = True

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        count = len(sorted_quadruples(self.size))
        out = module_of(K).zeros((count + 1, len(components)), K.dtype)
        for bucket in self.buckets:
            out = _fill(functions, components, bucket, K, out)
        for nested in self.nested:
            out = fill_nested(functions, components, nested, K, out)
        return out[:count]

    def at(self, functions: Functions, patterns: tuple[Pattern, ...], variance: float) -> ConditionedQuadruples:
        """The nodes of the first smaller variance on a ladder of halves that suffices; the chunks that this saves are
        left empty, so that one program serves all layers.
        """
        steps = Steps(*(float(x) for x in self.follows))
        rungs = int(np.log2(steps.variance / max(variance, 1e-300)))
        if rungs < 1:
            return self
        own = steps.variance / 2 ** min(rungs, LEAST)
        coarse = node_steps(functions, patterns, own, steps.tolerance, bool(steps.finer))
        buckets = [thinner(functions, bucket, coarse[bucket.easy], steps.radius) for bucket in self.buckets]
        return replace(self, buckets=tuple(buckets))

    def between_layers(
        self,
        functions: Functions,
        fours: tuple[tuple[Order, Order], ...],
        K: np.ndarray,
        products: np.ndarray,
        tick: Callable[[float], None],
    ) -> dict[tuple[Order, Order], np.ndarray] | None:
        steps = Steps(*(float(x) for x in self.follows))
        tolerance = steps.tolerance * (FINER if steps.finer else 1.0) * STRICTER
        return persistent.between_layers(functions, fours, K, products, tolerance, tick)

    def conditioned_on(self) -> np.ndarray:
        out = np.zeros(len(sorted_quadruples(self.size)) + 1, dtype=np.int32)
        for bucket in self.buckets:
            out[np.asarray(bucket.slots)] = np.asarray(bucket.options)
        return out[:-1]

    def measured(self) -> bool:
        return bool(self.nested)

    def rounding(self, variance: float) -> float:
        return ROUNDING


def _permuted(components: tuple[Pattern, ...]) -> np.ndarray:
    """[option, component]: the component that holds (orders at a, b, c, d) for the component at the sorted labels."""
    index = {p: i for i, p in enumerate(components)}
    return np.array([[index[tuple(p[x] for x in where)] for p in components] for where in POSITIONS])


def _fill(functions: Functions, components: tuple[Pattern, ...], bucket: Bucket, K: Array, out: Array) -> Array:
    xp = module_of(K)
    table = xp.asarray(_permuted(components))
    nodes, y, y_step = (x.astype(K.dtype) for x in (bucket.nodes, bucket.y, bucket.y_step))
    moments = Table(bucket.terms, bucket.reach.astype(K.dtype), bucket.grain.astype(K.dtype))

    if xp is np:
        per_node = bucket.labels.shape[1] * max(bucket.terms or y.size, 4 * bucket.n) if bucket.n else 1
        nodes = rechunked(nodes, max(HOST // per_node, 256))

    def job(out: Array, item: tuple[Array, ...]) -> tuple[Array, None]:
        pair, labels, targets, options, slots = item
        if bucket.n:
            values = conditioned(
                functions,
                components,
                bucket.n,
                bucket.single,
                bucket.upward,
                K,
                pair,
                labels,
                nodes,
                y,
                y_step,
                moments,
            )  # (components, M, M)
        else:
            values = within(functions, components, K, pair, nodes)
        picked = values[table[options], targets[:, :1], targets[:, 1:]]  # (T, components)
        if xp is np:
            out[slots] = picked
            return out, None
        return out.at[slots].set(picked), None

    jobs = (bucket.pairs, bucket.labels, bucket.targets, bucket.options, bucket.slots)
    return loop(job, out, jobs)[0]


def plan_conditioned(functions: Functions, question: QuadrupleQuestion) -> ConditionedQuadruples:
    """Which pair each quadruple is conditioned on, with how many nodes and terms."""
    K, size, variance, tolerance = question.K, question.size, question.variance, question.tolerance
    patterns, avoid = question.patterns, question.avoid
    quadruples = sorted_quadruples(size)
    wanted = np.ones(len(quadruples), dtype=bool) if question.wanted is None else question.wanted
    orders = sorted({k for p in patterns for k in p})
    step, apart = node_steps(functions, patterns, variance, tolerance, question.finer)
    smooth = converged_step(functions, [(k,) for k in orders], variance, 0.3 * tolerance, shift=0.4)
    smooth *= FINER if question.finer else 1.0
    radius = reach(functions, patterns, variance, 0.1 * tolerance)
    for longest in (SHORT, LONGEST) if variance > 1 else (SHORT,):
        sizes = term_sizes(functions, orders, variance, smooth, longest)
        found = geometry(K, series_lengths(sizes, 0.1 * tolerance), variance)
        option, length = choose_pairs(quadruples[wanted], found.need, found.gap)
        if avoid is not None:
            option, length = choose_others(quadruples[wanted], found.need, found.gap, avoid[wanted])
        if length.max() <= ENOUGH * longest:  # nothing beyond the table matters
            break
    option, length = (_spread(x, wanted) for x in (option, length))
    sharp = length > LONGEST
    if variance > LARGE and _seconds(size, step, length, tolerance) > DEARER * nested_seconds(size):
        sharp[:] = wanted
    nested: tuple[NestedBucket, ...] = ()
    moved = 0.0
    if sharp.any():
        nested, moved = plan_nested(functions, K, patterns, np.flatnonzero(sharp), tolerance, avoid is not None)
    picked = np.take_along_axis(quadruples, np.array(POSITIONS)[option], axis=1)
    buckets = []
    for part in _parts(picked, sharp | ~wanted, found, variance):
        work = Work(quadruples, option, picked, length, found.spread, part.members, part.single, part.within)
        upward = part.easy and variance > 1e-3 and tolerance > 1e-11
        own = apart if part.easy else step
        rules = (sizes, own, smooth, tolerance, radius, upward, tuple(orders), variance, part.easy, len(K) > 1)
        buckets.append(make_bucket(functions, work, *rules))
    steps = jnp.asarray([variance, tolerance, radius, float(question.finer)])
    return ConditionedQuadruples(tuple(buckets), nested, jnp.asarray(max(moved, tolerance)), steps, size)


def _spread(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """In the places of the wanted quadruples; zero elsewhere."""
    out = np.zeros(len(wanted), values.dtype)
    out[wanted] = values
    return out


class Part(NamedTuple):
    """Quadruples that are conditioned alike: on one input `single`; holding no other label than the pair, `within`;
    where a coarser step does, `easy`.
    """

    members: np.ndarray
    single: bool = False
    within: bool = False
    easy: bool = False


def _parts(picked: np.ndarray, sharp: np.ndarray, found: Geometry, variance: float) -> list[Part]:
    single = picked[:, 0] == picked[:, 1]
    a, b, c, d = picked.T
    # poles of different factors stay apart if no label is nearly a function of the others
    least = np.minimum(found.lower[a, b, c], found.lower[a, b, d])
    easy = ~single & (found.gap[a, b] > 0.2) & (least > 0.3 * np.sqrt(variance))
    within = ~single & ((c == a) | (c == b)) & ((d == a) | (d == b))
    rest = ~single & ~easy & ~within
    every = [(single, "single"), (within, "within"), (easy & ~within, "easy"), (rest, "")]
    parts = [Part(np.flatnonzero(which & ~sharp), **({kind: True} if kind else {})) for which, kind in every]
    return [part for part in parts if part.members.size]


def _seconds(size: int, step: float, length: np.ndarray, tolerance: float) -> float:
    """A rough guess at what pair-conditioned series cost."""
    nodes = np.pi * (gaussian_radius(0.1 * tolerance) / step) ** 2
    terms = float(np.minimum(length, LONGEST).max())
    return (size**2 / 6 + 1) * nodes * terms * (12 * size**2 + 400 * size) / 4e9
