"""A layer's definition, the chain rule on trees, the 1/n expectation engine, and recursions as objects."""

from derive.network.component import GRAM, Component
from derive.network.definition import (
    FIRST,
    FROZEN_WEIGHTS,
    INPUT_SKIP,
    LAYERS,
    MLP,
    RESIDUAL,
    TWO_MATRICES,
    Bias,
    InputWeights,
    Layer,
    Skip,
    Weights,
)
from derive.network.expectation import OpenHierarchy
from derive.network.forward import ForwardTerm, forward_object
from derive.network.forward_equation import forward_latex
from derive.network.persistent_recursion import FunctionalRecursion, functional_recursion, is_persistent
from derive.network.tensor_recursion import Recursion, initial, recursion, recursions
from derive.network.terms import Average, Term
from derive.network.trees import TENSORS, Tensor

__all__ = [
    "FIRST",
    "FROZEN_WEIGHTS",
    "GRAM",
    "INPUT_SKIP",
    "LAYERS",
    "MLP",
    "RESIDUAL",
    "TENSORS",
    "TWO_MATRICES",
    "Average",
    "Bias",
    "Component",
    "ForwardTerm",
    "FunctionalRecursion",
    "InputWeights",
    "Layer",
    "OpenHierarchy",
    "Recursion",
    "Skip",
    "Tensor",
    "Term",
    "Weights",
    "forward_latex",
    "forward_object",
    "functional_recursion",
    "initial",
    "is_persistent",
    "recursion",
    "recursions",
]
