"""Gaussian brackets of an activation in JAX, for all pairs and all quadruples of inputs.

    functions = Functions("tanh", derivatives, parity=-1)           # what a generated module provides
    plan = make_plan(functions, K, tolerance=1e-10, highest_order=5)   # on the host, from concrete numbers
    pair_brackets(functions, K, [(0, 0), (1, 1)], plan.pairs)       # {(j, k): (N, N)}
    quadruple_brackets(functions, K, plan.quadruples)               # {pattern: (N, N, N, N)}
    u = unique_quadruples(functions, K, plan.quadruples)            # the stored form, a few thousand times smaller
    block(u, PATTERNS, (0, 0, 1, 1), N, a, b)                       # (P, N, N): rows of a tensor for label pairs

Plans are pytrees: pass them to jitted functions as ordinary arguments (same sizes, same compiled code). Everything
but making a plan can be jitted, mapped over K and differentiated with respect to K, also where K is singular.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.gather import block, entries, quadruple_slots, tensor
from numeric.brackets.pairs import pair_brackets
from numeric.brackets.patterns import PATTERNS, Pattern, arrangements, sorted_quadruples
from numeric.brackets.plan import PairPlan, make_pair_plan, needs_no_plan
from numeric.brackets.quadplan import QuadruplePlan, chosen_options, make_quadruple_plan
from numeric.brackets.quadruples import quadruple_brackets, unique_quadruples

__all__ = [
    "PATTERNS",
    "Functions",
    "PairPlan",
    "Pattern",
    "Plan",
    "QuadruplePlan",
    "arrangements",
    "block",
    "chosen_options",
    "entries",
    "make_pair_plan",
    "make_plan",
    "make_quadruple_plan",
    "needs_no_plan",
    "pair_brackets",
    "quadruple_brackets",
    "quadruple_slots",
    "sorted_quadruples",
    "tensor",
    "unique_quadruples",
]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Plan:
    """Plans for pairs and, if asked for, quadruples."""

    pairs: PairPlan
    quadruples: QuadruplePlan | None


def make_plan(
    functions: Functions,
    K: np.ndarray,
    tolerance: float = 1e-9,
    highest_order: int = 5,
    patterns: tuple[tuple[int, ...], ...] = PATTERNS,
    margin: float = 1.0,
) -> Plan:
    """Plan pairs (to `tolerance` * 1e-4, at least 1e-13) and quadruples of these patterns (none: pairs only)."""
    pairs = make_pair_plan(functions, K, highest_order, max(tolerance * 1e-4, 1e-13), margin)
    return Plan(pairs, make_quadruple_plan(functions, K, patterns, tolerance, margin) if patterns else None)
