"""Data sets from CSV files: a header, then rows of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from derive.errors import DeriveError

Rows = list[list[float]]
LARGEST = 2**26
"""Characters of a file."""


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
            text = file.read(LARGEST + 1)  # a device such as /dev/zero does not end
        whole = len(text) <= LARGEST
        table = csv.reader(StringIO(text if whole else "", newline=""))
        rows = [row for row in table if any(cell.strip() for cell in row)]
    except (OSError, ValueError, csv.Error) as error:  # ValueError: bytes that are no text, a name with a null in it
        reason = str(error) if isinstance(error, csv.Error) else "it is not a text file"
        raise DeriveError(f"Cannot read {path}: {getattr(error, 'strerror', None) or reason}.") from None
    if not whole:
        raise DeriveError(f"Cannot read {path}: it has more than {LARGEST >> 20} million characters.")
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


def target_columns(data: str | Path, targets: Sequence[str]) -> tuple[list[str], Rows, Rows]:
    """All column names, and the rows of inputs and of targets of a file that has the targets."""
    names, rows = read_table(data)
    for target in targets:
        if target not in names:
            raise DeriveError(f"{data} has no column {target!r}; it has {', '.join(names)}.")
    inputs = [name for name in names if name not in targets]
    if not inputs:
        raise DeriveError(f"{data} has no input columns.")
    return names, _columns(names, rows, inputs), _columns(names, rows, targets)


def input_rows(path: str | Path, inputs: Sequence[str], targets: Sequence[str]) -> tuple[Rows, Rows | None]:
    """The rows of the given input columns of another file, and of its targets if it has them all."""
    names, rows = read_table(path)
    missing = [name for name in inputs if name not in names]
    if missing:
        raise DeriveError(f"{path} lacks the input columns {', '.join(missing)}.")
    known = all(target in names for target in targets)
    return _columns(names, rows, inputs), _columns(names, rows, targets) if known else None


def _columns(names: Sequence[str], rows: Rows, wanted: Sequence[str]) -> Rows:
    return [[row[names.index(name)] for name in wanted] for row in rows]


def load_data(data: str | Path, test: str | Path, targets: Sequence[str]) -> DataSet:
    """Columns that are not targets are inputs; the test file needs the same input columns."""
    names, X, y = target_columns(data, targets)
    more, answers = input_rows(test, [name for name in names if name not in targets], targets)
    return DataSet(X + more, y, len(X), answers)
