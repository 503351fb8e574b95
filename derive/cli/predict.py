"""`derive predict`: mean and covariance of trained networks on test inputs, from tables of data."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click

from derive.cli.output import print_json, shown, terminal
from derive.cli.parameters import ACTIVATION
from derive.errors import DeriveError

ALGORITHMS = ("flow", "descent", "two-step", "momentum")
TOLERANCE = 1e-8
"""Of the four-point brackets, relative: far below what the next order in 1/n changes."""
SHORT = {"H1": "H1", "NTK variance": "ΔNTK", "dNTK": "dNTK", "ddNTK-I": "ddI", "ddNTK-II": "ddII"}


def read_table(path: str) -> tuple[list[str], list[list[float]]]:
    """Column names and rows of numbers of a CSV file with a header."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError) as error:
        raise DeriveError(
            f"Cannot read {path}: {getattr(error, 'strerror', None) or 'it is not a text file'}."
        ) from None
    if len(rows) < 2:
        raise DeriveError(f"{path} needs a header and at least one row.")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) != len(names):
        raise DeriveError(f"{path} has two columns of the same name.")
    values = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise DeriveError(f"Row {number} of {path} has {len(row)} cells, the header has {len(names)}.")
        try:
            values.append([float(cell) for cell in row])
        except ValueError as error:
            raise DeriveError(f"Row {number} of {path}: {error}.") from None
    return names, values


def load_data(data: str, test: str, targets: list[str]) -> tuple[list[list[float]], list[list[float]], int]:
    """Inputs (training rows first), targets, and the number of training rows."""
    names, rows = read_table(data)
    test_names, test_rows = read_table(test)
    for target in targets:
        if target not in names:
            raise DeriveError(f"{data} has no column {target!r}; it has {', '.join(names)}.")
    inputs = [name for name in names if name not in targets]
    missing = [name for name in inputs if name not in test_names]
    if not inputs or missing:
        raise DeriveError(
            f"{test} lacks the input columns {', '.join(missing)}." if missing else f"{data} has no input columns."
        )
    X = [[row[names.index(name)] for name in inputs] for row in rows]
    X += [[row[test_names.index(name)] for name in inputs] for row in test_rows]
    return X, [[row[names.index(target)] for target in targets] for row in rows], len(rows)


def critical_initialization(activation: str) -> tuple[float, float]:
    """C_b and C_W of the recommended critical point."""
    from derive.critical.critical import criticality

    found = criticality(activation)
    if not found.points:
        raise DeriveError(f"{activation} has no critical point, so --C-b and --C-W must be given: {found.reason}")
    return float(found.points[0].C_b), float(found.points[0].C_W)


def make_algorithm(name: str, eta: float | None, momentum: float) -> Any:
    """The algorithm object of the option."""
    from numeric.trained import GradientDescent, GradientFlow, Momentum, TwoStep

    if name in ("descent", "momentum") and eta is None:
        raise DeriveError(f"--algorithm {name} needs --eta.")
    if name == "descent":
        return GradientDescent(float(eta or 0))
    if name == "momentum":
        return Momentum(float(eta or 0), momentum)
    return GradientFlow() if name == "flow" else TwoStep()


@click.command(
    epilog="Example: derive predict data.csv --activation tanh --depth 4 --width 128 --target y --test test.csv. "
    "Columns of DATA that are not targets are inputs; the test file needs the same input columns."
)
@click.argument("data")
@click.option("--test", required=True, help="CSV file with the test inputs.")
@click.option("--target", "targets", multiple=True, required=True, help="Column to predict; repeat for several.")
@click.option("--activation", type=ACTIVATION, default="tanh", show_default=True, help="Name or formula in z.")
@click.option("--depth", default=3, show_default=True, help="Number of weight layers L.")
@click.option("--width", default=128, show_default=True, help="Width of the hidden layers.")
@click.option("--C-b", "c_b", type=float, help="Bias variance (default: critical).")
@click.option("--C-W", "c_w", type=float, help="Weight variance times width (default: critical).")
@click.option("--lambda-b", type=float, help="Learning-rate factor of biases (default: 1/depth).")
@click.option("--lambda-W", "lambda_w", type=float, help="Learning-rate factor of weights (default: 1/depth).")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="flow", show_default=True)
@click.option("--eta", type=float, help="Learning rate of descent and momentum.")
@click.option("--momentum", default=0.9, show_default=True)
@click.option("--rcond", type=float, help="Leave modes below rcond x the largest eigenvalue untrained.")
@click.option("--infinite", is_flag=True, help="Infinite width only: no 1/n corrections, any activation, large data.")
@click.option("--json", "as_json", is_flag=True, help="{mean, mean_infinite, covariance_infinite, parts}.")
def command(data: str, test: str, targets: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Predict networks trained to the end on DATA (a CSV file): mean with its 1/n corrections, and covariance."""
    found, notes = answer(data, test, list(targets), **options)
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    console = terminal()
    for output, target in enumerate(targets):
        table = Table(title=shown(f"{target} on {test}"))
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
    for note in notes:
        console.print(shown(note), style="dim")


def answer(
    data: str,
    test: str,
    targets: list[str],
    *,
    activation: str,
    depth: int,
    width: int,
    c_b: float | None,
    c_w: float | None,
    lambda_b: float | None,
    lambda_w: float | None,
    algorithm: str,
    eta: float | None,
    momentum: float,
    rcond: float | None,
    infinite: bool,
) -> tuple[dict[str, Any], list[str]]:
    """The command's JSON and notes."""
    X, y, count = load_data(data, test, targets)
    if c_b is None or c_w is None:
        critical = critical_initialization(activation)
        c_b, c_w = critical[0] if c_b is None else c_b, critical[1] if c_w is None else c_w
    import numpy as np

    from numeric import NumericError, flow
    from numeric.trained import predict

    rates = [1 / max(depth, 1) if rate is None else rate for rate in (lambda_b, lambda_w)]
    try:
        rule = make_algorithm(algorithm, eta, momentum)
        wanted = ["K", "Theta"] if infinite else None
        if not infinite:
            _check_tensors(activation)
        f = flow(activation, X, depth, width, c_b, c_w, rates[0], rates[1], tensors=wanted, tolerance=TOLERANCE)
        p = predict(f, np.squeeze(y, axis=1) if len(targets) == 1 else y, range(count), rule, rcond=rcond)
        parts = {"NTK": p.mean_infinite} if infinite else p.parts
        found = {
            "mean": None if infinite else p.mean.tolist(),
            "mean_infinite": p.mean_infinite.tolist(),
            "covariance_infinite": p.covariance_infinite.tolist(),
            "parts": {name: value.tolist() for name, value in parts.items()},
        }
    except NumericError as error:
        raise DeriveError(str(error)) from None
    notes = [f"{activation}: C_b = {c_b:g}, C_W = {c_w:g}, lambda_b = {rates[0]:g}, lambda_W = {rates[1]:g}"]
    return found, notes + [note for note in p.notes if not (infinite and note.startswith("finite"))]


def _check_tensors(activation: str) -> None:
    from numeric.activations import load
    from numeric.evaluation.bracket_tables import missing_tensors

    module = load(activation)
    missing = missing_tensors(module.FUNCTIONS, module.STEPS)
    if missing:
        raise DeriveError(
            f"The 1/n corrections of {activation} do not exist, ask for --infinite: {min(missing.values())}"
        )
