r"""What is shown to a reader, as data: paragraphs, displayed equations and tables, and how they become LaTeX and HTML.

Text is a string, which is plain, or a sentence of `derive.steps`, which holds its mathematics as objects: each writer
sets them in its own way, and nothing is markup.

>>> from derive.steps import said
>>> from derive.symbols import K
>>> print(latex([Equation("x = 1"), Text(said("so {} is 100 %", K))]))
\begin{equation}
x = 1
\end{equation}
<BLANKLINE>
so $K$ is 100 \%
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from derive.steps import words

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{c: "\\" + c for c in "&%#_{}$"},
    "^": r"\^{}",
    "~": r"\ensuremath{\sim}",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "σ": r"\ensuremath{\sigma}",
    "χ": r"\ensuremath{\chi}",
    "λ": r"\ensuremath{\lambda}",
    "Θ": r"\ensuremath{\Theta}",
    "∞": r"\ensuremath{\infty}",
    "→": r"\ensuremath{\to}",
    "≥": r"\ensuremath{\ge}",
    "≤": r"\ensuremath{\le}",
    "δ": r"\ensuremath{\delta}",
    "±": r"\ensuremath{\pm}",
}


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Equation:
    """A displayed equation in TeX, without delimiters; one with alignment marks & has several lines."""

    latex: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Cells are plain text or sentences."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


Block = Text | Equation | Table


def render(text: str, plain: Callable[[str], str], code: Callable[[str], str], math: Callable[[str], str]) -> str:
    """A sentence with each kind of its parts sent through its own function; a plain string is plain text."""
    return words(text).render(plain, code, math)


def escaped(text: str) -> str:
    r"""Plain text for LaTeX.

    >>> escaped("K_0 & 5%")
    'K\\_0 \\& 5\\%'
    """
    return "".join(_SPECIAL.get(c, c) for c in text)


def plain_html(text: str) -> str:
    """Plain text for HTML: what MathJax would take for mathematics is kept from it.

    >>> plain_html("a < b"), plain_html("$x$")
    ('a &lt; b', '<span class="tex2jax_ignore mathjax_ignore">$x$</span>')
    """
    safe = escape(text)
    return f'<span class="tex2jax_ignore mathjax_ignore">{safe}</span>' if set("$\\") & set(text) else safe


def latex(blocks: Iterable[Block]) -> str:
    """For a paper: equations in their environments, tables in booktabs' tabular, text escaped."""
    return "\n\n".join(_paper(block) for block in blocks)


def mathjax(blocks: Iterable[Block]) -> str:
    """For a notebook's LaTeX cell: only what MathJax knows, so tables are arrays."""
    return "\n\n".join(_array(block) if isinstance(block, Table) else _paper(block) for block in blocks)


def html(blocks: Iterable[Block]) -> str:
    """For a notebook's HTML cell, its formulas between dollar signs."""
    return "\n".join(_html(block) for block in blocks)


def _paper(block: Block) -> str:
    if isinstance(block, Text):
        return _inline(block.text)
    if isinstance(block, Equation):
        name = "align" if "&" in block.latex or r"\\" in block.latex else "equation"
        return f"\\begin{{{name}}}\n{block.latex}\n\\end{{{name}}}" + (f"\n{_inline(block.note)}" if block.note else "")
    lines = [" & ".join(map(_inline, row)) + r" \\" for row in (block.header, *block.rows)]
    body = "\n".join([r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"])
    table = f"\\begin{{tabular}}{{{'l' * len(block.header)}}}\n{body}\n\\end{{tabular}}"
    if not block.caption:
        return table
    return f"\\begin{{table}}\n\\centering\n{table}\n\\caption{{{_inline(block.caption)}}}\n\\end{{table}}"


def _inline(text: str) -> str:
    return render(text, escaped, lambda code: rf"\texttt{{{escaped(code)}}}", lambda math: f"${math}$")


def _array(table: Table) -> str:
    def cell(text: str) -> str:
        return render(text, lambda s: rf"\text{{{escaped(s)}}}", lambda s: rf"\texttt{{{escaped(s)}}}", lambda s: s)

    lines = [" & ".join(map(cell, row)) + r" \\" for row in (table.header, *table.rows)]
    body = "\n".join([lines[0], r"\hline", *lines[1:]])
    array = f"$$\\begin{{array}}{{{'l' * len(table.header)}}}\n{body}\n\\end{{array}}$$"
    return f"{array}\n\n{_inline(table.caption)}" if table.caption else array


def _html(block: Block) -> str:
    def line(text: str) -> str:
        return render(text, plain_html, lambda s: f"<code>{escape(s)}</code>", lambda s: f"${escape(s)}$")

    if isinstance(block, Text):
        return f"<p>{line(block.text)}</p>"
    if isinstance(block, Equation):
        note = f"<p>{line(block.note)}</p>" if block.note else ""
        several = "&" in block.latex or r"\\" in block.latex
        body = f"\\begin{{aligned}}{block.latex}\\end{{aligned}}" if several else block.latex
        return f"<div>$$\n{escape(body)}\n$$</div>{note}"
    head = "".join(f"<th>{line(cell)}</th>" for cell in block.header)
    rows = "".join("<tr>" + "".join(f"<td>{line(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    caption = f"<caption>{line(block.caption)}</caption>" if block.caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
