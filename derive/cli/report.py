"""`derive report`: derivation reports of activations, as self-contained HTML, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import click

import derive
from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION, OUTPUT_FOLDER


@click.command(epilog='Example: derive report tanh gelu "z*tanh(z)" -o reports/')
@click.argument("activations", type=ACTIVATION, nargs=-1, required=True)
@click.option("-o", "--output", default="reports", type=OUTPUT_FOLDER, help="Folder.")
@click.option("--pdf", is_flag=True, help="Also PDF, by Chromium or pdflatex, where one is installed.")
@click.option("--layer", type=click.Choice(("mlp", "residual")), default="mlp", help="The layer's definition.")
@click.option("--skip", metavar="XI", help="With --layer residual: z' = XI z + b + W sigma(z).")
@click.option("--json", "as_json", is_flag=True, help="The files written, as JSON.")
def command(activations: tuple[str, ...], output: Path, pdf: bool, layer: str, skip: str | None, as_json: bool) -> None:
    """Write the derivation report of each of ACTIVATIONS, and a comparison where there are several."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = terminal(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting")
        found = derive.report(
            activations,
            output,
            pdf,
            progress=lambda name, step: bar.update(task, description=f"{name}: {step}"),
            layer=layer,
            skip=skip,
        )
    if as_json:
        print_json(found.to_json())
        return
    for file in found.files:
        if file.parent == output and file.suffix in (".html", ".pdf"):
            click.echo(f"{file}")
    click.echo("Markdown and LaTeX sources are beside them.")
