"""A sampled prediction run: batches until the error asked for is reached, time is over, or the user has had enough.

Progress is shown as the error falls; Ctrl-C ends the run and keeps what there is. With a checkpoint a run can be taken
up again; under jax.distributed every process takes its share of the batches and all come to the same result.
"""

from __future__ import annotations

import hashlib
import io
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from effective_theory.files import write_file
from effective_theory.interrupts import accepted
from numeric.archives import read_arrays
from numeric.errors import NumericError
from numeric.progress import share_bar
from numeric.trained.sampled.estimate import Sampler, Sums, relative

FEWEST = 8
"""Batches before a standard error is believed."""
TIME_OVER = "the time budget ended"
SAVED = 30.0
"""Seconds between two checkpoints."""


class OutOfRange(NumericError):
    """Numbers too large to go on with."""


@dataclass(frozen=True)
class Goal:
    """When to stop: at this relative error of the mean correction, or after so many seconds."""

    relative_error: float
    seconds: float
    progress: bool | None = None
    checkpoint: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run has found: its sums, the relative error, how long it took and why it ended."""

    sums: Sums
    relative_error: float
    seconds: float
    ended: str


def run(sampler: Sampler, goal: Goal, known: np.ndarray, identity: bytes, devices: list[jax.Device | None]) -> Outcome:
    """Batches until the goal; `known` are parts that need no sampling, `identity` says which problem this is."""
    sums = Sums(sampler.program.count)
    if goal.checkpoint is not None and goal.checkpoint.exists():
        _read(goal.checkpoint, sums, identity)
    start = saved = clock.monotonic()
    processes, own = jax.process_count(), jax.process_index()
    ended, error = TIME_OVER, float("inf")
    with _shown(goal) as show:
        try:
            while True:
                first = max(sums.batches, default=-1) + 1
                numbers = [first + own * len(devices) + k for k in range(len(devices))]
                flying = [(n, sampler.launch(n, device)) for n, device in zip(numbers, devices)]
                done = [(n, tuple(np.asarray(x) for x in found)) for n, found in flying]
                for number, found in _shared(done, processes):
                    sums.add(number, found)
                estimate, errors = sums.estimate()
                error = relative(estimate, errors, known)
                if not np.isfinite(error) and sums.samples and not np.isfinite(estimate["mean"]).all():
                    raise OutOfRange("The sampled correction leaves the range of floating point: scale the targets.")
                elapsed = clock.monotonic() - start
                show(sums.samples, error, elapsed)
                if goal.checkpoint is not None and own == 0 and clock.monotonic() - saved > SAVED:
                    _write(goal.checkpoint, sums, identity)
                    saved = clock.monotonic()
                if len(sums.batches) >= FEWEST and error <= goal.relative_error:
                    ended = "the relative error was reached"
                    break
                if _over(elapsed > goal.seconds, processes) and len(sums.batches) >= 2:
                    break
        except KeyboardInterrupt:
            if len(sums.batches) < 2:
                raise
            accepted()
            ended = "interrupted"
    if goal.checkpoint is not None and own == 0:
        _write(goal.checkpoint, sums, identity)
    return Outcome(sums, error, clock.monotonic() - start, ended)


def _over(late: bool, processes: int) -> bool:
    """Whether the first process's time is over: all end together."""
    if processes == 1:
        return late
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(late)))


def _shared(
    done: list[tuple[int, tuple[np.ndarray, ...]]], processes: int
) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """The batches of all processes."""
    if processes == 1:
        for number, (first, second) in done:
            yield number, (first, second)
        return
    from jax.experimental import multihost_utils

    numbers = np.asarray([number for number, _ in done])
    stacked = np.stack([np.stack(found) for _, found in done])
    everyone = multihost_utils.process_allgather((numbers, stacked))
    for number, found in zip(np.ravel(everyone[0]), np.reshape(everyone[1], (-1, *stacked.shape[1:]))):
        yield int(number), (np.asarray(found[0]), np.asarray(found[1]))


def identity_of(*arrays: object) -> bytes:
    """A fingerprint of what a checkpoint belongs to."""
    digest = hashlib.sha256()
    for item in arrays:
        digest.update(item.tobytes() if isinstance(item, np.ndarray) else repr(item).encode())
    return digest.digest()


def _write(path: Path, sums: Sums, identity: bytes) -> None:
    numbers = sorted(sums.batches)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        identity=np.frombuffer(identity, dtype=np.uint8),
        numbers=np.asarray(numbers),
        sums=np.stack([np.stack(sums.batches[n]) for n in numbers]),
    )
    write_file(path, buffer.getvalue())


def _read(path: Path, sums: Sums, identity: bytes) -> None:
    stored = read_arrays(path, "a checkpoint of a sampled prediction")
    if not {"identity", "numbers", "sums"} <= set(stored):
        raise NumericError(f"{path} is not a checkpoint of a sampled prediction.")
    if stored["identity"].tobytes() != identity:
        raise NumericError(f"{path} is the checkpoint of another problem (data, algorithm, time or seed differ).")
    numbers, values = stored["numbers"], stored["sums"]
    whole = numbers.ndim == 1 and numbers.dtype.kind == "i" and numbers.size > 0 and int(numbers.min()) >= 0
    if not whole or values.shape[:2] != (numbers.size, 2) or values.dtype != float or not np.isfinite(values).all():
        raise NumericError(f"{path} has been changed since a sampled prediction wrote it.")
    for number, (first, second) in zip(numbers, values):
        sums.add(int(number), (first, second))


@contextmanager
def _shown(goal: Goal) -> Iterator[Callable[[int, float, float], None]]:
    """Yields show(samples, error, elapsed): one line on standard error, on a terminal or as asked."""
    with share_bar(False if jax.process_index() else goal.progress, "sampling") as bar:

        def show(samples: int, error: float, elapsed: float) -> None:
            reached = (goal.relative_error / error) ** 2 if error > 0 else 1.0
            goal_text = f"goal {100 * goal.relative_error:.2g} %"
            text = f"{samples} draws, error {100 * error:.2g} % ({goal_text})"
            bar(min(1.0, max(reached, elapsed / goal.seconds)), text)

        yield show
