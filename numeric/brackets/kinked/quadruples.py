"""Four-point brackets of activations with a kink: jobs of conditioned brackets, their rules, the plan of them all.

Jobs that share a table of moments and a length of series make a bucket. Its nodes are refined, on those of its
quadruples that are hardest, until their values stop moving. What no pair of inputs suits goes by nested quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of
from numeric.brackets.calculus import QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.choice import TERMS, Choice, choose
from numeric.brackets.kinked.conditioned import Job, Setting, evaluated, four, prepared, three, two
from numeric.brackets.kinked.moments import Table, enough_terms
from numeric.brackets.kinked.plane import Rule, farthest
from numeric.brackets.kinked.space_quadruples import SpaceBucket, fill_space, plan_space
from numeric.brackets.nested import NestedBucket, fill_nested, plan_nested
from numeric.brackets.nested.deltas import Component, with_deltas, without_deltas
from numeric.brackets.nested.plan import scale_of
from numeric.brackets.patterns import Pattern, arrangements, sorted_quadruples
from numeric.brackets.series.conditioning import POSITIONS
from numeric.runtime import one_thread

RULES = tuple(
    Rule(*sizes)
    for sizes in (
        (6, 18, 10), (8, 20, 10), (10, 24, 12), (12, 28, 12), (15, 32, 14), (18, 36, 16), (22, 44, 20), (28, 52, 24),
        (36, 64, 28), (46, 80, 32), (60, 100, 36),
    )
)  # fmt: skip
REACHES = tuple(12.0 * 2**k for k in range(7))  # of tables of moments, in conditional deviations
LENGTHS = (8, 12, 16, 24, 36, 52, 76, 110, 160, 240)  # of the series of a bucket, whose members have one of TERMS
MIDDLE = RULES[5]
ROUNDED = 1e-11  # differences below may be rounding
SAMPLE = 24  # quadruples on which rules are compared
FIRST = 4  # of them, the hardest, tell where to begin
SECOND = 100.0  # of the tolerance, for a second evaluation, whose tolerance is a hundredth of the first one's
STRICT = 0.1  # of the tolerance: what rules may differ by on the hardest quadruples
ROUNDING = 12.0  # units in the last place that sums over some thousand nodes may lose beyond a few
EVALUATE = {2: two, 3: three, 4: four}
TABLES = 2e-12  # the smallest tolerance of tables of moments
TOGETHER = 2**21  # values of sigma that are computed at once on the host


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KinkedBucket:
    """J pairs of inputs, each with at most M labels that are left and at most T quadruples of 4, 3 or 2 `distinct`."""

    pairs: jax.Array  # (J, 2)
    labels: jax.Array  # (J, M); the first one again for padding
    targets: jax.Array  # (J, T, 3), see `conditioned`
    options: jax.Array  # (J, T) which of POSITIONS
    slots: jax.Array  # (J, T) index of the sorted quadruple; their number for padding
    distinct: int = field(metadata={"static": True})
    setting: Setting = field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KinkedQuadruples(QuadruplePlan):
    """Each quadruple is in one of the `buckets`, of the `spaces`, or of `nested`."""

    buckets: tuple[KinkedBucket, ...]
    spaces: tuple[SpaceBucket, ...]
    nested: tuple[NestedBucket, ...]
    error: Array
    size: int = field(metadata={"static": True})
    on_host = True
    faster_on_host = True

    @one_thread()
    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        xp, quadruples = module_of(K), sorted_quadruples(self.size)
        wanted = without_deltas(functions, components)
        out = xp.zeros((len(quadruples) + 1, len(wanted)), K.dtype)
        for bucket in self.buckets:
            out = _fill(functions, wanted, bucket, K, out)
        for own in self.spaces:
            out = fill_space(functions, wanted, own, K, out)
        values = {p: out[:-1, i] for i, p in enumerate(wanted)}
        found = _joined(functions, components, values, K, quadruples)
        for nested in self.nested:
            found = fill_nested(functions, components, nested, K, found)
        return found

    def conditioned_on(self) -> np.ndarray:
        out = np.zeros(len(sorted_quadruples(self.size)) + 1, dtype=np.int32)
        for bucket in self.buckets:
            out[np.asarray(bucket.slots)] = np.asarray(bucket.options)
        for own in self.spaces:
            out[np.asarray(own.slots)] = own.options()
        return out[:-1]

    def measured(self) -> bool:
        return bool(self.nested)

    def rounding(self, variance: float) -> float:
        return ROUNDING


def _joined(
    functions: Functions,
    components: tuple[Pattern, ...],
    values: dict[Component, Array],
    K: Array,
    quadruples: np.ndarray,
) -> Array:
    """(U, components) from those without delta functions."""
    if tuple(values) == components:
        return module_of(K).stack(list(values.values()), axis=1)
    xp = module_of(K)
    C = K[quadruples.T[:, None], quadruples.T[None, :]]
    safe = xp.where(xp.eye(4, dtype=bool)[:, :, None] & (C <= 0), 1, C)  # those are filled in by another way
    return with_deltas(functions, components, values, safe).T


@lru_cache(maxsize=64)
def _permuted(components: tuple[Component, ...]) -> np.ndarray:
    """[option, component]: the one with the orders at (a, b, c, d), for the one with those at the sorted slots."""
    index = {p: i for i, p in enumerate(components)}
    return np.array([[index[tuple(p[x] for x in where)] for p in components] for where in POSITIONS])


def _fill(functions: Functions, wanted: tuple[Component, ...], bucket: KinkedBucket, K: Array, out: Array) -> Array:
    """Write the bucket's quadruples into (U + 1, wanted)."""
    table, setting = _permuted(wanted), bucket.setting

    def values(job: Job, targets: Array, options: Array) -> Array:
        found = EVALUATE[bucket.distinct](wanted, setting, job, targets)
        return (
            module_of(K).take_along_axis(found, module_of(K).asarray(table)[options], axis=1)
            if bucket.distinct == 4
            else found
        )

    jobs = (bucket.pairs, bucket.labels, bucket.targets, bucket.options, bucket.slots)
    if isinstance(K, np.ndarray):
        together = max(TOGETHER // max(_arguments(setting, bucket.labels.shape[1]), 1), 1)
        for start in range(0, len(bucket.pairs), together):
            part = [_without_padding(len(out) - 1, *item) for item in zip(*(x[start : start + together] for x in jobs))]
            ready = [prepared(functions, setting, K, pair, labels) for pair, labels, *_ in part]
            for job, (_, _, targets, options, slots) in zip(evaluated(functions, wanted, ready), part):
                out[slots] = values(job, targets, options)
        return out

    def one(out: Array, item: tuple[Array, ...]) -> tuple[Array, None]:
        pair, labels, targets, options, slots = item
        job = evaluated(functions, wanted, [prepared(functions, setting, K, pair, labels)])[0]
        return out.at[slots].set(values(job, targets, options)), None

    return loop(one, out, jobs)[0]


def _arguments(setting: Setting, labels: int) -> int:
    """How many values of sigma a job takes, roughly."""
    return 16 * setting.rule.angles * setting.rule.radii + (labels * 2000 if setting.table else 0)


def _without_padding(count: int, pair: Any, labels: Any, targets: Any, options: Any, slots: Any) -> tuple[Any, ...]:
    own = slots < count
    labels = labels[: 1 + np.max(np.flatnonzero(labels != labels[0]), initial=0)]
    return pair, labels, targets[own], options[own], slots[own]


def plan_kinked(functions: Functions, question: QuadrupleQuestion) -> KinkedQuadruples:
    """Pairs to condition on, inputs that span a plane or space, and nested quadrature where neither suits."""
    plan, rest = plan_cut(functions, question)
    if not rest.size:
        return plan
    other = question.avoid is not None
    nested, error = plan_nested(functions, question.K, question.patterns, rest, question.tolerance, other)
    return replace(plan, nested=nested, error=jnp.maximum(plan.error, error))


def plan_cut(functions: Functions, question: QuadrupleQuestion) -> tuple[KinkedQuadruples, np.ndarray]:
    """Planes and spaces that are cut at zero, and which quadruples neither of them suits."""
    plan, rest = plan_plane(functions, question)
    if not rest.size or functions.features:
        return plan, rest
    spaces, moved, rest = plan_space(functions, question, rest)
    return replace(plan, spaces=spaces, error=jnp.maximum(plan.error, moved)), rest


def off_planes(question: QuadrupleQuestion) -> bool:
    """Whether some quadruple has no pair that suits it in all kernels of the stack."""
    wanted = np.ones(len(sorted_quadruples(question.size)), dtype=bool) if question.wanted is None else question.wanted
    return bool(np.any(wanted & (choose(question.K, question.tolerance, wanted, question.avoid).labels == 0)))


def plan_plane(functions: Functions, question: QuadrupleQuestion) -> tuple[KinkedQuadruples, np.ndarray]:
    """The quadruples that some pair suits, and which ones are left."""
    quadruples = sorted_quadruples(question.size)
    wanted = np.ones(len(quadruples), dtype=bool) if question.wanted is None else question.wanted
    choice = choose(question.K, question.tolerance, wanted, question.avoid)
    if functions.features:  # sharp places that no rule here knows of
        choice.labels[:] = 0
    radius = farthest(functions, question)
    buckets, moved = [], 0.0
    for (distinct, length, far), members in sorted(_grouped(choice, radius).items()):
        rule, error = _rule(functions, question, choice, members, (distinct, length, far), radius)
        if rule is None:
            choice.labels[members] = 0
            continue
        moved = max(moved, error)
        setting = _setting(functions, question.tolerance, (distinct, length, far), radius, rule)
        assert setting is not None  # or there were no rule
        buckets.append(_bucket(quadruples, choice, members, distinct, setting))
    rest = np.flatnonzero(wanted & (choice.labels == 0))
    buckets = jax.tree_util.tree_map(jnp.asarray, buckets)
    return KinkedQuadruples(tuple(buckets), (), (), jnp.asarray(max(moved, question.tolerance)), question.size), rest


def _length(terms: np.ndarray) -> np.ndarray:
    """On the ladder of lengths."""
    return np.array(TERMS)[np.minimum(np.searchsorted(TERMS, terms), len(TERMS) - 1)]


def _grouped(choice: Choice, radius: float) -> dict[tuple[int, int, float], np.ndarray]:
    """{(distinct labels, terms of the series, reach of the tables of moments): quadruples}."""
    far = np.searchsorted(REACHES, radius / choice.ratio)
    length = np.where(choice.labels == 4, _length(choice.terms), 1)
    found = {}
    for distinct, terms, place in sorted(set(zip(choice.labels.tolist(), length.tolist(), far.tolist()))):
        if distinct:
            members = np.flatnonzero((choice.labels == distinct) & (length == terms) & (far == place))
            largest = REACHES[place] if place < len(REACHES) else radius / float(choice.ratio[members].min())
            own = next(n for n in LENGTHS if n >= min(choice.terms[members].max(), terms)) if distinct == 4 else terms
            found[distinct, own, largest] = members
    return found


def _setting(
    functions: Functions, tolerance: float, key: tuple[int, int, float], radius: float, rule: Rule
) -> Setting | None:
    """Of (distinct labels, terms of the series, reach of the tables); None: no table is long enough."""
    distinct, n, far = key
    terms = enough_terms(n, far, max(0.1 * tolerance, TABLES)) if distinct > 2 else 1
    if not terms:
        return None
    table = Table(n + 1, far, terms, rule.nodes) if distinct > 2 else None
    return Setting(rule, radius, scale_of(functions), table)


def _rule(
    functions: Functions,
    question: QuadrupleQuestion,
    choice: Choice,
    members: np.ndarray,
    key: tuple[int, int, float],
    radius: float,
) -> tuple[Rule | None, float]:
    """The first rule that the next one agrees with on the hardest of the quadruples, and what they still differ by.

    A `finer` question gets the next one. Where they stop approaching each other, rounding is all that is left. None: no
    two rules agree.
    """
    components = arrangements(question.patterns)
    wanted = without_deltas(functions, components)
    cases = _hardest(question.K, choice, members)
    scales = [_size(functions, components, wanted, K, Setting(MIDDLE, radius, scale_of(functions))) for K, _ in cases]

    def values(rule: Rule, count: int) -> list[np.ndarray] | None:
        setting = _setting(functions, question.tolerance, key, radius, rule)
        if setting is None:
            return None
        some = [(K, np.sort(order[:count])) for K, order in cases]
        return [_some(functions, components, wanted, choice, case, setting) for case in some]

    def agreed(start: int, count: int) -> tuple[int | None, float]:
        """The first rule from `start` on that the next one agrees with, and what they differ by."""
        before, smallest, moved = values(RULES[start], count), np.inf, np.inf
        for place in range(start + 1, len(RULES)):
            now = None if before is None else values(RULES[place], count)
            if before is None or now is None:
                return None, np.inf
            with np.errstate(all="ignore"):
                moved = max(float(np.max(np.abs(x - y) / size)) for x, y, size in zip(before, now, scales))
            if moved <= STRICT * question.tolerance or (moved < ROUNDED and moved > smallest / 2):
                return place - 1, moved
            before, smallest = now, min(moved, smallest)
        return None, moved

    place, moved = agreed(_first(question.tolerance), FIRST)
    if place is not None and any(len(order) > FIRST for _, order in cases):
        place, moved = agreed(place, SAMPLE)
    if place is not None:
        return RULES[place + 1 if question.finer else place], moved
    enough = question.tolerance * (SECOND if question.finer else 1.0)
    return (RULES[-1], moved) if moved <= enough else (None, np.inf)


def _first(tolerance: float) -> int:
    """The rule to begin with: it has been enough for about so many digits at variances of one."""
    return sum(tolerance < limit for limit in (1e-6, 1e-8, 3e-11))


def _hardest(K: np.ndarray, choice: Choice, members: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(kernel, quadruples) at the kernel of the largest variance, and fewer at the last one: the sharpest, those of the
    longest series, of the largest and the smallest variances, and random ones, the hardest first.
    """
    variances = np.diagonal(K, axis1=1, axis2=2)
    total = variances[:, sorted_quadruples(K.shape[-1])[members]].sum(axis=2).max(axis=0)
    keys = (choice.ratio[members], -choice.terms[members], -total, total)
    extreme = np.stack([np.argsort(key, kind="stable")[: SAMPLE // 8] for key in keys], axis=1).ravel()
    random = np.random.default_rng(0).permutation(len(members))
    order = members[list(dict.fromkeys([*extreme.tolist(), *random.tolist()]))]
    first, last = int(np.argmax(variances.max(axis=1))), len(K) - 1
    sizes = {last: SAMPLE // 4} | {first: SAMPLE}
    return [(K[k], order[:count]) for k, count in sizes.items()]


def _some(
    functions: Functions,
    components: tuple[Pattern, ...],
    wanted: tuple[Component, ...],
    choice: Choice,
    case: tuple[np.ndarray, np.ndarray],
    setting: Setting,
) -> np.ndarray:
    """(members, components) of some quadruples at a kernel."""
    K, members = cast(Any, case[0]), case[1]
    own = sorted_quadruples(len(K))[members]
    alone = Choice(*(x[members] for x in choice))
    bucket = _bucket(own, alone, np.arange(len(members)), int(alone.labels[0]), setting)
    with np.errstate(all="ignore"):
        out = _fill(functions, wanted, bucket, K, cast(Any, np.zeros((len(members) + 1, len(wanted)))))
        values = {p: out[:-1, i] for i, p in enumerate(wanted)}
        return np.asarray(_joined(functions, components, values, K, own))


def _size(
    functions: Functions, components: tuple[Pattern, ...], wanted: tuple[Component, ...], K: np.ndarray, fine: Setting
) -> np.ndarray:
    """Of every component's tensor, from below: the largest over its pattern at the input of largest variance."""
    label = int(np.argmax(np.diagonal(K)))
    one = np.array([[label] * 4])
    pair = cast(Any, np.array([label, label]))
    with np.errstate(all="ignore"):
        job = evaluated(functions, wanted, [prepared(functions, fine, cast(Any, K), pair, pair)])[0]
        found = two(wanted, fine, job, cast(Any, np.array([[0, 1, 0]])))
        values = {p: found[:, i] for i, p in enumerate(wanted)}
        values = np.abs(np.asarray(_joined(functions, components, values, cast(Any, K), one))[0])
    codes = np.array([sorted(p) for p in components])
    same = (codes[:, None, :] == codes[None, :, :]).all(axis=2)
    return np.maximum([np.max(values[row]) for row in same], 1e-300)


def _bucket(
    quadruples: np.ndarray, choice: Choice, members: np.ndarray, distinct: int, setting: Setting
) -> KinkedBucket:
    """The members by their pairs."""
    option = choice.option[members]
    picked = np.take_along_axis(quadruples[members], np.array(POSITIONS)[option], axis=1)
    if distinct == 3:
        picked[:, 2] = picked[:, 3] = choice.left[members]
    pairs, job = np.unique(picked[:, :2], axis=0, return_inverse=True)
    job = job.ravel()
    own = [np.unique(picked[job == j, 2:]) if distinct > 2 else pairs[j, :1] for j in range(len(pairs))]
    labels = np.array([np.pad(x, (0, max(map(len, own)) - len(x)), constant_values=x[0]) for x in own])
    counts = np.bincount(job)
    targets = np.zeros((len(pairs), counts.max(), 3), dtype=np.int32)
    options = np.zeros((len(pairs), counts.max()), dtype=np.int32)
    slots = np.full((len(pairs), counts.max()), len(quadruples), dtype=np.int32)
    for j in range(len(pairs)):
        rows, count = np.flatnonzero(job == j), counts[j]
        place = np.searchsorted(own[j], picked[rows, 2:]) if distinct > 2 else np.zeros((count, 2), dtype=int)
        if distinct < 4:
            place[:, 1] = choice.case[members[rows]]
        targets[j, :count, :2], targets[j, :count, 2] = place, choice.terms[members[rows]]
        options[j, :count], slots[j, :count] = option[rows], members[rows]
    a, b, c, d, e = (cast(Any, x.astype(np.int32)) for x in (pairs, labels, targets, options, slots))
    return KinkedBucket(a, b, c, d, e, distinct, setting)
