"""Which calculus serves an activation at concrete kernels: the one place that chooses.

The activation's own calculus is asked first, then the generic ones: the plane cut at zero for large variances, series,
which share their work among quadruples, and nested quadrature, which knows no limits but takes its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import jax
import numpy as np

from numeric.brackets.calculus import Calculus, PairPlan, PairQuestion, QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.kernels import Kernels, check_kernel
from numeric.brackets.kinked import Wide
from numeric.brackets.nested import Nested
from numeric.brackets.patterns import PATTERNS, Pattern
from numeric.brackets.series import Series
from numeric.errors import NumericError
from numeric.runtime import one_thread

GENERIC: tuple[Calculus, ...] = (Wide(), Series(), Nested())


def plan_pairs(functions: Functions, question: PairQuestion) -> PairPlan:
    """The plan of the first calculus that suits."""
    for calculus in (functions.calculus, *GENERIC):
        plan = calculus.plan_pairs(functions, question)
        if plan is not None:
            return plan
    raise NumericError(f"{functions.name}: no calculus computes its pair brackets at these kernels.")


def make_pair_plan(
    functions: Functions, K: np.ndarray, highest_order: int = 1, tolerance: float = 1e-13, margin: float = 1.0
) -> PairPlan:
    """Plan the pair brackets with derivatives up to `highest_order` for a concrete kernel, or a stack of kernels.

    The plan stays valid for kernels with a smaller diagonal and smaller correlations. `margin` >= 1 widens the
    largest variance, for kernels that will move (differentiation needs no margin).
    """
    return plan_pairs_of(functions, Kernels.square(K), highest_order, tolerance, margin)


def plan_pairs_of(
    functions: Functions, kernels: Kernels, highest_order: int, tolerance: float, margin: float = 1.0
) -> PairPlan:
    """`make_pair_plan` for covariances between any rows and columns."""
    variance = max(kernels.variance * margin, 1e-300)
    return plan_pairs(functions, PairQuestion(kernels, highest_order, tolerance, variance))


@one_thread()
def make_quadruple_plan(
    functions: Functions,
    K: np.ndarray,
    patterns: Iterable[Pattern] = PATTERNS,
    tolerance: float = 1e-9,
    margin: float = 1.0,
    avoid: np.ndarray | None = None,
    finer: bool = False,
    wanted: np.ndarray | None = None,
) -> QuadruplePlan:
    """Plan the four-point brackets for a concrete kernel (N, N), or a stack of kernels that shall share one plan.

    `avoid` (see `QuadruplePlan.conditioned_on`) asks for other pairs to condition on than another plan's, `finer` for
    smaller steps than the tolerance needs. `wanted` says which of the sorted quadruples matter (None: all).
    """
    K = check_kernel(K)
    variance = max(float(np.max(np.diagonal(K, axis1=1, axis2=2))) * margin, 1e-300)
    question = QuadrupleQuestion(K, tuple(patterns), tolerance, variance, avoid, finer, wanted)
    for calculus in (functions.calculus, *GENERIC):
        plan = calculus.plan_quadruples(functions, question)
        if plan is not None:
            return plan
    raise NumericError(f"{functions.name}: no calculus computes its four-point brackets at these kernels.")


def better_alone(functions: Functions, K: np.ndarray, patterns: Iterable[Pattern], tolerance: float) -> bool:
    """Whether quadruples of a stack of kernels are better planned for each of them."""
    variance = float(np.max(np.diagonal(K, axis1=1, axis2=2)))
    question = QuadrupleQuestion(K, tuple(patterns), tolerance, variance)
    return len(K) > 1 and any(calculus.better_alone(functions, question) for calculus in (functions.calculus, *GENERIC))


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
    patterns: tuple[Pattern, ...] = PATTERNS,
    margin: float = 1.0,
    wanted: np.ndarray | None = None,
) -> Plan:
    """Plan pairs (to `tolerance` * 1e-4, at least 1e-13) and quadruples of these patterns (none: pairs only)."""
    pairs = make_pair_plan(functions, K, highest_order, max(tolerance * 1e-4, 1e-13), margin)
    if not patterns:
        return Plan(pairs, None)
    return Plan(pairs, make_quadruple_plan(functions, K, patterns, tolerance, margin, wanted=wanted))


def needs_no_plan(functions: Functions) -> float:
    """The variance up to which pair brackets are a closed form whatever the kernel; zero: there is none."""
    return functions.calculus.unplanned()


@lru_cache(maxsize=64)
def second_route(functions: Functions) -> Functions:
    """The same activation as the error estimate computes it: without its closed forms, where it can do without."""
    second = functions.calculus.second()
    return functions if second == functions.calculus else replace(functions, calculus=second)
