"""`derive depth-study`: the test loss of a data set against depth, activation and learning rates."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, print_json
from derive.cli.parameters import ACTIVATIONS


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
    as_json: bool,
) -> None:
    """Bias and variance of the mean test loss at infinite width, for networks at criticality, against depth.

    Also the largest 1/n correction of each network and the width at which it falls to a tenth.
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
    )
    if as_json:
        print_json(found)
        return
    for entry in found["studies"]:
        click.echo(f"{entry['activation']} ({found['learning_rates']} learning rates, {found['loss']})")
        click.echo("  depth        bias    variance       total   largest ratio x n      width for 0.1")
        for row in entry["rows"]:
            ratio = (
                "-" if row["largest_ratio"] is None else f"{row['largest_ratio'][1]:.3g} ({row['largest_ratio'][0]})"
            )
            width = "-" if row["width"] is None else row["width"]
            losses = "".join(f"{row[part]:12.5g}" for part in ("bias", "variance", "total"))
            click.echo(f"  {row['depth']:5d}{losses}   {ratio:>20}{width:>14}")
