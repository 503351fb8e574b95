"""Nested quadrature for all quadruples: the calculus of last resort, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import Calculus, QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.nested.plan import NestedBucket, fill_nested, plan_nested
from numeric.brackets.patterns import Pattern, sorted_quadruples

PATIENCE = 900.0  # seconds of nested quadrature, roughly, before another way is preferred


class Nested(Calculus):
    """Suits every activation."""

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan:
        return plan_all(functions, question)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NestedQuadruples(QuadruplePlan):
    """Every quadruple is in one of the `nested` buckets."""

    nested: tuple[NestedBucket, ...]
    error: Array
    size: int = field(metadata={"static": True})
    on_host = True

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        out = module_of(K).zeros((len(sorted_quadruples(self.size)), len(components)), K.dtype)
        for bucket in self.nested:
            out = fill_nested(functions, components, bucket, K, out)
        return out

    def conditioned_on(self) -> np.ndarray:
        return np.zeros(len(sorted_quadruples(self.size)), dtype=np.int32)

    def measured(self) -> bool:
        return bool(self.nested)


def plan_all(functions: Functions, question: QuadrupleQuestion) -> NestedQuadruples:
    """All quadruples; in another order of integration than usual, if the question is to avoid the first one."""
    members = np.arange(len(sorted_quadruples(question.size)))
    members = members if question.wanted is None else members[question.wanted]
    other = question.avoid is not None
    nested, moved = plan_nested(functions, question.K, question.patterns, members, question.tolerance, other)
    return NestedQuadruples(nested, jnp.asarray(max(moved, question.tolerance)), question.size)


def seconds(size: int) -> float:
    """A rough guess at what it costs for so many inputs."""
    quadruples = sorted_quadruples(size)
    distinct = int((np.diff(quadruples, axis=1) > 0).all(axis=1).sum())
    return 0.2 * distinct + 0.01 * len(quadruples)


def affordable(size: int) -> bool:
    """Whether anyone would wait for it."""
    return seconds(size) < PATIENCE
