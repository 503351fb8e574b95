"""The effective theory of deep learning at finite width, derived: exact Gaussian calculus, recursions, asymptotics.

The names below are imported when they are first used, so that `import derive` is fast; it never imports jax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from derive.activations import Activation, activation
    from derive.asymptotics import asymptotics, exponents
    from derive.criticality import criticality
    from derive.gaussian import expect
    from derive.network import recursion

_HOMES = {
    "Activation": "derive.activations",
    "activation": "derive.activations",
    "asymptotics": "derive.asymptotics",
    "criticality": "derive.criticality",
    "exponents": "derive.asymptotics",
    "expect": "derive.gaussian",
    "recursion": "derive.network",
}

__all__ = [
    "Activation",
    "activation",
    "asymptotics",
    "criticality",
    "expect",
    "exponents",
    "recursion",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'derive' has no attribute {name!r}")
