"""`derive.predict(..., loss="cross-entropy")`: networks trained on the cross-entropy, to first order in 1/n.

It needs numbers, so it imports `numeric` (and with it jax) when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from derive.errors import DeriveError
from derive.layout import Block, Text
from derive.results import TableResult, table_of
from derive.verbs.tables import DataSet

if TYPE_CHECKING:
    import numpy as np

    from numeric.evaluation.results import Flow
    from numeric.trained import Algorithm

Numbers = list
LARGE = 0.1
"""A correction of order 1/n of this size is not small for a probability."""
COMPONENTS = 60
"""Up to so many outputs times inputs: the tensors of the drawn networks have this to the fourth power of entries."""
CLASSES = 20
SAMPLES = 2000
"""Initial outputs that are drawn."""


@dataclass(frozen=True)
class ClassTable(TableResult):
    """Outputs and class probabilities on the test inputs, [input][class]; the parts add up to `mean`.

    `covariance_infinite` (and `covariance`, where asked for) is [class][class][input][input]. Standard errors are those
    of the average over drawn initial outputs.
    """

    classes: tuple[str, ...]
    mean: Numbers
    mean_infinite: Numbers
    covariance_infinite: Numbers
    probabilities: Numbers
    probabilities_infinite: Numbers
    parts: Mapping[str, Numbers]
    standard_error: Mapping[str, Numbers]
    notes: tuple[str, ...]
    time: float
    covariance: Numbers | None = None
    test_loss: Mapping[str, float] | None = None
    """The mean test loss per test input, where the test file has the targets."""

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "mean": self.mean,
            "mean_infinite": self.mean_infinite,
            "covariance_infinite": self.covariance_infinite,
            "probabilities": self.probabilities,
            "probabilities_infinite": self.probabilities_infinite,
            "parts": dict(self.parts),
            "standard_error": dict(self.standard_error),
            "notes": list(self.notes),
            "time": self.time,
        }
        if self.covariance is not None:
            found["covariance"] = self.covariance
        return found if self.test_loss is None else {**found, "test_loss": dict(self.test_loss)}

    def rows(self) -> list[dict[str, float | int | str]]:
        """One row a test input and class."""
        return [
            {
                "row": row,
                "class": name,
                "probability": self.probabilities[row][k],
                "probability_infinite": self.probabilities_infinite[row][k],
                "standard_error": self.standard_error["probabilities"][row][k],
                "mean": self.mean[row][k],
                "mean_infinite": self.mean_infinite[row][k],
            }
            for row in range(len(self.mean))
            for k, name in enumerate(self.classes)
        ]

    def blocks(self) -> tuple[Block, ...]:
        return (*table_of(self.rows()), *map(Text, self.notes))


def distributions(rows: Sequence[Sequence[float]], classes: int | None, place: str) -> np.ndarray:
    """Target distributions: several columns are probabilities, a single one holds labels 0, 1, 2, ..."""
    import numpy as np

    y = np.asarray(rows, dtype=float)
    if y.shape[1] > 1:
        if y.min() < 0 or np.abs(y.sum(axis=1) - 1).max() > 1e-6:
            raise DeriveError(f"The targets in {place} are probabilities: none negative, and each row with the sum 1.")
        return y / y.sum(axis=1, keepdims=True)
    most = CLASSES if classes is None else classes
    labels = y[:, 0]
    if (labels != np.round(labels)).any() or labels.min() < 0 or labels.max() >= most:
        raise DeriveError(f"A single target in {place} holds labels 0, 1, 2, ... below {most}, or give probabilities.")
    return np.eye(max(2, int(labels.max()) + 1) if classes is None else classes)[labels.astype(int)]


def check_classes(read: DataSet, algorithm: Algorithm, time: float | None) -> None:
    """Complain before the work begins."""
    p = distributions(read.targets, None, "the data")
    count = p.shape[1] * len(read.inputs)
    if count > COMPONENTS:
        raise DeriveError(
            f"The cross-entropy at finite width is for {COMPONENTS} classes x inputs at most, not {count}: take fewer "
            "rows."
        )
    if read.test_targets is not None:
        distributions(read.test_targets, p.shape[1], "the test file")
    if time is None and (p == 0).any():
        raise DeriveError("Hard labels put the end of training at infinite outputs: give --time, or soft labels.")
    if algorithm.memory_size or algorithm.own_ntk:
        raise DeriveError("The cross-entropy needs an algorithm without memory and with one metric for all networks.")


def predict_classes(
    f: Flow,
    read: DataSet,
    targets: tuple[str, ...],
    algorithm: Algorithm,
    time: float | None,
    covariance: bool,
    seed: int,
    first_notes: Sequence[str],
) -> ClassTable:
    """Networks trained on the cross-entropy over the rows of the data."""
    import numpy as np

    from numeric.trained.any_loss import predict_loss
    from numeric.trained.losses import CrossEntropy

    p = distributions(read.targets, None, "the data")
    classes = p.shape[1]
    truth = None if read.test_targets is None else distributions(read.test_targets, classes, "the test file")
    own = predict_loss(
        f,
        CrossEntropy(p),
        range(read.count),
        algorithm,
        time=time,
        test_loss=None if truth is None else CrossEntropy(truth),
        samples=SAMPLES,
        seed=seed,
    )
    center = own.mean_infinite
    change = own.probabilities - own.infinite["probabilities"]
    notes = [*first_notes, *own.notes, f"finite width: first order in 1/n, n = {own.width:g}"]
    largest = float(np.max(np.abs(change)))
    if largest > LARGE:
        notes.append(
            f"Warning: the corrections of order 1/n change probabilities by up to {largest:.2g}, so that the next "
            f"order is not small either; a width of about {int(np.ceil(own.width * largest / 0.03))} would bring them "
            "to 0.03."
        )
    losses = None
    if truth is not None:
        count = len(own.test)
        losses = {
            "total": own.test_loss / count,
            "total_infinite": float(own.infinite["test loss"]) / count,
            "standard_error": float(own.errors["test loss"]) / count,
        }
    squares = np.einsum("ai,bj->ijab", center, center)
    return ClassTable(
        targets if len(targets) > 1 else tuple(f"{targets[0]}={k}" for k in range(classes)),
        own.mean.tolist(),
        center.tolist(),
        (own.infinite["second moment"] - squares).tolist(),
        own.probabilities.tolist(),
        own.infinite["probabilities"].tolist(),
        {"NTK": center.tolist(), **{part: (x / own.width).tolist() for part, x in own.parts["mean"].items()}},
        {name: own.errors[name].tolist() for name in ("mean", "probabilities")},
        tuple(notes),
        own.steps,
        own.covariance.tolist() if covariance else None,
        losses,
    )
