"""Builds reports: one activation's derivation from definition to checks, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from derive.activations import Activation, activation
from derive.critical import Criticality, criticality
from derive.critical.points import class_name
from derive.depth import ExponentTable, exponents
from derive.errors import DeriveError
from derive.notation import K_STAR, TensorSymbol
from derive.reports.depth import (
    HEADER,
    LAW,
    check_section,
    finite_section,
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
from derive.reports.recommendation import recommendation_section
from derive.reports.sections import (
    activation_section,
    criticality_section,
    gaussian_section,
    recursion_section,
)
from derive.reports.tex import TENSORS, brief
from derive.steps import Words, said, words
from derive.symbols import C_W, C_b
from effective_theory.files import file_stem, write_file

FORMATS = ("html", "md", "tex")
MARK = "written by derive report"
Progress = Callable[[str], None]


def report(sigma: Activation, progress: Progress = lambda step: None) -> Document:
    """The report of one activation; `progress` is told of each section as it starts."""
    progress("activation and Gaussian calculus")
    sections = [activation_section(sigma), gaussian_section(sigma)]
    progress("criticality")
    found = criticality(sigma)
    sections.append(criticality_section(sigma, found))
    progress("recommendation")
    sections.insert(0, recommendation_section(sigma))
    progress("recursions")
    sections.append(recursion_section())
    if found.points:
        sections += _depth_sections(sigma, found, progress)
    else:
        reason = said("No critical point, hence no exponents. {}", found.reason)
        sections.append(Section("Large depth", (Text(reason),)))
    told = "Derived, solved and checked by the program. Universality class: {}."
    subtitle = said(told, class_name(found.universality_class))
    return Document(f"The effective theory of {sigma.name}", subtitle, tuple(sections))


def _depth_sections(sigma: Activation, found: Criticality, progress: Progress) -> list[Section]:
    progress("exponents and coefficients")
    try:
        table, constant = exponents(sigma), exponents(sigma, learning_rates="constant")
    except DeriveError as error:
        reason = said("The asymptotics of this critical point are not available: {}", words(error.args[0]))
        return [Section("Large depth", (Text(reason),))]
    progress("series and steps")
    sections = [table_section(table, constant), solution_section(sigma, 0, table)]
    if table.plateau is not None:
        sections.insert(0, finite_section(table))
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
            class_name(f.universality_class),
            *(Words(brief(getattr(f.points[0], field))) if f.points else "–" for field in ("K_star", "C_W", "C_b")),
        )
        for s, f in zip(sigmas, found)
    )
    header = ("activation", "class", *(said("{}", s) for s in (K_STAR, C_W, C_b)))
    first: list[Block] = [overlay_figure(sigmas), Table(header, facts, "Recommended critical initialization.")]
    tables = {s.name: _table_or_none(s) for s, f in zip(sigmas, found) if f.points}
    blocks: list[Block] = [
        Text(said("Learning rates by the equivalence principle; a tensor behaves as coefficient times {}.", LAW))
    ]
    for place, name in enumerate(TENSORS):
        rows = tuple(
            (activation_name, *tensor_rows(table)[place][1:])
            for activation_name, table in tables.items()
            if table is not None
        )
        blocks.append(Table(("activation", *HEADER[1:-1], said("coefficient of {}", TensorSymbol(name))), rows))
    names = ", ".join(repr(s.name) for s in sigmas)
    code = f"import derive\nfor name in ({names}):\n    print(derive.activation(name).exponents())"
    sections = (Section("Criticality", tuple(first)), Section("Tensor by tensor", (*blocks, Code(code))))
    return Document("Activations side by side", ", ".join(s.name for s in sigmas), sections)


def _table_or_none(sigma: Activation) -> ExponentTable | None:
    try:
        return exponents(sigma)
    except DeriveError:
        return None


def _marked(kind: str, text: str) -> str:
    """The text with a mark that says who wrote it, by which a later run knows that it may replace the file."""
    if kind == "html":
        return text.replace("<head>", f'<head><meta name="generator" content="{MARK}">', 1)
    return text + (f"\n<!-- {MARK} -->\n" if kind == "md" else f"% {MARK}\n")


def check_places(stems: Iterable[str], folder: Path, formats: Iterable[str]) -> None:
    """Before the work begins: files of these names that are not reports of ours are not replaced."""
    for stem in stems:
        present = [path for path in (folder / f"{stem}.{kind}" for kind in formats) if path.exists()]
        strange = [path for path in present if not path.is_file() or MARK.encode() not in path.read_bytes()]
        pictures = folder / f"{stem}_files"
        if not present and pictures.exists() and not (pictures.is_dir() and not any(pictures.iterdir())):
            strange.append(pictures)
        if strange:
            raise DeriveError(f"{strange[0]} exists and is not a report of ours: choose another folder, or remove it.")


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
        write_file(files[-1], _marked(kind, writers[kind]()))
    pictures = {"md": ("svg", lambda figure: figure.svg), "tex": ("pdf", lambda figure: figure.pdf)}
    for suffix, content in (pictures[kind] for kind in formats if kind in pictures):
        for figure in document.figures():
            files.append(folder / figures / f"{figure.name}.{suffix}")
            write_file(files[-1], content(figure))
    return files


def build_reports(
    names: Sequence[str],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    progress: Callable[[str, str], None] = lambda name, step: None,
    besides: Sequence[str] = (),
) -> list[Path]:
    """Reports of all named activations, and the comparison where there are several.

    `besides` are endings of files that will be made from these: their places are checked with the others.
    """
    sigmas = list({sigma.name: sigma for sigma in map(activation, names)}.values())
    stems = [*(file_stem(s.name) for s in sigmas), *(["comparison"] if len(sigmas) > 1 else [])]
    check_places(stems, folder, [*formats, *besides])
    files: list[Path] = []
    for sigma in sigmas:
        document = report(sigma, lambda step, name=sigma.name: progress(name, step))  # type: ignore[misc]
        files += write_document(document, file_stem(sigma.name), folder, formats)
    if len(sigmas) > 1:
        files += write_document(comparison(sigmas), "comparison", folder, formats)
    return files
