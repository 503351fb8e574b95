"""`derive.generate` and `derive.report`: answers that are files."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import sympy as sp

from derive.activations import Activation, activation
from derive.codegen import activation_module, content_hash, write
from derive.codegen.standalone import standalone_module
from derive.depth import OffCritical
from derive.errors import DeriveError
from derive.given import Number
from derive.layout import Block, Text
from derive.lists import names
from derive.reports.build import FORMATS, MARK, build_reports, check_places, write_document
from derive.reports.residual import residual_report
from derive.results import Result
from derive.verbs.depth import exponents
from derive.verbs.residual import read_skip
from effective_theory.files import file_stem, write_file

PATIENCE = 300
"""Seconds for printing one report."""


@dataclass(frozen=True)
class GeneratedModule(Result):
    """A written JAX module: where it is, the hash of its content, its source."""

    file: Path
    hash: str
    source: str

    def to_json(self) -> dict[str, object]:
        return {"file": str(self.file), "hash": self.hash}

    def blocks(self) -> tuple[Block, ...]:
        return (Text(f"`{self.file}` ({len(self.source.splitlines())} lines, hash {self.hash})"),)


def generate(
    activation: str | sp.Expr | Activation,
    output: str | Path,
    tensors: str | Iterable[str] | None = None,
    standalone: bool = False,
) -> GeneratedModule:
    """Write a Python module that evaluates the theory of an activation with JAX; pass it to `numeric.flow`.

    With `standalone` it imports nothing of ours: its own `flow(depth=..., C_b=..., C_W=...)` gives every tensor of one
    input at every layer.
    """
    if standalone:
        if tensors is not None:
            raise DeriveError("A module that stands alone holds all tensors: leave `tensors` out.")
        source = standalone_module(activation)
        return GeneratedModule(write(source, str(output)), content_hash(source), source)
    source = activation_module(activation, None if tensors is None else list(names(tensors)))
    return GeneratedModule(write(source, str(output)), content_hash(source), source)


@dataclass(frozen=True)
class Reports(Result):
    """The files written."""

    files: tuple[Path, ...]

    def to_json(self) -> dict[str, object]:
        return {"files": [str(file) for file in self.files]}

    def blocks(self) -> tuple[Block, ...]:
        return tuple(Text(f"`{file}`") for file in self.files if file.suffix in (".html", ".pdf"))


def report(
    activations: str | Iterable[str],
    output: str | Path = "reports",
    pdf: bool = False,
    progress: Callable[[str, str], None] | None = None,
    layer: str = "mlp",
    skip: Number | None = None,
) -> Reports:
    """Write the derivation report of each activation, and a comparison where there are several.

    `progress` is called with an activation's name and what is being done. `layer="residual"` reports on
    z' = skip z + b + W sigma(z).
    """
    wanted, told = names(activations), progress or (lambda name, step: None)
    strength = read_skip(layer, skip, "Reports")
    besides = ("pdf",) if pdf else ()
    if strength is not None:
        files = _residual(wanted, strength, Path(output), told, besides)
    else:
        files = build_reports(wanted, Path(output), progress=told, besides=besides)
    if pdf:
        files += [_pdf(file) for file in files if file.suffix == ".html"]
    return Reports(tuple(files))


def _residual(
    wanted: Iterable[str], skip: sp.Expr, folder: Path, progress: Callable[[str, str], None], besides: Iterable[str]
) -> list[Path]:
    """Reports of residual layers: NAME-residual.html and its kin."""
    sigmas = list({sigma.name: sigma for sigma in map(activation, wanted)}.values())
    stems = [f"{file_stem(sigma.name)}-residual" for sigma in sigmas]
    check_places(stems, folder, [*FORMATS, *besides])
    files: list[Path] = []
    for sigma, stem in zip(sigmas, stems):
        progress(sigma.name, "large depth")
        depth = exponents(sigma.name, layer="residual", skip=skip)
        assert not isinstance(depth, OffCritical)
        progress(sigma.name, "report")
        files += write_document(residual_report(sigma, skip, depth), stem, folder)
    return files


def _pdf(page: Path) -> Path:
    """Print a report's HTML with Chromium, or compile its LaTeX source."""
    target = page.with_suffix(".pdf")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / target.name
        browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
        if browser:
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000"]
            call = [browser, *options, "--no-pdf-header-footer", f"--print-to-pdf={made}", page.resolve().as_uri()]
        elif shutil.which("pdflatex"):
            source = page.with_suffix(".tex").name
            call = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", f"-output-directory={folder}", source]
        else:
            raise DeriveError(
                "a PDF needs Chromium or pdflatex on this machine; the HTML, Markdown and LaTeX are written"
            )
        try:
            done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=page.parent, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise DeriveError(f"{call[0]} made no PDF of {page.name} within {PATIENCE} s.") from None
        if not made.exists():
            raise DeriveError(f"{call[0]} made no PDF of {page.name}: {done.stderr.strip().splitlines()[-1:]}")
        write_file(target, made.read_bytes() + f"\n% {MARK}\n".encode())
    return target
