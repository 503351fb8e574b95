"""What a user asks for: `predict(flow, y, train, algorithm, time=t)`, the ensemble of trained networks on test inputs.

Infinite width is exact to rounding; the finite-width mean and covariance hold the order 1/n (truncation error: the
next order, as `numeric.ensemble` shows on real networks). Each is computed when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import jax
import numpy as np
from numpy.typing import ArrayLike

from derive.tables import Tabular
from numeric.errors import NumericError
from numeric.evaluation.results import Flow
from numeric.evaluation.validity import first_order
from numeric.generated.training import PARTS
from numeric.given import stays_finite
from numeric.shapes import Covariance, Means, OutputCovariance
from numeric.trained.algorithms import Algorithm, GradientFlow
from numeric.trained.error import FINITE, INFINITE, UnreliablePrediction, checked, prediction_error
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import KernelPrediction, kernel_prediction
from numeric.trained.penalized import with_ridge
from numeric.trained.projectors import Projectors
from numeric.trained.signals import Times, check_time
from numeric.trained.stepwise import StepwiseFinite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from numeric.trained.sampled.prediction import SampledPrediction

METHODS = ("exact", "sampled", "auto")


def overflow() -> AbstractContextManager[object]:
    """Training that diverges is told in a sentence (`stays_finite`), not by NumPy's warnings before it."""
    return np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class Prediction(Tabular):
    """Mean and covariance of trained networks on the test inputs; `parts` adds up to `mean`.

    Means have shape (N_test,) or (N_test, n_L), as y does. `covariance_infinite` is (N_test, N_test), the same for
    every output; `covariance` has shape (N_test, N_test) for one output, else (n_L, n_L, N_test, N_test). An array of
    times adds a leading axis to all of them; without a time they are those of the end of training.
    """

    flow: Flow
    kernel: KernelPrediction
    algorithm: Algorithm
    test: tuple[int, ...]
    time: Times | None = None
    rcond: float | None = None

    @cached_property
    def error(self) -> dict[str, float]:
        """{"mean": ..., "covariance": ...}: the largest numerical error over the test inputs, in the answer's units.

        The flow's errors (`f.error`) carried through training: see `numeric.trained.error`. It is no bound, and says
        nothing of what the theory leaves out (the next order in 1/n).
        """
        finite = FINITE if "U" in getattr(self.flow, "names", ()) else ()
        return prediction_error(self, (*INFINITE, *finite))

    def plain(self, name: str) -> np.ndarray:
        """`mean`, `covariance` or one of the infinite ones, without a look at its error."""
        if name == "mean":
            return np.asarray(sum(self.parts.values()))
        return self._covariance() if name == "covariance" else np.asarray(getattr(self, name))

    @property
    def width(self) -> float:
        """n_{L-1}, the last hidden layer's width: what the finite-width tensors of the output layer are divided by."""
        return float(self.flow.width)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words; warnings where the order 1/n is not small or its digits are lost.

        The mean is looked at; the covariance only if it has been asked for.
        """
        times = "" if self.time is None else ", ".join(f"{t:g}" for t in np.ravel(self.time))
        until = f" until {'time' if self.algorithm.continuous else 'step'} {times}" if times else ""
        penalty = f" and a ridge of {self.kernel.ridge:g}" if self.kernel.ridge else ""
        notes = [f"trained with {self.algorithm}{penalty}{until}"]
        if self.flow.widths[-1] is not None:
            notes.append(f"finite width: first order in 1/n, n = {self.width:g}")
        if self.kernel.modes.dropped:
            notes.append(f"{self.kernel.modes.dropped} modes of the training NTK were left untrained (rcond)")
        return (*notes, *self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where an assumption behind the order 1/n fails; the covariance's counts once it has been asked for."""
        if not self.has_finite_width:
            return ()
        try:
            found = first_order("the mean", self.correction_size, self.width)
        except UnreliablePrediction as refusal:
            found = (f"Warning: {refusal}",)
        if "covariance" in self.__dict__:
            found += first_order("the covariance", self.covariance_correction_size, self.width)
        return found

    @cached_property
    def mean_infinite(self) -> Means:
        """(10.40) on the test inputs."""
        self._check()
        with overflow():
            return stays_finite(self.kernel.mean(self.algorithm, self.time, inputs=self.test), "The mean prediction")

    @cached_property
    def covariance_infinite(self) -> Covariance:
        """(10.41) on the test inputs."""
        self._check()
        with overflow():
            return stays_finite(self.kernel.covariance(self.algorithm, self.time, inputs=self.test), "The covariance")

    def _check(self) -> None:
        """Training that does not converge has no end to predict, at infinite width as well."""
        if self.time is None and not self._batches:
            self.algorithm.check(self.kernel.modes.h)

    @property
    def _batches(self) -> bool:
        return self.algorithm.masks(len(self.kernel.train)) is not None

    @cached_property
    def finite(self) -> FiniteWidth | StepwiseFinite:
        """The 1/n corrections on all inputs."""
        return self._at(self.time)

    def _at(self, t: Times | None) -> FiniteWidth | StepwiseFinite:
        if self._batches:
            return StepwiseFinite(self.flow, self.kernel, self.algorithm, t)
        self._check()
        ridge = self.kernel.ridge  # part of the kernel's h; in the projectors it is part of the algorithm
        rule, h = with_ridge(self.algorithm, ridge), self.kernel.modes.h - ridge
        return FiniteWidth(self.flow, self.kernel, Projectors(rule, h, t))

    def _each(self, ask: Callable[[FiniteWidth | StepwiseFinite], np.ndarray]) -> np.ndarray:
        """An answer at the time, or at each of several."""
        if isinstance(self.time, np.ndarray) and not self._batches:
            return np.stack([ask(self._at(float(t))) for t in self.time])
        return ask(self.finite)

    @cached_property
    def parts(self) -> dict[str, Means]:
        """The mean by origin: the infinite-width kernel prediction and the five corrections of order 1/n."""
        parts = {"NTK": self.mean_infinite}
        with overflow():
            corrections = self.finite.mean_parts
        for name, value in corrections.items():
            own = np.swapaxes(value[..., self.test], -1, -2) / self.width
            parts[name] = stays_finite(own.reshape(self.mean_infinite.shape), f"The correction {name}")
        return {name: parts[name] for name in PARTS}

    @cached_property
    def mean(self) -> Means:
        """(infinity.160) with the NLO mean of the NTK, on the test inputs."""
        return checked(self, "mean", stays_finite(self.plain("mean"), "The mean prediction"))

    @cached_property
    def correction_size(self) -> float:
        """The largest 1/n correction of the mean as a share of the prediction's size (means and spread together)."""
        if not self.test:
            return 0.0
        variance = np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1)
        size = np.sqrt(np.mean(self.mean_infinite**2) + np.mean(np.maximum(variance, 0.0)))
        return float(np.max(np.abs(self.mean - self.mean_infinite)) / size) if size > 0 else 0.0

    @cached_property
    def covariance_correction_size(self) -> float:
        """The largest 1/n correction of a variance as a share of the largest variance of its time and output."""
        variance = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        infinite = np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1)
        if self.kernel.y.ndim > 1:
            variance = np.moveaxis(np.diagonal(variance, axis1=-3, axis2=-2), -1, 0)
        size = float(np.max(infinite, initial=0.0))
        return float(np.max(np.abs(variance - infinite))) / size if size > 0 else 0.0

    @cached_property
    def covariance(self) -> OutputCovariance:
        """(infinity.166) to order 1/n on the test inputs."""
        return checked(self, "covariance", self._covariance())

    def _covariance(self) -> np.ndarray:
        outputs = self.finite.outputs
        with overflow():
            correction = self._each(lambda finite: finite.covariance()[..., self.test, :][..., self.test]) / self.width
        infinite = self.covariance_infinite[..., None, None, :, :]
        total = np.eye(outputs)[:, :, None, None] * infinite + correction
        return stays_finite(total[..., 0, 0, :, :] if self.kernel.y.ndim == 1 else total, "The covariance")

    @property
    def variance_change(self) -> Means:
        """What order 1/n adds to the variances of the test outputs; a coefficient, whatever it is at this width."""
        found = np.diagonal(self.plain("covariance"), axis1=-2, axis2=-1)
        infinite = np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1)
        if self.kernel.y.ndim == 1:
            return found - infinite
        return np.diagonal(found, axis1=-3, axis2=-2) - infinite[..., None]

    @cached_property
    def ntk_change(self) -> OutputCovariance:
        """Representation learning: E[H(t)] - E[H(0)] to order 1/n on all inputs of the flow, training ones included.

        (N, N) for one output, (n_L, n_L, N, N) for several: with more than one the mean NTK mixes them.
        """
        return self._ntk(lambda finite: np.sum(list(finite.ntk_change().values()), axis=0))

    def _ntk(self, ask: Callable[[FiniteWidth | StepwiseFinite], np.ndarray]) -> np.ndarray:
        with overflow():
            change = stays_finite(self._each(ask) / self.width, "The NTK's change")
        return change[..., 0, 0, :, :] if self.kernel.y.ndim == 1 else change

    @property
    def has_finite_width(self) -> bool:
        """Whether the order 1/n can be had: a width, all tensors in the flow."""
        return self.flow.widths[-1] is not None and not {"R", "S", "T", "U"} - set(self.flow.names)

    def plot(self, axes: Axes | None = None, output: int = 0, finite: bool | None = None) -> Axes:
        """Means with the ensemble's spread on the test inputs, or against the times, on Matplotlib axes."""
        from numeric.trained.picture import draw_prediction

        return draw_prediction(self, axes, output, finite)

    def __repr__(self) -> str:
        sizes = f"{len(self.kernel.train)} training and {len(self.test)} test inputs"
        return f"Prediction({self.flow!r}, {sizes}: {'; '.join(self.notes[:1])})"

    def rows(self) -> list[dict[str, float | int]]:
        """One row a test input and output (and time, if there are several): means, standard deviation, 1/n if known."""
        outputs = 1 if self.kernel.y.ndim == 1 else self.kernel.y.shape[1]
        columns = {"mean_infinite": self.mean_infinite}
        if self.has_finite_width:
            columns = {"mean": self.mean, **columns}
        times = [{}] if self.time is None else [{"time": float(t)} for t in np.ravel(self.time)]
        shape = len(times), len(self.test)
        table = {name: np.reshape(value, (*shape, outputs)) for name, value in columns.items()}
        variance = np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1).reshape(shape)
        return [
            {
                **time,
                "input": place,
                "output": k,
                **{name: float(value[when, row, k]) for name, value in table.items()},
                "standard_deviation_infinite": float(np.sqrt(max(variance[when, row], 0.0))),
            }
            for when, time in enumerate(times)
            for row, place in enumerate(self.test)
            for k in range(outputs)
        ]


@overload
def predict(
    flow: Flow,
    y: ArrayLike,
    train: Sequence[int],
    algorithm: Algorithm | None = None,
    *,
    time: ArrayLike | None = None,
    rcond: float | None = None,
    ridge: float = 0.0,
    method: Literal["exact"] = "exact",
) -> Prediction: ...
@overload
def predict(
    flow: Flow,
    y: ArrayLike,
    train: Sequence[int],
    algorithm: Algorithm | None = None,
    *,
    time: ArrayLike | None = None,
    rcond: float | None = None,
    ridge: float = 0.0,
    method: Literal["sampled"],
    relative_error: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> SampledPrediction: ...
@overload
def predict(
    flow: Flow,
    y: ArrayLike,
    train: Sequence[int],
    algorithm: Algorithm | None = None,
    *,
    time: ArrayLike | None = None,
    rcond: float | None = None,
    ridge: float = 0.0,
    method: str,
    relative_error: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Prediction | SampledPrediction: ...
def predict(
    flow: Flow,
    y: ArrayLike,
    train: Sequence[int],
    algorithm: Algorithm | None = None,
    *,
    time: ArrayLike | None = None,
    rcond: float | None = None,
    ridge: float = 0.0,
    method: str = "exact",
    relative_error: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Prediction | SampledPrediction:
    """Predict the ensemble of networks trained on the inputs `train` of the flow with targets y (MSE loss).

    `time` is a number of steps (a time of a flow) or a list of them; None is the end of training.

    `y` has shape (N_train,) or (N_train, n_L); predictions are for all inputs of the flow that are not in `train`, in
    their order. Without `algorithm`, gradient flow. A singular training NTK raises `SingularKernel`; `rcond` (a
    number like 1e-10) leaves modes below rcond times the largest eigenvalue untrained instead. A `ridge` adds the
    penalty `(ridge/2) |θ - θ_0|²` to the loss, the norm with the inverse learning rates: kernel ridge regression at
    infinite width. Algorithms with a Newton tensor have none.

    >>> from numeric import flow
    >>> f = flow("tanh", [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]], depth=2)  # infinite width
    >>> p = predict(f, [1.0, -1.0], train=[0, 1])
    >>> [round(float(x), 6) for x in p.mean_infinite], p.covariance_infinite.shape
    ([0.251687], (1, 1))

    With a width, and so all tensors in the flow, p.mean, p.covariance and p.parts hold the order 1/n.

    `method="sampled"` needs K and Theta of all layers only, flow(..., width=n, tensors="Theta"): the order 1/n of the
    mean is then estimated in memory N² (`numeric.trained.sampled`), until `relative_error` (0.05) of the correction or
    `seconds` are reached (without either two seconds for a hundred inputs, as N² beyond). `seed`, `batch`, `dtype`,
    `progress`, `checkpoint` (a file to resume from) and `devices` are its other options. "auto" takes the tensors
    where the flow has them, and samples where it has not.
    """
    if method not in METHODS:
        raise NumericError(f"method is one of {', '.join(METHODS)}, not {method!r}.")
    known = not {"R", "S", "T", "U"} - set(getattr(flow, "names", ()))
    sampled = method == "sampled" or (method == "auto" and not known)
    given = {
        "relative_error": relative_error,
        "seconds": seconds,
        "seed": seed,
        "batch": batch,
        "dtype": dtype,
        "progress": progress,
        "checkpoint": checkpoint,
        "devices": devices,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if options and method == "exact":
        raise NumericError(f"{next(iter(options))} is an option of sampled predictions: add method='sampled'.")
    kernel = kernel_prediction(np.asarray(flow.Theta), np.asarray(flow.K), y, train, rcond, ridge)
    chosen = set(kernel.train)
    test = tuple(k for k in range(len(kernel.theta)) if k not in chosen)
    algorithm = algorithm or GradientFlow()
    if algorithm.ridge:
        raise NumericError(f"Here a ridge is an argument: predict(..., ridge={algorithm.ridge:g}).")
    if sampled:
        from numeric.trained.sampled.prediction import sampled_prediction

        return sampled_prediction(flow, kernel, algorithm, test, check_time(algorithm, time), options)
    return Prediction(flow, kernel, algorithm, test, check_time(algorithm, time), rcond)
