"""Means over draws with their standard errors: batches by number, so that any set of them can be had again.

A batch's randomness is a function of the seed and its number alone. Sums of batches are added up in the order of their
numbers: devices, processes and interruptions change when a batch is computed, not what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.generated.training import MEAN
from numeric.trained.sampled.clock import Clock
from numeric.trained.sampled.forces import Forces, Theory, draw
from numeric.trained.sampled.times import Moment

Array = jax.Array
TOTAL = "mean"
"""The name of the sum of all sampled parts."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["theory", "ahead", "response"],
    meta_fields=["count"],
)
@dataclass(frozen=True)
class Program:
    """What one batch is computed with.

    `ahead` (tests, inputs) takes forces to the trained outputs of test inputs as if they had been there from the start;
    `response` (tests, modes) is Θ of the test inputs with the training modes, for forces that come later.
    """

    theory: Theory
    ahead: Array
    response: Array
    count: int


Packed = list[tuple[Any, list[Any]]]


@jax.jit
def _batch(program: Program, key: Array, weights: Packed, late: tuple | None) -> tuple[Array, Array]:
    """Sums over a batch of what the parts do to the test outputs, and of their squares: (parts + 1, outputs, tests)."""
    theory = program.theory
    drawn, _ = draw(theory, key, program.count)
    forces = Forces(theory, drawn)
    parts: dict[str, Array] = {}
    for k, c in enumerate(MEAN):
        now = forces.force(c, weights[k])
        moved = now @ program.ahead.T
        if late is not None:
            gap = (now - forces.force(c, late[0][k])) @ theory.U
            moved = moved + (gap * late[1][:, None, :]) @ program.response.T
        parts[c.part] = parts[c.part] + moved if c.part in parts else moved
    every = jnp.stack([*parts.values(), sum(parts.values())]).astype(jnp.float64)
    return jnp.sum(every, axis=1), jnp.sum(every**2, axis=1)


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
    """Batches at one time of training (None: its end)."""

    program: Program
    clock: Clock
    seed: int

    def launch(self, number: int, device: jax.Device | None = None) -> tuple[Array, Array]:
        """A batch by its number; the result may still be under way."""
        weights, late = self._weights(number)
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        with jax.default_device(device):
            return _batch(self._program(device), key, weights, late)

    def _program(self, device: jax.Device | None) -> Program:
        return self.program if device is None else jax.device_put(self.program, device)

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
        found: Packed = []
        for c in MEAN:
            weight = self.clock.weight(c.weight, now)
            found.append((weight.number.astype(kind), [f.astype(kind) for f in weight.factors.values()]))
        return found


def relative(estimate: Mapping[str, np.ndarray], error: Mapping[str, np.ndarray], known: np.ndarray) -> float:
    """The root mean square standard error of the correction over that of the correction itself, `known` parts added."""
    size = float(np.sqrt(np.mean((estimate[TOTAL] + known) ** 2)))
    noise = float(np.sqrt(np.mean(error[TOTAL] ** 2)))
    return noise / size if size > 0 else (0.0 if noise == 0 else float("inf"))


def chosen_batch(inputs: int, outputs: int) -> int:
    """Draws in a batch: a few arrays of (draws, outputs, inputs) stay within some hundred megabytes."""
    return int(np.clip(2_000_000 // max(inputs * outputs, 1), 16, 512))


def known_devices(devices: Sequence[jax.Device] | None) -> list[jax.Device | None]:
    return [None] if devices is None else list(devices)
