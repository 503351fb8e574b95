"""Builds reports: one activation's derivation from definition to checks, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from derive.activations import Activation, activation
from derive.critical import Criticality, criticality
from derive.depth import ExponentTable, exponents
from derive.errors import DeriveError
from derive.files import write_atomically
from derive.reports.depth import (
    HEADER,
    check_section,
    generalization_section,
    solution_section,
    table_section,
    tensor_rows,
)
from derive.reports.document import Block, Code, Document, Section, Table, Text
from derive.reports.figures import overlay_figure
from derive.reports.flow_check import flow_check
from derive.reports.html import write_html
from derive.reports.latex import write_latex
from derive.reports.markdown import write_markdown
from derive.reports.sections import activation_section, criticality_section, gaussian_section, recursion_section
from derive.reports.sentences import sentence
from derive.reports.tex import TENSORS, brief, symbol

FORMATS = ("html", "md", "tex")
Progress = Callable[[str], None]


def report(sigma: Activation, progress: Progress = lambda step: None) -> Document:
    """The report of one activation; `progress` is told of each section as it starts."""
    progress("activation and Gaussian calculus")
    sections = [activation_section(sigma), gaussian_section(sigma)]
    progress("criticality")
    found = criticality(sigma)
    sections.append(criticality_section(sigma, found))
    progress("recursions")
    sections.append(recursion_section())
    if found.points:
        sections += _depth_sections(sigma, found, progress)
    else:
        reason = sentence(f"No critical point, hence no exponents. {found.reason}")
        sections.append(Section("Large depth", (Text(reason),)))
    subtitle = f"Derived, solved and checked by the program. Universality class: {found.universality_class}."
    subtitle = sentence(subtitle)
    return Document(f"The effective theory of {sigma.name}", subtitle, tuple(sections))


def _depth_sections(sigma: Activation, found: Criticality, progress: Progress) -> list[Section]:
    progress("exponents and coefficients")
    half_stable = found.points[0].universality_class == "half-stable"
    try:
        table, constant = exponents(sigma), exponents(sigma, learning_rates="constant")
        plateau = exponents(sigma, plateau=True) if half_stable else None
    except DeriveError as error:
        reason = sentence(f"The asymptotics of this critical point are not available: {error}")
        return [Section("Large depth", (Text(reason),))]
    progress("series and steps")
    sections = [table_section(table, constant, plateau), solution_section(sigma, 0, table)]
    progress("generalization")
    sections.append(generalization_section(sigma))
    progress("iteration of the exact recursions")
    sections.append(check_section(flow_check(sigma)))
    return sections


def comparison(sigmas: Sequence[Activation]) -> Document:
    """Several activations side by side: criticality, then every tensor's leading behaviour."""
    found = [criticality(s) for s in sigmas]
    facts = tuple(
        (
            s.name,
            sentence(f.universality_class),
            *(f"${brief(getattr(f.points[0], field))}$" if f.points else "–" for field in ("K_star", "C_W", "C_b")),
        )
        for s, f in zip(sigmas, found)
    )
    header = ("activation", "class", "$K^\\star$", "$C_W$", "$C_b$")
    first: list[Block] = [overlay_figure(sigmas), Table(header, facts, "Recommended critical initialization.")]
    tables = {s.name: _table_or_none(s) for s, f in zip(sigmas, found) if f.points}
    blocks: list[Block] = [
        Text(
            "Learning rates by the equivalence principle; a tensor behaves as "
            "coefficient $\\cdot\\,\\ell^{-p}\\log^q\\ell$."
        )
    ]
    for place, name in enumerate(TENSORS):
        rows = tuple(
            (activation_name, *tensor_rows(table)[place][1:])
            for activation_name, table in tables.items()
            if table is not None
        )
        blocks.append(Table(("activation", *HEADER[1:-1], f"coefficient of ${symbol(name)}$"), rows))
    names = ", ".join(repr(s.name) for s in sigmas)
    code = f"import derive\nfor name in ({names}):\n    print(derive.activation(name).exponents())"
    sections = (Section("Criticality", tuple(first)), Section("Tensor by tensor", (*blocks, Code(code))))
    return Document("Activations side by side", ", ".join(s.name for s in sigmas), sections)


def _table_or_none(sigma: Activation) -> ExponentTable | None:
    try:
        return exponents(sigma)
    except DeriveError:
        return None


def write_document(document: Document, stem: str, folder: Path, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write one document in the asked formats; figures of Markdown and LaTeX go to <stem>_files/."""
    files, figures = [], f"{stem}_files/"
    writers = {
        "html": lambda: write_html(document),
        "md": lambda: write_markdown(document, figures),
        "tex": lambda: write_latex(document, figures),
    }
    for kind in formats:
        files.append(folder / f"{stem}.{kind}")
        write_atomically(files[-1], writers[kind]())
    pictures = {"md": ("svg", lambda figure: figure.svg), "tex": ("pdf", lambda figure: figure.pdf)}
    for suffix, content in (pictures[kind] for kind in formats if kind in pictures):
        for figure in document.figures():
            files.append(folder / figures / f"{figure.name}.{suffix}")
            write_atomically(files[-1], content(figure))
    return files


def file_stem(name: str) -> str:
    """A file name for an activation.

    >>> file_stem("leaky_relu(slope=1/10)"), file_stem("sin(z)+z^2")
    ('leaky_relu_slope_1_10', 'sin_z_z_2')
    """
    return "_".join("".join(c if c.isalnum() else " " for c in name).split()) or "activation"


def build_reports(
    names: Sequence[str],
    folder: Path,
    formats: Iterable[str] = FORMATS,
    progress: Callable[[str, str], None] = lambda name, step: None,
) -> list[Path]:
    """Reports of all named activations, and the comparison where there are several."""
    sigmas = [activation(name) for name in names]
    files: list[Path] = []
    for name, sigma in zip(names, sigmas):
        document = report(sigma, lambda step, name=name: progress(name, step))  # type: ignore[misc]
        files += write_document(document, file_stem(name), folder, formats)
    if len(sigmas) > 1:
        files += write_document(comparison(sigmas), "comparison", folder, formats)
    return files
