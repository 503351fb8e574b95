"""`derive scale-study`: the best learning rate and a coordinate check against width, on real networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import derive
from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION, OUTPUT_FOLDER


@click.command(
    epilog="Example: derive scale-study tanh --widths 64,256,1024 --s 0,1,standard -o study. Stop it with Ctrl-C; the "
    "same command goes on where it stopped."
)
@click.argument("activation", type=ACTIVATION)
@click.option("--widths", default="64,128,256,512", show_default=True, help="Hidden widths, with commas.")
@click.option("--depth", default=3, show_default=True, help="Number of weight layers L.")
@click.option("--s", default="1,standard", show_default=True, help="Parametrizations: 0 (NTK) to 1, and standard.")
@click.option("--networks", default=8, show_default=True, help="Networks of each width and rate, an even number.")
@click.option("--steps", default=30, show_default=True, help="Steps of gradient descent.")
@click.option("--powers", default="-4,-3,-2,-1,0,1,2", show_default=True, help="Learning rates 2^k eta_0.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "-o", "--output", type=OUTPUT_FOLDER, default="scale-study", show_default=True, help="Folder for the files."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    activation: str,
    widths: str,
    depth: int,
    s: str,
    networks: int,
    steps: int,
    powers: str,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Train networks of several widths at several learning rates and see whether the best rate carries over.

    Initialization and learning rates of the layers are those of `derive recommend`; eta_0 is 1/(largest eigenvalue of
    the infinite-width NTK). The files hold every network, and a figure.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None)

        def advance(done: int, total: int, last: str) -> None:
            bar.update(task, completed=done, total=total, description=last)

        study = derive.scale_study(
            activation, widths, depth, s, networks, steps, powers, seed, output, progress=advance
        )
    found: dict[str, Any] = study.to_json()
    if as_json:
        print_json(found)
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """The result for a human reader."""
    from rich.table import Table

    table = Table(title=f"{found['activation']}, depth {found['depth']}: mean loss at 2^k eta_0")
    for heading in ("parametrization", "width", *(f"k={k}" for k in found["powers"]), "best k", "ΔH/H", "Δhidden"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found["rows"]:
        losses = ["-" if loss is None else f"{loss:.3g}" for loss in row["losses"]]
        moves = ["-" if row[n] is None else f"{row[n]:.3g}" for n in ("ntk_change", "hidden_change")]
        table.add_row(
            row["parametrization"],
            str(row["width"]),
            *losses,
            str(row["best_power"] if row["best_power"] is not None else "-"),
            *moves,
        )
    console = terminal()
    console.print(table)
    for note in found["notes"]:
        console.print(note)
    for kind, path in found["files"].items():
        console.print(f"{kind}: {path}", style="dim", soft_wrap=True)
