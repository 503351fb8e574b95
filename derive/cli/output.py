"""What every command prints: exact numbers as {"exact", "value"}, JSON on standard output, tables for people."""

from __future__ import annotations

import json
import math
from typing import Any

import click


def exact(expression: Any, digits: int = 17) -> dict[str, Any] | None:
    """An exact number or expression as INTERFACE.md wants it; `value` is None where free symbols remain.

    >>> import sympy as sp
    >>> exact(sp.sqrt(2))
    {'exact': 'sqrt(2)', 'value': 1.4142135623730951}
    >>> exact(sp.Symbol("lambda_W") / 2)
    {'exact': 'lambda_W/2', 'value': None}
    """
    import sympy as sp

    if expression is None:
        return None
    expression = sp.sympify(expression)
    if expression.free_symbols:
        return {"exact": str(expression), "value": None}
    value = complex(expression.evalf(digits)) if not expression.is_Float else complex(expression)
    finite = math.isfinite(value.real) and abs(value.imag) <= 1e-15 * max(1.0, abs(value.real))
    return {"exact": str(expression), "value": value.real if finite else None}


def print_json(data: Any) -> None:
    """Write JSON to standard output; a NaN or an infinity in it is a defect of ours and raises."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def number(entry: dict[str, Any] | None, digits: int = 10) -> str:
    """An {"exact", "value"} entry for a human reader: short exact forms as they are, others with their digits.

    >>> number({"exact": "1/2", "value": 0.5}), number({"exact": "1.98305825764812", "value": 1.98305825764812})
    ('1/2', '1.983058258')
    """
    if entry is None:
        return "-"
    text, value = entry["exact"], entry["value"]
    if value is None:
        return text
    shown = f"{value:.{digits}g}"
    if text.lstrip("-").isdigit() or text == shown or _is_rational(text):
        return text
    if _is_decimal(text):
        return shown
    return f"{text} ≈ {shown}" if len(text) <= 48 else shown


def _is_rational(text: str) -> bool:
    head, _, tail = text.lstrip("-").partition("/")
    return head.isdigit() and tail.isdigit()


def _is_decimal(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
