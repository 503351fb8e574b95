"""Effective theory in numbers (JAX): the multi-input flow, predictions, ensembles. float64 throughout by default.

Importing this package switches JAX's 64-bit mode on, and changes nothing else (`numeric.runtime`).
"""

from importlib import import_module
from typing import TYPE_CHECKING

from numeric.runtime import configure, keep_compiled

configure()

from numeric.errors import MissingTensor, NonFiniteFlow, NumericError  # noqa: E402

if TYPE_CHECKING:
    from derive import __version__
    from numeric.empirical import empirical_ddntk, empirical_dntk, empirical_ntk, pseudo_ntk
    from numeric.empirical.linearized import linearize
    from numeric.ensemble.networks import Networks
    from numeric.evaluation.flow import flow
    from numeric.evaluation.kernel_blocks import KernelBlock, KernelMatrices, kernel_blocks, kernel_matrices
    from numeric.evaluation.rectangle import NetworkKernel
    from numeric.evaluation.results import Flow, Layer, load
    from numeric.spectra.selfconsistent import learnability
    from numeric.trained import GradientDescent, GradientFlow, Prediction, TwoStep, predict
    from numeric.trained.frozen_kernel import FrozenKernelTraining
    from numeric.trained.iterative_regression import IterativeRegression
    from numeric.trained.kernel_regression import KernelRegression
    from numeric.trained.operators import BlockKernel

_LATER = {
    "BlockKernel": "numeric.trained.operators",
    "Flow": "numeric.evaluation.results",
    "FrozenKernelTraining": "numeric.trained.frozen_kernel",
    "GradientDescent": "numeric.trained",
    "GradientFlow": "numeric.trained",
    "IterativeRegression": "numeric.trained.iterative_regression",
    "KernelBlock": "numeric.evaluation.kernel_blocks",
    "KernelMatrices": "numeric.evaluation.kernel_blocks",
    "KernelRegression": "numeric.trained.kernel_regression",
    "Layer": "numeric.evaluation.results",
    "NetworkKernel": "numeric.evaluation.rectangle",
    "Networks": "numeric.ensemble.networks",
    "Prediction": "numeric.trained",
    "TwoStep": "numeric.trained",
    "__version__": "derive",
    "empirical_ddntk": "numeric.empirical",
    "empirical_dntk": "numeric.empirical",
    "empirical_ntk": "numeric.empirical",
    "flow": "numeric.evaluation.flow",
    "kernel_blocks": "numeric.evaluation.kernel_blocks",
    "kernel_matrices": "numeric.evaluation.kernel_blocks",
    "learnability": "numeric.spectra.selfconsistent",
    "linearize": "numeric.empirical.linearized",
    "load": "numeric.evaluation.results",
    "predict": "numeric.trained",
    "pseudo_ntk": "numeric.empirical",
}
"""Names that are imported when they are first used: `import numeric` takes little more than `import jax`."""

__all__ = [
    "BlockKernel",
    "Flow",
    "FrozenKernelTraining",
    "GradientDescent",
    "GradientFlow",
    "IterativeRegression",
    "KernelBlock",
    "KernelMatrices",
    "KernelRegression",
    "Layer",
    "MissingTensor",
    "NetworkKernel",
    "Networks",
    "NonFiniteFlow",
    "NumericError",
    "Prediction",
    "TwoStep",
    "__version__",
    "empirical_ddntk",
    "empirical_dntk",
    "empirical_ntk",
    "flow",
    "keep_compiled",
    "kernel_blocks",
    "kernel_matrices",
    "learnability",
    "linearize",
    "load",
    "predict",
    "pseudo_ntk",
]


def __getattr__(name: str) -> object:
    if name in _LATER:
        value = getattr(import_module(_LATER[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'numeric' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
