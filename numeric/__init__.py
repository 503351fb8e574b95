"""Effective theory in numbers (JAX): the multi-input flow, predictions, ensembles. float64 throughout by default.

Importing this package switches JAX's 64-bit mode on and keeps compiled programs on disk (`numeric.runtime`).
"""

from numeric.runtime import configure

configure()

from numeric.errors import MissingTensor, NonFiniteFlow, NumericError  # noqa: E402
from numeric.flow import flow  # noqa: E402
from numeric.results import Flow, Layer  # noqa: E402

__all__ = ["Flow", "Layer", "MissingTensor", "NonFiniteFlow", "NumericError", "flow"]
