"""Mehler series for pairs, pair-conditioned ones for quadruples: the generic calculus of analytic activations."""

from __future__ import annotations

from numeric.brackets.calculus import Calculus, PairPlan, PairQuestion, QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.nested import affordable
from numeric.brackets.series.pairs import plan_series
from numeric.brackets.series.quadruples import plan_conditioned

HUGE = 64.0  # variance from which nested quadrature is cheaper


class Series(Calculus):
    """Suits every activation without a kink; its quadruples up to large variances, beyond only for want of better."""

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan | None:
        return None if functions.kinked else plan_series(functions, question)

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan | None:
        if functions.kinked or (question.variance > HUGE and affordable(question.size)):
            return None
        return plan_conditioned(functions, question)


__all__ = ["Series", "plan_conditioned", "plan_series"]
