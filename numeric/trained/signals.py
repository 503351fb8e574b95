"""Sums of geometric series, done as linear algebra: products and running sums of what an algorithm does to each mode.

A `Signal` is value(t) = readout·x(t) with x(t+1) = x(t) - N x(t), one N for each mode or tuple of modes (leading axes).
Products are Kronecker products, running sums append a state, and the sum to infinity is one small linear solve: the
inverting tensors (infinity.107), (infinity.110) are the case of one state. Working with N = 1 - (step) avoids the
cancellation in 1 - u_a u_b when a mode learns slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jax.scipy.linalg import expm

from numeric.trained.algorithms import Algorithm


@dataclass(frozen=True)
class Signal:
    """A linear functional of a linear evolution; `generator(step)` has shape (modes..., d, d)."""

    algorithm: Algorithm
    initial: np.ndarray
    readout: np.ndarray
    generator: Callable[[int], np.ndarray]

    def limit(self) -> np.ndarray:
        """The value at the end of training, for a signal made by `accumulate`: its last state is what has piled up."""
        n, x = self.generator(self.algorithm.stages), self._after_stages()
        driven = np.linalg.solve(n[..., :-1, :-1], x[..., :-1, None])[..., 0]
        return x[..., -1] - np.einsum("...d,...d->...", n[..., -1, :-1], driven)

    def at(self, t: float) -> np.ndarray:
        """The value after t steps (time t for continuous algorithms)."""
        stages = self.algorithm.stages
        if self.algorithm.continuous:
            n = self.generator(stages)
            exponentials = jax.vmap(expm)(-t * n.reshape(-1, *n.shape[-2:]))
            moved = np.asarray(exponentials).reshape(n.shape) @ self.initial
        elif t <= stages:
            moved = self._after_stages(int(t))
        else:
            n = self.generator(stages)
            power = np.linalg.matrix_power(np.eye(n.shape[-1]) - n, int(t) - stages)
            moved = np.einsum("...de,...e->...d", power, self._after_stages())
        return moved @ self.readout

    def _after_stages(self, steps: int | None = None) -> np.ndarray:
        shape = self.generator(self.algorithm.stages).shape[:-1]
        x = np.broadcast_to(self.initial, shape)
        for step in range(self.algorithm.stages if steps is None else steps):
            x = x - np.einsum("...de,...e->...d", self.generator(step), x)
        return x


def error(algorithm: Algorithm, h: np.ndarray) -> Signal:
    """The training error of modes with eigenvalues h at infinite width, starting at 1: u^t for gradient descent."""
    unit = np.eye(algorithm.memory_size + 1)[0]
    return Signal(algorithm, unit, unit, lambda step: algorithm.generator(h, step))


def times(first: Signal, second: Signal) -> Signal:
    """The product of two signals (their mode axes broadcast)."""
    one, two = np.eye(len(first.initial)), np.eye(len(second.initial))

    def generator(step: int) -> np.ndarray:
        a, b = first.generator(step), second.generator(step)
        n = _kron(a, two) + _kron(one, b)
        return n if first.algorithm.continuous else n - _kron(a, b)

    return Signal(
        first.algorithm, np.kron(first.initial, second.initial), np.kron(first.readout, second.readout), generator
    )


def accumulate(signal: Signal, h: np.ndarray) -> Signal:
    """The displacement that the algorithm makes when this signal is the gradient of the mode(s) h."""
    algorithm, size = signal.algorithm, len(signal.initial)
    memory = algorithm.memory_size
    gain = algorithm.precondition(np.asarray(h, dtype=float))

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
        return n

    return Signal(algorithm, np.append(signal.initial, np.zeros(memory + 1)), np.eye(size + memory + 1)[-1], generator)


def _kron(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    product = np.einsum("...ij,...kl->...ikjl", a, b)
    size = a.shape[-1] * b.shape[-1]
    return product.reshape(*product.shape[:-4], size, size)
