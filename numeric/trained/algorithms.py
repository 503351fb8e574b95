"""Training algorithms as objects: each gives its update rule, and the rest (projectors, time dependence) follows.

An algorithm is a linear filter from gradients to displacements of the parameters, θ → θ - displacement. A new one is
a subclass with an `update` method; `numeric.trained.projectors` does the sums and `numeric.ensemble` trains with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax
import numpy as np

from numeric.errors import NumericError
from numeric.given import finite, whole
from numeric.trained.modes import TrainingModes

Vector: TypeAlias = "float | np.ndarray | jax.Array"
"""A gradient or a displacement: of one mode, of many, or of a network's parameters."""
Memory: TypeAlias = tuple[Vector, ...]


class DivergentTraining(NumericError):
    """Training that does not converge with the given learning rate; the message says what would."""


@dataclass(frozen=True)
class UpdateRule:
    """One step in matrix form: memory → memory - decay·memory + input·g, displacement → + output·memory + direct·g."""

    decay: np.ndarray
    input: np.ndarray
    output: np.ndarray
    direct: float


class Algorithm(ABC):
    """A linear update rule. `memory_size` slots are carried from step to step; `stages` steps precede the lasting rule.

    With `continuous`, `update` returns rates: the time derivatives of the memory and of the displacement.
    """

    memory_size: int = 0
    stages: int = 0
    continuous: bool = False
    ridge: float = 0.0
    """Of a penalty on the displacement, which then does not end where the errors vanish (`Penalized`)."""
    own_ntk: bool = False
    """Whether the Newton tensor is made of each network's own NTK, so that its fluctuation is gone after one step."""

    @abstractmethod
    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        """The new memory and the displacement made in this step; both linear in (memory, gradient)."""

    def precondition(self, h: np.ndarray) -> np.ndarray:
        """The factor on the gradient of a mode with NTK eigenvalue h: the Newton tensor of (10.18), 1 for none."""
        return np.ones_like(h)

    def masks(self, count: int) -> np.ndarray | None:
        """Which of `count` training samples each step sees, (period, count) of ones and zeros; None for all, always."""
        return None

    @property
    def preconditions(self) -> bool:
        """Whether there is a Newton tensor at all."""
        return type(self).precondition is not Algorithm.precondition

    def newton(self, modes: TrainingModes) -> np.ndarray:
        """The Newton tensor (10.18) on samples, as the function of the kernel that `precondition` says."""
        return modes.function(self.precondition(modes.h))

    def rule(self, step: int) -> UpdateRule:
        """`update` at the given step in matrix form, read off by applying it to unit vectors."""
        size = self.memory_size
        columns = [self.update(tuple(unit), 0.0, step) for unit in np.eye(size)]
        driven, direct = self.update((0.0,) * size, 1.0, step)
        transition = np.array([memory for memory, _ in columns], dtype=float).reshape(size, size).T
        return UpdateRule(
            decay=-transition if self.continuous else np.eye(size) - transition,
            input=np.array(driven, dtype=float).reshape(size),
            output=np.array([out for _, out in columns], dtype=float).reshape(size),
            direct=float(direct),
        )

    def generator(self, h: np.ndarray, step: int) -> np.ndarray:
        """N of x(t+1) = x(t) - N x(t) (or dx/dt = -N x) for the state x = (error, memory...) of modes h at width ∞."""
        rule, h = self.rule(step), np.asarray(h, dtype=float)
        gain = self.precondition(h)
        generator = np.zeros((*h.shape, self.memory_size + 1, self.memory_size + 1))
        generator[..., 0, 0] = h * rule.direct * gain
        generator[..., 0, 1:] = h[..., None] * rule.output
        generator[..., 1:, 0] = -gain[..., None] * rule.input
        generator[..., 1:, 1:] = rule.decay
        return generator

    def check(self, h: np.ndarray) -> None:
        """Raise if a mode does not decay: the condition for 'trained to the end' to mean anything."""
        generator = self.generator(h, self.stages)
        modes = np.linalg.eigvals(generator)
        stable = (modes.real > 0) if self.continuous else (np.abs(1 - modes) < 1)
        if not stable.all():
            worst, fastest = float(np.max(h[~stable.all(axis=-1)])), float(np.max(h * self.precondition(h)))
            advice = f"so take a learning rate below {2 / fastest:.6g}" if fastest > 0 else "whatever the learning rate"
            raise DivergentTraining(
                f"{self} does not converge on a mode with NTK eigenvalue {worst:.6g}; "
                f"the largest eigenvalue is {float(np.max(h)):.6g}, {advice}."
            )


@dataclass(frozen=True)
class GradientDescent(Algorithm):
    """Constant learning rate eta (infinity.81)."""

    eta: float

    def __post_init__(self) -> None:
        finite(self.eta, "The learning rate", above=0)

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), self.eta * gradient


@dataclass(frozen=True)
class GradientFlow(Algorithm):
    """The limit of small learning rate at fixed eta·t (infinity.149)-(infinity.153)."""

    continuous = True

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), gradient


@dataclass(frozen=True)
class Newton(Algorithm):
    """Steps with the inverse of the training NTK as Newton tensor: the giant leap (10.25), repeated."""

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), gradient

    def precondition(self, h: np.ndarray) -> np.ndarray:
        return 1 / h


@dataclass(frozen=True)
class TwoStep(Newton):
    """The giant leap and small step of (infinity.71), (infinity.77).

    Both steps invert each network's own NTK at initialization: the first lands where its linearization does, the second
    repairs what the differentials have missed.
    """

    own_ntk = True


@dataclass(frozen=True)
class Momentum(Algorithm):
    """Gradient descent with heavy-ball momentum `mu`, or Nesterov's form of it."""

    eta: float
    mu: float
    nesterov: bool = False
    memory_size = 1

    def __post_init__(self) -> None:
        finite(self.eta, "The learning rate", above=0)
        finite(self.mu, "The momentum")

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        velocity = self.mu * memory[0] + gradient
        return (velocity,), self.eta * (gradient + self.mu * velocity if self.nesterov else velocity)


@dataclass(frozen=True)
class Schedule(Algorithm):
    """Gradient descent with a learning rate for each step; the last one stays."""

    etas: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "etas", tuple(finite(rate, "A learning rate") for rate in self.etas))
        if not self.etas:
            raise NumericError("A schedule has at least one learning rate.")

    @property
    def stages(self) -> int:  # type: ignore[override]
        return len(self.etas) - 1

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), self.etas[min(step, len(self.etas) - 1)] * gradient


@dataclass(frozen=True)
class Preconditioned(Algorithm):
    """Gradient descent on the generalized MSE loss (10.22) whose Newton tensor is a function of the training NTK.

    The NTK is that of infinite width, one metric for all networks; for each network's own one see TwoStep.
    """

    eta: float
    kappa: Callable[[np.ndarray], np.ndarray]

    def __post_init__(self) -> None:
        finite(self.eta, "The learning rate", above=0)

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), self.eta * gradient

    def precondition(self, h: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray(self.kappa(h), dtype=float), np.shape(h))


@dataclass(frozen=True)
class StochasticDescent(Algorithm):
    """Gradient descent whose step t sees batch t of a fixed schedule, which starts again when it is over.

    A batch lists positions in the training set. At infinite width the end of training does not know of it (10.35).
    """

    eta: float
    batches: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        finite(self.eta, "The learning rate", above=0)
        batches = tuple(tuple(whole(k, "A position in a batch") for k in batch) for batch in self.batches)
        if not batches or not all(batches):
            raise NumericError("A schedule of batches holds at least one batch, and each batch at least one sample.")
        object.__setattr__(self, "batches", batches)

    def update(self, memory: Memory, gradient: Vector, step: int) -> tuple[Memory, Vector]:
        return (), self.eta * gradient

    def masks(self, count: int) -> np.ndarray:
        seen = np.zeros((len(self.batches), count))
        for row, batch in zip(seen, self.batches):
            if not all(0 <= k < count for k in batch):
                raise NumericError(
                    f"A batch lists positions from 0 to {count - 1} of the training set, not {list(batch)}."
                )
            row[list(batch)] = 1.0
        if not seen.any(axis=0).all():
            raise NumericError(f"No batch holds training sample {int(np.argmin(seen.any(axis=0)))}.")
        return seen
