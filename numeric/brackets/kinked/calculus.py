"""Analytic on both sides of a kink at zero: the calculus, pairs in sectors, quadruples in planes of two inputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

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
from numeric.brackets.kinked.angles import plan_angles
from numeric.brackets.kinked.host import enough_angles, host_pairs, host_single
from numeric.brackets.kinked.quadruples import off_planes, plan_cut, plan_kinked
from numeric.brackets.kinked.sectors import sector_pairs

FINER_SECTORS = 8  # angles on either side of a sector's middle that a finer rule has more
LARGE = 8.0  # variance from which series take ten times longer than the plane cut at zero


@dataclass(frozen=True)
class Kinked(Calculus):
    """sigma is analytic on both sides of zero; `jump_order` is the lowest derivative that jumps (selu: 1, elu: 2)."""

    jump_order: int

    def jumps(self) -> int:
        return self.jump_order

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan:
        table = plan_angles(functions, question)
        if table is not None:
            return table
        angles, error = enough_angles(functions, question.highest_order, int(np.ceil(np.log2(question.variance))))
        return SectorPairs(jnp.asarray(max(error, 1e-15)), angles)

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
        return cast(dict[Order, Array], host_single(functions, orders, variances, self.angles))
