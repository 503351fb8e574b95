"""`derive depth-study`: the test loss of a data set against depth, activation and learning rates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derive.cli.output import ask, print_json, terminal
from derive.cli.parameters import ACTIVATIONS, OUTPUT_FILE


@click.command(
    epilog="Example: derive depth-study train.csv --test test.csv --target y --activations tanh,relu --depths 2,4,8,16"
)
@click.argument("data")
@click.option("--test", required=True, help="CSV file with test inputs and their targets.")
@click.option("--target", "target", multiple=True, required=True, help="Column to learn; repeat for several.")
@click.option("--activations", type=ACTIVATIONS, default="tanh", show_default=True, help="Names, separated by commas.")
@click.option("--depths", default="2,4,8,16", show_default=True, help="Numbers of weight layers.")
@click.option(
    "--learning-rates", type=click.Choice(("equivalence", "constant")), default="equivalence", show_default=True
)
@click.option("--loss", type=click.Choice(("mse", "cross-entropy")), default="mse", show_default=True)
@click.option("--rcond", type=float, help="Leave modes below rcond x the largest eigenvalue untrained.")
@click.option("--width", type=int, help="Also what finite width adds, to first order in 1/n, at this width.")
@click.option(
    "--algorithms",
    default="descent,flow,two-step",
    show_default=True,
    help="Which of them are compared at finite width.",
)
@click.option("--eta", type=float, help="Learning rate of descent (default: 1/largest eigenvalue of the training NTK).")
@click.option("--rescale", is_flag=True, help="Multiply targets with the outputs' scale at each depth.")
@click.option("--plot", type=OUTPUT_FILE, help="Draw the study into a PNG file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    data: str,
    test: str,
    target: tuple[str, ...],
    activations: list[str],
    depths: str,
    learning_rates: str,
    loss: str,
    rcond: float | None,
    width: int | None,
    algorithms: str,
    eta: float | None,
    rescale: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Bias and variance of the mean test loss, for networks at criticality, against depth.

    Also the largest 1/n correction of each network and the width at which it falls to a tenth; with --width, what
    finite width adds for each algorithm, and the coefficient of L/n: where it is negative, networks do better than
    their infinite-width limit.
    """
    found: dict[str, Any] = ask(
        "depth_study",
        keep=False,
        data=data,
        test=test,
        target=target,
        activations=activations,
        depths=depths,
        learning_rates=learning_rates,
        loss=loss,
        rcond=rcond,
        width=width,
        algorithms=algorithms,
        eta=eta,
        rescale=rescale,
        plot=None if plot is None else str(plot),
    )
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    for entry in found["studies"]:
        table = Table(title=f"{entry['activation']} ({found['learning_rates']} learning rates, {found['loss']})")
        for heading in ("depth", "bias", "variance", "total", "largest ratio x n", "of", "width for 0.1"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in entry["rows"]:
            name, size = row["largest_ratio"] or ("-", None)
            needed = "-" if row["width"] is None else str(row["width"])
            losses = [f"{row[part]:.5g}" for part in ("bias", "variance", "total")]
            table.add_row(str(row["depth"]), *losses, "-" if size is None else f"{size:.3g}", name, needed)
        terminal().print(table)
        if any("times_n" in row for row in entry["rows"]):
            first = Table(title="to first order in 1/n")
            headings = (
                "depth",
                "algorithm",
                "n x bias",
                "n x variance",
                "coefficient of L/n",
                f"loss at n = {found['width']}",
            )
            for heading in headings:
                first.add_column(heading, justify="right", no_wrap=True)
            for row in entry["rows"]:
                for name, change in row.get("times_n", {}).items():
                    at = row["total"] + change["total"] / found["width"]
                    parts = (change["bias"], change["variance"], change["coefficient_of_L_over_n"], at)
                    first.add_row(str(row["depth"]), name, *(f"{value:.5g}" for value in parts))
            terminal().print(first)
    for note in found["notes"]:
        click.echo(note)
