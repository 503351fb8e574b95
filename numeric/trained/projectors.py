"""The six algorithm projectors (infinity.142)-(infinity.147) of any algorithm, in the eigenbasis of the training NTK.

What each of them is made of is generated (`numeric.generated.training`); here they become arrays over modes, at a time
or at the end of training. All weights are for unit initial errors in the modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numeric.errors import NumericError
from numeric.generated.training import WEIGHTS, weight_p, weight_q
from numeric.trained.algorithms import Algorithm
from numeric.trained.signals import Signal, Signals, Times, Weight

CHUNK = 4_000_000
"""How many numbers of stacked small matrices are held at a time when several modes are combined."""


def check_modes(h: np.ndarray) -> None:
    if not h.size:
        raise NumericError("No mode of the training NTK is trained: networks stay as they were initialized.")


def over_modes(make: Callable[..., Weight | Signal], h: np.ndarray, rank: int, t: Times | None) -> np.ndarray:
    """make(h_a, h_b, ...) at t as an array over `rank` modes, the first of them in blocks; times come first."""
    check_modes(h)
    axes = [h.reshape([-1 if k == axis else 1 for k in range(rank)]) for axis in range(rank)]
    probe = make(*(x.reshape(-1)[:1].reshape([1] * rank) for x in axes))
    signals = probe.factors if isinstance(probe, Weight) else (probe,)
    states = max(len(signal.initial) for signal in signals)
    rows = max(1, CHUNK // (len(h) ** (rank - 1) * states * states))
    blocks = []
    for start in range(0, len(h), rows):
        made = make(axes[0][start : start + rows], *axes[1:])
        value = (made if isinstance(made, Weight) else Weight(1.0, (made,))).at(t)
        full = (len(axes[0][start : start + rows]), *[len(h)] * (rank - 1))
        blocks.append(np.broadcast_to(value, (*value.shape[: value.ndim - rank], *full)))
    return np.concatenate(blocks, axis=-rank)


@dataclass(frozen=True)
class Projectors:
    """The projectors at the end of training (t=None) or after t steps, as functions of modes a, b, c.

    Z_A, Z_B multiply dH_{aδb}, dH_{δab}; Z_IA, Z_IB multiply ddI_{aδbc}, ddI_{δabc}; Z_IIA, Z_IIB multiply
    ddII_{abδc}, ddII_{δabc}; each with the product of the initial errors of its modes. An array of times adds a leading
    axis.

    >>> from numeric.trained.algorithms import GradientDescent
    >>> Z = Projectors(GradientDescent(eta=0.5), np.array([1.0]))
    >>> float(Z.Z_A[0, 0]), float(Z.Z_B[0, 0])   # (1-ηh)/(2-ηh)/h² and 1/(2h²): (infinity.171)
    (0.333..., 0.5)
    """

    algorithm: Algorithm
    h: np.ndarray
    t: Times | None = None

    @cached_property
    def calculus(self) -> Signals:
        return Signals(self.algorithm)

    def weight(self, name: str) -> np.ndarray:
        """A generated weight by its name, as an array over its modes."""
        make = WEIGHTS[name]
        rank = make.__code__.co_argcount - 1
        if name == "response" and self.algorithm.own_ntk and self.t is not None:
            return self._at_once(Projectors(self.algorithm, self.h).weight(name))
        return over_modes(lambda *modes: make(self.calculus, *modes), self.h, rank, self.t)

    def answer(self, name: str, modes: np.ndarray | None = None) -> np.ndarray:
        """What training piles up in mode m when the weight is a force on it: an array over m and the weight's modes.

        With `modes`, m runs over these eigenvalues only.
        """
        make = WEIGHTS[name]
        rank = make.__code__.co_argcount - 1
        if name in ("force", "response") and self.algorithm.own_ntk and self.t is not None:
            return self._at_once(Projectors(self.algorithm, self.h).answer(name, modes))
        first = (self.h if modes is None else modes).reshape(-1, *[1] * rank)
        blocks = []
        for m in first:
            blocks.append(
                over_modes(
                    lambda *labels, m=m: self.calculus.respond(m, make(self.calculus, *labels).signal()),
                    self.h,
                    rank,
                    self.t,
                )
            )
        return np.stack(blocks, axis=-1 - rank)

    def _at_once(self, end: np.ndarray) -> np.ndarray:
        """A value that is there after the first step, at the times of this object."""
        times = np.asarray(self.t, dtype=float)
        return np.where(times.reshape(times.shape + (1,) * end.ndim) >= 1, end, 0.0)

    @cached_property
    def p(self) -> np.ndarray:
        return over_modes(lambda a: weight_p(self.calculus, a), self.h, 1, self.t)

    @cached_property
    def q(self) -> np.ndarray:
        return over_modes(lambda a, b: weight_q(self.calculus, a, b), self.h, 2, self.t)

    @cached_property
    def Z_A(self) -> np.ndarray:
        return self.weight("Z_A")

    @cached_property
    def Z_B(self) -> np.ndarray:
        return self.weight("Z_B")

    @cached_property
    def Z_IA(self) -> np.ndarray:
        return self.weight("Z_IA")

    @cached_property
    def Z_IB(self) -> np.ndarray:
        return self.weight("Z_IB")

    @cached_property
    def Z_IIA(self) -> np.ndarray:
        return self.weight("Z_IIA")

    @cached_property
    def Z_IIB(self) -> np.ndarray:
        return self.weight("Z_IIB")

    @cached_property
    def force(self) -> np.ndarray:
        return self.weight("force")

    @cached_property
    def response(self) -> np.ndarray:
        return self.weight("response")
