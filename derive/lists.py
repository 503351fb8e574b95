"""Lists that users give, as text with commas or as sequences: the one place that reads them (without SymPy)."""

from __future__ import annotations

from collections.abc import Iterable

from derive.errors import DeriveError

MOST = 1000


def whole_numbers(
    value: str | int | Iterable[int], name: str, least: int = 1, most: int = 2**31 - 1
) -> tuple[int, ...]:
    """Whole numbers, as text with commas or as a sequence.

    >>> whole_numbers("8, 32,128", "samples"), whole_numbers(4, "depths"), whole_numbers([2, 3], "widths")
    ((8, 32, 128), (4,), (2, 3))
    """
    try:
        parts = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else list(value)
        found = tuple(int(str(part).strip()) for part in parts)
    except (TypeError, ValueError):
        raise DeriveError(f"{name} takes whole numbers separated by commas, such as 2,4,8, not {value!r}.") from None
    if not found or min(found) < least:
        raise DeriveError(f"{name} takes whole numbers from {least} on, not {value!r}.")
    if max(found) > most or len(found) > MOST:
        raise DeriveError(f"{name} takes at most {MOST} whole numbers up to {most}.")
    return found


def names(value: str | Iterable[str]) -> tuple[str, ...]:
    """Names or formulas, as text with commas outside of parentheses or as a sequence.

    >>> names("tanh, leaky_relu(slope=1/10),Max(z, 0)"), names(["tanh", "relu"])
    (('tanh', 'leaky_relu(slope=1/10)', 'Max(z, 0)'), ('tanh', 'relu'))
    """
    if not isinstance(value, str):
        return tuple(value)
    parts, depth = [""], 0
    for letter in value:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())
