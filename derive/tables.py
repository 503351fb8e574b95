"""Tables of results: rows of named values as CSV text and as pandas DataFrames. Nothing heavy is imported."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, object]


def csv_text(rows: Sequence[Row]) -> str:
    """Rows of equal columns as CSV.

    >>> csv_text([{"depth": 2, "loss": 0.5}, {"depth": 4, "loss": None}])
    'depth,loss\\n2,0.5\\n4,\\n'
    """
    out = StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(rows[0] if rows else [])
    table.writerows(["" if value is None else value for value in row.values()] for row in rows)
    return out.getvalue()


def data_frame(rows: Sequence[Row]) -> pandas.DataFrame:
    """Rows as a pandas DataFrame (pandas is imported here only)."""
    import pandas

    return pandas.DataFrame([dict(row) for row in rows])
