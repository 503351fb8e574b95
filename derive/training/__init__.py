"""Training at finite width, symbolically: the expansion over trees and the algorithm projectors in closed form."""

from derive.training.projectors import (
    AnyAlgorithm,
    GradientDescent,
    GradientFlow,
    NewtonStep,
    Rule,
    universal,
)
from derive.training.trees import Term, expansion

__all__ = [
    "AnyAlgorithm",
    "GradientDescent",
    "GradientFlow",
    "NewtonStep",
    "Rule",
    "Term",
    "expansion",
    "universal",
]
