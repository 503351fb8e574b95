"""`derive report`: derivation reports of activations, as self-contained HTML, Markdown and LaTeX."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from derive.cli.parameters import ACTIVATION
from derive.errors import DeriveError
from derive.files import write_atomically


@click.command(epilog='Example: derive report tanh gelu "z*tanh(z)" -o reports/')
@click.argument("activations", type=ACTIVATION, nargs=-1, required=True)
@click.option("-o", "--output", default="reports", type=click.Path(file_okay=False, path_type=Path), help="Folder.")
@click.option("--pdf", is_flag=True, help="Also PDF, by Chromium or pdflatex, where one is installed.")
@click.option("--json", "as_json", is_flag=True, help="The files written, as JSON.")
def command(activations: tuple[str, ...], output: Path, pdf: bool, as_json: bool) -> None:
    """Write the derivation report of each of ACTIVATIONS, and a comparison where there are several."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from derive.cli.output import print_json, terminal
    from derive.reports.build import build_reports

    console = terminal(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting")
        files = build_reports(
            activations, output, progress=lambda name, step: bar.update(task, description=f"{name}: {step}")
        )
        if pdf:
            bar.update(task, description="PDF")
            files += [_pdf(file) for file in files if file.suffix == ".html"]
    if as_json:
        print_json({"files": [str(file) for file in files]})
        return
    for file in files:
        if file.parent == output and file.suffix in (".html", ".pdf"):
            click.echo(f"{file}")
    click.echo("Markdown and LaTeX sources are beside them.")


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
            call = ["pdflatex", "-interaction=nonstopmode", f"-output-directory={folder}", source]
        else:
            raise DeriveError(
                "a PDF needs Chromium or pdflatex on this machine; the HTML, Markdown and LaTeX are written"
            )
        done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=page.parent)
        if not made.exists():
            raise DeriveError(f"{call[0]} made no PDF of {page.name}: {done.stderr.strip().splitlines()[-1:]}")
        write_atomically(target, made.read_bytes())
    return target
