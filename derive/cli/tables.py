"""Tables that fit the terminal: a last column of words is folded, else every row becomes a paragraph; nothing is cut.

A number is never broken: where a table is wider than the terminal, its rows are written as "heading value" pairs.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

LEAST = 24
"""Letters that a folded column needs to be readable."""


class FittingConsole(Console):
    """A console that looks at a table's width before it prints it."""

    def print(self, *objects: Any, **options: Any) -> None:
        for item in objects if any(isinstance(item, Table) for item in objects) else ():
            if isinstance(item, Table) and not _fits(self, item):
                super().print(Text("\n".join(paragraphs(item, self.width))), overflow="fold", **options)
            else:
                super().print(item, **options)
        if not any(isinstance(item, Table) for item in objects):
            super().print(*objects, **options)


def _fits(console: Console, table: Table) -> bool:
    """Whether the table can be printed with whole numbers; columns that may fold are made ready for it."""
    room = console.width
    widest = Measurement.get(console, console.options.update(max_width=10**5), table).maximum
    if widest <= room:
        return True
    last = table.columns[-1]
    if last.overflow != "fold":
        return False
    cells = [str(cell) for cell in [last.header, *last.cells]]
    word = max((len(word) for cell in cells for word in cell.split()), default=0)
    for column in table.columns[:-1]:
        column.no_wrap = True
    return widest - max(map(len, cells)) + max(LEAST, word) <= room


def paragraphs(table: Table, width: int) -> list[str]:
    """The rows as text: the first cell (with its heading if it is a number), then pairs, broken between them.

    >>> table = Table("layer", "K", "Theta")
    >>> table.add_row("1", "0.25", "1.5")
    >>> paragraphs(table, 60)
    ['layer 1: K 0.25, Theta 1.5']
    """
    heads = [str(column.header) for column in table.columns]
    lines = [] if table.title is None else [str(table.title)]
    for cells in zip(*(list(column.cells) for column in table.columns)):
        pairs = [f"{head} {str(cell).strip()}" for head, cell in zip(heads, cells)]
        line = f"{pairs[0] if str(cells[0]).strip().lstrip('-').isdigit() else str(cells[0]).strip()}:"
        for place, pair in enumerate(pairs[1:], start=2):
            piece = pair + ("," if place < len(pairs) else "")
            if len(line) + 1 + len(piece) > width:
                lines.append(line)
                line = "   " + piece
            else:
                line += " " + piece
        lines.append(line)
    return lines
