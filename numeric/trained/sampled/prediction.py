"""`predict(..., method="sampled")`: the mean at order 1/n for a data set, with standard errors instead of N⁴ tensors.

Infinite width and H1 are exact; the other parts are means over draws. Each is computed when first asked for.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.errors import NumericError
from numeric.evaluation.validity import first_order
from numeric.generated.training import FIRST, MOMENTS, PARTS
from numeric.given import a_seed, finite, stays_finite, whole
from numeric.runtime import one_thread
from numeric.trained.algorithms import Algorithm
from numeric.trained.error import UnreliablePrediction
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import KernelPrediction
from numeric.trained.penalized import with_ridge
from numeric.trained.projectors import Projectors, check_modes
from numeric.trained.sampled.advice import advice
from numeric.trained.sampled.clock import Clock
from numeric.trained.sampled.controls import controls_of
from numeric.trained.sampled.estimate import TOTAL, Program, Sampler, chosen_batch, known_devices, part_names
from numeric.trained.sampled.run import TIME_OVER, Goal, Outcome, OutOfRange, identity_of, run
from numeric.trained.sampled.setting import refuse, still_moments, theory_of
from numeric.trained.sampled.spread import SpreadProgram, SpreadSampler, exact_part
from numeric.trained.sampled.times import Evolution, mixture
from numeric.trained.sampled.two_labels import first_order_kernels
from numeric.trained.signals import Times

SINGLE = 1e4
"""Up to this condition number draws are made in single precision; sums are double in any case."""
ON_HOST = 256
"""Inputs up to which draws are made by NumPy: no program is compiled, which takes longer than thousands of draws."""
PRECISE = 0.05
"""The relative error that draws go on for where no other is asked for."""
QUICK, PATIENT = 2.0, 600.0
"""Seconds of draws for a hundred inputs where nothing is asked for, in proportion to N² from there on; at most."""
HOPELESS = 10.0
"""A correction so many times the prediction's size is refused: first order in 1/n says nothing there."""


@dataclass(frozen=True)
class Options:
    """How to sample: the error to reach, the seconds to spend, and what does not change the result's distribution.

    Without either, 5 % or as many draws as two seconds give for a hundred inputs, whatever comes first.
    """

    relative_error: float | None = None
    seconds: float | None = None
    seed: int = 0
    batch: int | None = None
    dtype: str = "auto"
    progress: bool | None = None
    checkpoint: str | Path | None = None
    devices: Sequence[jax.Device] | None = None

    def __post_init__(self) -> None:
        if self.relative_error is not None:
            finite(self.relative_error, "relative_error", above=0)
        if self.seconds is not None:
            finite(self.seconds, "seconds", above=0)
        a_seed(self.seed)
        if self.batch is not None:
            whole(self.batch, "batch", least=2)
        if self.dtype not in ("auto", "float32", "float64"):
            raise NumericError(f"dtype is auto, float32 or float64, not {self.dtype!r}.")

    def budget(self, inputs: int) -> float:
        """Seconds of draws."""
        if self.seconds is not None:
            return self.seconds
        quick = min(QUICK * max(1.0, inputs / 100) ** 2, PATIENT)
        return quick if self.relative_error is None else PATIENT


@dataclass(frozen=True)
class SampledPrediction:
    """Trained networks on the test inputs: `mean` by `parts` at order 1/n, and `standard_error` of each.

    Shapes are those of `Prediction`: (N_test,) or (N_test, n_L), an array of times in front.
    """

    flow: Any
    kernel: KernelPrediction
    algorithm: Algorithm
    test: tuple[int, ...]
    time: Times | None
    options: Options

    @property
    def width(self) -> float:
        return float(self.flow.width)

    @cached_property
    def mean_infinite(self) -> np.ndarray:
        """(10.40) on the test inputs."""
        self.check()
        return stays_finite(self.kernel.mean(self.algorithm, self.time, inputs=self.test), "The mean prediction")

    @cached_property
    def covariance_infinite(self) -> np.ndarray:
        """(10.41) on the test inputs."""
        self.check()
        return stays_finite(self.kernel.covariance(self.algorithm, self.time, inputs=self.test), "The covariance")

    def check(self) -> None:
        """Refuse what has no sampled prediction, before any work."""
        refuse(self.flow)
        check_modes(self.kernel.modes.h)
        if self.algorithm.masks(len(self.kernel.train)) is not None:
            raise NumericError("Sampled predictions are not for a schedule of batches, whose steps share no modes.")
        if self.kernel.ridge and self.algorithm.preconditions:
            raise NumericError(
                f"{self.algorithm} has no ridge here: take gradient flow, descent, momentum, a schedule."
            )
        if self.time is None:
            self.algorithm.check(self.kernel.modes.h)

    @cached_property
    def _dtype(self) -> Any:
        """Single precision where rounding, amplified by the modes at worst, is far below what draws leave."""
        if self.options.dtype == "auto":
            h = self.kernel.modes.h
            return jnp.float32 if h[-1] < SINGLE * h[0] else jnp.float64
        return jnp.dtype(self.options.dtype).type

    @property
    def _precise(self) -> float:
        return self.options.relative_error or PRECISE

    @property
    def _seconds(self) -> float:
        return self.options.budget(len(self.kernel.theta))

    @property
    def _on_host(self) -> bool:
        return self.options.devices is None and len(self.kernel.theta) <= ON_HOST

    @cached_property
    def _theory(self) -> Any:
        with one_thread() if self._on_host else nullcontext():
            return theory_of(self.flow, self.kernel, self._dtype)

    @cached_property
    def _kernels(self) -> dict[str, np.ndarray]:
        """G1 and H1 of the output."""
        with one_thread() if self._on_host else nullcontext():
            return first_order_kernels(self.flow)

    @property
    def _times(self) -> list[float | None]:
        return [None] if self.time is None else [float(t) for t in np.ravel(self.time)]

    def sampler(self, time: float | None, kernel: KernelPrediction | None = None, controlled: bool = True) -> Sampler:
        """Batches at one time; another `kernel` has other modes of the same inputs (a ridge, say)."""
        own = kernel or self.kernel
        evolution = Evolution(self.algorithm, own.modes.h, own.ridge)
        ahead = own.evolution(self.algorithm, time, inputs=self.test)
        response = own.theta[np.ix_(self.test, own.train)] @ own.modes.U
        count = self.options.batch or chosen_batch(len(own.theta), len(self._theory.y))
        own_clock = Clock(evolution, mixture(evolution), time)
        controls = None
        if controlled:
            learnt = own_clock.now(1, np.random.default_rng(0)).position * (
                own.y.reshape(len(own.train), -1).T @ own.modes.U
            )
            vectors = learnt @ np.asarray(self._theory.U, dtype=float).T
            controls = controls_of(self._theory, ahead, vectors, len(part_names()))
        arrays = (jnp.asarray(ahead, self._dtype), jnp.asarray(response, self._dtype))
        still = still_moments(self._theory, own.modes.h) if time is None else None
        functions = self.flow.activation.FUNCTIONS if self._on_host else None
        return Sampler(Program(self._theory, *arrays, count, still, controls), own_clock, self.options.seed, functions)

    def _exact(self, time: float | None) -> FiniteWidth:
        """What is exact at order 1/n: the shares of H1 and G1."""
        t = None if self.algorithm.own_ntk and time is not None and time >= 1 else time
        rule, h = with_ridge(self.algorithm, self.kernel.ridge), self.kernel.modes.h - self.kernel.ridge
        return FiniteWidth(SimpleNamespace(**self._kernels), self.kernel, Projectors(rule, h, t))

    def _first(self, time: float | None) -> np.ndarray:
        """n × H1's part of the mean, exact: (n_L, N_test)."""
        exact = self._exact(time)
        (moment,) = MOMENTS[FIRST.kinds]
        return exact.first(moment(exact.y, None, None, None))[0][:, self.test]

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The runs, one for each time."""
        self.check()
        self._kernels, self._theory  # noqa: B018  (complaints before work; the larger of the two first)
        found = []
        times = self._times
        for k, time in enumerate(times):
            path = None if self.options.checkpoint is None else Path(self.options.checkpoint)
            if path is not None and len(times) > 1:
                path = path.with_name(f"{path.stem}-{k}{path.suffix}")
            goal = Goal(self._precise, self._seconds / len(times), self.options.progress, path)
            with np.errstate(over="ignore", invalid="ignore"):
                sampler = self.sampler(time)
            own = (self.kernel.theta, self.kernel.K, self.kernel.y, self.algorithm, time, self.options.seed)
            more = (self.test, self.kernel.ridge, sampler.program.count, np.dtype(self._dtype).name, self.flow.widths)
            path_taken = ("host",) if self._on_host else ()
            known = self._first(time)
            with np.errstate(over="ignore", invalid="ignore"):
                found.append(self._run(sampler, goal, known, identity_of(*own, *more, *path_taken)))
        return found

    def _run(self, sampler: Sampler, goal: Goal, known: np.ndarray, identity: bytes) -> Outcome:
        try:
            return run(sampler, goal, known, identity, known_devices(self.options.devices))
        except OutOfRange:
            self.algorithm.check(self.kernel.modes.h)  # training that diverges: how to make it converge
            raise

    @property
    def samples(self) -> int:
        """How many draws were made, all times together."""
        return sum(outcome.sums.samples for outcome in self.outcomes)

    @property
    def relative_error(self) -> float:
        """What was reached: standard error of the mean's correction over the correction, root mean squares."""
        return max(outcome.relative_error for outcome in self.outcomes)

    def _shaped(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """(n_L, N_test) at each time, as means are shaped."""
        stacked = np.swapaxes(np.stack(values), -1, -2) / self.width
        return stays_finite(stacked.reshape(self.mean_infinite.shape), "A correction of order 1/n")

    @cached_property
    def _estimates(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        both = [outcome.sums.estimate() for outcome in self.outcomes]
        mean, error = ({name: self._shaped([b[k][name] for b in both]) for name in part_names()} for k in range(2))
        return mean, error

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The mean by origin; `standard_error` has an entry for each."""
        found = {"NTK": self.mean_infinite, FIRST.part: self._shaped([self._first(t) for t in self._times])}
        found |= {name: value for name, value in self._estimates[0].items() if name != TOTAL}
        return {name: found[name] for name in PARTS}

    @cached_property
    def standard_error(self) -> dict[str, np.ndarray]:
        """Of "mean" and of every part; zero for what is exact."""
        zero = np.zeros_like(self.mean_infinite)
        return {TOTAL: self._estimates[1][TOTAL]} | {name: self._estimates[1].get(name, zero) for name in PARTS}

    @cached_property
    def correction_size(self) -> float:
        """The root mean square correction over the prediction's size (means and spread together)."""
        variance = np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1)
        size = np.sqrt(np.mean(self.mean_infinite**2) + np.mean(np.maximum(variance, 0.0)))
        correction = sum(value for name, value in self.parts.items() if name != "NTK")
        return float(np.sqrt(np.mean(np.square(correction))) / size) if size > 0 else 0.0

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean to order 1/n, or one sentence where the order 1/n is no correction."""
        if self.correction_size > HOPELESS:
            raise UnreliablePrediction(
                f"At width {self.width:g} the correction of order 1/n is {self.correction_size:.2g} times the "
                f"prediction itself, so that first order says nothing; {self.advice.remedy}."
            )
        return np.asarray(sum(self.parts.values()))

    @cached_property
    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The variance's correction and its standard error, as many batches as the mean took; shaped as means."""
        if self.algorithm.own_ntk and any(time is not None and 1 <= time < 2 for time in self._times):
            raise NumericError(f"Variances of {self.algorithm} are sampled at its end, not after its first step.")
        means, errors = [], []
        for time, outcome, (first, second) in zip(self._times, self.outcomes, self._spread_batches):
            samples = outcome.sums.count * len(first)
            mean, square = first.mean(axis=0), second.mean(axis=0)
            residual = self.kernel.evolution(self.algorithm, time, inputs=self.test)
            means.append(mean + exact_part(self._exact(time), residual, self.test))
            errors.append(np.sqrt(np.maximum(square - mean**2, 0.0) / max(samples - 1, 1)))
        return self._shaped(means), self._shaped(errors)

    @cached_property
    def _spread_batches(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each time n × the variance's correction and its square, means of batches: (B, n_L, N_test) each.

        As many as the mean took, or as the same time allows where none was asked for.
        """
        found, seconds = [], self._seconds / len(self._times) if self.options.seconds is None else np.inf
        for time, outcome in zip(self._times, self.outcomes):
            own = self.sampler(time, controlled=False)
            program = SpreadProgram(own.program.theory, own.program.ahead, own.program.response, own.program.count)
            batches = SpreadSampler(program, own.clock, self.options.seed, own.functions)
            sums: list[tuple[np.ndarray, np.ndarray]] = []
            start = clock.monotonic()
            for number in sorted(outcome.sums.batches):
                if len(sums) > 1 and clock.monotonic() - start > seconds:
                    break
                sums.append(batches.launch(number))
            first, second = (np.stack([pair[k] for pair in sums]) / own.program.count for k in range(2))
            found.append((first, second))
        return found

    @cached_property
    def variance_change(self) -> np.ndarray:
        """What order 1/n adds to the variances of the test outputs."""
        return self._spread[0]

    def standard_error_of(self, mean: np.ndarray, variance: np.ndarray | None = None) -> float:
        """Of Σ mean × the mean's correction + Σ variance × the variance's: from the batches, at one time.

        Both weights are shaped as means are. Test outputs share their draws, so that their errors do not add up by
        squares; mean and variance share some, so that theirs are added as they are.
        """
        (outcome,) = self.outcomes
        weight = np.reshape(mean, (len(self.test), -1)).T
        found = np.array([np.sum(weight * outcome.sums.batches[b][0][-1]) for b in sorted(outcome.sums.batches)])
        errors = [found / outcome.sums.count]
        if variance is not None:
            weight = np.reshape(variance, (len(self.test), -1)).T
            errors.append(np.einsum("bia,ia->b", self._spread_batches[0][0], weight))
        return float(sum(np.std(own, ddof=1) / np.sqrt(len(own)) for own in errors) / self.width)

    @cached_property
    def variance(self) -> np.ndarray:
        """The variances of the test outputs over networks to order 1/n; `variance_error` is their standard error."""
        infinite = np.maximum(np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1), 0.0)
        return self.variance_change + (infinite if self.kernel.y.ndim == 1 else infinite[..., None])

    @property
    def variance_error(self) -> np.ndarray:
        """The standard error of `variance`."""
        return self._spread[1]

    @cached_property
    def advice(self) -> Any:
        """Which modes carry the correction, and what would make it small."""
        return advice(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        until = "" if self.time is None else f" until {'time' if self.algorithm.continuous else 'step'} {self.time}"
        penalty = f" and a ridge of {self.kernel.ridge:g}" if self.kernel.ridge else ""
        reached = f"{100 * self.relative_error:.2g} % of the correction"
        notes = [
            f"trained with {self.algorithm}{until}{penalty}",
            f"finite width: first order in 1/n, n = {self.width:g}, sampled with {self.samples} draws, standard error "
            f"{reached}; {self.outcomes[-1].ended}",
        ]
        if self.outcomes[-1].ended == TIME_OVER and self.relative_error > self._precise:
            share = self.relative_error * self.correction_size
            notes.append(
                f"the draws' standard error is {100 * share:.1g} % of the prediction; four times the seconds halve it"
            )
        if self.kernel.modes.dropped:
            notes.append(f"{self.kernel.modes.dropped} modes of the training NTK were left untrained (rcond)")
        notes += first_order("the mean", self.correction_size, self.width)
        if self.correction_size > 0.1 and self.time is None:
            notes += [f"the correction is {self.correction_size:.2g} of the prediction", *self.advice.sentences]
        return tuple(notes)


def sampled_prediction(
    flow: Any,
    kernel: KernelPrediction,
    algorithm: Algorithm,
    test: tuple[int, ...],
    time: Times | None,
    options: Mapping[str, Any],
) -> SampledPrediction:
    """The prediction for the options of `predict` that were given."""
    if flow.widths[-1] is None:
        raise NumericError("A sampled prediction is of order 1/n: give the hidden layers' width, flow(..., width=...).")
    if not test:
        raise NumericError("There is no test input: give the flow inputs that are not in `train`.")
    found = SampledPrediction(flow, kernel, algorithm, test, time, Options(**options))
    found.check()
    return found
