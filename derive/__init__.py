"""The effective theory of deep learning at finite width, derived: exact Gaussian calculus, recursions, asymptotics.

Every command of `derive` is a function here, with the command's name and arguments. The names below are imported when
they are first used, so that `import derive` is fast; it never imports jax (the verbs that compute numbers from data,
`derive.verbs.data` and `derive.verbs.kernels`, import `numeric` when they are called).

>>> import derive
>>> derive.activation("tanh").criticality().universality_class
'K*=0'
>>> derive.expect("s0 s0", "relu").form
K/2
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from derive.errors import DeriveError
    from derive.results import Result
    from derive.verbs.activations import Activation, activation
    from derive.verbs.against_depth import depth_study
    from derive.verbs.algorithms import projectors
    from derive.verbs.certificates import certify
    from derive.verbs.data import predict
    from derive.verbs.depth import asymptotics, criticality, exponents, fixed_points, generalization
    from derive.verbs.design import recommend
    from derive.verbs.equations import forward, recursion
    from derive.verbs.expectation import expect
    from derive.verbs.exploration import explore
    from derive.verbs.files import generate, report
    from derive.verbs.interpolation import starpolation
    from derive.verbs.kernels import learnability, ntk_study
    from derive.verbs.regression import kernel
    from derive.verbs.scale import scale_study

__version__ = "0.2.0"

_HOMES = {
    "Activation": "derive.verbs.activations",
    "DeriveError": "derive.errors",
    "Result": "derive.results",
    "activation": "derive.verbs.activations",
    "asymptotics": "derive.verbs.depth",
    "certify": "derive.verbs.certificates",
    "criticality": "derive.verbs.depth",
    "depth_study": "derive.verbs.against_depth",
    "expect": "derive.verbs.expectation",
    "explore": "derive.verbs.exploration",
    "exponents": "derive.verbs.depth",
    "fixed_points": "derive.verbs.depth",
    "forward": "derive.verbs.equations",
    "generalization": "derive.verbs.depth",
    "generate": "derive.verbs.files",
    "kernel": "derive.verbs.regression",
    "learnability": "derive.verbs.kernels",
    "ntk_study": "derive.verbs.kernels",
    "predict": "derive.verbs.data",
    "projectors": "derive.verbs.algorithms",
    "recommend": "derive.verbs.design",
    "recursion": "derive.verbs.equations",
    "report": "derive.verbs.files",
    "scale_study": "derive.verbs.scale",
    "starpolation": "derive.verbs.interpolation",
}

__all__ = [
    "Activation",
    "DeriveError",
    "Result",
    "__version__",
    "activation",
    "activations",
    "asymptotics",
    "certify",
    "criticality",
    "depth_study",
    "expect",
    "explore",
    "exponents",
    "fixed_points",
    "forward",
    "generalization",
    "generate",
    "kernel",
    "learnability",
    "ntk_study",
    "predict",
    "projectors",
    "recommend",
    "recursion",
    "report",
    "scale_study",
    "starpolation",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name == "activations":  # the folder of that name, which can be called
        return importlib.import_module("derive.activations")
    raise AttributeError(f"module 'derive' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
