"""Predictions of trained networks: infinite width (chapter 10) and order 1/n (chapter infinity)."""

from numeric.trained.algorithms import (
    Algorithm,
    DivergentTraining,
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Preconditioned,
    Schedule,
    StochasticDescent,
    TwoStep,
)
from numeric.trained.infinite import KernelPrediction, SingularKernel, kernel_prediction
from numeric.trained.prediction import Prediction, predict
from numeric.trained.projectors import Projectors

__all__ = [
    "Algorithm",
    "DivergentTraining",
    "GradientDescent",
    "GradientFlow",
    "KernelPrediction",
    "Momentum",
    "Newton",
    "Preconditioned",
    "Prediction",
    "Projectors",
    "Schedule",
    "SingularKernel",
    "StochasticDescent",
    "TwoStep",
    "kernel_prediction",
    "predict",
]
