"""Exact numbers as data: {"exact": SymPy expression, "value": float or None}, the form of all JSON answers."""

from __future__ import annotations

import math
from typing import Any


def exact(expression: Any, digits: int = 17) -> dict[str, Any] | None:
    """An exact number or expression as data; `value` is None where free symbols remain or it is not a finite real.

    >>> import sympy as sp
    >>> exact(sp.sqrt(2))
    {'exact': 'sqrt(2)', 'value': 1.4142135623730951}
    >>> exact(sp.Symbol("lambda_W") / 2)
    {'exact': 'lambda_W/2', 'value': None}
    """
    import sympy as sp

    if expression is None:
        return None
    expression = sp.sympify(expression, strict=True)
    if expression.free_symbols:
        return {"exact": str(expression), "value": None}
    value = complex(expression.evalf(digits)) if not expression.is_Float else complex(expression)
    finite = math.isfinite(value.real) and abs(value.imag) <= 1e-15 * max(1.0, abs(value.real))
    return {"exact": str(expression), "value": value.real if finite else None}
