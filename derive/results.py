"""What every verb of the package returns: one object with the command's JSON, a notebook's view and LaTeX for a paper.

A result class derives from `Result` and says two things: `to_json()`, which is exactly what the command prints with
`--json`, and `blocks()`, the paragraphs, equations and tables that show it. LaTeX, HTML and notebook forms follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import sympy as sp

from derive import layout, notation
from derive.layout import Block, Table
from derive.steps import Words, formula, words
from derive.tables import Row, Tabular


class Result(ABC):
    """The answer to one question. Results are plain data: they pickle, and two equal questions give equal JSON."""

    @abstractmethod
    def to_json(self) -> dict[str, object] | list[dict[str, object]]:
        """Exactly the command's `--json`."""

    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """What a reader is shown, as data."""

    def latex(self) -> str:
        """LaTeX for a paper, complete with its environments."""
        return layout.latex(self.blocks())

    def _repr_latex_(self) -> str:
        return layout.mathjax(self.blocks())

    def _repr_html_(self) -> str:
        return layout.html(self.blocks())


def cell(expression: sp.Expr | int | None, digits: int = 10) -> Words:
    r"""A number or formula as a table's cell: exact as it is, floating-point numbers with their first digits.

    >>> from derive.symbols import lambda_W
    >>> cell(lambda_W / 2), cell(sp.Float("1.9830582576481234", 30))
    ('lambda_W/2', '1.983058258')
    >>> [part.latex() for part in cell(lambda_W / 2).parts]
    ['\\frac{\\lambda_W}{2}']
    """
    return words("–") if expression is None else Words(formula(expression, digits=digits))


def tex(expression: sp.Expr, digits: int = 10) -> str:
    """LaTeX of an expression, its floating-point numbers rounded for reading."""
    return notation.latex(expression, digits)


class TableResult(Result, Tabular):
    """A result that is a table: also as CSV and as a pandas DataFrame."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """One mapping of column names to values a row."""


def table_of(rows: Sequence[Row]) -> tuple[Table, ...]:
    """Rows as one table, or nothing where there are none."""
    if not rows:
        return ()
    cells = [
        tuple(f"{v:.6g}" if isinstance(v, float) else "–" if v is None else str(v) for v in r.values()) for r in rows
    ]
    return (Table(tuple(rows[0]), tuple(cells)),)
