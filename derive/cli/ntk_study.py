"""`derive ntk-study`: trained networks against their linearization over widths, with fits, data and a figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION
from derive.cli.predict import critical_initialization
from derive.errors import DeriveError

if TYPE_CHECKING:
    from numeric.studies.linearization import Study, Summary
    from numeric.studies.record import Record

MEANING = {
    "f_gap": "sup over t of |f - f_lin|",
    "ntk_gap": "sup over t of |H - H_0| / |H_0|",
    "parameter_change": "sup over t of |theta - theta_0|, norm with the inverse learning rates",
    "trace_change": "mean over networks of tr H / tr H_0 - 1 on the training inputs, at the end",
}
SHORT = {"f_gap": "|f - f_lin|", "ntk_gap": "ΔH/H", "parameter_change": "Δθ", "trace_change": "trace"}


def read_widths(text: str) -> tuple[int, ...]:
    """32,64,128 as numbers."""
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise DeriveError(f"--widths takes whole numbers with commas, such as 32,64,128, not {text!r}.") from None
    return widths


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
@click.option("--C-b", "c_b", default=0.1, show_default=True, help="Bias variance.")
@click.option("--C-W", "c_w", type=float, help="Weight variance times width (default: critical).")
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "--output", default="ntk-study", show_default=True, help="Folder for CSV, settings and figure.")
@click.option("--json", "as_json", is_flag=True, help="{activation, quantities: {NAME: {power, ...}}, files}.")
def command(activation: str, widths: str, output: str, as_json: bool, c_w: float | None, **options: Any) -> None:
    """Train networks of several widths: f against f_lin, and how far the NTK and the parameters move."""
    weight_variance = critical_initialization(activation)[1] if c_w is None else c_w
    from numeric.errors import NumericError
    from numeric.studies.figures import study_figure
    from numeric.studies.linearization import Study, summarize
    from numeric.studies.record import Record

    try:
        settings = {name: options[name] for name in ("depth", "networks", "steps", "rate", "seed")}
        study = Study(
            activation, tuple(sorted(set(read_widths(widths)))), C_b=options["c_b"], C_W=weight_variance, **settings
        )
        record = Record(study, Path(output))
        train_missing(study, record)
        summaries = summarize(record.wanted, next_order=not study.has_kink)
        study_figure(summaries, f"{activation}, depth {study.depth}", record.figure)
    except NumericError as error:
        raise DeriveError(str(error)) from None
    found = describe(study, record, summaries)
    if as_json:
        print_json(found)
    else:
        show(found)


def train_missing(study: Study, record: Record) -> None:
    """Train what the record lacks, with a progress bar on standard error; every finished chunk is on disk."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from numeric.studies.linearization import run

    total = len(study.widths) * study.networks
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=total, completed=len(record.wanted))
        for rows in run(study, record.done):
            record.add(rows)
            bar.update(task, advance=len(rows), description=f"width {rows[0].width}")


def describe(study: Study, record: Record, summaries: dict[str, Summary]) -> dict[str, Any]:
    """The command's JSON."""
    quantities: dict[str, Any] = {}
    for name, (low, high) in study.expected().items():
        s = summaries[name]
        quantities[name] = {
            "meaning": MEANING[name],
            "widths": s.widths.tolist(),
            "means": s.means.tolist(),
            "errors": s.errors.tolist(),
            "power": s.fit.power if s.fit else None,
            "power_error": s.fit.power_error if s.fit else None,
            "correction": s.fit.correction if s.fit else None,
            "expected": [None if math.isinf(low) else low, high],
        }
    files = {"csv": str(record.csv), "settings": str(record.settings), "figure": str(record.figure)}
    return {
        "activation": study.activation,
        "depth": study.depth,
        "networks": study.networks,
        "kink": study.has_kink,
        "quantities": quantities,
        "files": files,
    }


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
