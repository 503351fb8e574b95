"""`derive kernel`: kernel regression on a data set with a network's kernel, from tables of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derive.cli.output import ask, print_json, shown, terminal
from derive.cli.parameters import ACTIVATION, DEPTH, OUTPUT_FILE

KERNELS = ("Theta", "K", "pseudo-NTK")
ROWS = 12


@click.command(
    epilog="Example: derive kernel data.csv --target y --test test.csv --activation gelu --ridge loo. Columns of DATA "
    "that are not targets are inputs. What to label next: --candidates pool.csv. A real network's kernel: --kernel "
    "pseudo-NTK --width 512."
)
@click.argument("data")
@click.option("--target", "target", multiple=True, required=True, help="Column to predict; repeat for several.")
@click.option("--test", help="CSV file with inputs to predict (with the targets: the error too).")
@click.option("--candidates", help="CSV file with unlabelled inputs: how much would each label move the predictions?")
@click.option("--activation", type=ACTIVATION, default="tanh", show_default=True, help="Name or formula in z.")
@click.option("--depth", type=DEPTH, default=3, show_default=True, help="Number of weight layers L.")
@click.option(
    "--kernel", type=click.Choice(KERNELS), default="Theta", show_default=True, help="NTK, kernel, or sampled."
)
@click.option("--width", type=int, help="Hidden width of the network whose pseudo-NTK is taken.")
@click.option("--C-b", "C_b", type=float, help="Bias variance (default: critical).")
@click.option("--C-W", "C_W", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", type=float, help="Learning-rate factor of biases (default: equivalence principle).")
@click.option("--lambda-W", "lambda_W", type=float, help="As --lambda-b, of weights.")
@click.option("--ridge", default="loo", show_default=True, help="A number, or the one of least risk by loo or gcv.")
@click.option("--landmarks", type=int, help="Predict from so many rows of the data, with an estimated error.")
@click.option("--seed", default=0, show_default=True)
@click.option("--memory", default=1e9, show_default=True, help="Bytes; what does not fit is solved iteratively.")
@click.option("-o", "--output", type=OUTPUT_FILE, help="Write predictions (or leave-one-out residuals) as CSV.")
@click.option("--plot", type=OUTPUT_FILE, help="Draw spectrum and leave-one-out predictions into a PNG file.")
@click.option(
    "--json", "as_json", is_flag=True, help="{ridge, gcv, loo_mse, eigenvalues, prediction, look_ahead, ...}."
)
def command(
    data: str,
    target: tuple[str, ...],
    test: str | None,
    candidates: str | None,
    activation: str,
    depth: int,
    kernel: str,
    width: int | None,
    C_b: float | None,
    C_W: float | None,
    lambda_b: float | None,
    lambda_W: float | None,
    ridge: str,
    landmarks: int | None,
    seed: int,
    memory: float,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Kernel regression on DATA (a CSV file) with a network's kernel: risks, spectrum, predictions, look-ahead."""
    found: dict[str, Any] = ask(
        "kernel",
        keep=False,
        data=data,
        target=target,
        test=test,
        candidates=candidates,
        activation=activation,
        depth=depth,
        kernel=kernel,
        width=width,
        C_b=C_b,
        C_W=C_W,
        lambda_b=lambda_b,
        lambda_W=lambda_W,
        ridge=ridge,
        landmarks=landmarks,
        seed=seed,
        memory=memory,
        output=output,
        plot=plot,
    )
    if as_json:
        print_json(found)
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """The result for a human reader."""
    from rich.table import Table

    console = terminal()
    title = f"{found['kernel']} of {found['activation']}, depth {found['depth']}, {found['inputs']} inputs"
    risks = Table(title=f"{title}: mean squares")
    risks.add_column("what")
    risks.add_column("value", justify="right")
    risks.add_row(f"ridge ({found['solver']})", f"{found['ridge']:.6g}")
    risks.add_row("training error", f"{found['train_mse']:.6g}")
    spread = f" ± {found['gcv_error']:.1g}" if found["gcv_error"] else ""
    risks.add_row("generalized cross-validation", f"{found['gcv']:.6g}{spread}")
    for words, key in (("leave-one-out error", "loo_mse"), ("error on the test file", "test_mse")):
        if found[key] is not None:
            risks.add_row(words, f"{found[key]:.6g}")
    risks.add_row("variance of the targets", f"{found['variance']:.6g}")
    if found["condition"] is not None:
        risks.add_row("condition number with the ridge", f"{found['condition']:.4g}")
    if found["effective_dimension"] is not None:
        risks.add_row("effective dimension", f"{found['effective_dimension']:.4g}")
    console.print(risks)
    spectrum = Table(title="spectrum")
    for heading in ("mode", "eigenvalue", "share of the target"):
        spectrum.add_column(heading, justify="right")
    for k, (value, share) in enumerate(zip(found["eigenvalues"][:ROWS], found["target_share"])):
        spectrum.add_row(str(k), f"{value:.4e}", f"{share:.4f}")
    console.print(spectrum)
    if found["prediction"] is not None:
        table = Table(title="predictions")
        table.add_column("row", justify="right")
        for name in found["targets"]:
            table.add_column(shown(name), justify="right")
        errors = found["prediction_error"]
        for row, values in enumerate(found["prediction"][:ROWS]):
            cells = [f"{v:.6g}" + (f" ± {errors[row][k]:.1g}" if errors else "") for k, v in enumerate(values)]
            table.add_row(str(row), *cells)
        console.print(table)
        if len(found["prediction"]) > ROWS:
            console.print(f"and {len(found['prediction']) - ROWS} more (-o writes them all)", style="dim")
    if found["look_ahead"] is not None:
        best = sorted(enumerate(found["look_ahead"]), key=lambda item: -item[1])[:ROWS]
        table = Table(title="what to label next")
        for heading in ("row", "expected change"):
            table.add_column(heading, justify="right")
        for row, value in best:
            table.add_row(str(row), f"{value:.4g}")
        console.print(table)
    for note in found["notes"]:
        console.print(shown(note), style="bold" if note.startswith("Warning") else "dim")
    for kind, path in found["files"].items():
        console.print(shown(f"{kind}: {path}"), style="dim", soft_wrap=True)
