"""The effective theory of deep learning at finite width, derived: exact Gaussian calculus, recursions, asymptotics.

The names below are imported when they are first used, so that `import derive` is fast; it never imports jax.

>>> import derive
>>> derive.activation("tanh").criticality().universality_class
'K*=0'
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Activation": "derive.activations",
    "activation": "derive.activations",
    "exponents": "derive.depth",
    "expect": "derive.gaussian",
    "fixed_points": "derive.critical",
    "recursion": "derive.network",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'derive' has no attribute {name!r}")
