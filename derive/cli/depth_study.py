"""`derive depth-study`: the test loss of a data set against depth, activation and learning rates."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import print_json
from derive.cli.parameters import ACTIVATIONS
from derive.errors import DeriveError


@click.command(
    epilog="Example: derive depth-study train.csv --test test.csv --target y --activations tanh,relu --depths 2,4,8,16"
)
@click.argument("data")
@click.option("--test", required=True, help="CSV file with test inputs and their targets.")
@click.option("--target", "targets", multiple=True, required=True, help="Column to learn; repeat for several.")
@click.option("--activations", type=ACTIVATIONS, default="tanh", show_default=True, help="Names, separated by commas.")
@click.option("--depths", default="2,4,8,16", show_default=True, help="Numbers of weight layers.")
@click.option(
    "--learning-rates", type=click.Choice(("equivalence", "constant")), default="equivalence", show_default=True
)
@click.option("--loss", type=click.Choice(("mse", "cross-entropy")), default="mse", show_default=True)
@click.option("--rcond", type=float, help="Leave modes below rcond x the largest eigenvalue untrained.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(data: str, test: str, targets: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Bias and variance of the mean test loss at infinite width, for networks at criticality, against depth.

    Also the largest 1/n correction of each network and the width at which it falls to a tenth.
    """
    found = answer(data, test, list(targets), **options)
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


def answer(
    data: str,
    test: str,
    targets: list[str],
    *,
    activations: list[str],
    depths: str,
    learning_rates: str,
    loss: str,
    rcond: float | None,
) -> dict[str, Any]:
    """The command's JSON."""
    from derive.cli.predict import load_data, read_table
    from derive.design.recommendation import corrections, hyperparameters
    from numeric import NumericError
    from numeric.studies.depth import depth_study

    try:
        layers = [int(part) for part in depths.split(",")]
    except ValueError:
        raise DeriveError(f"--depths takes whole numbers separated by commas, not {depths!r}") from None
    if min(layers) < 1:
        raise DeriveError("a network has at least one layer")
    X, y, count = load_data(data, test, targets)
    names, rows = read_table(test)
    missing = [target for target in targets if target not in names]
    if missing:
        raise DeriveError(f"{test} has no column {missing[0]!r}: a study compares with the targets of the test inputs")
    y = y + [[row[names.index(target)] for target in targets] for row in rows]
    studies = []
    for name in activations:

        def settings(depth: int, name: str = name) -> Any:
            return hyperparameters(name, depth, learning_rates=learning_rates)

        try:
            found = depth_study(name, X, y, range(count), layers, settings, loss=loss, rcond=rcond)
        except NumericError as error:
            raise DeriveError(str(error)) from None
        table = []
        for row in found:
            try:
                size = corrections(name, row.depth, learning_rates=learning_rates)
                largest, width = list(size.largest), size.width_for()
            except DeriveError:
                largest, width = None, None
            entry = {"depth": row.depth, "bias": row.bias, "variance": row.variance, "total": row.total}
            table.append({**entry, "largest_ratio": largest, "width": width})
        studies.append({"activation": name, "rows": table})
    return {"loss": loss, "learning_rates": learning_rates, "studies": studies}
