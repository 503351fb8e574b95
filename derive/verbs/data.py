"""`derive.predict`: trained networks on a data set.

It needs numbers, so it imports `numeric` (and with it jax) when it is called.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.activations import activation as read_activation
from derive.critical import criticality
from derive.errors import DeriveError
from derive.layout import Block, Text
from derive.lists import whole_numbers
from derive.results import TableResult, table_of
from derive.verbs.classes import ClassTable, check_classes, predict_classes
from derive.verbs.metric import metric
from derive.verbs.tables import load_data
from effective_theory.files import check_file, write_file

if TYPE_CHECKING:
    from numeric.trained import Algorithm, Prediction

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
TOLERANCE = 1e-8
"""Of the four-point brackets, relative: far below what the next order in 1/n changes."""

Numbers = list
"""Nested lists of numbers: an array as data."""
MEMORY = 4.0
"""Gigabytes within which "auto" forms the tensors; it samples where they need more."""
METHODS = ("auto", "exact", "sampled")


@dataclass(frozen=True)
class PredictionTable(TableResult):
    """Means and covariance of trained networks on the test inputs; `mean` is None at infinite width.

    With several times every array has one more axis in front. `covariance`, `test_loss` and `ntk_change` are there when
    they were asked for.
    """

    targets: tuple[str, ...]
    mean: Numbers | None
    mean_infinite: Numbers
    covariance_infinite: Numbers
    parts: Mapping[str, Numbers]
    notes: tuple[str, ...]
    time: float | tuple[float, ...] | None = None
    covariance: Numbers | None = None
    ntk_change: Numbers | None = None
    test_loss: Mapping[str, float] | None = None
    standard_error: Mapping[str, Numbers] | None = None
    """Of the mean and its parts, where they were sampled."""
    variance: Numbers | None = None
    """Of the test outputs to order 1/n, where the covariance was asked for and sampled; shaped as `mean`."""

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "mean": self.mean,
            "mean_infinite": self.mean_infinite,
            "covariance_infinite": self.covariance_infinite,
            "parts": dict(self.parts),
            "notes": list(self.notes),
        }
        times = list(self.time) if isinstance(self.time, tuple) else self.time
        errors = None if self.standard_error is None else dict(self.standard_error)
        asked: dict[str, object] = {"time": times, "covariance": self.covariance, "ntk_change": self.ntk_change}
        asked |= {"standard_error": errors, "variance": self.variance}
        found |= {name: value for name, value in asked.items() if value is not None}
        return found if self.test_loss is None else {**found, "test_loss": dict(self.test_loss)}

    def rows(self) -> list[dict[str, float | int | str]]:
        """One row a time (if there are any), test input and target."""
        import numpy as np

        times = () if self.time is None else self.time if isinstance(self.time, tuple) else (self.time,)
        size = np.shape(self.covariance_infinite)[-1]
        shape = (max(1, len(times)), size, len(self.targets))
        columns = {} if self.mean is None else {"mean": np.reshape(self.mean, shape)}
        columns["mean_infinite"] = np.reshape(self.mean_infinite, shape)
        variance = np.diagonal(np.reshape(self.covariance_infinite, (shape[0], size, size)), axis1=1, axis2=2)
        spread = np.sqrt(np.maximum(variance, 0.0))
        columns["standard_deviation_infinite"] = np.repeat(spread[:, :, None], shape[2], axis=2)
        columns |= {part: np.reshape(values, shape) for part, values in self.parts.items()}
        if self.standard_error is not None:
            columns["standard_error"] = np.reshape(self.standard_error["mean"], shape)
        if self.variance is not None:
            columns["variance"] = np.reshape(self.variance, shape)
        found = []
        for when, place, k in np.ndindex(shape):
            row: dict[str, float | int | str] = {"time": times[when]} if times else {}
            row |= {"row": place, "target": self.targets[k]}
            found.append(row | {name: float(value[when, place, k]) for name, value in columns.items()})
        return found

    def blocks(self) -> tuple[Block, ...]:
        return (*table_of(self.rows()), *map(Text, self.notes))


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
    eta: float | str | Iterable[float] | None = None,
    momentum: float = 0.9,
    batches: str | Iterable[Iterable[int]] | None = None,
    kappa: str | None = None,
    time: float | str | Iterable[float] | None = None,
    rcond: float | None = None,
    ridge: float = 0.0,
    infinite: bool = False,
    covariance: bool = False,
    loss: bool | str | None = None,
    ntk: bool = False,
    method: str = "auto",
    relative_error: float | None = None,
    seconds: float | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    memory: float = MEMORY,
    output: str | Path | None = None,
    plot: str | Path | None = None,
) -> PredictionTable | ClassTable:
    """Predict networks trained on a CSV file, to the end or to a time: mean with its 1/n corrections, and covariance.

    `covariance` and `ntk` add the covariance to order 1/n and the mean change of the NTK; `loss` adds the mean test
    loss per test input, for which the test file has the targets; `output` writes the table as CSV, `plot` a figure.
    `loss="cross-entropy"` trains on the cross-entropy instead: several targets are probabilities (soft labels), one
    target holds labels 0, 1, 2, ..., for which training has no end and needs a `time`.

    `method="sampled"` estimates the 1/n corrections with standard errors in memory N², until `relative_error` of the
    correction (5 %) or `seconds` are reached: without either, two seconds for a hundred inputs and as N² beyond.
    "exact" forms the tensors, memory N⁴; "auto" is exact where they fit into `memory` (in GB) and samples where they do
    not. With sampling, `covariance` gives the variances. `checkpoint` is a file from which a sampled run goes on.
    """
    targets = (target,) if isinstance(target, str) else tuple(target)
    activation = named(activation)
    read = load_data(data, test, targets)
    for place in (output, plot, checkpoint):
        if place is not None:
            check_file(place)
    if loss not in (None, False, True, *LOSSES):
        raise DeriveError(f"The loss is one of {', '.join(LOSSES)}, not {loss!r}.")
    classes = loss == "cross-entropy"
    if classes and (infinite or ntk or ridge or rcond is not None or method == "sampled"):
        raise DeriveError(
            "Networks trained on the cross-entropy are predicted at finite width from the tensors: leave out "
            "--infinite, --ntk, --ridge, --rcond and --method sampled."
        )
    if loss and not classes and read.test_targets is None:
        raise DeriveError(f"{test} lacks the column {targets[0]!r}: the loss needs the targets of the test inputs.")
    if infinite and (covariance or ntk):
        raise DeriveError("The covariance to order 1/n and the NTK's change are of finite width: leave out --infinite.")
    if method not in METHODS:
        raise DeriveError(f"--method is one of {', '.join(METHODS)}, not {method!r}.")
    if not (math.isfinite(memory) and memory > 0):
        raise DeriveError(f"--memory is a positive number of gigabytes, not {memory}.")
    import numpy as np

    import numeric
    from numeric.evaluation.flow import fits

    many = not fits(activation, len(read.inputs), depth, 1e9 * memory)
    sampled = not infinite and not classes and (method == "sampled" or (method == "auto" and many))
    if sampled and ntk:
        raise DeriveError("The NTK's change to order 1/n is exact only: add --method exact, or leave out --ntk.")

    rule = make_algorithm(algorithm, eta, momentum, batches, kappa)
    times = None if time is None else decimals(time, "--time")
    if times is not None and len(times) > 1 and loss:
        raise DeriveError("The loss is for one time: give --time one number.")
    if classes:
        check_classes(read, rule, None if times is None else times[0])
    wanted = ["K", "Theta"] if infinite or sampled else None
    if not infinite:
        _check_tensors(activation, sampled)
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
    own = {name: np.asarray(getattr(f.parameters, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
    shown = (f"{name} = {value[0]:.6g}" for name, value in own.items() if np.ptp(value) == 0)
    notes = [f"{activation}: {', '.join(shown)}"]
    if lambda_b is None or lambda_W is None:
        notes.append("learning rates by the equivalence principle: every layer contributes the same to the output NTK")
    title = f"{activation}, depth {depth}"
    if classes:
        table = predict_classes(f, read, targets, rule, None if times is None else times[0], covariance, seed, notes)
        if output is not None:
            write_file(Path(output), table.to_csv())
        if plot is not None:
            from numeric.studies.figures import class_figure

            class_figure(table.probabilities, table.probabilities_infinite, table.classes, title, Path(plot))
        return table
    y = np.squeeze(read.targets, axis=1) if len(targets) == 1 else read.targets
    when = None if times is None else times[0] if len(times) == 1 else list(times)
    p: Any
    if sampled:
        p = numeric.predict(
            f,
            y,
            range(read.count),
            rule,
            time=when,
            rcond=rcond,
            ridge=ridge,
            method="sampled",
            relative_error=relative_error,
            seconds=seconds,
            seed=seed,
            checkpoint=checkpoint,
        )
    else:
        p = numeric.predict(f, y, range(read.count), rule, time=when, rcond=rcond, ridge=ridge)
    parts = {"NTK": p.mean_infinite} if infinite else p.parts
    spread = p.covariance.tolist() if covariance and not sampled else None  # before the notes, which look at it
    notes += [note for note in p.notes if not (infinite and note.startswith("finite"))]
    found = PredictionTable(
        targets,
        None if infinite else p.mean.tolist(),
        p.mean_infinite.tolist(),
        p.covariance_infinite.tolist(),
        {name: value.tolist() for name, value in parts.items()},
        tuple(notes),
        None if times is None else times[0] if len(times) == 1 else times,
        spread,
        p.ntk_change.tolist() if ntk else None,
        _losses(p, read.test_targets, infinite) if loss else None,
        _sampled_errors(p, covariance) if sampled else None,
        p.variance.tolist() if covariance and sampled else None,
    )
    if output is not None:
        write_file(Path(output), found.to_csv())
    if plot is not None:
        from numeric.studies.figures import prediction_figure

        prediction_figure(p, targets, not infinite, title, Path(plot), ntk)
    return found


def _sampled_errors(p: Any, variance: bool) -> dict[str, Numbers]:
    """Standard errors by what they belong to."""
    found = {name: value.tolist() for name, value in p.standard_error.items()}
    return {**found, "variance": p.variance_error.tolist()} if variance else found


def _losses(p: Prediction, truth: list[list[float]] | None, infinite: bool) -> dict[str, float]:
    """The mean test loss per test input as bias and variance, at infinite width and to order 1/n."""
    import numpy as np

    from numeric.trained.generalization import finite_test_loss, test_loss
    from numeric.trained.losses import MSE

    y, count = np.asarray(truth, dtype=float), len(p.test)
    if infinite:
        own = test_loss(MSE(y), p.mean_infinite.reshape(y.shape), p.covariance_infinite)
        return {"bias_infinite": own.bias / count, "variance_infinite": own.variance / count}
    finite = finite_test_loss(p, y)
    error = {"standard_error": finite.standard_error / count} if finite.standard_error else {}
    return error | {
        "bias": finite.bias / count,
        "variance": finite.variance / count,
        "total": finite.total / count,
        "bias_infinite": finite.infinite.bias / count,
        "variance_infinite": finite.infinite.variance / count,
    }


def named(activation: str) -> str:
    """The canonical name of what was typed."""
    return read_activation(activation).name


def critical_initialization(activation: str) -> tuple[float, float]:
    """C_b and C_W of the recommended critical point."""
    found = criticality(activation)
    if not found.points:
        raise DeriveError(f"{activation} has no critical point, so --C-b and --C-W must be given: {found.reason}")
    return float(found.points[0].C_b), float(found.points[0].C_W)


def make_algorithm(
    name: str,
    eta: float | str | Iterable[float] | None,
    momentum: float,
    batches: str | Iterable[Iterable[int]] | None = None,
    kappa: str | None = None,
) -> Algorithm:
    """The algorithm object of a name; a schedule has several rates, "0.3,0.1", batches are "0,1;2;0,2", and `kappa` is
    the Newton tensor of "preconditioned" as a function of the training NTK's eigenvalue, "1 + h^2"."""
    from numeric.trained import (
        GradientDescent,
        GradientFlow,
        Momentum,
        Newton,
        Preconditioned,
        Schedule,
        StochasticDescent,
        TwoStep,
    )

    if name not in ALGORITHMS:
        raise DeriveError(f"The algorithm is one of {', '.join(ALGORITHMS)}, not {name!r}.")
    if name in ("flow", "newton", "two-step"):
        return GradientFlow() if name == "flow" else Newton() if name == "newton" else TwoStep()
    if eta is None:
        raise DeriveError(f"--algorithm {name} needs --eta.")
    rates = decimals(eta, "--eta")
    if name == "schedule":
        return Schedule(rates)
    if len(rates) != 1:
        raise DeriveError(f"--algorithm {name} has one --eta; a list of them is --algorithm schedule.")
    if name == "stochastic":
        if batches is None:
            raise DeriveError('--algorithm stochastic needs --batches, e.g. "0,1;2;0,2" (rows of the data from 0).')
        groups = batches.split(";") if isinstance(batches, str) else batches
        return StochasticDescent(rates[0], [whole_numbers(group, "--batches", least=0) for group in groups])
    if name == "preconditioned":
        if kappa is None:
            raise DeriveError('--algorithm preconditioned needs --kappa, e.g. "1 + h^2" (h: eigenvalues of the NTK).')
        return Preconditioned(rates[0], metric(kappa))
    if name == "descent":
        return GradientDescent(rates[0])
    return Momentum(rates[0], momentum, nesterov=name == "nesterov")


def decimals(given: float | str | Iterable[float], option: str) -> tuple[float, ...]:
    """Numbers from text with commas, one number or several."""
    parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int | float) else list(given)
    try:
        found = tuple(float(part) for part in parts)
    except ValueError:
        raise DeriveError(f"{option} takes numbers separated by commas, not {given!r}.") from None
    if not found or not all(math.isfinite(x) for x in found):
        raise DeriveError(f"{option} takes finite numbers separated by commas, not {given!r}.")
    return found


def _check_tensors(activation: str, sampled: bool) -> None:
    """Before any work: the corrections exist, and can be sampled where they are to be."""
    from numeric.activations import load
    from numeric.evaluation.bracket_tables import missing_tensors

    module = load(activation)
    missing = missing_tensors(module.FUNCTIONS, module.STEPS)
    if missing:
        raise DeriveError(
            f"The 1/n corrections of {activation} do not exist, ask for --infinite: {min(missing.values())}"
        )
    if sampled:
        from numeric.trained.sampled import check_activation

        check_activation(module.FUNCTIONS)
