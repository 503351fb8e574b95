"""`derive predict`: mean and covariance of trained networks on test inputs, from tables of data."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, print_json, shown, terminal
from derive.cli.parameters import ACTIVATION

ALGORITHMS = ("flow", "descent", "two-step", "momentum")
SHORT = {"H1": "H1", "NTK variance": "ΔNTK", "dNTK": "dNTK", "ddNTK-I": "ddI", "ddNTK-II": "ddII"}


@click.command(
    epilog="Example: derive predict data.csv --activation tanh --depth 4 --width 128 --target y --test test.csv. "
    "Columns of DATA that are not targets are inputs; the test file needs the same input columns."
)
@click.argument("data")
@click.option("--test", required=True, help="CSV file with the test inputs.")
@click.option("--target", "target", multiple=True, required=True, help="Column to predict; repeat for several.")
@click.option("--activation", type=ACTIVATION, default="tanh", show_default=True, help="Name or formula in z.")
@click.option("--depth", default=3, show_default=True, help="Number of weight layers L.")
@click.option("--width", type=int, help="Width of the hidden layers; the 1/n corrections need it.")
@click.option("--C-b", "C_b", type=float, help="Bias variance (default: critical).")
@click.option("--C-W", "C_W", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", type=float, help="Learning-rate factor of biases (default: equivalence principle).")
@click.option(
    "--lambda-W", "lambda_W", type=float, help="Learning-rate factor of weights (default: equivalence principle)."
)
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="flow", show_default=True)
@click.option("--eta", type=float, help="Learning rate of descent and momentum.")
@click.option("--momentum", default=0.9, show_default=True)
@click.option("--rcond", type=float, help="Leave modes below rcond x the largest eigenvalue untrained.")
@click.option("--infinite", is_flag=True, help="Infinite width only: no 1/n corrections, any activation, large data.")
@click.option("--json", "as_json", is_flag=True, help="{mean, mean_infinite, covariance_infinite, parts}.")
def command(
    data: str,
    test: str,
    target: tuple[str, ...],
    activation: str,
    depth: int,
    width: int | None,
    C_b: float | None,
    C_W: float | None,
    lambda_b: float | None,
    lambda_W: float | None,
    algorithm: str,
    eta: float | None,
    momentum: float,
    rcond: float | None,
    infinite: bool,
    as_json: bool,
) -> None:
    """Predict networks trained to the end on DATA (a CSV file): mean with its 1/n corrections, and covariance."""
    found: dict[str, Any] = ask(
        "predict",
        keep=False,
        data=data,
        test=test,
        target=target,
        activation=activation,
        depth=depth,
        width=width,
        C_b=C_b,
        C_W=C_W,
        lambda_b=lambda_b,
        lambda_W=lambda_W,
        algorithm=algorithm,
        eta=eta,
        momentum=momentum,
        rcond=rcond,
        infinite=infinite,
    )
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    console = terminal()
    for output, name in enumerate(target):
        table = Table(title=shown(f"{name} on {test}"))
        parts = [part for part in found["parts"] if part != "NTK"]
        spread = [found["covariance_infinite"][k][k] ** 0.5 for k in range(len(found["mean_infinite"]))]
        for heading in ("row", "mean", "n = ∞", "± nets", *(SHORT[part] for part in parts)):
            table.add_column(heading, justify="right", no_wrap=True)
        for row, deviation in enumerate(spread):

            def cell(values: list, digits: int, row: int = row, output: int = output) -> str:
                value = values[row][output] if isinstance(values[row], list) else values[row]
                return f"{value:.{digits}g}"

            mean = cell(found["mean"], 6) if found["mean"] is not None else "-"
            own = [cell(found["parts"][part], 2) for part in parts]
            table.add_row(str(row), mean, cell(found["mean_infinite"], 6), f"{deviation:.2g}", *own)
        console.print(table)
    for note in found["notes"]:
        console.print(shown(note), style="dim")
