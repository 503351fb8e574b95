"""What every command prints: exact numbers as {"exact", "value"}, JSON on standard output, tables for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from derive.cache import recall
from derive.errors import DeriveError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ask", "ask_latex", "number", "print_json", "print_steps", "print_sum", "shown", "summands", "terminal"]


def shown(text: str) -> str:
    r"""A user's text (a column, a file, a message that quotes it) for a terminal: on one line, controls as escapes.

    >>> shown("height\x1b[2J\n")
    'height\\x1b[2J\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def terminal(stderr: bool = False) -> Console:
    """Where tables and notes go: nothing in a text is markup, so that a user's [red] is printed as it is."""
    from derive.cli.tables import FittingConsole

    return FittingConsole(stderr=stderr, markup=False, highlight=False)


REFUSED = "refused, because"


def ask(verb: str, keep: bool = True, refusals: bool = False, **arguments: Any) -> Any:
    """The JSON of a verb of the public package; from the disk cache where the same code answered it before.

    `keep` is False for answers that depend on files or that are files; `refusals` keeps also the sentence with which a
    question is refused, where that takes a computation.
    """

    def compute() -> Any:
        import derive

        try:
            return getattr(derive, verb)(**arguments).to_json()
        except DeriveError as error:
            if not (refusals and keep):
                raise
            return {REFUSED: str(error)}

    found = recall(verb, arguments, compute) if keep else compute()
    if isinstance(found, dict) and REFUSED in found:
        raise DeriveError(found[REFUSED])
    return found


def ask_latex(verb: str, **arguments: Any) -> str:
    """A verb's answer as LaTeX for a paper: equations in their environments, tables with booktabs."""

    def compute() -> str:
        import derive

        return getattr(derive, verb)(**arguments).latex()

    return recall(f"{verb}, LaTeX", arguments, compute)


def print_json(data: Any) -> None:
    """Write JSON to standard output; a NaN or an infinity in it is a defect of ours and raises."""
    plain = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    click.echo(json.dumps(data, indent=2, ensure_ascii=plain, allow_nan=False))


def number(entry: dict[str, Any] | None, digits: int = 10) -> str:
    """An {"exact", "value"} entry for a human reader: short exact forms as they are, others with their digits.

    >>> number({"exact": "1/2", "value": 0.5}), number({"exact": "1.98305825764812", "value": 1.98305825764812})
    ('1/2', '1.983058258')
    """
    if entry is None:
        return "-"
    text, value = entry["exact"], entry["value"]
    if value is None:
        return text
    shown = f"{value:.{digits}g}"
    if text.lstrip("-").isdigit() or text == shown or _is_rational(text):
        return text
    if _is_decimal(text):
        return shown
    return f"{text} ≈ {shown}" if len(text) <= 48 else shown


def print_steps(console: Console, texts: list[str]) -> None:
    """A derivation, one numbered step after the other, the lines of a step below each other."""
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for place, text in enumerate(texts, start=1):
        table.add_row(f"{place}.", text)
    console.print(table)


def print_sum(console: Console, terms: list[str]) -> None:
    """= first term, + or - the others: a line for each summand, folded where the terminal is narrower."""
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    signs = [piece for term in terms for piece in summands(term)] or [("+", "0")]
    for place, (sign, text) in enumerate(signs):
        first = place == 0
        table.add_row("  =" if first else f"  {sign}", f"-{text}" if first and sign == "-" else text)
    console.print(table)


def summands(text: str) -> list[tuple[str, str]]:
    """The signs and summands of a printed sum, broken outside of all brackets only.

    >>> summands("-C_W**2*<s1 s2> + (a - b)*V")
    [('-', 'C_W**2*<s1 s2>'), ('+', '(a - b)*V')]
    """
    found: list[tuple[str, str]] = []
    sign, start, depth, k = "+", 0, 0, 0
    if text.startswith("-"):
        sign, start, k = "-", 1, 1
    while k < len(text):
        depth += (text[k] in "([<") - (text[k] in ")]>")
        if depth == 0 and text[k : k + 3] in (" + ", " - "):
            found.append((sign, text[start:k]))
            sign, start, k = text[k + 1], k + 3, k + 2
        k += 1
    return [*found, (sign, text[start:])]


def _is_rational(text: str) -> bool:
    head, _, tail = text.lstrip("-").partition("/")
    return head.isdigit() and tail.isdigit()


def _is_decimal(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
