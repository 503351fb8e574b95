"""sigma(z) = plus z for z > 0 and minus z for z < 0: the calculus and its plans. Nothing of it depends on the scale."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import (
    Calculus,
    Order,
    PairPlan,
    PairQuestion,
    QuadruplePlan,
    QuadrupleQuestion,
    Rectangle,
)
from numeric.brackets.closed import elementwise
from numeric.brackets.functions import Functions
from numeric.brackets.linear.brackets import Slopes, linear_pair, linear_quadruples, merged, square
from numeric.brackets.patterns import Pattern, sorted_quadruples
from numeric.brackets.signrule import Rule, sign_rule
from numeric.brackets.storage import in_pieces

SMALL = 64  # rows up to which all pairs are done at once


@dataclass(frozen=True)
class PiecewiseLinear(Calculus):
    """sigma(z) = plus z for z > 0 and minus z for z < 0 (relu: PiecewiseLinear(1.0, 0.0))."""

    plus: float
    minus: float

    @property
    def slopes(self) -> Slopes:
        return self.plus, self.minus

    def jumps(self) -> int:
        return 1

    def unplanned(self) -> float:
        return float("inf")

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan:
        return LinearPairs(jnp.asarray(1e-15), self.slopes)

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan:
        rule, error = sign_rule(question.K, question.tolerance)
        return LinearQuadruples(rule, error, question.size, self.slopes)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearPairs(PairPlan):
    """Arc-cosine closed forms and their derivatives."""

    tail: Array
    slopes: Slopes = field(metadata={"static": True})
    on_host = True

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        if not set(orders) <= {(0, 0), (1, 1)}:
            return super().single(functions, orders, variances)
        same = module_of(variances).ones(variances.shape, dtype=bool)
        return {(j, k): square(self.slopes, j, variances, variances, variances, same) for j, k in orders}

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        if max(pairs.c.shape) > SMALL and set(orders) <= {(0, 0), (1, 1)}:

            def closed(orders: tuple[Order, ...], a: Array, b: Array, c: Array, same: Array) -> list[Array]:
                return [square(self.slopes, j, a, b, c, same) for j, _ in orders]

            return elementwise(closed, orders, pairs, symmetric)
        hard = tuple(pair for pair in orders if sum(pair) > 3 or pair == (1, 3))
        if not isinstance(pairs.c, np.ndarray) or not hard:
            return {(j, k): linear_pair(self.slopes, j, k, pairs) for j, k in orders}
        found = {(j, k): linear_pair(self.slopes, j, k, pairs) for j, k in orders if (j, k) not in hard}
        return found | _derived(self.slopes, hard, pairs)


@partial(jax.jit, static_argnums=(0, 1))
def _derived(slopes: Slopes, orders: tuple[Order, ...], pairs: Rectangle) -> dict[Order, Array]:
    """Those that are derivatives of closed forms: compiled also for the host."""
    return {(j, k): linear_pair(slopes, j, k, pairs) for j, k in orders}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearQuadruples(QuadruplePlan):
    """The rule for four signs; quadruples with repeated labels are done apart, so that they cost no accuracy."""

    rule: Rule
    error: Array
    size: int = field(metadata={"static": True})
    slopes: Slopes = field(metadata={"static": True})
    on_host = True

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        nodes, weights = (x.astype(K.dtype) for x in self.rule)
        quadruples = sorted_quadruples(self.size)
        shapes = np.array([merged(q) for q in quadruples])
        out = module_of(K).zeros((len(quadruples), len(components)), K.dtype)
        for shape in sorted(set(map(tuple, shapes))):
            members = np.flatnonzero((shapes == shape).all(axis=1))
            first = [shape.index(g) for g in range(max(shape) + 1)]

            def piece(covariances: Array, shape: tuple[int, ...] = shape) -> Array:
                return linear_quadruples(self.slopes, components, covariances, shape, nodes, weights)

            found = in_pieces(piece, K, quadruples[members][:, first])
            if isinstance(out, np.ndarray):
                out[members] = found
            else:
                out = out.at[members].set(found)
        return out
