"""Effective theory in numbers (JAX): the multi-input flow, predictions, ensembles. float64 throughout by default.

Importing this package switches JAX's 64-bit mode on and keeps compiled programs on disk (`numeric.runtime`).
"""

from importlib import import_module
from typing import Any

from numeric.runtime import configure

configure()

from numeric.errors import MissingTensor, NonFiniteFlow, NumericError  # noqa: E402
from numeric.evaluation.flow import flow  # noqa: E402
from numeric.evaluation.results import Flow, Layer  # noqa: E402
from numeric.trained import GradientDescent, GradientFlow, Prediction, TwoStep, predict  # noqa: E402

_LATER = {
    "empirical_ddntk": "numeric.empirical",
    "empirical_dntk": "numeric.empirical",
    "empirical_ntk": "numeric.empirical",
    "pseudo_ntk": "numeric.empirical",
    "learnability": "numeric.spectra.selfconsistent",
    "linearize": "numeric.empirical.linearized",
}
"""Names that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'numeric' has no attribute {name!r}")


__all__ = [
    "Flow",
    "GradientDescent",
    "GradientFlow",
    "Layer",
    "MissingTensor",
    "NonFiniteFlow",
    "NumericError",
    "Prediction",
    "TwoStep",
    "flow",
    "predict",
    *_LATER,
]
