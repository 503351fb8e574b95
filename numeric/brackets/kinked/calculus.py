"""Analytic on both sides of a kink at zero: the calculus, pairs in sectors, quadruples in planes of two inputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.calculus import (
    Calculus,
    Order,
    PairPlan,
    PairQuestion,
    QuadruplePlan,
    QuadrupleQuestion,
    Rectangle,
)
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.host import host_pairs
from numeric.brackets.kinked.quadruples import off_planes, plan_cut, plan_kinked
from numeric.brackets.kinked.sectors import sector_pairs

SECTORS, WIDE_SECTORS, FINER_SECTORS = 28, 52, 8  # angles on either side of a sector's middle
WIDE = 100.0  # variance from which sectors take more of them
LARGE = 8.0  # variance from which series take ten times longer than the plane cut at zero


@dataclass(frozen=True)
class Kinked(Calculus):
    """sigma is analytic on both sides of zero; `jump_order` is the lowest derivative that jumps (selu: 1, elu: 2)."""

    jump_order: int

    def jumps(self) -> int:
        return self.jump_order

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan:
        return SectorPairs(jnp.asarray(1e-15), SECTORS if question.variance < WIDE else WIDE_SECTORS)

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan:
        return plan_kinked(functions, question)

    def better_alone(self, functions: Functions, question: QuadrupleQuestion) -> bool:
        return off_planes(question)


class Wide(Calculus):
    """Quadruples of smooth activations at large variances: from there what they do near zero is as sharp as a kink.

    Suits where every quadruple has a pair to condition on or lies in space, and nothing sharp stands elsewhere.
    """

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan | None:
        if not self._asked(functions, question):
            return None
        plan, rest = plan_cut(functions, question)
        return None if rest.size else plan

    def better_alone(self, functions: Functions, question: QuadrupleQuestion) -> bool:
        return self._asked(functions, question) and off_planes(question)

    @staticmethod
    def _asked(functions: Functions, question: QuadrupleQuestion) -> bool:
        return not (functions.kinked or functions.features or question.variance <= LARGE)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SectorPairs(PairPlan):
    """How many angles a sector of the plane takes."""

    tail: Array
    angles: int = field(metadata={"static": True})
    on_host = True
    most_on_host = 16

    def refined(self) -> SectorPairs:
        return replace(self, angles=self.angles + FINER_SECTORS)

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        if isinstance(pairs.c, np.ndarray):
            return cast(dict[Order, Array], host_pairs(functions, orders, pairs, symmetric, self.angles))
        return sector_pairs(functions, orders, pairs, symmetric, self.angles)

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        if not isinstance(variances, np.ndarray):
            return super().single(functions, orders, variances)
        one = cast(Any, np.ones((1, 1), dtype=bool))
        own = [self.rectangle(functions, orders, Rectangle(v, v, v[None], one), True) for v in variances.reshape(-1, 1)]
        return {order: cast(Array, np.array([found[order][0, 0] for found in own])) for order in orders}
