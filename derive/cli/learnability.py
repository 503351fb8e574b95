"""`derive learnability`: eigenvalues of a network's kernel and how much of each mode n samples learn."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import click

from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION
from derive.cli.predict import critical_initialization
from derive.errors import DeriveError

SPACES = ("hypercube", "circle", "sphere")


def read_samples(text: str) -> list[int]:
    """8,32,128 as numbers."""
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise DeriveError(f"--samples takes whole numbers with commas, such as 8,32,128, not {text!r}.") from None


@click.command(
    epilog="Example: derive learnability relu --depth 4 --dimension 8. On the circle the dimension is the number of "
    "grid points; on the sphere it is that of the surrounding space."
)
@click.argument("activation", type=ACTIVATION)
@click.option("--depth", default=4, show_default=True, help="Number of weight layers L.")
@click.option("--dimension", default=8, show_default=True, help="Dimension of the inputs (points on the circle).")
@click.option("--space", type=click.Choice(SPACES), default="hypercube", show_default=True)
@click.option("--kernel", type=click.Choice(("Theta", "K")), default="Theta", show_default=True, help="NTK or kernel.")
@click.option("--samples", default="8,16,32,64,128", show_default=True, help="Numbers of samples, with commas.")
@click.option("--ridge", default=0.0, show_default=True)
@click.option("--trials", default=0, show_default=True, help="Training sets to draw for a measurement; 0 for none.")
@click.option("--degree", default=12, show_default=True, help="Highest degree on the sphere; the rest acts as a ridge.")
@click.option("--C-b", "c_b", default=0.1, show_default=True, help="Bias variance; 0 may blind the kernel to a parity.")
@click.option("--C-W", "c_w", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", default=1.0, show_default=True)
@click.option("--lambda-W", "lambda_w", default=1.0, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "--output", help="Folder for the table (CSV) and the figure (PNG).")
@click.option("--json", "as_json", is_flag=True, help="{activation, space, levels: [{degree, eigenvalue, ...}], ...}.")
def command(as_json: bool, **options: Any) -> None:
    """Eigenvalues of a network's NTK (or K) and the mean learnability of each mode against the number of samples."""
    from numeric.errors import NumericError

    try:
        found = answer(**options)
    except NumericError as error:
        raise DeriveError(str(error)) from None
    if as_json:
        print_json(found)
    else:
        show(found)


def answer(
    activation: str,
    depth: int,
    dimension: int,
    space: str,
    kernel: str,
    samples: str,
    ridge: float,
    trials: int,
    degree: int,
    c_b: float,
    c_w: float | None,
    lambda_b: float,
    lambda_w: float,
    seed: int,
    output: str | None,
) -> dict[str, Any]:
    """The command's JSON; writes the files if asked for."""
    numbers = read_samples(samples)
    weight_variance = critical_initialization(activation)[1] if c_w is None else c_w
    if trials and space == "sphere":
        raise DeriveError("--trials draws from a discrete space: choose the hypercube or the circle.")
    import numpy as np

    from numeric.spectra.eigensystem import circle, hypercube
    from numeric.spectra.network import network_kernel
    from numeric.spectra.sampled import measure_learnability
    from numeric.spectra.selfconsistent import learnability
    from numeric.spectra.sphere import sphere_eigenvalues

    function = network_kernel(
        activation, depth, kernel, C_b=c_b, C_W=weight_variance, lambda_b=lambda_b, lambda_W=lambda_w
    )
    tail, error, discrete = None, None, None
    exact: list[str | None] = []
    if space == "sphere":
        spectrum = sphere_eigenvalues(function, dimension, degree)
        eigenvalues, counts, tail, error = spectrum.eigenvalues, spectrum.multiplicities, spectrum.tail, spectrum.error
        levels = np.arange(degree + 1)
        hyper = {"C_b": c_b, "C_W": weight_variance, "lambda_b": lambda_b, "lambda_W": lambda_w}
        exact = exact_eigenvalues(activation, depth, kernel, hyper, dimension, degree)
    else:
        discrete = hypercube(function, dimension) if space == "hypercube" else circle(function, dimension)
        levels, first, number = np.unique(discrete.levels, return_index=True, return_counts=True)
        eigenvalues, counts = discrete.eigenvalues[first], number.astype(float)
        kept = [n for n in numbers if n <= discrete.size]
        if not kept:
            raise DeriveError(f"There are only {discrete.size} points: --samples must not exceed that.")
        numbers = kept
    predictions = [learnability(eigenvalues, n, ridge, counts, tail) for n in numbers]
    measured = []
    if trials and discrete is not None:
        measured = [measure_learnability(discrete, n, trials, ridge, seed=seed, average_levels=True) for n in numbers]
    found: dict[str, Any] = {
        "activation": activation,
        "space": space,
        "kernel": kernel,
        "depth": depth,
        "dimension": dimension,
        "C_b": c_b,
        "C_W": weight_variance,
        "samples": numbers,
        "ridge": ridge,
        "kappa": [p.kappa for p in predictions],
        "eigenvalue_error": error,
        "tail": tail,
        "levels": [
            {
                "degree": int(level),
                "multiplicity": int(counts[k]),
                "eigenvalue": float(eigenvalues[k]),
                "exact": exact[k] if exact else None,
                "learnability": [float(p.learnabilities[k]) for p in predictions],
                "mse": [p.mse(np.eye(len(levels))[k]) for p in predictions],
                "measured": [float(m.learnabilities[k]) for m in measured],
                "measured_error": [float(m.learnabilities_error[k]) for m in measured],
            }
            for k, level in enumerate(levels)
        ],
        "files": {},
    }
    if output:
        found["files"] = write_files(found, levels, predictions, measured, Path(output))
    return found


def exact_eigenvalues(
    activation: str, depth: int, kernel: str, hyper: dict[str, float], dimension: int, degree: int
) -> list[str | None]:
    """Eigenvalues on the sphere in closed form, up to degree 6 (they grow long); empty where there is none."""
    if depth != 2:
        return []
    from derive.cli.exact_spectrum import two_layer_kernel
    from numeric.spectra.sphere import ANGLE, exact_eigenvalue

    closed = two_layer_kernel(activation, kernel, hyper, ANGLE)
    if closed is None:
        return []
    return [str(exact_eigenvalue(closed, dimension, k)) if k <= 6 else None for k in range(degree + 1)]


def write_files(found: dict[str, Any], levels: Any, predictions: Any, measured: Any, folder: Path) -> dict[str, str]:
    """The table as CSV and the figure."""
    from numeric.studies.figures import learnability_figure
    from numeric.studies.record import write_atomically

    name = "".join(c if c.isalnum() else "-" for c in found["activation"]).strip("-")
    stem = f"learnability-{name}-{found['space']}-depth-{found['depth']}"
    out = StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(
        ["degree", "multiplicity", "eigenvalue", "samples", "learnability", "mse", "measured", "measured_error"]
    )
    for level in found["levels"]:
        for k, n in enumerate(found["samples"]):
            tail = [level[key][k] if level[key] else "" for key in ("measured", "measured_error")]
            row = [level["degree"], level["multiplicity"], level["eigenvalue"], n, level["learnability"][k]]
            table.writerow([*row, level["mse"][k], *tail])
    write_atomically(folder / f"{stem}.csv", out.getvalue())
    title = f"{found['activation']}, {found['kernel']}, depth {found['depth']}, {found['space']}"
    learnability_figure(levels, predictions, measured, title, folder / f"{stem}.png")
    return {"csv": str(folder / f"{stem}.csv"), "figure": str(folder / f"{stem}.png")}


def show(found: dict[str, Any]) -> None:
    """The result for a human reader."""
    from rich.table import Table

    console = terminal()
    table = Table(
        title=f"{found['kernel']} of {found['activation']}, depth {found['depth']}, on the {found['space']} "
        f"({found['dimension']}): mean learnability of a mode"
    )
    for heading in ("degree", "modes", "eigenvalue", *(f"n = {n}" for n in found["samples"])):
        table.add_column(heading, justify="right")
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
    if any(level["measured"] for level in found["levels"]):
        console.print("in brackets: the mean over sampled training sets and its standard error", style="dim")
    for level in found["levels"]:
        if level["exact"]:
            console.print(f"degree {level['degree']}: {level['exact']}", style="dim")
    if found["eigenvalue_error"] is not None:
        console.print(f"eigenvalues by quadrature, error below {found['eigenvalue_error']:.1g}", style="dim")
    for kind, path in found["files"].items():
        console.print(f"{kind}: {path}", style="dim", soft_wrap=True)
