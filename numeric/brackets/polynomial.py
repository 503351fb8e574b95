"""Polynomials: the series end by themselves, at every variance."""

from __future__ import annotations

from dataclasses import dataclass

from numeric.brackets.calculus import Calculus, PairPlan, PairQuestion, QuadruplePlan, QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.series import plan_conditioned, plan_series


@dataclass(frozen=True)
class Polynomial(Calculus):
    """sigma(z) = sum of coefficients[k] z^k."""

    coefficients: tuple[float, ...]

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan:
        return plan_series(functions, question)

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan:
        return plan_conditioned(functions, question)
