"""Between the recursions' names for brackets ("02", "0112") and the bracket engine: plans and evaluation."""

from __future__ import annotations

import jax
import numpy as np

from numeric.brackets import Functions, Plan, make_plan, pair_brackets, quadruple_brackets
from numeric.steps import Steps


def orders(pattern: str) -> tuple[int, ...]:
    """ "0112" -> (0, 1, 1, 2)."""
    return tuple(int(digit) for digit in pattern)


def choose(
    functions: Functions,
    kernels: np.ndarray,
    pairs: tuple[str, ...],
    quads: tuple[str, ...],
    tolerance: float,
    margin: float = 1.0,
) -> Plan:
    """A plan, on the host, for one concrete kernel or a stack of them."""
    highest = max((k for pattern in pairs for k in orders(pattern)), default=0)
    return make_plan(
        functions,
        np.asarray(kernels, dtype=float),
        tolerance,
        highest_order=highest,
        patterns=tuple(orders(pattern) for pattern in quads),  # type: ignore[misc]
        margin=margin,
    )


def brackets(
    functions: Functions, plan: Plan, K: jax.Array, pairs: tuple[str, ...], quads: tuple[str, ...]
) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """({"jk": (N, N) array}, {"ijkl": (N, N, N, N) array})."""
    two = pair_brackets(functions, K, [orders(p) for p in pairs], plan.pairs)  # type: ignore[misc]
    four = {}
    if quads:
        assert plan.quadruples is not None
        four = quadruple_brackets(functions, K, plan.quadruples, [orders(p) for p in quads])  # type: ignore[misc]
    return {p: two[orders(p)] for p in pairs}, {p: four[orders(p)] for p in quads}  # type: ignore[index]


def missing_tensors(functions: Functions, steps: Steps) -> dict[str, str]:
    """{tensor: one sentence} for the tensors that do not exist for this activation."""
    return {}
