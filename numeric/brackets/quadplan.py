"""Which pair to condition on for each quadruple of inputs, with how many nodes and terms: the four-point plan.

A quadruple {a, b, c, d} can be conditioned on any of its six pairs. A repeated label is conditioned on itself, which
costs one dimension only. For distinct labels a third of all pairs suffices: split the inputs into three groups, then
two of any four share a group (Turan). Quadruples whose series would be long there (c and d nearly coincident given
a and b) get the pair that suits them best. Near-singular pairs (a, b) are used only when nothing else is left, which
happens only if all four inputs nearly coincide; then the conditional spread vanishes and the result is still right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.hermite import half_line
from numeric.brackets.nestedplan import NestedBucket, plan_nested
from numeric.brackets.orthant import sign4
from numeric.brackets.patterns import PATTERNS, Pattern, sorted_quadruples
from numeric.brackets.plan import (
    EXACT_EXPONENTIALS,
    check_kernel,
    converged_step,
    evaluate,
    gaussian_radius,
    hermite_table,
    ladder,
    reach,
)

POSITIONS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 0, 2), (2, 3, 0, 1))
LONGEST = 512
LONG = 24
SINGULAR = 1e-6
LARGE, HUGE = 4.0, 64.0  # variances from which nested quadrature may be, and is, cheaper than series
CANCELLING = 30.0  # variance from which closed forms with powers of z cost too many digits
PATIENCE = 900.0  # seconds of nested quadrature, roughly, before another way is preferred
DEARER = 10.0  # series share their work among quadruples and layers, and the guess at their cost is a high one
CORRELATIONS = np.concatenate([np.linspace(0, 0.9, 19), [0.925, 0.95, 0.97, 0.99, 1.0]])
SPREADS = np.concatenate([[0.0, 1e-3, 0.01, 0.03], np.linspace(0.1, 1, 10)])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bucket:
    """Conditioning pairs that share node sets and series length. J jobs of at most T quadruples each."""

    pairs: jax.Array  # (J, 2)
    labels: jax.Array  # (J, M) the inputs that occur as c or d
    targets: jax.Array  # (J, T, 2) positions of c and d among the labels
    options: jax.Array  # (J, T) which of POSITIONS
    slots: jax.Array  # (J, T) index of the sorted quadruple; U for padding
    nodes: jax.Array  # (chunks, 3, Q)
    y: jax.Array
    y_step: jax.Array
    n: int = field(metadata={"static": True})
    single: bool = field(metadata={"static": True})
    upward: bool = field(metadata={"static": True})  # spreads are large enough to derive C^k from C^0 alone


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class QuadruplePlan:
    """Made by `make_quadruple_plan`; `error` is the aim, relative to the largest entry of each tensor (for sign rules:
    measured). What was reached, `f.error` measures.

    `rule` holds nodes and weights for the four-variate sign expectation, where `route` uses it. On the route
    "conditioned" each quadruple is in one of the `buckets` or in one of `nested`.
    """

    buckets: tuple[Bucket, ...]
    rule: tuple[jax.Array, jax.Array] | None
    error: jax.Array
    size: int = field(metadata={"static": True})
    route: str = field(metadata={"static": True})  # "conditioned", "stein", "linear" or "exponential"
    nested: tuple[NestedBucket, ...] = ()  # what the series cannot do, and everything of kinked activations


def term_sizes(functions: Functions, orders: Iterable[int], variance: float, step: float, longest: int) -> np.ndarray:
    """t_n(s): fourth-moment size of C^k_n at conditional spread s (in units of sqrt(variance)), relative to sigma^(k).

    The largest over the orders k; shape (spreads, longest).
    """
    scale = np.sqrt(variance)
    fine = 2 * np.pi / (2 * np.pi / step + np.sqrt(longest))
    y = half_line(fine, 9.0 + np.sqrt(longest) / 2)
    y = np.concatenate([-y[::-1], y])
    table = hermite_table(y, longest) * (fine / np.sqrt(2 * np.pi) * np.exp(-(y**2) / 2))
    out = np.zeros((SPREADS.size, longest))
    for row, spread in enumerate(SPREADS):
        rest = np.sqrt(max(1 - spread**2, 0.0))
        x = np.linspace(-5, 5, 21) if rest > 0 else np.zeros(1)
        weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
        z = scale * (rest * x[:, None] + spread * y[None, :])
        for k in orders:
            c = evaluate(functions, k, z) @ table.T
            norm = max(
                (weight @ evaluate(functions, k, scale * np.linspace(-5, 5, x.size) if rest > 0 else x) ** 4), 1e-300
            )
            size = (weight @ c**4 / norm) ** 0.25 if rest > 0 else np.abs(c[0]) / max(np.abs(c[0]).max(), 1e-300)
            out[row] = np.maximum(out[row], size)
    return out


def series_lengths(sizes: np.ndarray, tolerance: float) -> np.ndarray:
    """Terms needed for each |r| of CORRELATIONS and each spread of SPREADS; LONGEST + 1 where the table ends first."""
    n = np.arange(sizes.shape[1])
    lengths = np.zeros((CORRELATIONS.size, sizes.shape[0]), dtype=int)
    for i, r in enumerate(CORRELATIONS):
        tails = np.cumsum((r**n * sizes**2)[:, ::-1], axis=1)[:, ::-1]
        short = tails <= tolerance
        lengths[i] = np.where(short.any(axis=1), np.argmax(short, axis=1), LONGEST + 1)
    return np.maximum.accumulate(np.maximum.accumulate(lengths, axis=0), axis=1)


def plane_nodes(step: float, radius: float, half: bool, single: bool, chunk: int) -> np.ndarray:
    """Nodes of the (disk-pruned) rule for a whitened pair, (chunks, 3, chunk); half of them if parity allows."""
    line = half_line(step, radius)
    full = np.concatenate([-line[::-1], line])
    if single:
        x = np.stack([line if half else full, np.zeros(line.size if half else full.size)])
        w = step / np.sqrt(2 * np.pi) * np.exp(-(x[0] ** 2) / 2)
    else:
        x = np.stack([v.ravel() for v in np.meshgrid(line if half else full, full, indexing="ij")])
        x = x[:, (x**2).sum(axis=0) <= radius**2]
        w = step**2 / (2 * np.pi) * np.exp(-(x**2).sum(axis=0) / 2)
    nodes = np.concatenate([x, (2 * w if half else w)[None]])
    count = -(-nodes.shape[1] // chunk)
    count = ladder(count) if count > 8 else count
    chunk = -(-nodes.shape[1] // (8 * count)) * 8
    nodes = np.pad(nodes, ((0, 0), (0, count * chunk - nodes.shape[1])))
    return nodes.reshape(3, count, chunk).transpose(1, 0, 2)


def _needs(K: np.ndarray, lengths: np.ndarray, variance: float) -> tuple[np.ndarray, ...]:
    """Series length for conditioning on (a, b) and expanding (c, d), largest spread s_c given (a, b) in units of
    sqrt(variance), smallest s_c, and 1 - rho_ab^2.
    """
    size = K.shape[-1]
    need = np.zeros((size,) * 4, dtype=np.int16)
    spread = np.zeros((size,) * 3)
    lower = np.full((size,) * 3, np.inf)
    gap = np.ones((size, size))
    for kernel in K:
        diagonal = np.diagonal(kernel)
        for a in range(size):
            first = kernel[a] / np.sqrt(diagonal[a]) if diagonal[a] > 0 else np.zeros(size)
            for b in range(a, size):
                rest = diagonal[b] - first[b] ** 2
                if a != b and diagonal[b] > 0:
                    gap[a, b] = gap[b, a] = min(gap[a, b], max(rest / diagonal[b], 0.0))
                second = np.zeros(size)
                if a != b and rest > 1e-14 * diagonal[b]:
                    second = (kernel[b] - first[b] * first) / np.sqrt(rest)
                s = np.sqrt(np.maximum(diagonal - first**2 - second**2, 1e-14 * diagonal))
                product = s[:, None] * s[None, :]
                kappa = kernel - np.outer(first, first) - np.outer(second, second)
                r = np.minimum(np.abs(np.divide(kappa, product, out=np.zeros_like(kappa), where=product > 0)), 1)
                relative = np.minimum(s / np.sqrt(variance), 1)
                i = np.searchsorted(CORRELATIONS, r)
                j = np.searchsorted(SPREADS, np.sqrt(relative[:, None] * relative[None, :]))
                need[a, b] = np.maximum(
                    need[a, b], lengths[np.minimum(i, CORRELATIONS.size - 1), np.minimum(j, SPREADS.size - 1)]
                )
                need[b, a] = need[a, b]
                spread[a, b] = spread[b, a] = np.maximum(spread[a, b], relative)
                lower[a, b] = lower[b, a] = np.minimum(lower[a, b], s)
    return need, spread, lower, gap


def _choose(quadruples: np.ndarray, need: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every sorted quadruple the option (index into POSITIONS) and its series length."""
    size = need.shape[0]
    picked = np.stack([quadruples[:, p] for p in POSITIONS], axis=1)  # (U, 6, 4)
    a, b, c, d = np.moveaxis(picked, 2, 0)
    length = need[a, b, c, d].astype(float)
    singular = (a != b) & (gap[a, b] < SINGULAR)
    cost = length + np.where(singular, 1e6 * (2 - gap[a, b]), 0.0)
    group = np.arange(size) % 3
    distinct = (a != b).all(axis=1)
    cheap = (a == b) | ((group[a] == group[b]) & ~singular & distinct[:, None])
    restricted = np.where(cheap, cost, np.inf)
    best = restricted.min(axis=1)
    finite = best[np.isfinite(best)]
    cut = 2 * np.median(finite) + 16 if finite.size else 0.0
    hard = (best > cut) & (best > 1.3 * cost.min(axis=1)) & (distinct | (best > 200))
    used = cheap.copy()
    chosen = np.argmin(cost[hard], axis=1)
    extra = np.zeros((size, size), dtype=bool)
    rows = np.flatnonzero(hard)
    extra[a[rows, chosen], b[rows, chosen]] = True
    used |= extra[a, b] | extra[b, a]
    used &= (a == b) | distinct[:, None] | hard[:, None]
    final = np.where(used, cost, np.inf)
    option = np.argmin(final, axis=1)
    return option, np.take_along_axis(length, option[:, None], axis=1)[:, 0]


def chosen_options(plan: QuadruplePlan) -> np.ndarray:
    """The option (index into POSITIONS) by which each sorted quadruple is conditioned (0 where it is not)."""
    out = np.zeros(len(sorted_quadruples(plan.size)) + 1, dtype=np.int32)
    for bucket in plan.buckets:
        out[np.asarray(bucket.slots)] = np.asarray(bucket.options)
    return out[:-1]


def _choose_other(
    quadruples: np.ndarray, need: np.ndarray, gap: np.ndarray, avoid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Like `_choose`, but on another pair than `avoid` says, where another one is any good."""
    a, b, c, d = np.moveaxis(np.stack([quadruples[:, p] for p in POSITIONS], axis=1), 2, 0)
    length = need[a, b, c, d].astype(float)
    usable = (length <= LONGEST) & ((a == b) | (gap[a, b] >= SINGULAR))
    rows = np.arange(len(quadruples))
    same = (a == a[rows, avoid][:, None]) & (b == b[rows, avoid][:, None])
    cost = np.where(usable & ~same, length, np.inf)
    option = np.where(np.isfinite(cost).any(axis=1), np.argmin(cost, axis=1), avoid)
    return option, length[rows, option]


def make_quadruple_plan(
    functions: Functions,
    K: np.ndarray,
    patterns: Iterable[Pattern] = PATTERNS,
    tolerance: float = 1e-9,
    margin: float = 1.0,
    avoid: np.ndarray | None = None,
) -> QuadruplePlan:
    """Plan the four-point brackets for a concrete kernel (N, N), or a stack of kernels that shall share one plan.

    `avoid` (see `chosen_options`) asks for other pairs to condition on than another plan's.
    """
    K = check_kernel(K)
    size = K.shape[-1]
    patterns = tuple(patterns)
    variance = max(float(np.max(np.diagonal(K, axis1=1, axis2=2))) * margin, 1e-300)
    quadruples = sorted_quadruples(size)
    affordable = _nested_seconds(quadruples) < PATIENCE
    powers = functions.erf_form is not None and len(functions.erf_form[1]) > 1  # they cancel at large variances
    sharpness = variance * functions.erf_form[2] ** 2 if functions.erf_form is not None else variance
    if functions.family == "piecewise-smooth" or (
        affordable and ((functions.family == "mehler" and variance > HUGE) or (powers and sharpness > CANCELLING))
    ):
        nested, moved = plan_nested(functions, K, patterns, np.arange(len(quadruples)), tolerance, avoid is not None)
        return QuadruplePlan((), None, jnp.asarray(max(moved, tolerance)), size, "conditioned", nested)
    if functions.family in ("gaussian-erf", "piecewise-linear"):
        route = "stein" if functions.family == "gaussian-erf" else "linear"
        rule, error = sign_rule(functions, K, tolerance)
        if powers:
            error = jnp.maximum(error, 4e-14 * sharpness**3)
        return QuadruplePlan((), rule, error, size, route)
    if functions.family == "exponential" and variance > EXACT_EXPONENTIALS:
        return QuadruplePlan((), None, jnp.asarray(1e-14), size, "exponential")
    orders = sorted({k for p in patterns for k in p})
    step = converged_step(functions, patterns, variance, tolerance)
    couples = sorted({pair for p in patterns for pair in combinations(p, 2)})
    apart = converged_step(functions, couples, variance, 0.3 * tolerance)
    smooth = converged_step(functions, [(k,) for k in orders], variance, 0.3 * tolerance, shift=0.4)
    radius = reach(functions, patterns, variance, 0.1 * tolerance)
    sizes = term_sizes(functions, orders, variance, smooth, LONGEST if variance > 1 else 96)
    lengths = series_lengths(sizes, 0.1 * tolerance)
    need, spread, lower, gap = _needs(K, lengths, variance)
    option, length = _choose(quadruples, need, gap) if avoid is None else _choose_other(quadruples, need, gap, avoid)
    sharp = length > LONGEST
    if variance > LARGE and _series_seconds(size, step, length, tolerance) > DEARER * _nested_seconds(quadruples):
        sharp[:] = True
    nested, moved = (), 0.0
    if sharp.any():
        nested, moved = plan_nested(functions, K, patterns, np.flatnonzero(sharp), tolerance, avoid is not None)
    picked = np.take_along_axis(quadruples, np.array(POSITIONS)[option], axis=1)
    single = picked[:, 0] == picked[:, 1]
    buckets = []
    for alone in (True, False):
        members = np.flatnonzero((single == alone) & ~sharp)
        if not members.size:
            continue
        if alone:
            parts = [(members, step, False)]
        else:
            a, b, c, d = picked[members].T
            # poles of different factors stay apart if no label is nearly a function of the others
            easy = (gap[a, b] > 0.2) & (np.minimum(lower[a, b, c], lower[a, b, d]) > 0.3 * np.sqrt(variance))
            parts = [(members[easy], apart, True), (members[~easy], step, False)]
        for part, its_step, spread_out in parts:
            if part.size:
                work = _Work(quadruples, option, picked, length, spread, part, alone)
                upward = spread_out and variance > 1e-3 and tolerance > 1e-11
                buckets.append(_bucket(functions, work, sizes, its_step, smooth, tolerance, radius, upward))
    return QuadruplePlan(tuple(buckets), None, jnp.asarray(max(moved, tolerance)), size, "conditioned", nested)


def _series_seconds(size: int, step: float, length: np.ndarray, tolerance: float) -> float:
    """A rough guess at what pair-conditioned series cost."""
    nodes = np.pi * (gaussian_radius(0.1 * tolerance) / step) ** 2
    terms = float(np.minimum(length, LONGEST).max())
    return (size**2 / 6 + 1) * nodes * terms * (12 * size**2 + 400 * size) / 4e9


def _nested_seconds(quadruples: np.ndarray) -> float:
    """A rough guess at what nested quadrature costs."""
    distinct = int((np.diff(quadruples, axis=1) > 0).all(axis=1).sum())
    return 0.2 * distinct + 0.01 * len(quadruples)


def sign_rule(functions: Functions, K: np.ndarray, tolerance: float) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """A rule on (0, 1) for the four-variate sign expectations of these kernels, and its measured error."""
    noise = functions.erf_form[2] ** -2.0 if functions.erf_form is not None else 0.0
    quadruples = sorted_quadruples(K.shape[-1])
    distinct = quadruples[(np.diff(quadruples, axis=1) > 0).all(axis=1)] if noise == 0 else quadruples
    chosen = np.random.default_rng(0).permutation(len(distinct))[: SAMPLE // len(K)]
    if not chosen.size:
        rule = legendre(8)
        return (jnp.asarray(rule[0]), jnp.asarray(rule[1])), jnp.asarray(1e-15)
    labels = distinct[chosen]
    blocks = np.concatenate([kernel[labels[:, :, None], labels[:, None, :]] for kernel in K]) + noise * np.eye(4)
    blocks = np.concatenate([blocks, np.tile(np.eye(4), (SAMPLE - len(blocks), 1, 1))]).transpose(1, 2, 0)

    def value(rule: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        padded = [np.pad(x, (0, 256 - x.size)) for x in rule]
        return np.asarray(_sign4(jnp.asarray(blocks), jnp.asarray(padded[0]), jnp.asarray(padded[1])))

    goal = max(0.01 * tolerance, 1e-14)
    before, error = value(legendre(8)), 1.0
    for rule in [legendre(n) for n in (16, 24, 40, 64)] + [tanh_sinh(n) for n in (100, 150, 220)]:
        now = value(rule)
        error = float(np.max(np.abs(now - before)))
        if error <= goal:
            break
        before = now
    return (jnp.asarray(rule[0]), jnp.asarray(rule[1])), jnp.asarray(max(error, 1e-15))


SAMPLE = 4096
_sign4 = jax.jit(sign4)


def legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on (0, 1)."""
    x, w = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, w / 2


def tanh_sinh(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Double-exponential rule on (0, 1), for integrands that are singular at t = 1."""
    u = np.linspace(-3.2, 3.2, n)
    x = 1 / (1 + np.exp(-np.pi * np.sinh(u)))
    w = (u[1] - u[0]) * np.pi * np.cosh(u) * x * (1 - x)
    return x, w


class _Work(NamedTuple):
    """The quadruples of one bucket and what was decided for them."""

    quadruples: np.ndarray
    option: np.ndarray
    picked: np.ndarray
    length: np.ndarray
    spread: np.ndarray
    members: np.ndarray
    single: bool


def _bucket(
    functions: Functions,
    work: _Work,
    sizes: np.ndarray,
    step: float,
    smooth: float,
    tolerance: float,
    radius: float,
    upward: bool,
) -> Bucket:
    quadruples, members, single = work.quadruples, work.members, work.single
    size = int(quadruples.max()) + 1
    picked = work.picked[members]
    pairs, job = np.unique(picked[:, :2], axis=0, return_inverse=True)
    job = job.ravel()
    counts = np.bincount(job)
    J, T = len(pairs), int(counts.max())
    order = np.argsort(job, kind="stable")
    place = np.concatenate([np.arange(c) for c in counts])
    used = np.zeros((J, size), dtype=bool)
    used[job, picked[:, 2]] = used[job, picked[:, 3]] = True
    M = min(size, -(-int(used.sum(axis=1).max()) // 4) * 4)
    labels = np.argsort(~used, axis=1, kind="stable")[:, :M]
    position = np.zeros((J, size), dtype=np.int32)
    np.put_along_axis(position, labels, np.arange(M, dtype=np.int32)[None, :], axis=1)
    targets = np.zeros((J, T, 2), dtype=np.int32)
    options = np.zeros((J, T), dtype=np.int32)
    slots = np.full((J, T), len(quadruples), dtype=np.int32)
    rows, where = job[order], (job[order], place)
    targets[where] = np.stack([position[rows, picked[order, 2]], position[rows, picked[order, 3]]], axis=1)
    options[where] = work.option[members][order]
    slots[where] = members[order]
    n = ladder(work.length[members].max() + 1, 1.4)
    widest = float(np.max(work.spread[picked[:, 0], picked[:, 1]][np.arange(len(picked))[:, None], picked[:, 2:]]))
    row = min(int(np.searchsorted(SPREADS, widest)), SPREADS.size - 1)
    y_step = min(smooth / max(widest, 1e-3), 0.9, 2 * np.pi / (np.sqrt(2 * np.log(1 / tolerance)) + np.sqrt(n)))
    if n > LONG:  # high orders count: their oscillations come on top of the function's own spectrum
        y_step = 2 * np.pi / (2 * np.pi / min(smooth / max(widest, 1e-3), 0.9) + np.sqrt(n))
    reach = np.arange(4.0, 40.0, 0.25)
    tails = (
        np.abs(hermite_table(reach, n))
        * np.exp(-(reach**2) / 2)
        * np.maximum(sizes[row, np.minimum(np.arange(n), sizes.shape[1] - 1)], 1e-300)[:, None]
    )
    far = reach[np.flatnonzero(tails.max(axis=0) > 0.1 * tolerance)]
    y = half_line(y_step, max(radius, far[-1] + 0.25 if far.size else 0.0))
    y = np.concatenate([-y[::-1], y])
    chunk = int(np.clip(2**20 // (M * y.size), 64, 1024))
    nodes = plane_nodes(step, radius, functions.parity != 0, single, chunk)
    return Bucket(
        jnp.asarray(pairs), jnp.asarray(labels), jnp.asarray(targets), jnp.asarray(options), jnp.asarray(slots),
        jnp.asarray(nodes), jnp.asarray(y), jnp.asarray(y_step), n, single, upward,
    )  # fmt: skip
