"""How accurate four-point brackets came out: some entries again by another route, with finer rules.

For pair-conditioned series the entries of a few inputs are conditioned on other pairs, (ac|bd) instead of (ab|cd), with
smaller steps and more terms; closed forms are compared with the series; nested quadratures are done in another order
of the labels. Nothing of the first evaluation's plan is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets import (
    PATTERNS,
    Functions,
    Pattern,
    PiecewiseLinear,
    QuadruplePlan,
    arrangements,
    make_quadruple_plan,
    second_route,
    sorted_quadruples,
    unique_quadruples,
)
from numeric.brackets.kernels import correlations
from numeric.brackets.kinked.quadruples import KinkedQuadruples
from numeric.brackets.nested.plan import nested_values
from numeric.brackets.series.quadruples import ConditionedQuadruples
from numeric.errors import NumericError

FINER = 1e-3
FINEST = 1e-13


def quadruple_errors(
    functions: Functions,
    K: np.ndarray,
    plan: QuadruplePlan,
    unique: Array,
    patterns: Iterable[Pattern] = PATTERNS,
    inputs: int = 5,
    seed: int = 0,
) -> dict[Pattern, float]:
    """{pattern: measured error relative to its largest entry} of `unique`, made for this kernel with this plan.

    The inputs are the largest, the two most alike and random ones: all their quadruples are computed again. Piecewise
    linear activations know no second route; there it is the measured error of the rule. An error that cannot be
    measured is infinite.
    """
    K = np.asarray(K, dtype=float)
    patterns = tuple(tuple(sorted(p)) for p in patterns)
    if isinstance(functions.calculus, PiecewiseLinear):
        return dict.fromkeys(patterns, float(plan.error))
    labels = _sample(K, inputs, seed)
    full, part = sorted_quadruples(plan.size), sorted_quadruples(len(labels))
    slot = {tuple(q): i for i, q in enumerate(full.tolist())}
    slots = np.array([slot[tuple(q)] for q in labels[part].tolist()])
    avoid = plan.conditioned_on()
    avoid = None if avoid is None else avoid[slots]
    kernel = K[np.ix_(labels, labels)]
    other = second_route(functions)
    tolerance = max(FINER * float(plan.error), FINEST) if avoid is not None else 1e-11
    try:
        again = make_quadruple_plan(other, kernel, patterns, tolerance, avoid=avoid)
    except NumericError:
        return dict.fromkeys(patterns, float("inf"))
    reference = np.zeros((len(part), len(arrangements(patterns))))
    if isinstance(again, ConditionedQuadruples) and again.buckets:
        reference = np.array(_evaluate(other, patterns, replace(again, nested=()), jnp.asarray(kernel)))
    if isinstance(again, KinkedQuadruples):
        reference = jax.tree_util.tree_map(np.asarray, replace(again, nested=())).unique(
            other, arrangements(patterns), kernel
        )
    for bucket in getattr(again, "nested", ()):
        reference[np.asarray(bucket.slots)] = nested_values(other, arrangements(patterns), bucket, kernel)
    values = np.asarray(unique, dtype=float)
    rounding = 8 * float(jnp.finfo(unique.dtype).eps)
    errors = {}
    components = arrangements(patterns)
    for pattern in patterns:
        columns = np.array([i for i, p in enumerate(components) if tuple(sorted(p)) == pattern])
        largest = max(float(np.max(np.abs(values[:, columns]))), 1e-300)
        difference = np.max(np.abs(values[np.ix_(slots, columns)] - reference[:, columns]))
        errors[pattern] = float(difference) / largest + rounding
    return errors


def _sample(K: np.ndarray, inputs: int, seed: int) -> np.ndarray:
    """Sorted labels: the largest input, the two most alike that are not the same, and random others."""
    size = K.shape[0]
    rho = correlations(K[None])
    alike = np.unravel_index(int(np.argmax(rho)), rho.shape)
    order = [int(np.argmax(np.diagonal(K))), *(int(i) for i in alike)]
    order += [int(i) for i in np.random.default_rng(seed).permutation(size)]
    return np.array(sorted(list(dict.fromkeys(order))[: min(inputs, size)]))


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(functions: Functions, patterns: tuple[Pattern, ...], plan: QuadruplePlan, K: Array) -> Array:
    return unique_quadruples(functions, K, plan, patterns)
