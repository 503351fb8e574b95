"""A layer step of a few inputs on the host: the same formulas on NumPy arrays, and next to nothing to compile.

Compiling a layer step takes seconds, computing one of a few inputs milliseconds. What a calculus cannot do on the host
is compiled by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import (
    Functions,
    Order,
    PairPlan,
    Pattern,
    Plan,
    Rectangle,
    pair_brackets,
    tensor,
    unique_quadruples,
)
from numeric.brackets.patterns import arrangements
from numeric.evaluation.bracket_tables import rounded_pairs
from numeric.evaluation.layer import needed
from numeric.subscripts import Steps, views

SEVERAL = 256
"""Inputs up to which pair brackets alone are computed on the host: faster than compiling a program for them."""
FEW = 6  # inputs up to which the host is faster, compiling included: its time is some thirty calls of a few layers


def on_host(K: Any, pairs_only: bool = False) -> bool:
    """Whether a layer step is done on the host; more inputs where it has no four-point brackets."""
    return (
        K.shape[0] <= (SEVERAL if pairs_only else FEW) and K.dtype == np.float64 and not isinstance(K, jax.core.Tracer)
    )


def host_step(
    functions: Functions,
    steps: Steps,
    names: tuple[str, ...],
    plan: Plan,
    values: Any,
    tensors: Mapping[str, Any],
    roundings: Sequence[Callable[[Any], Any]] = (),
    brackets: dict[str, Any] | None = None,
    smallest: bool = False,
) -> Any:
    """All tensors of the next layer, as NumPy arrays; `values` are NumPy's numbers.

    With `roundings` of the brackets, the largest (or smallest) value of each entry that they lead to. `brackets` keeps
    what was integrated, for another step from the same kernel.
    """
    pairs, quads = needed(steps, names)
    below: dict[str, Any] = {name: np.asarray(x) for name, x in tensors.items()}
    with np.errstate(all="ignore"):  # what is not finite is found by the flow's own check
        kept = {} if brackets is None else brackets
        if not kept:
            kept["two"] = host_pairs(functions, plan, below["K"], pairs)
            kept["four"] = _quadruples(functions, plan, below["K"], quads) if quads else {}
        two, four, out = kept["two"], kept["four"], dict[str, Any]()
        pick = np.minimum if smallest else np.maximum
        for rounded in roundings or [lambda four: four]:
            pair, moved = rounded_pairs(two, rounded), {pattern: rounded(value) for pattern, value in four.items()}
            for name in names:
                rank = steps[name].rank
                s, m, t = views(pair, rank), views(moved, rank), views(below, rank)
                new = np.asarray(steps[name].advance(values, s, m, t))
                out[name] = pick(out[name], new) if name in out else new
    return out


def host_pairs(functions: Functions, plan: Plan, K: Any, orders: tuple[Order, ...]) -> dict[Order, Any]:
    """Pair brackets of a kernel, a NumPy array, as NumPy arrays."""
    return square_pairs(functions, plan.pairs, K, orders)


def square_pairs(functions: Functions, plan: PairPlan, K: Any, orders: tuple[Order, ...]) -> dict[Order, Any]:
    """`host_pairs` by a plan of pairs alone; many inputs by a compiled program."""
    if plan.on_host and len(K) <= SEVERAL:
        diagonal, same = (cast(Any, x) for x in (np.diagonal(K).copy(), np.eye(len(K), dtype=bool)))
        found = _numpy(plan).rectangle(functions, orders, Rectangle(diagonal, diagonal, K, same), True)
    else:
        found = _compiled_pairs(functions, orders)(plan, K)
    return {order: np.asarray(value) for order, value in found.items()}


def _quadruples(functions: Functions, plan: Plan, K: Any, patterns: tuple[Pattern, ...]) -> dict[Pattern, Any]:
    unique = host_unique(functions, plan, K, patterns)
    return {pattern: tensor(cast(Any, unique), patterns, pattern, len(K)) for pattern in patterns}


def host_unique(functions: Functions, plan: Plan, K: Any, patterns: tuple[Pattern, ...]) -> np.ndarray:
    """Four-point brackets of a kernel in their stored form, (sorted quadruples, arrangements)."""
    assert plan.quadruples is not None
    if plan.quadruples.on_host:
        with np.errstate(all="ignore"):  # what is not finite is found by the flow's own check
            return np.asarray(_numpy(plan.quadruples).unique(functions, arrangements(patterns), K))
    return np.asarray(_compiled_quadruples(functions, patterns)(plan.quadruples, K))


def host_is_faster(plan: Plan, K: Any) -> bool:
    """Whether four-point brackets of many inputs, too, are computed on the host."""
    own = plan.quadruples
    return own is not None and own.faster_on_host and K.dtype == np.float64 and not isinstance(K, jax.core.Tracer)


def _numpy(plan: Any) -> Any:
    """The plan with NumPy arrays in it."""
    return jax.tree_util.tree_map(np.asarray, plan)


@lru_cache(maxsize=256)
def _compiled_pairs(functions: Functions, orders: tuple[Order, ...]) -> Callable[..., Any]:
    return jax.jit(lambda plan, K: pair_brackets(functions, K, orders, plan))


@lru_cache(maxsize=256)
def _compiled_quadruples(functions: Functions, patterns: tuple[Pattern, ...]) -> Callable[..., Any]:
    return jax.jit(lambda plan, K: unique_quadruples(functions, K, plan, patterns))


def host_rectangle(
    functions: Functions, plan: PairPlan, orders: tuple[Order, ...], pairs: Rectangle
) -> dict[Order, Any]:
    """Pair brackets of rows and columns, all NumPy arrays."""
    return _numpy(plan).rectangle(functions, orders, pairs, False)


def at_single_inputs(
    functions: Functions, plan: PairPlan, orders: tuple[Order, ...], variances: np.ndarray
) -> dict[Order, np.ndarray]:
    """<sigma^(j) sigma^(k)> at single inputs of these variances: on the host, where they are few."""
    if plan.on_host and len(variances) <= SEVERAL:
        with np.errstate(all="ignore"):
            found = _numpy(plan).single(functions, orders, variances)
    else:
        found = _compiled_single(functions, orders)(plan, jnp.asarray(variances))
    return {order: np.asarray(value) for order, value in found.items()}


@lru_cache(maxsize=256)
def _compiled_single(functions: Functions, orders: tuple[Order, ...]) -> Callable[..., Any]:
    return jax.jit(lambda plan, variances: plan.single(functions, orders, variances))
