"""Files of an earlier run: taken up where they are this study's own, refused in a sentence where they are not.

A study writes its settings first, so a table or a figure without settings beside it is not ours and is never replaced.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from numeric.errors import NumericError

Row = TypeVar("Row")
ELSEWHERE = "choose another folder, or remove it"


def earlier_rows(
    table: Path, settings: Path, figure: Path, fixed: Mapping[str, Any], read: Callable[[dict[str, str]], Row]
) -> list[Row]:
    """The rows that a stopped run of the same study has left; none where this is its beginning."""
    present = [path for path in (table, settings, figure) if os.path.lexists(path)]
    if not present:
        return []
    if not settings.is_file():
        raise NumericError(f"{present[0]} exists and is not a study of ours: {ELSEWHERE}.")
    try:
        found = json.loads(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise NumericError(f"{settings} exists and does not hold the settings of a study: {ELSEWHERE}.") from None
    if found != json.loads(json.dumps(fixed)):
        raise NumericError(f"{settings} belongs to a study with other settings: {ELSEWHERE}.")
    if not os.path.lexists(table):
        return []
    if not table.is_file():
        raise NumericError(f"{table} exists and is not a study of ours: {ELSEWHERE}.")
    try:
        with table.open(newline="", encoding="utf-8") as file:
            return [read(line) for line in csv.DictReader(file)]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise NumericError(f"{table} has been changed since this study wrote it: {ELSEWHERE}.") from None
