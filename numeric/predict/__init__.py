"""Predictions of trained networks: infinite width (chapter 10) and order 1/n (chapter infinity)."""

from numeric.predict.algorithms import (
    Algorithm,
    DivergentTraining,
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Preconditioned,
    Schedule,
    TwoStep,
)
from numeric.predict.kernel import KernelPrediction, SingularKernel, kernel_prediction
from numeric.predict.prediction import Prediction, predict
from numeric.predict.projectors import Projectors

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
    "TwoStep",
    "kernel_prediction",
    "predict",
]
