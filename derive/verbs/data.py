"""`derive.predict` and `derive.depth_study`: trained networks on a data set.

These verbs need numbers, so they import `numeric` (and with it jax) when they are called, here and in
`derive.verbs.kernels` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from derive.activations import activation as read_activation
from derive.critical import criticality
from derive.design.recommendation import Hyperparameters, plan, width_for
from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.lists import names, whole_numbers
from derive.results import TableResult
from derive.tables import Row
from derive.verbs.tables import load_data

if TYPE_CHECKING:
    from numeric.trained import Algorithm

ALGORITHMS = ("flow", "descent", "two-step", "momentum")
LARGEST_DEPTH = 10_000
LOSSES = ("mse", "cross-entropy")
TOLERANCE = 1e-8
"""Of the four-point brackets, relative: far below what the next order in 1/n changes."""

Numbers = list[float] | list[list[float]]


@dataclass(frozen=True)
class PredictionTable(TableResult):
    """Means and covariance of trained networks on the test inputs; `mean` is None at infinite width."""

    targets: tuple[str, ...]
    mean: Numbers | None
    mean_infinite: Numbers
    covariance_infinite: list[list[float]]
    parts: Mapping[str, Numbers]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "mean": self.mean,
            "mean_infinite": self.mean_infinite,
            "covariance_infinite": self.covariance_infinite,
            "parts": dict(self.parts),
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, float | int | str]]:
        """One row a test input and target."""
        found = []
        for place in range(len(self.mean_infinite)):
            for k, target in enumerate(self.targets):
                row: dict[str, float | int | str] = {"row": place, "target": target}
                if self.mean is not None:
                    row["mean"] = _entry(self.mean, place, k)
                row["mean_infinite"] = _entry(self.mean_infinite, place, k)
                row["standard_deviation_infinite"] = max(self.covariance_infinite[place][place], 0.0) ** 0.5
                row |= {part: _entry(values, place, k) for part, values in self.parts.items()}
                found.append(row)
        return found

    def blocks(self) -> tuple[Block, ...]:
        return (*_table(self.rows()), *map(Text, self.notes))


def _entry(values: Numbers, place: int, output: int) -> float:
    value = values[place]
    return value[output] if isinstance(value, list) else value


def _table(rows: Sequence[Row]) -> tuple[Table, ...]:
    if not rows:
        return ()
    cells = [
        tuple(f"{v:.6g}" if isinstance(v, float) else "–" if v is None else str(v) for v in r.values()) for r in rows
    ]
    return (Table(tuple(rows[0]), tuple(cells)),)


def predict(
    data: str | Path,
    test: str | Path,
    target: str | Iterable[str],
    activation: str = "tanh",
    depth: int = 3,
    width: int | None = None,
    C_b: float | None = None,
    C_W: float | None = None,
    lambda_b: float | None = None,
    lambda_W: float | None = None,
    algorithm: str = "flow",
    eta: float | None = None,
    momentum: float = 0.9,
    rcond: float | None = None,
    infinite: bool = False,
) -> PredictionTable:
    """Predict networks trained to the end on a CSV file: mean with its 1/n corrections, and covariance."""
    targets = (target,) if isinstance(target, str) else tuple(target)
    activation = named(activation)
    read = load_data(data, test, targets)
    import numpy as np

    import numeric

    rule = make_algorithm(algorithm, eta, momentum)
    wanted = ["K", "Theta"] if infinite else None
    if not infinite:
        _check_tensors(activation)
        if width is None:
            raise DeriveError("The 1/n corrections need a width: give --width, or --infinite for infinite width alone.")
    f = numeric.flow(
        activation,
        read.inputs,
        depth,
        None if infinite else width,
        "critical" if C_b is None else C_b,
        "critical" if C_W is None else C_W,
        lambda_b,
        lambda_W,
        tensors=wanted,
        tolerance=TOLERANCE,
    )
    y = np.squeeze(read.targets, axis=1) if len(targets) == 1 else read.targets
    p = numeric.predict(f, y, range(read.count), rule, rcond=rcond)
    parts = {"NTK": p.mean_infinite} if infinite else p.parts
    own = {name: np.asarray(getattr(f.parameters, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
    shown = (f"{name} = {value[0]:.6g}" for name, value in own.items() if np.ptp(value) == 0)
    notes = [f"{activation}: {', '.join(shown)}"]
    if lambda_b is None or lambda_W is None:
        notes.append("learning rates by the equivalence principle: every layer contributes the same to the output NTK")
    return PredictionTable(
        targets,
        None if infinite else p.mean.tolist(),
        p.mean_infinite.tolist(),
        p.covariance_infinite.tolist(),
        {name: value.tolist() for name, value in parts.items()},
        (*notes, *(note for note in p.notes if not (infinite and note.startswith("finite")))),
    )


def named(activation: str) -> str:
    """The canonical name of what was typed."""
    return read_activation(activation).name


def critical_initialization(activation: str) -> tuple[float, float]:
    """C_b and C_W of the recommended critical point."""
    found = criticality(activation)
    if not found.points:
        raise DeriveError(f"{activation} has no critical point, so --C-b and --C-W must be given: {found.reason}")
    return float(found.points[0].C_b), float(found.points[0].C_W)


def make_algorithm(name: str, eta: float | None, momentum: float) -> Algorithm:
    """The algorithm object of a name."""
    from numeric.trained import GradientDescent, GradientFlow, Momentum, TwoStep

    if name not in ALGORITHMS:
        raise DeriveError(f"The algorithm is one of {', '.join(ALGORITHMS)}, not {name!r}.")
    if name in ("descent", "momentum") and eta is None:
        raise DeriveError(f"--algorithm {name} needs --eta.")
    if name == "descent":
        return GradientDescent(float(eta or 0))
    if name == "momentum":
        return Momentum(float(eta or 0), momentum)
    return GradientFlow() if name == "flow" else TwoStep()


def _check_tensors(activation: str) -> None:
    from numeric.activations import load
    from numeric.evaluation.bracket_tables import missing_tensors

    module = load(activation)
    missing = missing_tensors(module.FUNCTIONS, module.STEPS)
    if missing:
        raise DeriveError(
            f"The 1/n corrections of {activation} do not exist, ask for --infinite: {min(missing.values())}"
        )


@dataclass(frozen=True)
class DepthEntry:
    """One network: the test loss as bias and variance, its largest 1/n ratio, the width for which that is a tenth."""

    depth: int
    bias: float
    variance: float
    total: float
    largest_ratio: tuple[str, float] | None
    width: int | None

    def to_json(self) -> dict[str, object]:
        ratio = None if self.largest_ratio is None else list(self.largest_ratio)
        losses = {"bias": self.bias, "variance": self.variance, "total": self.total}
        return {"depth": self.depth, **losses, "largest_ratio": ratio, "width": self.width}


@dataclass(frozen=True)
class DepthStudy(TableResult):
    """The test loss against depth, for each activation."""

    loss: str
    learning_rates: str
    studies: Mapping[str, tuple[DepthEntry, ...]]

    def to_json(self) -> dict[str, object]:
        found = [
            {"activation": name, "rows": [entry.to_json() for entry in rows]} for name, rows in self.studies.items()
        ]
        return {"loss": self.loss, "learning_rates": self.learning_rates, "studies": found}

    def rows(self) -> list[dict[str, float | int | str | None]]:
        """One row a network."""
        found: list[dict[str, float | int | str | None]] = []
        for name, entries in self.studies.items():
            for e in entries:
                ratio, value = e.largest_ratio or (None, None)
                losses = {"bias": e.bias, "variance": e.variance, "total": e.total}
                found.append(
                    {"activation": name, "depth": e.depth, **losses, "ratio": ratio, "times_n": value, "width": e.width}
                )
        return found

    def blocks(self) -> tuple[Block, ...]:
        return _table(self.rows())


def depth_study(
    data: str | Path,
    test: str | Path,
    target: str | Iterable[str],
    activations: str | Iterable[str] = "tanh",
    depths: str | int | Iterable[int] = "2,4,8,16",
    learning_rates: str = "equivalence",
    loss: str = "mse",
    rcond: float | None = None,
) -> DepthStudy:
    """Bias and variance of the mean test loss at infinite width, for networks at criticality, against depth.

    Learning rates, ratios and widths are exact at each depth, for the mean norm of the training inputs and the mean
    square of their targets.
    """
    layers = whole_numbers(depths, "--depths", most=LARGEST_DEPTH)
    targets = (target,) if isinstance(target, str) else tuple(target)
    read = load_data(data, test, targets)
    if read.test_targets is None:
        raise DeriveError(
            f"{test} lacks the column {targets[0]!r}: a study compares with the targets of the test inputs."
        )
    y = read.targets + read.test_targets
    norm = sum(x * x for row in read.inputs[: read.count] for x in row) / (read.count * len(read.inputs[0]))
    size = sum(x * x for row in read.targets for x in row) / (read.count * len(targets))
    if not norm > 0:
        raise DeriveError(f"All training inputs of {data} are zero.")
    from numeric.studies.depth import depth_study as study

    studies = {}
    for name in map(named, names(activations)):
        plans = {depth: plan(name, depth, learning_rates, norm, size) for depth in layers}

        def settings(depth: int, plans: dict[int, tuple[Hyperparameters, dict[str, float]]] = plans) -> Hyperparameters:
            return plans[depth][0]

        found = study(name, read.inputs, y, range(read.count), layers, settings, loss=loss, rcond=rcond)
        entries = []
        for row in found:
            ratios = plans[row.depth][1]
            largest = max(ratios.items(), key=lambda item: abs(item[1]))
            entries.append(DepthEntry(row.depth, row.bias, row.variance, row.total, largest, width_for(ratios)))
        studies[name] = tuple(entries)
    return DepthStudy(loss, learning_rates, studies)
