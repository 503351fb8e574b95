"""`derive ntk-study`: trained networks against their linearization over widths, with fits, data and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import derive
from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION, OUTPUT_FOLDER

SHORT = {"f_gap": "|f - f_lin|", "ntk_gap": "ΔH/H", "parameter_change": "Δθ", "trace_change": "trace"}


@click.command(
    epilog="Example: derive ntk-study tanh --widths 32,64,128,256 -o study. Stop it with Ctrl-C; the same command goes "
    "on where it stopped. Finished networks are kept in the CSV file."
)
@click.argument("activation", type=ACTIVATION)
@click.option("--widths", default="32,64,128,256", show_default=True, help="Hidden widths, with commas.")
@click.option("--depth", default=3, show_default=True, help="Number of weight layers L.")
@click.option("--networks", default=96, show_default=True, help="Networks of each width.")
@click.option("--steps", default=120, show_default=True, help="Steps of gradient descent, a multiple of 5.")
@click.option("--rate", default=0.4, show_default=True, help="Learning rate in units of 1/(largest NTK eigenvalue).")
@click.option("--loss", type=click.Choice(("mse", "cross-entropy")), default="mse", show_default=True)
@click.option("--C-b", "C_b", default=0.1, show_default=True, help="Bias variance.")
@click.option("--C-W", "C_W", type=float, help="Weight variance times width (default: critical).")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    default="ntk-study",
    show_default=True,
    help="Folder for CSV, settings and figure.",
)
@click.option("--json", "as_json", is_flag=True, help="{activation, quantities: {NAME: {power, ...}}, files}.")
def command(
    activation: str,
    widths: str,
    depth: int,
    networks: int,
    steps: int,
    rate: float,
    loss: str,
    C_b: float,
    C_W: float | None,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Train networks of several widths: f against f_lin, and how far the NTK and the parameters move."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None)

        def advance(done: int, total: int, width: int) -> None:
            bar.update(task, completed=done, total=total, description=f"width {width}")

        study = derive.ntk_study(
            activation, widths, depth, networks, steps, rate, loss, C_b, C_W, seed, output, progress=advance
        )
    found: dict[str, Any] = study.to_json()
    if as_json:
        print_json(found)
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """The result for a human reader."""
    from rich.table import Table

    table = Table(title=f"{found['activation']}, depth {found['depth']}, {found['networks']} networks of each width")
    entries = list(found["quantities"].values())
    for heading in ("width", *(SHORT[name] for name in found["quantities"])):
        table.add_column(heading, justify="right", no_wrap=True)
    for k, n in enumerate(entries[0]["widths"]):
        table.add_row(str(n), *(f"{e['means'][k]:.3g} ± {e['errors'][k]:.1g}" for e in entries))
    table.add_section()
    fitted = ["-" if e["power"] is None else f"{e['power']:.2f} ± {e['power_error']:.2f}" for e in entries]
    table.add_row("power", *fitted)
    expected = []
    for low, high in (e["expected"] for e in entries):
        expected.append(f"{high:g} or less" if low is None else f"{high:g}" if low == high else f"{low:g} to {high:g}")
    table.add_row("expected", *expected)
    console = terminal()
    console.print(table)
    for name, entry in found["quantities"].items():
        console.print(f"{SHORT[name]}: {entry['meaning']}", style="dim")
    if not found["kink"]:
        console.print("both gaps fitted with a relative correction in 1/n where four widths allow it", style="dim")
    for kind, path in found["files"].items():
        console.print(f"{kind}: {path}", style="dim", soft_wrap=True)
