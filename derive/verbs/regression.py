"""`derive.kernel`: kernel regression on a data set with a network's kernel, its risks and its spectrum.

This verb needs numbers, so it imports `numeric` (and with it jax) when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.results import TableResult
from derive.steps import Words, small
from derive.verbs.data import named
from derive.verbs.tables import input_rows, target_columns

KERNELS = ("Theta", "K", "pseudo-NTK")
CHOICES = ("loo", "gcv")
SHOWN = 12
"""Eigenvalues and candidates in a table for people; JSON has more."""


@dataclass(frozen=True)
class KernelFit(TableResult):
    """A fit with its risks; test predictions, look-ahead scores and leave-one-out residuals where there are any."""

    activation: str
    kernel: str
    depth: int
    width: int | None
    inputs: int
    targets: tuple[str, ...]
    parameters: Mapping[str, list[float]]
    solver: str
    ridge: float
    train_mse: float
    gcv: float
    gcv_error: float
    loo_mse: float | None
    variance: float
    eigenvalues: list[float]
    target_share: list[float]
    effective_dimension: float | None
    condition: float | None
    leave_one_out: list[list[float]] | None
    prediction: list[list[float]] | None
    prediction_error: list[list[float]] | None
    test_mse: float | None
    look_ahead: list[float] | None
    notes: tuple[str, ...]
    files: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lists = {"targets": list(self.targets), "notes": list(self.notes)}
        return found | lists | {"parameters": dict(self.parameters), "files": dict(self.files)}

    def rows(self) -> list[dict[str, object]]:
        """Predictions on the test inputs, or the leave-one-out residuals of the training inputs, or the eigenvalues."""
        if self.prediction is not None:
            found = []
            for row, values in enumerate(self.prediction):
                for k, target in enumerate(self.targets):
                    error = "" if self.prediction_error is None else self.prediction_error[row][k]
                    found.append({"row": row, "target": target, "prediction": values[k], "sketch_error": error})
            return found
        if self.leave_one_out is not None:
            return [
                {"row": row, "target": target, "leave_one_out_residual": values[k]}
                for row, values in enumerate(self.leave_one_out)
                for k, target in enumerate(self.targets)
            ]
        return [
            {"mode": k, "eigenvalue": h, "target_share": share}
            for k, (h, share) in enumerate(zip(self.eigenvalues, self.target_share))
        ]

    def blocks(self) -> tuple[Block, ...]:
        head = f"{self.kernel} of {self.activation}, depth {self.depth}, {self.inputs} inputs"
        risks: list[tuple[str, float | None]] = [("ridge", self.ridge)]
        risks += [("training error", self.train_mse), ("generalized cross-validation", self.gcv)]
        risks += [("leave-one-out error", self.loo_mse), ("test error", self.test_mse), ("variance", self.variance)]
        table = Table(
            ("what", "value"),
            tuple((n, Words(small(v, 6))) for n, v in risks if v is not None),
            f"{head}: mean squares.",
        )
        modes = [
            (str(k), Words(small(h, 6)), f"{share:.4f}")
            for k, (h, share) in enumerate(zip(self.eigenvalues[:SHOWN], self.target_share))
        ]
        return (table, Table(("mode", "eigenvalue", "share of the target"), tuple(modes)), *map(Text, self.notes))


def kernel(
    data: str | Path,
    target: str | Iterable[str],
    test: str | Path | None = None,
    candidates: str | Path | None = None,
    activation: str = "tanh",
    depth: int = 3,
    kernel: str = "Theta",
    width: int | None = None,
    C_b: float | None = None,
    C_W: float | None = None,
    lambda_b: float | None = None,
    lambda_W: float | None = None,
    ridge: float | str = "loo",
    landmarks: int | None = None,
    seed: int = 0,
    memory: float = 1e9,
    output: str | Path | None = None,
    plot: str | Path | None = None,
) -> KernelFit:
    """Kernel regression on a CSV file with a network's kernel: risks by cross-validation, spectrum, predictions.

    `ridge` is a number, or "loo" or "gcv" to take the one with the least risk. `test` adds predictions, and their error
    where the file has the targets; `candidates` adds how much each unlabelled row would move the predictions if it
    were labelled. `landmarks` makes the predictions with so many rows of the data (a sketch with an estimated error).
    Inputs that `memory` bytes cannot factorize are fitted by conjugate gradients. Parameters follow `derive.predict`.
    """
    targets = (target,) if isinstance(target, str) else tuple(target)
    activation = named(activation)
    level = _ridge(ridge)
    if kernel not in KERNELS:
        raise DeriveError(f"The kernel is one of {', '.join(KERNELS)}, not {kernel!r}.")
    if (width is not None) != (kernel == "pseudo-NTK"):
        raise DeriveError(
            "--width belongs to --kernel pseudo-NTK, and that to a width: the others are infinitely wide."
        )
    if landmarks is not None and test is None:
        raise DeriveError("--landmarks makes predictions from a sketch: give --test.")
    names, rows, own = target_columns(data, targets)
    inputs = [name for name in names if name not in targets]
    import numpy as np

    from effective_theory.files import check_file, write_file
    from numeric.studies.data_kernel import data_kernel, fit_data

    for place in (output, plot):
        if place is not None:
            check_file(place)
    X, y = np.array(rows), np.array(own)
    seen = None if test is None else input_rows(test, inputs, targets)
    pool = None if candidates is None else input_rows(candidates, inputs, targets)
    source = data_kernel(activation, X, depth, kernel, len(targets), width, C_b, C_W, lambda_b, lambda_W, seed)
    found = fit_data(
        source,
        X,
        y,
        None if seen is None else np.array(seen[0]),
        None if pool is None else np.array(pool[0]),
        level,
        landmarks,
        seed,
        memory,
    )
    truth = None if seen is None or seen[1] is None else np.array(seen[1])
    notes = []
    if isinstance(level, str):
        notes.append(f"the ridge has the least {'leave-one-out error' if level == 'loo' else 'cross-validation'}")
    if found.iterations is not None:
        notes.append(f"{found.iterations} iterations, relative residual {found.residual:.1e}; no leave-one-out error")
    if kernel == "pseudo-NTK":
        notes.append(f"one network of width {width}, seed {seed}: it is fitted around its own initial function")
    if not found.gcv < float(np.var(y)):
        notes.append("Warning: the expected error is not below the targets' variance, so nothing is learned.")
    result = KernelFit(
        activation,
        kernel,
        depth,
        width,
        len(X),
        targets,
        {name: [float(x) for x in value] for name, value in source.parameters.items()},
        found.solver,
        found.ridge,
        found.train_mse,
        found.gcv,
        found.gcv_error,
        found.loo_mse,
        float(np.var(y, axis=0).mean()),
        found.eigenvalues.tolist(),
        found.target_share.tolist(),
        found.effective_dimension,
        found.condition if np.isfinite(found.condition) else None,
        None if found.leave_one_out is None else found.leave_one_out.tolist(),
        None if found.prediction is None else found.prediction.tolist(),
        None if found.prediction_error is None else found.prediction_error.tolist(),
        None if truth is None or found.prediction is None else float(np.mean((found.prediction - truth) ** 2)),
        None if found.look_ahead is None else found.look_ahead.tolist(),
        tuple(notes),
        {},
    )
    files = {}
    if output is not None:
        write_file(Path(output), result.to_csv())
        files["csv"] = str(output)
    if plot is not None:
        from numeric.studies.figures import kernel_figure

        kernel_figure(found, y, f"{kernel} of {activation}, depth {depth}, {len(X)} inputs", Path(plot))
        files["figure"] = str(plot)
    return replace(result, files=files)


def _ridge(given: float | str) -> float | str:
    if isinstance(given, str) and given in CHOICES:
        return given
    try:
        return float(given)
    except ValueError:
        raise DeriveError(f"--ridge is a number, or one of {', '.join(CHOICES)}; not {given!r}.") from None
