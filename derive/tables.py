"""Tables of results: rows of named values as CSV text and as pandas DataFrames. Nothing heavy is imported."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from html import escape
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


SHOWN = 24
"""So many rows a notebook shows of a long table."""


def html_table(rows: Sequence[Row], caption: str = "") -> str:
    """Rows as an HTML table for a notebook, the first ones of a long one; numbers to six digits.

    >>> html_table([{"loss": 0.123456789}], "a & b")
    '<table><caption>a &amp; b</caption><tr><th>loss</th></tr><tr><td>0.123457</td></tr></table>'
    """
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in rows[0])}</tr>"] if rows else []
    for row in rows[:SHOWN]:
        cells = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.values()]
        lines.append(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in cells)}</tr>")
    if len(rows) > SHOWN:
        lines.append(f'<tr><td colspan="{len(rows[0])}">and {len(rows) - SHOWN} more rows</td></tr>')
    return f"<table>{f'<caption>{escape(caption)}</caption>' if caption else ''}{''.join(lines)}</table>"


class Tabular:
    """What is a table: its rows, as CSV, as a pandas DataFrame, as HTML in a notebook."""

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

    def _repr_html_(self) -> str:
        return html_table(self.rows(), repr(self))
