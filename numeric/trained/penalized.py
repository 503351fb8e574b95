"""A ridge as part of the algorithm: the loss plus (ridge/2) |θ - θ_0|², the norm with the inverse learning rates.

The penalty's gradient, times the learning rates, is -ridge times the displacement so far. An algorithm with a ridge is
therefore one with one more slot of memory, the displacement, and all that follows from an update rule (projectors, the
order 1/n, training of real networks) holds for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.errors import NumericError
from numeric.given import finite
from numeric.trained.algorithms import Algorithm, Memory, Vector


@dataclass(frozen=True)
class Penalized(Algorithm):
    """`base` on the loss with a ridge; training ends where the penalty holds it, not on the targets."""

    base: Algorithm
    ridge: float

    def __post_init__(self) -> None:
        finite(self.ridge, "The ridge", above=0)
        if self.base.preconditions:
            raise no_ridge(self.base)
        own = {"memory_size": self.base.memory_size + 1, "stages": self.base.stages, "continuous": self.base.continuous}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        moved, *others = memory
        new, move = self.base.update(tuple(others), gradient - self.ridge * moved, step)
        return (move if self.continuous else moved + move, *new), move

    def masks(self, count: int) -> np.ndarray | None:
        return self.base.masks(count)

    def check(self, h: np.ndarray) -> None:
        """A mode with a ridge decays as one with a larger eigenvalue."""
        self.base.check(np.asarray(h) + self.ridge)


def no_ridge(algorithm: Algorithm) -> NumericError:
    """Why an algorithm with a Newton tensor has none."""
    return NumericError(f"{algorithm} has no ridge here: take gradient flow, descent, momentum, a schedule or batches.")


def with_ridge(algorithm: Algorithm, ridge: float) -> Algorithm:
    """The algorithm on the loss with a ridge, if there is any."""
    return Penalized(algorithm, ridge) if ridge else algorithm
