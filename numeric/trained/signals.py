"""Sums of geometric series, done as linear algebra: products and running sums of what an algorithm does to each mode.

A `Signal` is value(t) = readout·x(t) with x(t+1) = x(t) - N x(t), one N for each mode or tuple of modes (leading axes).
Products are Kronecker products, running sums append a state, and the sum to infinity is one small linear solve: the
inverting tensors (infinity.107), (infinity.110) are the case of one state. Working with N = 1 - (step) avoids the
cancellation in 1 - u_a u_b when a mode learns slowly.

`Signals` is the calculus in which the generated weights of trees are evaluated: what a mode piles up (`accumulate`),
and how it answers when a force moves its output (`respond`), which is how interactions feed back on training,
(infinity.121)-(infinity.124).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from numeric.errors import NumericError
from numeric.generated.training import weight_p
from numeric.trained.algorithms import Algorithm

Times = float | np.ndarray
"""A number of steps (a time of a flow), or an array of them."""


@dataclass(frozen=True)
class Signal:
    """A linear functional of a linear evolution; `generator(step)` has shape (modes..., d, d).

    `end` gives the value at the end of training, for signals that have one.
    """

    algorithm: Algorithm
    initial: np.ndarray
    readout: np.ndarray
    generator: Callable[[int], np.ndarray]
    end: Callable[[], np.ndarray] | None = None

    def limit(self) -> np.ndarray:
        """The value at the end of training; without `end` the last state is what has piled up of the others."""
        if self.end is not None:
            return self.end()
        n, x = self.generator(self.algorithm.stages), self._after_stages()
        driven = np.linalg.solve(n[..., :-1, :-1], x[..., :-1, None])[..., 0]
        return x[..., -1] - np.einsum("...d,...d->...", n[..., -1, :-1], driven)

    def at(self, t: Times) -> np.ndarray:
        """The value after t steps (time t for continuous algorithms); an array of times adds a leading axis."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        order = np.argsort(times)
        values = self._continuous(times[order]) if self.algorithm.continuous else self._stepwise(times[order])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        stacked = np.stack(values)[back]
        return stacked if np.ndim(t) else stacked[0]

    def _continuous(self, times: np.ndarray) -> list[np.ndarray]:
        n = self.generator(self.algorithm.stages)
        return [exponentials(-t * n) @ self.initial @ self.readout for t in times]

    def _stepwise(self, times: np.ndarray) -> list[np.ndarray]:
        stages, found, now = self.algorithm.stages, [], 0
        lasting = self.generator(stages)
        x = np.broadcast_to(self.initial, lasting.shape[:-1])
        for t in times.astype(int):
            while now < min(t, stages):
                x, now = x - np.einsum("...de,...e->...d", self.generator(now), x), now + 1
            if t > now:
                power = np.linalg.matrix_power(np.eye(len(self.initial)) - lasting, int(t) - now)
                x, now = np.einsum("...de,...e->...d", power, x), int(t)
            found.append(x @ self.readout)
        return found

    def _after_stages(self) -> np.ndarray:
        x = np.broadcast_to(self.initial, self.generator(self.algorithm.stages).shape[:-1])
        for step in range(self.algorithm.stages):
            x = x - np.einsum("...de,...e->...d", self.generator(step), x)
        return x


def exponentials(matrices: np.ndarray) -> np.ndarray:
    """The exponentials of a stack of small matrices: Taylor's series to order 16 after scaling, then squaring."""
    size = float(np.abs(matrices).sum(axis=-1).max(initial=0.0))
    if not np.isfinite(size):
        raise NumericError("A time of training is not finite.")
    squarings = max(0, int(np.ceil(np.log2(max(size, 1e-300)))) + 1)
    small = matrices / 2.0**squarings
    total = one = np.eye(matrices.shape[-1])
    for k in range(16, 0, -1):
        total = one + small @ total / k
    for _ in range(squarings):
        total = total @ total
    return total


@dataclass(frozen=True)
class Weight:
    """coefficient × Π factors: a weight of trees, at a time, at the end, or as one signal."""

    coefficient: float
    factors: tuple[Signal, ...]

    def at(self, t: Times | None) -> np.ndarray:
        """The value at a time (None: at the end of training)."""
        values = [factor.limit() if t is None else factor.at(t) for factor in self.factors]
        return self.coefficient * prod(values[1:], start=values[0])

    def signal(self) -> Signal:
        """One signal with all factors in it."""
        joint = reduce(times, self.factors)
        readout = self.coefficient * joint.readout
        return Signal(joint.algorithm, joint.initial, readout, joint.generator, lambda: self.at(None))


@dataclass(frozen=True)
class Signals:
    """The calculus of weights in time for an algorithm; a mode's label is its eigenvalues, laid along an axis."""

    algorithm: Algorithm

    def accumulate(self, root: np.ndarray, *branches: Signal) -> Signal:
        """What mode `root` piles up when its error times the branches is its gradient."""
        return accumulate(reduce(times, branches, error(self.algorithm, root)), root)

    def respond(self, mode: np.ndarray, force: Signal) -> Signal:
        """What a mode piles up when a force is added to its output, and its training answers."""
        h = np.asarray(mode, dtype=float)
        return accumulate(force, h, feedback=True, end=lambda: force.limit() / (h + self.algorithm.ridge))

    def product(self, coefficient: float, *factors: Signal) -> Weight:
        return Weight(coefficient, factors)


def check_time(algorithm: Algorithm, t: ArrayLike | None) -> Times | None:
    """A time as a float or an array of floats, or a clear complaint; None is the end of training."""
    if t is None:
        return None
    times = np.asarray(t, dtype=float)
    if times.ndim > 1 or not times.size or not (np.isfinite(times) & (times >= 0)).all():
        raise NumericError("A time is a number that is not negative, or a list of such numbers.")
    if not algorithm.continuous and (times != np.round(times)).any():
        raise NumericError(f"{algorithm} trains in steps: its time is a whole number of them.")
    return times if times.ndim else float(times)


def error(algorithm: Algorithm, h: np.ndarray) -> Signal:
    """The training error of modes with eigenvalues h at infinite width, starting at 1: u^t for gradient descent."""
    unit, ridge = np.eye(algorithm.memory_size + 1)[0], algorithm.ridge
    end = (lambda: ridge / (h + ridge)) if ridge else None  # a penalty keeps it from vanishing
    return Signal(algorithm, unit, unit, lambda step: algorithm.generator(h, step), end)


def times(first: Signal, second: Signal) -> Signal:
    """The product of two signals (their mode axes broadcast)."""
    one, two = np.eye(len(first.initial)), np.eye(len(second.initial))

    def generator(step: int) -> np.ndarray:
        a, b = first.generator(step), second.generator(step)
        n = _kron(a, two) + _kron(one, b)
        return n if first.algorithm.continuous else n - _kron(a, b)

    initial, readout = np.kron(first.initial, second.initial), np.kron(first.readout, second.readout)
    end = (lambda: first.limit() * second.limit()) if first.algorithm.ridge else None
    return Signal(first.algorithm, initial, readout, generator, end)


def accumulate(
    signal: Signal, h: np.ndarray, feedback: bool = False, end: Callable[[], np.ndarray] | None = None
) -> Signal:
    """The displacement that the algorithm makes when this signal is the gradient of the mode(s) h.

    With `feedback` the gradient is the signal minus h times the displacement itself.
    """
    algorithm, size = signal.algorithm, len(signal.initial)
    memory = algorithm.memory_size
    eigenvalues = np.asarray(h, dtype=float)
    gain = algorithm.precondition(eigenvalues)

    def generator(step: int) -> np.ndarray:
        rule, inner = algorithm.rule(step), signal.generator(step)
        shape = np.broadcast_shapes(inner.shape[:-2], gain.shape)
        n = np.zeros((*shape, size + memory + 1, size + memory + 1))
        n[..., :size, :size] = inner
        drive = gain[..., None] * signal.readout
        n[..., size:-1, :size] = -rule.input[:, None] * drive[..., None, :]
        n[..., size:-1, size:-1] = rule.decay
        n[..., -1, :size] = -rule.direct * drive
        n[..., -1, size:-1] = -rule.output
        if feedback:
            n[..., size:-1, -1] = rule.input * (gain * eigenvalues)[..., None]
            n[..., -1, -1] = rule.direct * gain * eigenvalues
        return n

    if end is None and algorithm.ridge:  # the penalty balances the gradient

        def end() -> np.ndarray:
            return signal.limit() / algorithm.ridge

    initial = np.append(signal.initial, np.zeros(memory + 1))
    return Signal(algorithm, initial, np.eye(size + memory + 1)[-1], generator, end)


def _kron(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    product = np.einsum("...ij,...kl->...ikjl", a, b)
    size = product.shape[-2] * product.shape[-1]
    return product.reshape(*product.shape[:-4], size, size)


def position_signal(algorithm: Algorithm, h: np.ndarray) -> Signal:
    """p: what has piled up of the error of the modes h, (infinity.92)."""
    return weight_p(Signals(algorithm), h)
