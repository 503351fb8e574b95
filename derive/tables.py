"""Tables of results: rows of named values as CSV text and as pandas DataFrames. Nothing heavy is imported."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from effective_theory.files import write_file

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


class Tabular:
    """What is a table: its rows, as CSV and as a pandas DataFrame."""

    def rows(self) -> Sequence[Row]:
        """One mapping of column names to values a row."""
        raise NotImplementedError

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV text; written to a file where a path is given."""
        text = csv_text(self.rows())
        if path is not None:
            write_file(Path(path), text)
        return text

    def to_dataframe(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame (pandas is imported here only)."""
        import pandas

        return pandas.DataFrame([dict(row) for row in self.rows()])
