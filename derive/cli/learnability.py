"""`derive learnability`: eigenvalues of a network's kernel and how much of each mode n samples learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derive.cli.output import ask, print_json, terminal
from derive.cli.parameters import ACTIVATION, DEPTH, OUTPUT_FOLDER

SPACES = ("hypercube", "circle", "sphere")


@click.command(
    epilog="Example: derive learnability relu --depth 4 --dimension 8. On the circle the dimension is the number of "
    "grid points; on the sphere it is that of the surrounding space."
)
@click.argument("activation", type=ACTIVATION)
@click.option("--depth", type=DEPTH, default=4, show_default=True, help="Number of weight layers L.")
@click.option("--dimension", default=8, show_default=True, help="Dimension of the inputs (points on the circle).")
@click.option("--space", type=click.Choice(SPACES), default="hypercube", show_default=True)
@click.option("--kernel", type=click.Choice(("Theta", "K")), default="Theta", show_default=True, help="NTK or kernel.")
@click.option("--samples", default="8,16,32,64,128", show_default=True, help="Numbers of samples, with commas.")
@click.option("--ridge", default=0.0, show_default=True)
@click.option("--noise", default=0.0, show_default=True, help="Variance of the noise on the target's labels.")
@click.option("--target", help="Power of a target in the modes of degree 0, 1, 2, ..., with commas: its test error.")
@click.option(
    "--trials", type=int, help="Training sets to draw for the measurement beside the theory; 0 for none (default: 40)."
)
@click.option(
    "--degree",
    default=12,
    show_default=True,
    help="Highest degree on the sphere and on hypercubes beyond 12 dimensions; the rest acts as a ridge.",
)
@click.option("--C-b", "C_b", default=0.1, show_default=True, help="Bias variance; 0 may blind the kernel to a parity.")
@click.option("--C-W", "C_W", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", type=float, help="Learning-rate factor of biases (default: equivalence principle).")
@click.option("--lambda-W", "lambda_W", type=float, help="As --lambda-b, of weights.")
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "--output", type=OUTPUT_FOLDER, help="Folder for the table (CSV) and the figure (PNG).")
@click.option("--json", "as_json", is_flag=True, help="{activation, space, levels: [{degree, eigenvalue, ...}], ...}.")
def command(
    activation: str,
    depth: int,
    dimension: int,
    space: str,
    kernel: str,
    samples: str,
    ridge: float,
    noise: float,
    target: str | None,
    trials: int | None,
    degree: int,
    C_b: float,
    C_W: float | None,
    lambda_b: float | None,
    lambda_W: float | None,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Eigenvalues of a network's NTK (or K) and the mean learnability of each mode against the number of samples."""
    found = ask(
        "learnability",
        keep=False,
        activation=activation,
        depth=depth,
        dimension=dimension,
        space=space,
        kernel=kernel,
        samples=samples,
        ridge=ridge,
        noise=noise,
        target=target,
        trials=trials,
        degree=degree,
        C_b=C_b,
        C_W=C_W,
        lambda_b=lambda_b,
        lambda_W=lambda_W,
        seed=seed,
        output=None if output is None else str(output),
    )
    if as_json:
        print_json(found)
    else:
        show(found)


def show(found: dict[str, Any]) -> None:
    """The result for a human reader."""
    from rich.table import Table

    console = terminal()
    table = Table(
        title=f"{found['kernel']} of {found['activation']}, depth {found['depth']}, on the {found['space']} "
        f"({found['dimension']}): mean learnability of a mode"
    )
    for heading in ("degree", "modes", "eigenvalue", *(f"n = {n}" for n in found["samples"])):
        table.add_column(heading, justify="right", min_width=10 if heading == "eigenvalue" else None)
    for level in found["levels"]:
        cells = []
        for k, value in enumerate(level["learnability"]):
            cell = f"{value:.4f}"
            if level["measured"]:
                cell += f" ({level['measured'][k]:.4f} ± {level['measured_error'][k]:.4f})"
            cells.append(cell)
        table.add_row(str(level["degree"]), str(level["multiplicity"]), f"{level['eigenvalue']:.4e}", *cells)
    console.print(table)
    total = [
        sum(level["multiplicity"] * level["learnability"][k] for level in found["levels"])
        for k in range(len(found["samples"]))
    ]
    rule = "sum over modes: " + ", ".join(f"{value:.6g}" for value in total)
    console.print(rule, style="dim")
    if found["target_mse"] is not None:
        cells = [f"n = {n}: {value:.4g}" for n, value in zip(found["samples"], found["target_mse"])]
        if found["target_measured"]:
            pairs = zip(cells, found["target_measured"], found["target_measured_error"])
            cells = [f"{cell} ({value:.4g} ± {error:.1g})" for cell, value, error in pairs]
        console.print("test error of the target: " + ", ".join(cells))
    if any(level["measured"] for level in found["levels"]):
        console.print("in brackets: the mean over sampled training sets and its standard error", style="dim")
    console.print(found["assumption"], style="dim")
    if any(level["measured"] for level in found["levels"]) and found["warnings"]:
        worst = found["warnings"][:8]
        console.print("It fails here:", style="bold")
        for warning in worst:
            console.print(f"  {warning}")
        if len(worst) < len(found["warnings"]):
            console.print(f"  and {len(found['warnings']) - len(worst)} more numbers (--json has them all)")
    else:
        console.print("No number here differs from the measurement." if not found["warnings"] else found["warnings"][0])
    for level in found["levels"]:
        if level["exact"]:
            console.print(f"degree {level['degree']}: {level['exact']}", style="dim")
    if found["eigenvalue_error"] is not None:
        console.print(f"the error of the eigenvalues is below {found['eigenvalue_error']:.1g}", style="dim")
    for kind, path in found["files"].items():
        console.print(f"{kind}: {path}", style="dim", soft_wrap=True)
