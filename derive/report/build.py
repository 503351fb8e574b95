"""Builds reports: one activation's derivation from definition to checks, and several side by side."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from derive.activations import Activation, activation
from derive.asymptotics import exponents
from derive.criticality import Criticality, criticality
from derive.errors import DeriveError
from derive.report.document import Block, Document, Section, Table, Text
from derive.report.flow_check import flow_check
from derive.report.html import write_html
from derive.report.latex import write_latex
from derive.report.markdown import write_markdown
from derive.report.sections import (
    TENSORS,
    activation_section,
    check_section,
    criticality_section,
    gaussian_section,
    recursion_section,
    solution_section,
    symbol,
    table_section,
    tex,
)

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
        sections.append(Section("Large depth", (Text(f"No critical point, hence no exponents: {found.reason}"),)))
    subtitle = f"$\\sigma(z) = {tex(sigma.expression)}$; universality class {found.universality_class}"
    return Document(f"The effective theory of {sigma.name}", subtitle, tuple(sections))


def _depth_sections(sigma: Activation, found: Criticality, progress: Progress) -> list[Section]:
    progress("exponents and coefficients")
    try:
        table, constant = exponents(sigma), exponents(sigma, learning_rates="constant")
    except DeriveError as error:
        return [Section("Large depth", (Text(f"The asymptotics of this critical point are not available: {error}"),))]
    progress("series and steps")
    sections = [table_section(table, constant), solution_section(sigma, 0, table)]
    progress("iteration of the exact recursions")
    check = flow_check(sigma, found.points[0], table)
    sections.append(check_section(sigma, found.points[0], check, found.universality_class == "half-stable"))
    return sections


def comparison(sigmas: Sequence[Activation]) -> Document:
    """Several activations side by side: criticality, exponents, ratios."""
    found = [criticality(s) for s in sigmas]
    header = ("", *(s.name for s in sigmas))
    facts = (
        ("class", *(f.universality_class for f in found)),
        *(
            (title, *(f"${tex(getattr(f.points[0], field))}$" if f.points else "none" for f in found))
            for title, field in (("$K^\\star$", "K_star"), ("$C_W$", "C_W"), ("$C_b$", "C_b"))
        ),
    )
    blocks: list[Block] = [Table(header, facts, "Recommended critical initialization.")]
    tables = [exponents(s) if f.points else None for s, f in zip(sigmas, found)]
    rows = []
    for name in TENSORS:
        cells = [f"${symbol(name)}$"]
        for table in tables:
            tensor = None if table is None else table.tensors[name]
            if tensor is None or not tensor.exists or tensor.coefficient is None:
                cells.append("none")
            elif tensor.exponent is None:
                cells.append("$0$")
            else:
                cells.append(
                    f"$\\ell^{{{tex(-tensor.exponent)}}}\\log^{{{tensor.log_power}}}\\ell$: ${tex(tensor.coefficient)}$"
                )
        rows.append(tuple(cells))
    blocks.append(Table(header, tuple(rows), "Leading behaviour, learning rates by the equivalence principle."))
    names = ", ".join(s.name for s in sigmas)
    return Document("Activations side by side", names, (Section("Criticality and depth", tuple(blocks)),))


def write_atomically(path: Path, text: str) -> None:
    """A stopped run leaves either the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


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
    if set(formats) - {"html"}:
        for figure in document.figures():
            files.append(folder / figures / f"{figure.name}.svg")
            write_atomically(files[-1], figure.svg)
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
