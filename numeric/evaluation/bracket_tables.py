"""The brackets that recursions ask for, from the bracket engine: plans and evaluation; what does not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from numeric.brackets import Functions, Order, Pattern, Plan, make_plan, pair_brackets, unique_quadruples
from numeric.evaluation.devices import sharded_unique
from numeric.subscripts import Steps


def choose(
    functions: Functions,
    kernels: np.ndarray,
    pairs: tuple[Order, ...],
    quads: tuple[Pattern, ...],
    tolerance: float,
    margin: float = 1.0,
) -> Plan:
    """A plan, on the host, for one concrete kernel or a stack of them."""
    highest = max((k for pair in pairs for k in pair), default=0)
    kind = np.asarray(kernels).dtype
    plan = make_plan(
        functions,
        np.asarray(kernels, dtype=float),
        tolerance,
        highest_order=highest,
        patterns=quads,
        margin=margin,
    )
    return jax.tree_util.tree_map(lambda x: x.astype(kind) if np.issubdtype(x.dtype, np.floating) else x, plan)


def brackets(
    functions: Functions,
    plan: Plan,
    K: jax.Array,
    pairs: tuple[Order, ...],
    quads: tuple[Pattern, ...],
    mesh: Mesh | None = None,
) -> tuple[dict[Order, jax.Array], jax.Array | None]:
    """({(j, k): (N, N) array}, unique quadruples); with a mesh, the plan is one that was split for it."""
    two = pair_brackets(functions, K, pairs, plan.pairs)
    four = None
    if quads:
        assert plan.quadruples is not None
        if mesh is None:
            four = unique_quadruples(functions, K, plan.quadruples, quads)
        else:
            four = sharded_unique(functions, K, plan, quads, mesh)
    return two, four


def rounded_pairs(two: Mapping[Order, Any], rounded: Callable[[Any], Any]) -> dict[Order, Any]:
    """Two-point brackets moved by rounding, but for those of K and Theta: the kernels stay as they are."""
    return {order: value if order in ((0, 0), (1, 1)) else rounded(value) for order, value in two.items()}


def missing_tensors(functions: Functions, steps: Steps) -> dict[str, str]:
    """{tensor: one sentence} for the tensors that do not exist for this activation, what they depend on included."""
    missing: dict[str, str] = {}
    for name, step in steps.items():
        for pattern in step.quads:
            reason = divergence(functions, pattern)
            if reason:
                missing[name] = f"{name} does not exist for {functions.name}: it needs {_shown(pattern)}, {reason}."
                break
        if name not in missing and functions.kinks_at(0) and name != "K":
            missing[name] = (
                f"{name} is not available for {functions.name}, which jumps at zero: s' is a delta function."
            )
        below = next((other for other in step.tensors if other in missing and other != name), None)
        if name not in missing and below is not None:
            missing[name] = f"{name} does not exist for {functions.name}, since it depends on {below}: {missing[below]}"
    return missing


def divergence(functions: Functions, pattern: tuple[int, ...]) -> str | None:
    """Why the bracket of a kinked activation has no value where inputs coincide, or None where it has one.

    sigma^(j) jumps at zero, so sigma^(j+1) holds a delta function: harmless beside continuous factors, but not beside
    another one, and beside jumps its value depends on how the inputs approach each other.
    """
    deltas = [k for k in pattern if functions.has_delta(k)]
    if len(deltas) > 1:
        return "a product of delta functions where inputs coincide"
    if deltas and any(functions.kinks_at(k) for k in pattern if k not in deltas):
        return "a delta function times jumps where inputs coincide"
    return None


def _shown(pattern: Pattern) -> str:
    return "<" + " ".join("s" + "'" * k for k in pattern) + ">"
