"""Which quadruples go by nested quadrature, in which order of integration and with how many nodes; their evaluation.

Labels are integrated in the order of a pivoted Cholesky decomposition, largest residual variance first, so that
rounding in a nearly singular covariance stays where it does no harm. The number of nodes is raised, quadruple by
quadruple, until the values stop moving; what they still moved is the measured error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise, permutations
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.brackets.nested.brackets import Request, nested_brackets
from numeric.brackets.nested.deltas import with_deltas, without_deltas
from numeric.brackets.patterns import Pattern, arrangements, sorted_quadruples
from numeric.brackets.rules import legendre
from numeric.errors import NumericError

TURNS = tuple(permutations(range(4)))
FEW = ((24, 40), (40, 40), (64, 64))  # (nodes a panel, size of the compiled rule), up to three distinct labels
FOUR = ((14, 20), (20, 20), (28, 40), (40, 40), (56, 56))  # four distinct labels
WORST = 1e-3
BATCH = {1: 16, 2: 16, 3: 16, 4: 2}  # covariances a compiled call, by the number of distinct labels
EVEN = 1e4
ALONE = 12  # covariances of up to three labels that are done on the host: compiling would take longer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NestedBucket:
    """Quadruples with the same multiplicities `counts` of their distinct labels, and the same rule."""

    labels: jax.Array  # (Q, d), in the order of integration
    turns: jax.Array  # (Q,) index into TURNS: slots in the order of integration
    slots: jax.Array  # (Q,) index of the sorted quadruple
    nodes: jax.Array  # Gauss-Legendre on (0, 1)
    weights: jax.Array
    counts: tuple[int, ...] = field(metadata={"static": True})


def scale_of(functions: Functions) -> float:
    """The length on which sigma changes."""
    return min(functions.strip, functions.calculus.length(), 1.0)


def _values(
    functions: Functions, components: tuple[Pattern, ...], counts: tuple[int, ...], C: Array, rule: tuple[Array, Array]
) -> Array:
    """(components,), the slots in the order of integration, from the covariance of the distinct labels."""
    place = [i for i, count in enumerate(counts) for _ in range(count)]
    wanted = without_deltas(functions, components)
    request = {
        p: tuple(tuple(sorted(k for k, q in zip(p, place) if q == i)) for i in range(len(counts))) for p in wanted
    }
    unique: tuple[Request, ...] = tuple(sorted(set(request.values())))
    found = nested_brackets(functions, unique, C, rule, scale_of(functions))
    index = {r: i for i, r in enumerate(unique)}
    slots = np.array(place)
    return with_deltas(functions, components, {p: found[index[request[p]]] for p in wanted}, C[slots][:, slots])


def fill_nested(
    functions: Functions, components: tuple[Pattern, ...], bucket: NestedBucket, K: Array, out: Array
) -> Array:
    """Write the bucket's quadruples into the stored form (U, components)."""
    if isinstance(K, np.ndarray):
        out[np.asarray(bucket.slots)] = nested_values(functions, components, bucket, K)
        return out
    table = jnp.asarray(_turned(components))
    rule = (bucket.nodes.astype(K.dtype), bucket.weights.astype(K.dtype))

    def one(item: tuple[Array, Array]) -> Array:
        labels, turn = item
        values = _values(functions, components, bucket.counts, K[labels][:, labels], rule)
        return values[table[turn]]

    return out.at[bucket.slots].set(jax.lax.map(one, (bucket.labels, bucket.turns)))


def nested_values(
    functions: Functions, components: tuple[Pattern, ...], bucket: NestedBucket, K: np.ndarray
) -> np.ndarray:
    """The bucket's rows (Q, components) on the host, by the compiled code that the plan has used already."""
    labels, nodes = np.asarray(bucket.labels), bucket.nodes.shape[0]
    size = next(
        size for rungs in (FEW, FOUR) for n, size in rungs if n == nodes and (len(bucket.counts) < 4) == (rungs is FEW)
    )
    values = _evaluate(functions, components, bucket.counts, K[labels[:, :, None], labels[:, None, :]], (nodes, size))
    return np.take_along_axis(values, _turned(components)[np.asarray(bucket.turns)], axis=1)


def _turned(components: tuple[Pattern, ...]) -> np.ndarray:
    """[turn, component]: where the component at the sorted slots stands among those in the order of integration."""
    index = {p: i for i, p in enumerate(components)}
    return np.array([[index[tuple(p[x] for x in turn)] for p in components] for turn in TURNS])


def _unevenness(blocks: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """How much larger a later residual variance is than the pivot, at worst, if these labels come in this order."""
    rest = blocks[:, order][:, :, order].copy()
    worst = np.zeros(len(blocks))
    for k in range(len(order) - 1):
        pivot = np.maximum(rest[:, k, k], 1e-300)
        later = np.max(np.diagonal(rest, axis1=1, axis2=2)[:, k + 1 :], axis=1)
        worst = np.maximum(worst, np.where(later > 0, later / pivot, 0.0))
        rest = rest - rest[:, :, k, None] * rest[:, None, k, :] / pivot[:, None, None]
    return worst


def _orders(K: np.ndarray, labels: np.ndarray, other: bool) -> np.ndarray:
    """The best order of integration for each row of distinct labels, (Q, d); `other`: the best with another start."""
    size = labels.shape[1]
    orders = list(permutations(range(size)))
    cost = np.zeros((len(orders), len(labels)))
    for kernel in K:
        blocks = kernel[labels[:, :, None], labels[:, None, :]]
        cost = np.maximum(cost, [_unevenness(blocks, order) for order in orders])
    if size < 4:  # cheap: one order for all, the most repeated label first, where it is not nearly singular
        cost = np.where(cost < EVEN, EVEN, cost)
    best = np.argmin(cost, axis=0)
    if other and size > 1:
        start = np.array([order[0] for order in orders])
        cost[start[:, None] == start[best][None, :]] = np.inf
        best = np.argmin(cost, axis=0)
    return np.array(orders)[best]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _batch(functions, components, counts, blocks, rule):
    return jax.lax.map(lambda C: _values(functions, components, counts, C, rule), blocks)


@lru_cache(maxsize=512)
def _alone(
    functions: Functions, components: tuple[Pattern, ...], counts: tuple[int, ...], block: bytes, nodes: int
) -> np.ndarray:
    """One covariance on the host; kept, since a flow asks again for what its plan has measured."""
    C = np.frombuffer(block).reshape(len(counts), len(counts))
    with np.errstate(all="ignore"):
        return np.asarray(_values(functions, components, counts, cast(Any, C), cast(Any, legendre(nodes))))


def _evaluate(functions, components, counts, blocks: np.ndarray, rung: tuple[int, int]) -> np.ndarray:
    if len(counts) < 4 and len(blocks) <= ALONE:
        own = np.ascontiguousarray(blocks, dtype=float)
        return np.stack([_alone(functions, components, counts, C.tobytes(), rung[0]) for C in own])
    rule = tuple(jnp.asarray(x) for x in _rule(*rung))
    size = BATCH[len(counts)]
    pad = -len(blocks) % size
    padded = np.concatenate([blocks, np.repeat(blocks[:1], pad, axis=0)])
    parts = [
        np.asarray(_batch(functions, components, counts, jnp.asarray(padded[i : i + size]), rule))
        for i in range(0, len(padded), size)
    ]
    return np.concatenate(parts)[: len(blocks)]


def _rule(nodes: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on (0, 1), padded with nodes of no weight: rules of one size share compiled code."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return np.pad((x + 1) / 2, (0, size - nodes), constant_values=0.5), np.pad(w / 2, (0, size - nodes))


def plan_nested(
    functions: Functions,
    K: np.ndarray,
    patterns: tuple[Pattern, ...],
    members: np.ndarray,
    tolerance: float,
    other: bool = False,
) -> tuple[tuple[NestedBucket, ...], float]:
    """Buckets for the sorted quadruples `members` of a stack of kernels, and the measured error.

    The error is relative to the largest entry of each pattern. `other` asks for another order of integration and a
    finer rule.
    """
    components = arrangements(patterns)
    if (
        functions.kinked
        and without_deltas(functions, components) != components
        and np.any(np.diagonal(K, 0, 1, 2) == 0)
    ):
        raise NumericError(
            f"{functions.name}: an input has variance zero, where the delta function in its derivatives has no finite "
            "expectation; leave out that input, or give C_b > 0."
        )
    quadruples = sorted_quadruples(K.shape[-1])[members]
    groups = _grouped(K, quadruples, other)
    largest = _largest(functions, components, K, quadruples)
    buckets: list[NestedBucket] = []
    error = 0.0
    for counts, (rows, labels, turns) in sorted(groups.items()):
        for rung, chosen, moved in _converged(
            functions, components, counts, _hardest(K, labels), tolerance, largest, other
        ):
            x, w = _rule(rung, rung)
            error = max(error, moved)
            slots = jnp.asarray(members[rows[chosen]], jnp.int32)
            own, turn = jnp.asarray(labels[chosen]), jnp.asarray(turns[chosen])
            buckets.append(NestedBucket(own, turn, slots, jnp.asarray(x), jnp.asarray(w), counts))
    if not error < WORST:
        raise NumericError(
            f"{functions.name}: four-point brackets with variances up to {np.max(K):.3g} do not converge by nested "
            f"quadrature (they still move by {error:.1g}); the activation changes on too short a scale for that size."
        )
    return tuple(buckets), error


def _grouped(
    K: np.ndarray, quadruples: np.ndarray, other: bool
) -> dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """{multiplicities in the order of integration: (rows, distinct labels, turns)}."""
    found: dict[tuple[int, ...], list[tuple[int, tuple[int, ...], int]]] = {}
    distinct = [[label for _, label in sorted((-q.count(x), x) for x in set(q))] for q in quadruples.tolist()]
    for size in range(1, 5):
        rows = np.array([i for i, labels in enumerate(distinct) if len(labels) == size], dtype=int)
        if not rows.size:
            continue
        labels = np.array([distinct[i] for i in rows])
        for row, own, order in zip(rows, labels, _orders(K, labels, other)):
            sequence = own[order].tolist()
            slots = quadruples[row].tolist()
            turn = tuple(s for label in sequence for s in range(4) if slots[s] == label)
            counts = tuple(slots.count(label) for label in sequence)
            found.setdefault(counts, []).append((int(row), tuple(sequence), TURNS.index(turn)))
    columns = {counts: tuple(zip(*items)) for counts, items in found.items()}
    return {
        counts: (np.array(rows), np.array(labels, dtype=np.int32), np.array(turns, dtype=np.int32))
        for counts, (rows, labels, turns) in columns.items()
    }


def _hardest(K: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Covariances of each row at the kernel where they are nearest to singular and the one where they are largest:
    (Q, 1 or 2, d, d).
    """
    blocks = K[:, labels[:, :, None], labels[:, None, :]]  # (kernels, Q, d, d)
    if len(K) == 1:
        return blocks.transpose(1, 0, 2, 3)
    variance = np.diagonal(blocks, axis1=2, axis2=3)
    size = np.sqrt(np.maximum(variance, 1e-300))
    gap = np.linalg.det(blocks / (size[..., :, None] * size[..., None, :]))
    rows = np.arange(len(labels))
    return np.stack(
        [blocks[np.argmin(gap, axis=0), rows], blocks[np.argmax(variance.max(axis=2), axis=0), rows]], axis=1
    )


def _by_pattern(components: tuple[Pattern, ...], values: np.ndarray) -> np.ndarray:
    """The largest absolute value over the arrangements of each component's pattern, in the components' places."""
    codes = np.array([sorted(p) for p in components])
    same = (codes[:, None, :] == codes[None, :, :]).all(axis=2)
    return np.array([np.max(np.abs(values[..., row])) for row in same])


def _largest(
    functions: Functions, components: tuple[Pattern, ...], K: np.ndarray, quadruples: np.ndarray
) -> np.ndarray:
    """An estimate from below of the largest entry of every component's tensor: from single inputs."""
    labels = np.unique(quadruples)
    blocks = np.concatenate([k[labels, labels][:, None, None] for k in K[[0, -1]]])
    values = _evaluate(functions, components, (4,), blocks, FEW[1])
    return np.maximum(_by_pattern(components, values), 1e-300)


def _converged(
    functions: Functions,
    components: tuple[Pattern, ...],
    counts: tuple[int, ...],
    blocks: np.ndarray,
    tolerance: float,
    largest: np.ndarray,
    later: bool,
) -> list[tuple[int, np.ndarray, float]]:
    """(nodes a panel, rows, what they still moved when the rule was refined) until every row is in one of them.

    `later` takes the finer one of the two rules that agree.
    """
    ladder = FOUR if len(counts) == 4 else FEW
    active = np.arange(len(blocks))
    before: np.ndarray | None = None
    out = []
    for coarse, fine in pairwise(ladder):
        now = [
            _evaluate(functions, components, counts, blocks[active].reshape(-1, *blocks.shape[2:]), rung)
            for rung in ((coarse, fine) if before is None else (fine,))
        ]
        values = [v.reshape(len(active), -1, len(components)) for v in now]
        first = values[0] if before is None else before
        scale = np.maximum(largest, _by_pattern(components, values[-1]))
        moved = np.max(np.abs(values[-1] - first) / scale, axis=(1, 2))
        moved = np.where(np.isfinite(moved), moved, np.inf)
        done = moved <= 0.3 * tolerance
        if fine is ladder[-1]:
            late = ~done
            if late.any():
                out.append((fine[0], active[late], float(moved[late].max())))
        if done.any():
            out.append(((fine if later else coarse)[0], active[done], float(moved[done].max())))
        active, before = active[~done], values[-1][~done]
        if not active.size:
            break
    return out
