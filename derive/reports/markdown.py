"""The Markdown writer: MyST flavour, so that the docs site takes a report as it is; figures are files beside it."""

from __future__ import annotations

from html import escape

from derive.layout import render
from derive.reports.document import Block, Code, Document, Equation, Figure, Gallery, Section, Steps, Table, Text

_ESCAPES = str.maketrans({c: "\\" + c for c in "\\`$*_<>|#[]"})


def _inline(text: str) -> str:
    return render(text, lambda t: t.translate(_ESCAPES), lambda c: f"`{c}`", lambda m: f"${m}$")


def _summary(text: str) -> str:
    """The line of what is folded away: HTML, in which Markdown is not read and MathJax looks at marked places only."""
    return render(
        text, escape, lambda c: f"<code>{escape(c)}</code>", lambda m: rf'<span class="math">\({escape(m)}\)</span>'
    )


def _table(table: Table) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(_inline(cell).replace("\n", " ") for cell in cells) + " |"

    rows = [line(table.header), "|" + " --- |" * len(table.header), *(line(row) for row in table.rows)]
    return "\n".join(rows) + (f"\n\n{_inline(table.caption)}" if table.caption else "")


def _image(figure: Figure, folder: str) -> str:
    alternative = figure.caption.translate({ord("$"): None, ord("["): "(", ord("]"): ")"})
    return f"![{alternative}]({folder}{figure.name}.svg)"


def _block(block: Block, folder: str) -> str:
    match block:
        case Text(text):
            return _inline(text)
        case Equation(latex, note):
            return f"$$\n{latex.strip()}\n$$" + (f"\n\n{_inline(note)}" if note else "")
        case Table():
            return _table(block)
        case Figure(_, _, caption):
            return f"{_image(block, folder)}\n\n{_inline(caption)}"
        case Gallery(panels, caption):
            return "\n".join(_image(panel, folder) for panel in panels) + f"\n\n{_inline(caption)}"
        case Code(source):
            return f"```python\n{source.strip()}\n```"
        case Steps(summary, blocks, folded):
            inner = [_block(b, folder) for b in blocks]
            if not folded:
                return "\n\n".join([f"**{_inline(summary)}**", *inner])
            return "\n\n".join([f"<details>\n<summary>{_summary(summary)}</summary>", *inner, "</details>"])


def _section(section: Section, folder: str) -> str:
    return "\n\n".join([f"## {_inline(section.title)}", *(_block(block, folder) for block in section.blocks)])


def write_markdown(document: Document, folder: str) -> str:
    """The whole document; `folder` is where the figures are, seen from the Markdown file."""
    head = [f"# {_inline(document.title)}", _inline(document.subtitle)]
    return "\n\n".join([*head, *(_section(s, folder) for s in document.sections)]) + "\n"
