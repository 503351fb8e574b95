"""`predict(..., method="sampled")`: the mean at order 1/n for a data set, with standard errors instead of N⁴ tensors.

Infinite width and H1 are exact; the other parts are means over draws. Each is computed when first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from numeric.trained.algorithms import Algorithm
from numeric.trained.error import UnreliablePrediction
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import KernelPrediction
from numeric.trained.penalized import with_ridge
from numeric.trained.projectors import Projectors
from numeric.trained.sampled.advice import advice
from numeric.trained.sampled.clock import Clock
from numeric.trained.sampled.controls import controls_of
from numeric.trained.sampled.estimate import TOTAL, Program, Sampler, chosen_batch, known_devices, part_names
from numeric.trained.sampled.run import Goal, Outcome, identity_of, run
from numeric.trained.sampled.setting import refuse, still_moments, theory_of
from numeric.trained.sampled.spread import SpreadProgram, SpreadSampler, exact_part
from numeric.trained.sampled.times import Evolution, mixture
from numeric.trained.sampled.two_labels import first_order_kernels
from numeric.trained.signals import Times

SINGLE = 1e4
"""Up to this condition number draws are made in single precision; sums are double in any case."""
HOPELESS = 10.0
"""A correction so many times the prediction's size is refused: first order in 1/n says nothing there."""


@dataclass(frozen=True)
class Options:
    """How to sample: the error to reach, the seconds to spend, and what does not change the result's distribution."""

    relative_error: float = 0.05
    seconds: float = 600.0
    seed: int = 0
    batch: int | None = None
    dtype: str = "auto"
    progress: bool | None = None
    checkpoint: str | Path | None = None
    devices: Sequence[jax.Device] | None = None

    def __post_init__(self) -> None:
        finite(self.relative_error, "relative_error", above=0)
        finite(self.seconds, "seconds", above=0)
        a_seed(self.seed)
        if self.batch is not None:
            whole(self.batch, "batch", least=2)
        if self.dtype not in ("auto", "float32", "float64"):
            raise NumericError(f"dtype is auto, float32 or float64, not {self.dtype!r}.")


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

    @cached_property
    def _theory(self) -> Any:
        return theory_of(self.flow, self.kernel, self._dtype)

    @cached_property
    def _kernels(self) -> dict[str, np.ndarray]:
        """G1 and H1 of the output."""
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
        clock = Clock(evolution, mixture(evolution), time)
        controls = None
        if controlled:
            learnt = clock.now(1, np.random.default_rng(0)).position * (
                own.y.reshape(len(own.train), -1).T @ own.modes.U
            )
            vectors = learnt @ np.asarray(self._theory.U, dtype=float).T
            controls = controls_of(self._theory, ahead, vectors, len(part_names()))
        arrays = (jnp.asarray(ahead, self._dtype), jnp.asarray(response, self._dtype))
        still = still_moments(self._theory, own.modes.h) if time is None else None
        return Sampler(Program(self._theory, *arrays, count, still, controls), clock, self.options.seed)

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
            goal = Goal(self.options.relative_error, self.options.seconds / len(times), self.options.progress, path)
            sampler = self.sampler(time)
            own = (self.kernel.theta, self.kernel.K, self.kernel.y, self.algorithm, time, self.options.seed)
            more = (self.test, self.kernel.ridge, sampler.program.count, np.dtype(self._dtype).name, self.flow.widths)
            known = self._first(time)
            found.append(run(sampler, goal, known, identity_of(*own, *more), known_devices(self.options.devices)))
        return found

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
        found = [self._spread_at(time, outcome) for time, outcome in zip(self._times, self.outcomes)]
        return self._shaped([mean for mean, _ in found]), self._shaped([error for _, error in found])

    def _spread_at(self, time: float | None, outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
        """n × the correction and its standard error, (n_L, N_test)."""
        own = self.sampler(time, controlled=False)
        program = SpreadProgram(own.program.theory, own.program.ahead, own.program.response, own.program.count)
        batches = SpreadSampler(program, own.clock, self.options.seed)
        sums = [batches.launch(number) for number in sorted(outcome.sums.batches)]
        samples = own.program.count * len(sums)
        mean, square = (np.sum([found[k] for found in sums], axis=0) / samples for k in range(2))
        error = np.sqrt(np.maximum(square - mean**2, 0.0) / max(samples - 1, 1))
        residual = self.kernel.evolution(self.algorithm, time, inputs=self.test)
        return mean + exact_part(self._exact(time), residual, self.test), error

    @cached_property
    def variance(self) -> np.ndarray:
        """The variances of the test outputs over networks to order 1/n; `variance_error` is their standard error."""
        infinite = np.maximum(np.diagonal(self.covariance_infinite, axis1=-2, axis2=-1), 0.0)
        return self._spread[0] + (infinite if self.kernel.y.ndim == 1 else infinite[..., None])

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
