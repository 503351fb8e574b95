"""The LaTeX writer: an article that plain pdflatex compiles, equations wrapped by breqn's dmath."""

from __future__ import annotations

from derive.layout import escaped, render
from derive.reports.document import Block, Code, Document, Equation, Figure, Gallery, Section, Steps, Table, Text

_PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{amsmath,amssymb,graphicx,longtable,array,geometry}
\IfFileExists{breqn.sty}{\usepackage{breqn}}{\newenvironment{dmath*}{\[}{\]\ignorespacesafterend}}
\geometry{margin=2.4cm}
\setlength{\tabcolsep}{4pt}
\renewcommand{\arraystretch}{1.35}
\emergencystretch=3em
"""


def _inline(text: str) -> str:
    return render(text, escaped, lambda c: rf"\texttt{{{escaped(c)}}}", lambda m: f"${m}$")


def _table(table: Table) -> str:
    count = len(table.header)
    widths = (0.16, 0.14, 0.06, 0.54) if count == 4 else (0.9 / count,) * count  # of four, the last holds formulas
    columns = "".join(rf">{{\raggedright\arraybackslash}}p{{{width:.3f}\linewidth}}" for width in widths)

    def line(cells: tuple[str, ...]) -> str:
        return " & ".join(_inline(cell) for cell in cells) + r" \\"

    body = "\n".join(line(row) for row in table.rows)
    caption = f"\n{_inline(table.caption)}\n" if table.caption else ""
    return rf"\begin{{longtable}}{{{columns}}}" + f"\n{line(table.header)} \\hline\n{body}\n\\end{{longtable}}{caption}"


def _block(block: Block, folder: str) -> str:
    match block:
        case Text(text):
            return _inline(text)
        case Equation(latex, note):
            return "\\begin{dmath*}\n" + latex.strip() + "\n\\end{dmath*}" + (f"\n{_inline(note)}" if note else "")
        case Table():
            return _table(block)
        case Figure(name, _, caption):
            return (
                rf"\begin{{figure}}[h]\centering\includegraphics[width=0.7\linewidth]{{{folder}{name}.pdf}}"
                rf"\caption{{{_inline(caption)}}}\end{{figure}}"
            )
        case Gallery(panels, caption):
            pictures = "\n".join(
                rf"\includegraphics[width=0.32\linewidth]{{{folder}{panel.name}.pdf}}" for panel in panels
            )
            return rf"\begin{{figure}}[h]\centering{pictures}\caption{{{_inline(caption)}}}\end{{figure}}"
        case Code(source):
            return "\\begin{verbatim}\n" + source.strip() + "\n\\end{verbatim}"
        case Steps(summary, blocks):
            return "\n\n".join([rf"\paragraph{{{_inline(summary)}}}", *(_block(b, folder) for b in blocks)])


def _section(section: Section, folder: str) -> str:
    return "\n\n".join([rf"\section{{{_inline(section.title)}}}", *(_block(block, folder) for block in section.blocks)])


def write_latex(document: Document, folder: str) -> str:
    """The whole document; `folder` is where the figures are, seen from the LaTeX file."""
    head = rf"\title{{{_inline(document.title)}}}\author{{}}\date{{{_inline(document.subtitle)}}}"
    body = "\n\n".join(_section(s, folder) for s in document.sections)
    return f"{_PREAMBLE}{head}\n\\begin{{document}}\n\\maketitle\n{body}\n\\end{{document}}\n"
