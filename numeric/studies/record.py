"""A study on disk: rows as CSV and the settings beside them, written atomically, so that it can be stopped any time."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from typing import Any

from effective_theory.files import file_stem, write_file
from numeric.studies.linearization import Row, Study
from numeric.studies.resume import earlier_rows


class Record:
    """The rows of one study in `folder`. Only `widths` and `networks` may grow when a study is resumed."""

    def __init__(self, study: Study, folder: Path) -> None:
        name = file_stem(study.activation) + ("" if study.loss == "mse" else f"-{study.loss}")
        self.study = study
        self.csv = folder / f"ntk-study-{name}.csv"
        self.settings = folder / f"ntk-study-{name}.json"
        self.figure = folder / f"ntk-study-{name}.png"
        self.rows: list[Row] = self._load()

    @property
    def done(self) -> set[tuple[int, int]]:
        """(width, network) pairs that need not be trained again."""
        return {(row.width, row.network) for row in self.rows}

    @property
    def wanted(self) -> list[Row]:
        """The rows that belong to this study, in order."""
        chosen = [r for r in self.rows if r.width in self.study.widths and r.network < self.study.networks]
        return sorted(chosen, key=lambda r: (r.width, r.network))

    def add(self, rows: list[Row]) -> None:
        """Append rows and write the file anew."""
        self.rows = self.rows + rows
        self.save()

    def save(self) -> None:
        """Settings first, then the rows: a study that was stopped in between starts over, never mixes."""
        out = StringIO()
        table = csv.writer(out, lineterminator="\n")
        names = [f.name for f in fields(Row)]
        table.writerow(names)
        for row in sorted(self.rows, key=lambda r: (r.width, r.network)):
            table.writerow([repr(getattr(row, name)) for name in names])
        write_file(self.settings, json.dumps(self._fixed(), indent=2) + "\n")
        write_file(self.csv, out.getvalue())

    def _fixed(self) -> dict[str, Any]:
        found = {k: v for k, v in asdict(self.study).items() if k not in ("widths", "networks")}
        if self.study.loss == "mse":  # as settings were before there was another one
            del found["loss"]
        return found

    def _load(self) -> list[Row]:
        return earlier_rows(self.csv, self.settings, self.figure, self._fixed(), _row)


def _row(line: dict[str, str]) -> Row:
    values: dict[str, Any] = {name: float(text) for name, text in line.items()}
    return Row(**{**values, "width": int(line["width"]), "network": int(line["network"])})
