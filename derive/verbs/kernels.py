"""`derive.learnability` and `derive.ntk_study`: a kernel's spectrum; networks against their linearization.

These verbs need numbers, so they import `numeric` (and with it jax) when they are called, here and in
`derive.verbs.data` only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.lists import whole_numbers
from derive.results import TableResult
from derive.steps import Words, equal, small
from derive.verbs.data import critical_initialization, decimals, named
from derive.verbs.exact_kernel import two_layer_kernel
from effective_theory.files import file_stem

if TYPE_CHECKING:
    from numeric.evaluation.inputs import Parameters

SPACES = ("hypercube", "circle", "sphere")
LARGEST_HELD = 12
"""Dimensions up to which all corners of a hypercube are held."""
LONGEST_EXACT = 6
"""Exact eigenvalues are given up to this degree: they grow long."""
MEANING = {
    "f_gap": "sup over t of |f - f_lin|",
    "ntk_gap": "sup over t of |H - H_0| / |H_0|",
    "parameter_change": "sup over t of |theta - theta_0|, norm with the inverse learning rates",
    "trace_change": "mean over networks of tr H / tr H_0 - 1 on the training inputs, at the end",
}


@dataclass(frozen=True)
class Level:
    """The modes of one degree: eigenvalue (exact where known), and what each number of samples learns of them."""

    degree: int
    multiplicity: int
    eigenvalue: float
    exact: str | None
    learnability: list[float]
    mse: list[float]
    measured: list[float]
    measured_error: list[float]
    measured_mse: list[float]
    measured_mse_error: list[float]


@dataclass(frozen=True)
class Learnability(TableResult):
    """Eigenvalues of a network's kernel and the learnability of each level of modes."""

    activation: str
    space: str
    kernel: str
    depth: int
    dimension: int
    C_b: float
    C_W: float
    samples: tuple[int, ...]
    ridge: float
    kappa: tuple[float, ...]
    noise: float
    target: tuple[float, ...] | None
    target_mse: list[float] | None
    target_measured: list[float] | None
    target_measured_error: list[float] | None
    eigenvalue_error: float | None
    tail: float | None
    levels: tuple[Level, ...]
    assumption: str
    warnings: tuple[str, ...]
    files: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lists = {name: list(getattr(self, name)) for name in ("samples", "kappa", "warnings")}
        lists |= {} if self.target is None else {"target": list(self.target)}
        return found | lists | {"levels": [asdict(level) for level in self.levels], "files": dict(self.files)}

    def rows(self) -> list[dict[str, object]]:
        """One row a level and number of samples."""
        found = []
        for level in self.levels:
            for k, n in enumerate(self.samples):
                columns = ("measured", "measured_error", "measured_mse", "measured_mse_error")
                measured = {key: getattr(level, key)[k] if level.measured else "" for key in columns}
                own = {"degree": level.degree, "multiplicity": level.multiplicity, "eigenvalue": level.eigenvalue}
                values = {"samples": n, "learnability": level.learnability[k], "mse": level.mse[k]}
                found.append({**own, **values, **measured})
        return found

    def blocks(self) -> tuple[Block, ...]:
        head = ("degree", "modes", "eigenvalue", *(Words(equal(sp.Symbol("n"), n)) for n in self.samples))
        rows = []
        for level in self.levels:
            shares = (f"{value:.4f}" for value in level.learnability)
            rows.append((str(level.degree), str(level.multiplicity), Words(small(level.eigenvalue, 5)), *shares))
        title = f"{self.kernel} of {self.activation}, depth {self.depth}, on the {self.space} ({self.dimension})"
        return (Table(head, tuple(rows), f"{title}: mean learnability of a mode."),)


def learnability(
    activation: str,
    depth: int = 4,
    dimension: int = 8,
    space: str = "hypercube",
    kernel: str = "Theta",
    samples: str | int | Iterable[int] = "8,16,32,64,128",
    ridge: float = 0.0,
    noise: float = 0.0,
    target: str | Iterable[float] | None = None,
    trials: int | None = None,
    degree: int = 12,
    C_b: float = 0.1,
    C_W: float | None = None,
    lambda_b: float | None = None,
    lambda_W: float | None = None,
    seed: int = 0,
    output: str | Path | None = None,
) -> Learnability:
    """Eigenvalues of a network's NTK (or K) and the mean learnability of each mode against the number of samples.

    `target` lists the power of a function in the modes of degree 0, 1, 2, ...: its test error is given too, with
    labels whose noise has the variance `noise`. A hypercube beyond 12 dimensions is treated by its levels up to
    `degree`.

    The prediction rests on an assumption. Unless `trials` says otherwise (0 for none), regression on sampled training
    sets is measured beside it on discrete spaces of moderate size, and `warnings` says where the two differ.
    """
    question = sorted((name, repr(value)) for name, value in locals().items() if name != "output")
    activation = named(activation)
    numbers = tuple(sorted(set(whole_numbers(samples, "--samples"))))
    if space not in SPACES:
        raise DeriveError(f"The space is one of {', '.join(SPACES)}, not {space!r}.")
    weight_variance = critical_initialization(activation)[1] if C_W is None else C_W
    large = space == "hypercube" and dimension > LARGEST_HELD
    if trials and (space == "sphere" or large):
        raise DeriveError("--trials draws from a discrete space: choose the circle or a hypercube up to 12 dimensions.")
    powers = None if target is None else decimals(target, "--target")
    if powers is not None and (min(powers) < 0 or not sum(powers) > 0):
        raise DeriveError("--target lists powers of degree 0, 1, 2, ...: numbers from 0 on, not all of them 0.")
    import numpy as np

    from numeric import flow
    from numeric.given import finite
    from numeric.spectra.eigensystem import circle, hypercube, hypercube_levels
    from numeric.spectra.judged import ASSUMPTION, LARGEST_SPACE, TRIALS, disagreements
    from numeric.spectra.network import network_kernel
    from numeric.spectra.sampled import measure_learnability
    from numeric.spectra.selfconsistent import learnability as predict_learnability
    from numeric.spectra.sphere import sphere_eigenvalues
    from numeric.studies.figures import learnability_figure

    finite(noise, "The noise", least=0)
    function = network_kernel(
        activation, depth, kernel, C_b=C_b, C_W=weight_variance, lambda_b=lambda_b, lambda_W=lambda_W
    )
    tail, error, discrete = None, None, None
    exact: list[str | None] = []
    if space == "sphere":
        spectrum = sphere_eigenvalues(function, dimension, degree)
        eigenvalues, counts, tail, error = spectrum.eigenvalues, spectrum.multiplicities, spectrum.tail, spectrum.error
        degrees = np.arange(degree + 1)
        own = flow(activation, [[1.0]], depth, C_b=C_b, C_W=weight_variance, lambda_b=lambda_b, lambda_W=lambda_W)
        exact = _exact_eigenvalues(activation, depth, kernel, own.parameters, dimension, degree)
    elif large:
        levels_only = hypercube_levels(function, dimension, degree)
        eigenvalues, counts = levels_only.eigenvalues, levels_only.multiplicities
        tail, error, degrees = levels_only.tail, levels_only.error, np.arange(len(eigenvalues))
    else:
        discrete = hypercube(function, dimension) if space == "hypercube" else circle(function, dimension)
        degrees, first, count = np.unique(discrete.levels, return_index=True, return_counts=True)
        eigenvalues, counts = discrete.eigenvalues[first], count.astype(float)
        size = discrete.size
        numbers = tuple(n for n in numbers if n <= size)
        if not numbers:
            raise DeriveError(f"There are only {size} points: --samples must not exceed that.")
    predictions = [predict_learnability(eigenvalues, n, ridge, counts, tail) for n in numbers]
    weights = None
    if powers is not None:
        if len(powers) > len(degrees):
            raise DeriveError(f"There are {len(degrees)} degrees here: --target has {len(powers)} numbers.")
        weights = np.sqrt([*powers, *[0.0] * (len(degrees) - len(powers))])
    measured = []
    warnings: list[str] = []
    if trials is None and discrete is not None and discrete.size <= LARGEST_SPACE:
        trials = TRIALS
    if trials and discrete is not None:
        values = None if weights is None else (weights / np.sqrt(counts))[discrete.levels] @ discrete.eigenfunctions
        measured = [
            measure_learnability(discrete, n, trials, ridge, values, noise, seed, average_levels=True) for n in numbers
        ]
        warnings = [str(found) for found in disagreements(degrees.tolist(), predictions, measured)]
    else:
        warnings = ["Not measured here: whether the assumption holds is not known."]
    levels = tuple(
        Level(
            int(level),
            int(counts[k]),
            float(eigenvalues[k]),
            exact[k] if exact else None,
            [float(p.learnabilities[k]) for p in predictions],
            [p.mse(np.eye(len(degrees))[k]) for p in predictions],
            [float(m.learnabilities[k]) for m in measured],
            [float(m.learnabilities_error[k]) for m in measured],
            [float(m.mode_mse[k]) for m in measured],
            [float(m.mode_mse_error[k]) for m in measured],
        )
        for k, level in enumerate(degrees)
    )
    found = Learnability(
        activation,
        space,
        kernel,
        depth,
        dimension,
        C_b,
        weight_variance,
        numbers,
        ridge,
        tuple(p.kappa for p in predictions),
        noise,
        powers,
        None if weights is None else [p.mse(weights, noise) for p in predictions],
        [float(m.mse) for m in measured if m.mse is not None] or None,
        [float(m.mse_error) for m in measured if m.mse_error is not None] or None,
        error,
        tail,
        levels,
        ASSUMPTION,
        tuple(warnings),
        {},
    )
    if output is None:
        return found
    table = Path(output) / f"learnability-{space}-depth-{depth}-{file_stem(activation, question)}.csv"
    figure = table.with_suffix(".png")
    found.to_csv(table)
    shown = np.unique(np.geomspace(max(1, numbers[0] // 2), numbers[-1], 60).astype(int))
    curves = [predict_learnability(eigenvalues, int(n), ridge, counts, tail) for n in shown]
    title = (
        f"{kernel} of {activation}, depth {depth}, C_b = {C_b:g}, C_W = {weight_variance:.4g}, {space} ({dimension})"
    )
    learnability_figure(degrees, curves, measured, title + (f", ridge {ridge:g}" if ridge else ""), figure)
    return replace(found, files={"csv": str(table), "figure": str(figure)})


def _exact_eigenvalues(
    activation: str, depth: int, kernel: str, parameters: Parameters, dimension: int, degree: int
) -> list[str | None]:
    """Eigenvalues on the sphere in closed form; empty where there is none."""
    names = ("C_b", "C_W", "lambda_b", "lambda_W")
    hyper = {name: [float(x) for x in getattr(parameters, name)] for name in names}
    if depth != 2 or any(first != second for first, second in hyper.values()):
        return []
    from numeric.spectra.sphere import ANGLE, exact_eigenvalue

    closed = two_layer_kernel(activation, kernel, {name: own[0] for name, own in hyper.items()}, ANGLE)
    if closed is None:
        return []
    return [str(exact_eigenvalue(closed, dimension, k)) if k <= LONGEST_EXACT else None for k in range(degree + 1)]


@dataclass(frozen=True)
class Quantity:
    """One measured quantity against width, and the power of the width with which it falls."""

    meaning: str
    widths: list[int]
    means: list[float]
    errors: list[float]
    power: float | None
    power_error: float | None
    correction: float | None
    expected: list[float | None]


@dataclass(frozen=True)
class LinearizationStudy(TableResult):
    """Trained networks against their linearization, over widths."""

    activation: str
    depth: int
    networks: int
    kink: bool
    quantities: Mapping[str, Quantity]
    files: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        return {
            "activation": self.activation,
            "depth": self.depth,
            "networks": self.networks,
            "kink": self.kink,
            "quantities": {name: asdict(own) for name, own in self.quantities.items()},
            "files": dict(self.files),
        }

    def rows(self) -> list[dict[str, object]]:
        """One row a width and quantity."""
        return [
            {"width": n, "quantity": name, "mean": own.means[k], "error": own.errors[k]}
            for name, own in self.quantities.items()
            for k, n in enumerate(own.widths)
        ]

    def blocks(self) -> tuple[Block, ...]:
        own = list(self.quantities.values())
        rows = [(str(n), *(f"{q.means[k]:.3g} ± {q.errors[k]:.1g}" for q in own)) for k, n in enumerate(own[0].widths)]
        powers = ("–" if q.power is None else f"{q.power:.2f} ± {q.power_error:.2f}" for q in own)
        table = Table(("width", *self.quantities), (*rows, ("power", *powers)))
        return (table, *(Text(f"{name}: {q.meaning}") for name, q in self.quantities.items()))


def ntk_study(
    activation: str,
    widths: str | Iterable[int] = "32,64,128,256",
    depth: int = 3,
    networks: int = 96,
    steps: int = 120,
    rate: float = 0.4,
    loss: str = "mse",
    C_b: float = 0.1,
    C_W: float | None = None,
    seed: int = 0,
    output: str | Path = "ntk-study",
    progress: Callable[[int, int, int], None] | None = None,
) -> LinearizationStudy:
    """Train networks of several widths: f against f_lin, and how far the NTK and the parameters move.

    `loss` is "mse" or "cross-entropy" (two classes, one logit). Finished networks are kept in the folder `output`; the
    same call goes on where it stopped. `progress` is called with the networks trained so far, how many there will be,
    and the width in work.
    """
    activation = named(activation)
    chosen = tuple(sorted(set(whole_numbers(widths, "--widths"))))
    weight_variance = critical_initialization(activation)[1] if C_W is None else C_W
    from numeric.studies.figures import study_figure
    from numeric.studies.linearization import Study, run, summarize
    from numeric.studies.record import Record

    study = Study(
        activation,
        chosen,
        depth,
        networks,
        steps,
        rate,
        C_b=float(C_b),
        C_W=float(weight_variance),
        seed=seed,
        loss=loss,
    )
    record = Record(study, Path(output))
    total = len(study.widths) * study.networks
    for rows in run(study, record.done):
        record.add(rows)
        if progress is not None:
            progress(len(record.wanted), total, rows[0].width)
    summaries = summarize(record.wanted, next_order=not study.has_kink)
    study_figure(summaries, f"{activation}, depth {study.depth}, {loss}", record.figure)
    quantities = {}
    for name, (low, high) in study.expected().items():
        s = summaries[name]
        quantities[name] = Quantity(
            MEANING[name],
            s.widths.tolist(),
            s.means.tolist(),
            s.errors.tolist(),
            s.fit.power if s.fit else None,
            s.fit.power_error if s.fit else None,
            s.fit.correction if s.fit else None,
            [None if math.isinf(low) else low, high],
        )
    files = {"csv": str(record.csv), "settings": str(record.settings), "figure": str(record.figure)}
    return LinearizationStudy(activation, study.depth, study.networks, study.has_kink, quantities, files)
