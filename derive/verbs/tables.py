"""Data sets from CSV files: a header, then rows of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from derive.errors import DeriveError

Rows = list[list[float]]


@dataclass(frozen=True)
class DataSet:
    """Training inputs first, then test inputs; targets of the training inputs and, where the file has them, all."""

    inputs: Rows
    targets: Rows
    count: int
    test_targets: Rows | None


def read_table(path: str | Path) -> tuple[list[str], list[list[float]]]:
    """Column names and rows of numbers of a CSV file with a header."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, ValueError, csv.Error) as error:  # ValueError: bytes that are no text, a name with a null in it
        reason = str(error) if isinstance(error, csv.Error) else "it is not a text file"
        raise DeriveError(f"Cannot read {path}: {getattr(error, 'strerror', None) or reason}.") from None
    if len(rows) < 2:
        raise DeriveError(f"{path} needs a header and at least one row.")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) != len(names):
        raise DeriveError(f"{path} has two columns of the same name.")
    values = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise DeriveError(f"Row {number} of {path} has {len(row)} cells, the header has {len(names)}.")
        try:
            values.append([_cell(cell) for cell in row])
        except ValueError as error:
            raise DeriveError(f"Row {number} of {path}: {error}.") from None
    return names, values


def _cell(text: str) -> float:
    """A finite number."""
    if len(text) > 100:
        raise ValueError(f"a cell of {len(text)} characters is no number")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text.strip()!r} is no finite number")
    return value


def load_data(data: str | Path, test: str | Path, targets: Sequence[str]) -> DataSet:
    """Columns that are not targets are inputs; the test file needs the same input columns."""
    names, rows = read_table(data)
    test_names, test_rows = read_table(test)
    for target in targets:
        if target not in names:
            raise DeriveError(f"{data} has no column {target!r}; it has {', '.join(names)}.")
    inputs = [name for name in names if name not in targets]
    missing = [name for name in inputs if name not in test_names]
    if not inputs or missing:
        raise DeriveError(
            f"{test} lacks the input columns {', '.join(missing)}." if missing else f"{data} has no input columns."
        )
    X = [[row[names.index(name)] for name in inputs] for row in rows]
    X += [[row[test_names.index(name)] for name in inputs] for row in test_rows]
    known = all(target in test_names for target in targets)
    answers = [[row[test_names.index(target)] for target in targets] for row in test_rows] if known else None
    return DataSet(X, [[row[names.index(target)] for target in targets] for row in rows], len(rows), answers)
