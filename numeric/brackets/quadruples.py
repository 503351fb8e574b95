"""Four-point brackets <sigma^(i)_a sigma^(j)_b sigma^(k)_c sigma^(l)_d>: unique entries, tensors, blocks, derivatives.

Only sorted quadruples a <= b <= c <= d are computed, each with all distinct orderings of the derivative orders; a
tensor or any block of it is gathered from them. Derivatives with respect to K follow from integration by parts:
d<f> = sum over pairs of slots <d_i d_j f> dK_ij + 1/2 sum over slots <d_i^2 f> dK_ii, with `jax.custom_jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.conditioned import conditioned
from numeric.brackets.exponential import exponential_brackets
from numeric.brackets.functions import Functions
from numeric.brackets.gather import block, tensor
from numeric.brackets.kinked import linear_quadruples, merged
from numeric.brackets.nestedplan import fill_nested
from numeric.brackets.patterns import PATTERNS, Pattern, arrangements, sorted_quadruples
from numeric.brackets.quadplan import POSITIONS, Bucket, QuadruplePlan
from numeric.brackets.stein import stein_brackets

CHUNK = 2048


def _permuted(components: tuple[Pattern, ...]) -> np.ndarray:
    """[option, component]: the component that holds (orders at a, b, c, d) for the component at the sorted labels."""
    index = {p: i for i, p in enumerate(components)}
    return np.array([[index[tuple(p[x] for x in where)] for p in components] for where in POSITIONS])


def _fill(functions: Functions, components: tuple[Pattern, ...], bucket: Bucket, K: Array, out: Array) -> Array:
    table = jnp.asarray(_permuted(components))
    nodes, y, y_step = (x.astype(K.dtype) for x in (bucket.nodes, bucket.y, bucket.y_step))

    def job(out: Array, item: tuple[Array, ...]) -> tuple[Array, None]:
        pair, labels, targets, options, slots = item
        values = conditioned(
            functions, components, bucket.n, bucket.single, bucket.upward, K, pair, labels, nodes, y, y_step
        )  # (components, M, M)
        picked = values[table[options], targets[:, :1], targets[:, 1:]]  # (T, components)
        return out.at[slots].set(picked), None

    jobs = (bucket.pairs, bucket.labels, bucket.targets, bucket.options, bucket.slots)
    return jax.lax.scan(job, out, jobs)[0]


def _conditioned_series(functions: Functions, components: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    count = len(sorted_quadruples(plan.size))
    out = jnp.zeros((count + 1, len(components)), K.dtype)
    for bucket in plan.buckets:
        out = _fill(functions, components, bucket, K, out)
    for nested in plan.nested:
        out = fill_nested(functions, components, nested, K, out)
    return out[:count]


def _chunked(function: Callable[[Array], Array], K: Array, labels: np.ndarray) -> Array:
    """Apply to the covariances (d, d, B) of labels (B, d), piece by piece: a piece stays in the cache; (B, components).

    Covariances are gathered within a piece, so that the labels are all that is held for every quadruple.
    """
    count, d = labels.shape

    def piece(own: Array) -> Array:
        blocks = jnp.stack([jnp.stack([K[own[:, i], own[:, j]] for j in range(d)]) for i in range(d)])
        return function(blocks).T

    if count <= CHUNK:
        return piece(jnp.asarray(labels))
    pad = -count % CHUNK
    pieces = np.concatenate([labels, np.repeat(labels[:1], pad, axis=0)]).reshape(-1, CHUNK, d)
    return jax.lax.map(piece, jnp.asarray(pieces)).reshape(count + pad, -1)[:count]


def _stein(functions: Functions, components: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    assert plan.rule is not None
    rule = tuple(x.astype(K.dtype) for x in plan.rule)
    quadruples = sorted_quadruples(plan.size)
    return _chunked(lambda piece: jnp.stack(stein_brackets(functions, components, piece, *rule)), K, quadruples)


def _linear(functions: Functions, components: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    assert plan.rule is not None
    rule = tuple(x.astype(K.dtype) for x in plan.rule)
    quadruples = sorted_quadruples(plan.size)
    shapes = np.array([merged(q) for q in quadruples])
    out = jnp.zeros((len(quadruples), len(components)), K.dtype)
    for shape in sorted(set(map(tuple, shapes))):
        members = np.flatnonzero((shapes == shape).all(axis=1))
        first = [shape.index(g) for g in range(max(shape) + 1)]
        labels = quadruples[members][:, first]
        values = _chunked(partial(_linear_piece, functions, components, shape, rule), K, labels)
        out = out.at[members].set(values)
    return out


def _linear_piece(functions, components, shape, rule, piece):
    return linear_quadruples(functions, components, piece, shape, *rule)


def _exponential(functions: Functions, components: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    return _chunked(lambda piece: exponential_brackets(functions, components, piece), K, sorted_quadruples(plan.size))


ROUTES = {"conditioned": _conditioned_series, "stein": _stein, "linear": _linear, "exponential": _exponential}


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _unique(functions: Functions, patterns: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    return ROUTES[plan.route](functions, arrangements(patterns), plan, K)


def raised(pattern: Pattern, *slots: int) -> Pattern:
    """The pattern with one more derivative at each of the slots."""
    return tuple(k + slots.count(i) for i, k in enumerate(pattern))


@_unique.defjvp
def _unique_jvp(functions, patterns, primals, tangents):
    plan, K = primals
    dK = tangents[1]
    components = arrangements(patterns)
    slots = list(combinations(range(4), 2)) + [(i, i) for i in range(4)]
    wider = sorted({tuple(sorted(raised(p, *pair))) for p in components for pair in slots} | set(patterns))
    values = _unique(functions, tuple(wider), plan, K)
    index = {p: i for i, p in enumerate(arrangements(wider))}
    quadruples = sorted_quadruples(plan.size)
    tangent = jnp.zeros((len(quadruples), len(components)), K.dtype)
    for i, j in slots:
        columns = np.array([index[raised(p, i, j)] for p in components])
        change = dK[quadruples[:, i], quadruples[:, j]] * (0.5 if i == j else 1.0)
        tangent = tangent + values[:, columns] * change[:, None]
    return values[:, np.array([index[p] for p in components])], tangent


def unique_quadruples(
    functions: Functions, K: Array, plan: QuadruplePlan, patterns: Iterable[Pattern] = PATTERNS
) -> Array:
    """The stored form: shape (U, components), rows `sorted_quadruples(N)`, columns `arrangements(patterns)`."""
    return _unique(functions, tuple(tuple(sorted(p)) for p in patterns), plan, K)


def quadruple_brackets(
    functions: Functions,
    K: Array,
    plan: QuadruplePlan,
    patterns: Iterable[Pattern] = PATTERNS,
    rows: tuple[Array, Array] | None = None,
) -> dict[Pattern, Array]:
    """{pattern: tensor}: all N^4 entries, or those with the leading label pairs `rows` = (a's, b's): (P, N, N)."""
    patterns = tuple(patterns)
    unique = unique_quadruples(functions, K, plan, patterns)
    size = plan.size
    if rows is None:
        return {p: tensor(unique, patterns, p, size) for p in patterns}
    return {p: block(unique, patterns, p, size, *rows) for p in patterns}
