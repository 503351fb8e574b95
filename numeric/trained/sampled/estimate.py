"""Means over draws with their standard errors: batches by number, so that any set of them can be had again.

A batch's randomness is a function of the seed and its number alone. Sums of batches are added up in the order of their
numbers: devices, processes and interruptions change when a batch is computed, not what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions
from numeric.generated.training import MEAN
from numeric.runtime import one_thread
from numeric.trained.sampled.clock import Clock
from numeric.trained.sampled.controls import Controls, Moments, fitted, moments
from numeric.trained.sampled.draws import Draw, draw, host_draw
from numeric.trained.sampled.forces import Forces
from numeric.trained.sampled.kept import kept, stacked
from numeric.trained.sampled.theory import Still, Theory
from numeric.trained.sampled.times import Moment, Weight

Array = jax.Array
FIRST_PILOT = 2**30
"""The number of the first batch that control variates are fitted on, beyond those of any run."""
PILOT, PILOT_DRAWS = 2, 128
"""At least so many batches and draws for that."""
TOTAL = "mean"
"""The name of the sum of all sampled parts."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["theory", "ahead", "response", "still", "controls"],
    meta_fields=["count"],
)
@dataclass(frozen=True)
class Program:
    """What one batch is computed with.

    `ahead` (tests, inputs) takes forces to the trained outputs of test inputs as if they had been there from the start;
    `response` (tests, modes) is Θ of the test inputs with the training modes, for forces that come later. `still` has
    moments of errors at rest, at the end of training. `controls` are control variates, if any.
    """

    theory: Theory
    ahead: Array
    response: Array
    count: int
    still: Still | None = None
    controls: Controls | None = None


@partial(jax.tree_util.register_dataclass, data_fields=["numbers", "table"], meta_fields=["places", "at_rest"])
@dataclass(frozen=True)
class Packed:
    """Weights of the contributions: numbers and factors on modes. Equal factors are one array: work is shared.

    `at_rest` are the contributions all of whose factors are 1/h.
    """

    numbers: tuple[Any, ...]
    table: tuple[Any, ...]
    places: tuple[tuple[int, ...], ...]
    at_rest: tuple[bool, ...]

    def __getitem__(self, k: int) -> tuple[Any, list[Any]]:
        return self.numbers[k], [self.table[place] for place in self.places[k]]


def packed(weights: Sequence[Weight], kind: np.dtype, rest: np.ndarray | None) -> Packed:
    """Weights in single or double precision; factors that are one array stay one. `rest` is that of errors at rest."""
    at_rest = tuple(all(factor is rest for factor in weight.factors.values()) for weight in weights)
    table: list[np.ndarray] = []
    places = []
    for weight in weights:
        own = []
        for factor in weight.factors.values():
            found = next((k for k, other in enumerate(table) if other is factor), None)
            if found is None:
                found = len(table)
                table.append(factor)
            own.append(found)
        places.append(tuple(own))
    return Packed(
        tuple(weight.number.astype(kind) for weight in weights),
        tuple(f.astype(kind) for f in table),
        tuple(places),
        at_rest,
    )


def _parts(program: Program, drawn: Draw, weights: Packed, late: tuple | None) -> Array:
    """What the parts and all of them together do to the test outputs in each draw: (parts + 1, S, outputs, tests)."""
    theory = program.theory
    forces = Forces(theory, drawn, program.still)
    parts: dict[str, Array] = {}
    for k, c in enumerate(MEAN):
        now = forces.force(c, weights[k], weights.at_rest[k])
        moved = now @ program.ahead.T
        if late is not None:
            gap = (now - forces.force(c, late[0][k])) @ theory.U
            moved = moved + (gap * late[1][:, None, :]) @ program.response.T
        parts[c.part] = parts[c.part] + moved if c.part in parts else moved
    return stacked([*parts.values(), sum(parts.values())]).astype(jnp.float64)


@jax.jit
def _batch(program: Program, key: Array, weights: Packed, late: tuple | None) -> tuple[Array, Array, Moments]:
    """Sums over a batch of what the parts do to the test outputs, and of their squares: (parts + 1, outputs, tests).

    Besides, what control variates are fitted to (one program for both is compiled once).
    """
    drawn, _ = draw(program.theory, key, program.count)
    return _sums(program, drawn, weights, late)


def _sums(program: Program, drawn: Draw, weights: Packed, late: tuple | None) -> tuple[Array, Array, Moments]:
    every = _parts(program, drawn, weights, late)
    known: Moments = {}
    if program.controls is not None:
        values = program.controls.values(program.theory, drawn, program.ahead)
        known, every = moments(every, values), program.controls.taken(every, values)
    return every.sum(axis=1), (every**2).sum(axis=1), known


@one_thread()
def _host_batch(
    program: Program, functions: Functions, seed: tuple[int, int], weights: Packed, late: tuple | None
) -> tuple[Array, Array, Moments]:
    """As `_batch`, by NumPy: nothing is compiled."""
    made: dict = {}
    own, packed, then = kept((program, weights, late), made)
    if program.controls is not None:
        plain = {name: np.asarray(getattr(program.controls, name)) for name in ("means", "strength")}
        own = replace(own, controls=replace(own.controls, **plain))
    try:
        return _sums(own, host_draw(own.theory, functions, seed, program.count)[0], packed, then)
    finally:
        made.clear()  # the arrays know what knows them: nothing else would free them soon


def part_names() -> tuple[str, ...]:
    return (*dict.fromkeys(c.part for c in MEAN), TOTAL)


@dataclass
class Sums:
    """Sums over draws and of squares, by the numbers of the batches they hold."""

    count: int
    batches: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def add(self, number: int, sums: tuple[np.ndarray, np.ndarray]) -> None:
        self.batches[number] = sums

    @property
    def samples(self) -> int:
        return self.count * len(self.batches)

    def estimate(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Means and standard errors by part, (outputs, tests) each."""
        first, second = (sum(self.batches[b][k] for b in sorted(self.batches)) for k in range(2))
        mean = np.asarray(first) / self.samples
        variance = np.maximum(np.asarray(second) / self.samples - mean**2, 0.0)
        error = np.sqrt(variance / max(self.samples - 1, 1))
        return dict(zip(part_names(), mean)), dict(zip(part_names(), error))


@dataclass(frozen=True)
class Sampler:
    """Batches at one time of training (None: its end); with the activation's `functions` by NumPy on the host."""

    program: Program
    clock: Clock
    seed: int
    functions: Functions | None = None

    def launch(self, number: int, device: jax.Device | None = None) -> tuple[Array, Array]:
        """A batch by its number; the result may still be under way."""
        with jax.default_device(device):
            return self._batch(self._program(device), number)[:2]

    def _batch(self, program: Program, number: int) -> tuple[Array, Array, Moments]:
        weights, late = self._weights(number)
        if self.functions is not None:
            return _host_batch(program, self.functions, (self.seed, number), weights, late)
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        return _batch(program, key, weights, late)

    @cached_property
    def _fitted(self) -> Program:
        """The program with its controls fitted on draws that no batch has."""
        if self.program.controls is None:
            return self.program
        found = []
        for number in range(FIRST_PILOT, FIRST_PILOT + max(PILOT, -(-PILOT_DRAWS // self.program.count))):
            found.append(self._batch(self.program, number)[2])
        return replace(self.program, controls=fitted(self.program.controls, found))

    def _program(self, device: jax.Device | None) -> Program:
        return self._fitted if device is None else jax.device_put(self._fitted, device)

    def _weights(self, number: int) -> tuple[Packed, tuple[Packed, np.ndarray] | None]:
        random = np.random.default_rng((self.seed, number))
        count, kind = self.program.count, np.dtype(self.program.theory.U.dtype)
        now = self.clock.now(count, random)
        weights = self._packed(now, kind)
        if self.clock.time is None:
            return weights, None
        then, kernel = self.clock.late(now, random)
        return weights, (self._packed(then, kind), kernel.astype(kind))

    def _packed(self, now: Moment, kind: np.dtype) -> Packed:
        return packed([self.clock.weight(c.weight, now) for c in MEAN], kind, now.position if now.ended else None)


def relative(estimate: Mapping[str, np.ndarray], error: Mapping[str, np.ndarray], known: np.ndarray) -> float:
    """The root mean square standard error of the correction over that of the correction itself, `known` parts added."""
    size = float(np.sqrt(np.mean((estimate[TOTAL] + known) ** 2)))
    noise = float(np.sqrt(np.mean(error[TOTAL] ** 2)))
    return noise / size if size > 0 else (0.0 if noise == 0 else float("inf"))


def chosen_batch(inputs: int, outputs: int) -> int:
    """Draws in a batch: a few arrays of (draws, outputs, inputs) stay within a hundred megabytes."""
    return int(np.clip(500_000 // max(inputs * outputs, 1), 16, 512))


def known_devices(devices: Sequence[jax.Device] | None) -> list[jax.Device | None]:
    return [None] if devices is None else list(devices)
