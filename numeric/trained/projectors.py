"""The six algorithm projectors (infinity.142)-(infinity.147) of any algorithm, in the eigenbasis of the training NTK.

Training moves the parameters by a sum over rooted trees of training samples (`derive.training.trees`). With p, q, r, s
the weights of the trees a, a(b), a(b,c), a(b(c)), a network's output at the end is a polynomial in them, and the
projectors are its coefficients. All weights are for unit initial errors in the modes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numeric.trained.algorithms import Algorithm
from numeric.trained.signals import Signal, accumulate, error, times

CHUNK = 4_000_000
"""How many numbers of stacked small matrices are held at a time when three modes are combined."""


def position_signal(algorithm: Algorithm, h: np.ndarray) -> Signal:
    """p: what has piled up of the error of the modes h, (infinity.92)."""
    return accumulate(error(algorithm, h), h)


def pair_signal(algorithm: Algorithm, h_a: np.ndarray, h_b: np.ndarray) -> Signal:
    """q: the error of a piled up with weight p of b."""
    return accumulate(times(error(algorithm, h_a), position_signal(algorithm, h_b)), h_a)


@dataclass(frozen=True)
class Projectors:
    """The projectors at the end of training (t=None) or after t steps, as functions of modes a, b, c.

    Z_A, Z_B multiply dH_{aδb}, dH_{δab}; Z_IA, Z_IB multiply ddI_{aδbc}, ddI_{δabc}; Z_IIA, Z_IIB multiply
    ddII_{abδc}, ddII_{δabc}; each with the product of the initial errors of its modes.

    >>> from numeric.trained.algorithms import GradientDescent
    >>> Z = Projectors(GradientDescent(eta=0.5), np.array([1.0]))
    >>> float(Z.Z_A[0, 0]), float(Z.Z_B[0, 0])   # (1-ηh)/(2-ηh)/h² and 1/(2h²): (infinity.171)
    (0.333..., 0.5)
    """

    algorithm: Algorithm
    h: np.ndarray
    t: float | None = None

    def _value(self, signal: Signal) -> np.ndarray:
        return signal.limit() if self.t is None else signal.at(self.t)

    @cached_property
    def p(self) -> np.ndarray:
        return self._value(position_signal(self.algorithm, self.h))

    @cached_property
    def q(self) -> np.ndarray:
        return self._value(pair_signal(self.algorithm, self.h[:, None], self.h[None, :]))

    @cached_property
    def r(self) -> np.ndarray:
        def signal(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Signal:
            behind = times(position_signal(self.algorithm, b), position_signal(self.algorithm, c))
            return accumulate(times(error(self.algorithm, a), behind), a)

        return self._in_chunks(signal) / 2

    @cached_property
    def s(self) -> np.ndarray:
        def signal(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Signal:
            return accumulate(times(error(self.algorithm, a), pair_signal(self.algorithm, b, c)), a)

        return self._in_chunks(signal)

    def _in_chunks(self, signal) -> np.ndarray:
        h, size = self.h, len(self.h)
        states = len(signal(h[:1, None, None], h[None, :1, None], h[None, None, :1]).initial)
        rows = max(1, CHUNK // (size * size * states * states))
        return np.concatenate(
            [
                self._value(signal(h[start : start + rows, None, None], h[None, :, None], h[None, None, :]))
                for start in range(0, size, rows)
            ]
        )

    @cached_property
    def Z_A(self) -> np.ndarray:
        return self.q

    @cached_property
    def Z_B(self) -> np.ndarray:
        return np.einsum("a,b->ab", self.p, self.p) / 2

    @cached_property
    def Z_IA(self) -> np.ndarray:
        return -self.r

    @cached_property
    def Z_IB(self) -> np.ndarray:
        return -np.einsum("a,b,c->abc", self.p, self.p, self.p) / 6

    @cached_property
    def Z_IIA(self) -> np.ndarray:
        return -self.s

    @cached_property
    def Z_IIB(self) -> np.ndarray:
        return -np.einsum("ac,b->abc", self.q, self.p)
