"""`derive predict`: mean and covariance of trained networks on test inputs, from tables of data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import ask, print_json, shown, terminal
from derive.cli.parameters import ACTIVATION, DEPTH, OUTPUT_FILE

if TYPE_CHECKING:
    from rich.table import Table

ALGORITHMS = (
    "flow",
    "descent",
    "schedule",
    "stochastic",
    "momentum",
    "nesterov",
    "preconditioned",
    "newton",
    "two-step",
)
LOSSES = ("mse", "cross-entropy")
SHORT = {"H1": "H1", "NTK variance": "ΔNTK", "dNTK": "dNTK", "ddNTK-I": "ddI", "ddNTK-II": "ddII"}


class PredictCommand(click.Command):
    """`--loss` may stand alone, also before the file of the data, which is then not taken for the loss."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        read: list[str] = []
        for word in args:
            if read and read[-1] == "--loss" and word not in LOSSES and (Path(word).exists() or word.endswith(".csv")):
                read.append("mse")
            read.append(word)
        return super().parse_args(ctx, read)


@click.command(
    cls=PredictCommand,
    epilog="Example: derive predict data.csv --activation tanh --depth 4 --width 128 --target y --test test.csv. "
    "Columns of DATA that are not targets are inputs; the test file needs the same input columns.",
)
@click.argument("data")
@click.option("--test", required=True, help="CSV file with the test inputs.")
@click.option("--target", "target", multiple=True, required=True, help="Column to predict; repeat for several.")
@click.option("--activation", type=ACTIVATION, default="tanh", show_default=True, help="Name or formula in z.")
@click.option("--depth", type=DEPTH, default=3, show_default=True, help="Number of weight layers L.")
@click.option("--width", type=int, help="Width of the hidden layers; the 1/n corrections need it.")
@click.option("--C-b", "C_b", type=float, help="Bias variance (default: critical).")
@click.option("--C-W", "C_W", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", type=float, help="Learning-rate factor of biases (default: equivalence principle).")
@click.option(
    "--lambda-W", "lambda_W", type=float, help="Learning-rate factor of weights (default: equivalence principle)."
)
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="flow", show_default=True)
@click.option("--eta", help="Learning rate; for a schedule several, separated by commas, of which the last stays.")
@click.option("--momentum", default=0.9, show_default=True)
@click.option(
    "--batches", help='Batches of stochastic descent: rows of DATA from 0, e.g. "0,1;2;0,2", again and again.'
)
@click.option("--kappa", help='Newton tensor of preconditioned descent, in the eigenvalue of the NTK, e.g. "1 + h^2".')
@click.option("--time", help="Steps (or time of the flow) after which training stops; several with commas.")
@click.option("--ridge", default=0.0, show_default=True, help="Penalty (ridge/2)|θ - θ_0|².")
@click.option("--rcond", type=float, help="Leave modes below rcond x the largest eigenvalue untrained.")
@click.option("--infinite", is_flag=True, help="Infinite width only: no 1/n corrections, any activation, large data.")
@click.option("--covariance", is_flag=True, help="Also the covariance to order 1/n; sampled: the variances.")
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    is_flag=False,
    flag_value="mse",
    help="Also the mean test loss; the test file has the targets. cross-entropy: networks trained on it, targets are "
    "probabilities, or one column of labels 0, 1, 2, ... with --time.",
)
@click.option("--ntk", is_flag=True, help="Also the mean change of the NTK: representation learning.")
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "sampled"]),
    default="auto",
    show_default=True,
    help="exact: tensors, memory N^4; sampled: draws with standard errors, memory N^2; auto: exact where it fits.",
)
@click.option("--memory", default=4.0, show_default=True, help="Gigabytes within which auto forms the tensors.")
@click.option("--relative-error", type=float, help="Sampled: error of the correction to reach.  [default: 0.05]")
@click.option(
    "--seconds",
    type=float,
    help="Sampled: time budget; Ctrl-C ends it earlier.  [default: 2 for a hundred inputs, as N^2 beyond; 600 with "
    "--relative-error]",
)
@click.option("--seed", default=0, show_default=True, help="Sampled: the draws' seed.")
@click.option("--checkpoint", type=OUTPUT_FILE, help="Sampled: a file from which the run goes on next time.")
@click.option("-o", "--output", type=OUTPUT_FILE, help="Write the table as a CSV file.")
@click.option("--plot", type=OUTPUT_FILE, help="Draw the predictions into a PNG file.")
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
    eta: str | None,
    momentum: float,
    batches: str | None,
    kappa: str | None,
    time: str | None,
    ridge: float,
    rcond: float | None,
    infinite: bool,
    covariance: bool,
    loss: str | None,
    ntk: bool,
    method: str,
    memory: float,
    relative_error: float | None,
    seconds: float | None,
    seed: int,
    checkpoint: Path | None,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Predict networks trained on DATA (a CSV file): mean with its 1/n corrections, and covariance."""
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
        batches=batches,
        kappa=kappa,
        time=time,
        ridge=ridge,
        rcond=rcond,
        infinite=infinite,
        covariance=covariance,
        loss=loss,
        ntk=ntk,
        method=method,
        memory=memory,
        relative_error=relative_error,
        seconds=seconds,
        seed=seed,
        checkpoint=checkpoint,
        output=output,
        plot=plot,
    )
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    console = terminal()
    if "probabilities" in found:
        console.print(class_table(found, test))
        tell(found)
        return
    parts = [part for part in found["parts"] if part != "NTK"]
    times = listed(found.get("time"))
    for place, name in enumerate(target):
        table = Table(title=shown(f"{name} on {test}"))
        drawn = found.get("standard_error", {}).get("mean")
        headings = [*(["time"] if times else []), "row", "mean", *(["± draws"] if drawn else []), "n = ∞", "± nets"]
        headings += [SHORT[part] for part in parts]
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for when in range(max(1, len(times))):
            deep = len(times) > 1
            spread = found["covariance_infinite"][when] if deep else found["covariance_infinite"]
            for row, variances in enumerate(spread):

                def cell(values: list, digits: int, when: int = when, row: int = row, place: int = place) -> str:
                    value = values[when][row] if len(times) > 1 else values[row]
                    return f"{value[place] if isinstance(value, list) else value:.{digits}g}"

                mean = cell(found["mean"], 6) if found["mean"] is not None else "-"
                error = [cell(drawn, 1)] if drawn else []
                own = [cell(found["parts"][part], 2) for part in parts]
                first = [f"{times[when]:g}"] if times else []
                deviation = f"{max(variances[row], 0.0) ** 0.5:.2g}"
                table.add_row(*first, str(row), mean, *error, cell(found["mean_infinite"], 6), deviation, *own)
        console.print(table)
    tell(found)


def tell(found: dict[str, Any]) -> None:
    """The test loss, where it was asked for, and the notes."""
    console = terminal()
    for name, value in found.get("test_loss", {}).items():
        console.print(shown(f"test loss, {name.replace('_', ' ')}: {value:.6g}"))
    for note in found["notes"]:
        console.print(shown(note), style="bold" if note.startswith("Warning") else "dim")


def class_table(found: dict[str, Any], test: str) -> Table:
    """Mean probabilities of the classes, at this width and at infinite width, with standard errors."""
    from rich.table import Table

    table = Table(title=shown(f"class probabilities on {test}"))
    for heading in ("row", "class", "mean", "n = ∞", "± draws"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, values in enumerate(found["probabilities"]):
        for k, value in enumerate(values):
            error = found["standard_error"]["probabilities"][row][k]
            infinite = found["probabilities_infinite"][row][k]
            table.add_row(str(row), str(k), f"{value:.4f}", f"{infinite:.4f}", f"{error:.1g}")
    return table


def listed(value: float | Sequence[float] | None) -> list[float]:
    """No, one or several numbers as a list."""
    return [] if value is None else list(value) if isinstance(value, Sequence) else [value]
