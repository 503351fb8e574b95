"""A report as data: sections of text, equations, tables, figures and code, which the writers turn into files.

Text, equations and tables are those of `derive.layout`, in which all results show themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from derive.layout import Equation, Table, Text


@dataclass(frozen=True)
class Figure:
    """A picture as SVG source, with the caption that a screen reader speaks, and as PDF, which LaTeX takes."""

    name: str
    svg: str
    caption: str
    pdf: bytes = b""


@dataclass(frozen=True)
class Gallery:
    """Small pictures that stand beside each other as far as the page's width allows."""

    panels: tuple[Figure, ...]
    caption: str


@dataclass(frozen=True)
class Code:
    """Python that reproduces a number of the report; `runs` is False for a module to paste, which needs a framework."""

    source: str
    runs: bool = True


@dataclass(frozen=True)
class Steps:
    """A derivation that a reader may fold away: a summary line and the blocks behind it."""

    summary: str
    blocks: tuple[Text | Equation | Table | Code, ...]
    folded: bool = False


Block = Text | Equation | Table | Figure | Gallery | Code | Steps


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default=())

    def figures(self) -> list[Figure]:
        """All pictures, those of galleries too."""
        found: list[Figure] = []
        for block in (b for section in self.sections for b in section.blocks):
            if isinstance(block, Figure):
                found.append(block)
            elif isinstance(block, Gallery):
                found += block.panels
        return found

    def code(self) -> list[str]:
        """The Python of the whole report, in the order in which it is to be run."""
        return [b.source for section in self.sections for b in section.blocks if isinstance(b, Code) and b.runs]
