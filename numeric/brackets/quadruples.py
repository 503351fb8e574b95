"""Four-point brackets <sigma^(i)_a sigma^(j)_b sigma^(k)_c sigma^(l)_d>: unique entries, tensors, blocks, derivatives.

Only sorted quadruples a <= b <= c <= d are computed, each with all distinct orderings of the derivative orders; a
tensor or any block of it is gathered from them. Derivatives with respect to K follow from integration by parts:
d<f> = sum over pairs of slots <d_i d_j f> dK_ij + 1/2 sum over slots <d_i^2 f> dK_ii, with `jax.custom_jvp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.calculus import QuadruplePlan
from numeric.brackets.functions import Functions
from numeric.brackets.patterns import PATTERNS, Pattern, arrangements, sorted_quadruples
from numeric.brackets.storage import block, tensor


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _unique(functions: Functions, patterns: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    return plan.unique(functions, arrangements(patterns), K)


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
