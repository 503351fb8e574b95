"""`derive.depth_study`: the mean test loss of a data set against depth, at infinite width and to first order in 1/n."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from derive.design.recommendation import Hyperparameters, plan, width_for
from derive.errors import DeriveError
from derive.layout import Block, Text
from derive.lists import names, whole_numbers
from derive.results import TableResult, table_of
from derive.verbs.data import make_algorithm, named
from derive.verbs.tables import load_data

if TYPE_CHECKING:
    from numeric.trained import Algorithm

LARGEST_DEPTH = 10_000
COMPARED = ("descent", "flow", "two-step")
"""The algorithms that a study at finite width compares unless told otherwise."""


@dataclass(frozen=True)
class FiniteEntry:
    """n times what finite width adds to the mean test loss, for one algorithm; `sign` is the sign of the sum.

    A negative coefficient means that networks do better than their infinite-width limit, and that there is a best depth
    for a given width: (infinity.172).
    """

    bias: float
    variance: float

    @property
    def total(self) -> float:
        return self.bias + self.variance

    @property
    def sign(self) -> int:
        return int(math.copysign(1, self.total)) if self.total else 0

    def to_json(self, depth: int) -> dict[str, object]:
        return {
            "bias": self.bias,
            "variance": self.variance,
            "total": self.total,
            "coefficient_of_L_over_n": self.total / depth,
            "sign": self.sign,
        }


@dataclass(frozen=True)
class DepthEntry:
    """One network: the test loss as bias and variance, its largest 1/n ratio, the width for which that is a tenth."""

    depth: int
    bias: float
    variance: float
    total: float
    largest_ratio: tuple[str, float] | None
    width: int | None
    target_scale: float = 1.0
    finite: Mapping[str, FiniteEntry] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        ratio = None if self.largest_ratio is None else list(self.largest_ratio)
        losses = {"bias": self.bias, "variance": self.variance, "total": self.total}
        found: dict[str, object] = {"depth": self.depth, **losses, "largest_ratio": ratio, "width": self.width}
        if self.target_scale != 1.0:
            found["target_scale"] = self.target_scale
        if self.finite:
            found["times_n"] = {name: entry.to_json(self.depth) for name, entry in self.finite.items()}
        return found


@dataclass(frozen=True)
class DepthStudy(TableResult):
    """The test loss against depth, for each activation; losses are per test input, of the targets as given."""

    loss: str
    learning_rates: str
    studies: Mapping[str, tuple[DepthEntry, ...]]
    width: int | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        found = [
            {"activation": name, "rows": [entry.to_json() for entry in rows]} for name, rows in self.studies.items()
        ]
        head: dict[str, object] = {"loss": self.loss, "learning_rates": self.learning_rates, "studies": found}
        if self.width is not None:
            head["width"] = self.width
        return head | {"notes": list(self.notes)}

    def rows(self) -> list[dict[str, float | int | str | None]]:
        """One row a network (and algorithm, at finite width)."""
        found: list[dict[str, float | int | str | None]] = []
        for name, entries in self.studies.items():
            for e in entries:
                ratio, value = e.largest_ratio or (None, None)
                losses = {"bias": e.bias, "variance": e.variance, "total": e.total}
                row: dict[str, float | int | str | None] = {"activation": name, "depth": e.depth, **losses}
                row |= {"ratio": ratio, "times_n": value, "width": e.width}
                if not e.finite:
                    found.append(row)
                for algorithm, change in e.finite.items():
                    more = {"bias_times_n": change.bias, "variance_times_n": change.variance}
                    at = {} if self.width is None else {"total_finite": e.total + change.total / self.width}
                    found.append({**row, "algorithm": algorithm, **more, "total_times_n": change.total, **at})
        return found

    def blocks(self) -> tuple[Block, ...]:
        return (*table_of(self.rows()), *map(Text, self.notes))


def depth_study(
    data: str | Path,
    test: str | Path,
    target: str | Iterable[str],
    activations: str | Iterable[str] = "tanh",
    depths: str | int | Iterable[int] = "2,4,8,16",
    learning_rates: str = "equivalence",
    loss: str = "mse",
    rcond: float | None = None,
    width: int | None = None,
    algorithms: str | Iterable[str] = "descent,flow,two-step",
    eta: float | None = None,
    rescale: bool = False,
    plot: str | Path | None = None,
) -> DepthStudy:
    """Bias and variance of the mean test loss against depth, for networks at criticality.

    Learning rates, ratios and widths are exact at each depth, for the mean norm of the training inputs and the mean
    square of their targets. With a `width`, also what finite width adds to first order in 1/n, for each of `algorithms`
    (`eta` is the rate of descent; unless given, one over the training NTK's largest eigenvalue). `rescale` multiplies
    the targets with the outputs' scale at each depth, PDLT (∞.26). `plot` draws the study into a PNG file.
    """
    layers = whole_numbers(depths, "--depths", most=LARGEST_DEPTH)
    targets = (target,) if isinstance(target, str) else tuple(target)
    read = load_data(data, test, targets)
    if read.test_targets is None:
        raise DeriveError(
            f"{test} lacks the column {targets[0]!r}: a study compares with the targets of the test inputs."
        )
    if width is not None and (isinstance(width, bool) or width < 1):
        raise DeriveError(f"--width is a whole number from 1 on, not {width!r}.")
    y = read.targets + read.test_targets
    norm = sum(x * x for row in read.inputs[: read.count] for x in row) / (read.count * len(read.inputs[0]))
    size = sum(x * x for row in read.targets for x in row) / (read.count * len(targets))
    if not norm > 0:
        raise DeriveError(f"All training inputs of {data} are zero.")
    from numeric.studies.depth import depth_study as study

    rules = {} if width is None else {name: _rule(name, eta) for name in names(algorithms)}
    studies = {}
    for name in map(named, names(activations)):
        plans = {depth: plan(name, depth, learning_rates, norm, size) for depth in layers}

        def settings(depth: int, plans: dict[int, tuple[Hyperparameters, dict[str, float]]] = plans) -> Hyperparameters:
            return plans[depth][0]

        found = study(
            name,
            read.inputs,
            y,
            range(read.count),
            layers,
            settings,
            loss=loss,
            rcond=rcond,
            algorithms=rules,
            rescale=rescale,
        )
        entries = []
        for row in found:
            ratios = plans[row.depth][1]
            if rescale:
                ratios = plan(name, row.depth, learning_rates, norm, size * row.scale**2)[1]
            largest = max(ratios.items(), key=lambda item: abs(item[1]))
            changes = {rule: FiniteEntry(x.bias, x.variance) for rule, x in row.finite.items()}
            losses = row.bias, row.variance, row.total
            entries.append(DepthEntry(row.depth, *losses, largest, width_for(ratios), row.scale, changes))
        studies[name] = tuple(entries)
    result = DepthStudy(loss, learning_rates, studies, width, _notes(studies, width, rescale, eta, rules))
    if plot is not None:
        from numeric.studies.figures import depth_figure

        lines = {name: [entry.to_json() for entry in entries] for name, entries in studies.items()}
        depth_figure(lines, width, Path(plot))
    return result


def _rule(name: str, eta: float | None) -> Callable[[float], Algorithm]:
    if name not in COMPARED:
        raise DeriveError(f"A study against depth compares {', '.join(COMPARED)}, not {name!r}.")
    return lambda largest: make_algorithm(
        name, (1 / largest if eta is None else eta) if name == "descent" else None, 0.0
    )


def _notes(
    studies: Mapping[str, tuple[DepthEntry, ...]],
    width: int | None,
    rescale: bool,
    eta: float | None,
    rules: Mapping[str, object],
) -> tuple[str, ...]:
    from numeric.evaluation.validity import first_order

    notes: list[str] = []
    if rescale:
        notes.append(
            "Targets multiplied with sqrt(K^(L)/K^(1)) at each depth, PDLT (∞.26); losses of targets as given."
        )
    if "descent" in rules and eta is None:
        notes.append("Descent with eta = 1/(largest eigenvalue of the training NTK).")
    for name, entries in studies.items():
        for entry in entries:
            for rule, change in entry.finite.items():
                if width is not None:
                    share = abs(change.total) / width / max(entry.total, 1e-300)
                    notes += first_order(f"the loss ({name}, depth {entry.depth}, {rule})", share, width)
    return tuple(notes)
