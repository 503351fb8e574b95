"""One network whose steps see batches: its coupled updates, iterated, to first order in the differentials.

Batches mix the modes of the NTK, so that there are no projectors: the generated updates of z, H and dH are taken step
by step (`numeric.trained.trajectory`), and JAX takes the derivative with respect to the size of the differentials.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from numeric.errors import NumericError
from numeric.trained.algorithms import Algorithm, DivergentTraining
from numeric.trained.losses import MSE
from numeric.trained.trajectory import State, Trajectory

if TYPE_CHECKING:
    from numeric.trained.dynamics import NetworkTensors

ENDED, LONGEST = 1e-12, 20_000
"""Training has ended when no error is larger than this share of what it was; after so many steps it is given up."""


@dataclass(frozen=True)
class BatchedNetwork:
    """`network` trained on (train, y) with an algorithm that has masks; differentials act beside the `mean_ntk`."""

    network: NetworkTensors
    mean_ntk: np.ndarray
    y: np.ndarray
    train: tuple[int, ...]
    algorithm: Algorithm
    kept: dict[float | None, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.algorithm.memory_size or self.algorithm.continuous:
            raise NumericError("With batches there is descent without memory and without a ridge only.")

    def _along(self, t: float | None, H: np.ndarray) -> Trajectory:
        chosen = np.array(self.train)
        until = self._length(H) if t is None else int(t)
        return Trajectory(MSE(self.y), chosen, np.eye(len(chosen)), self.algorithm, until, 0)

    def frozen(self, t: float | None, H: np.ndarray) -> jax.Array:
        """The outputs when the NTK stays H [i, j, x, y]."""
        return self._along(t, H).frozen(jnp.asarray(self.network.z), jnp.asarray(H))

    @property
    def _mean(self) -> np.ndarray:
        return np.eye(len(self.network.z))[:, :, None, None] * self.mean_ntk

    def first_order(self, t: float | None) -> State:
        """The differentials' share of the outputs and of the NTK, and the dNTK."""
        if t in self.kept:
            return self.kept[t]
        along, net = self._along(t, self._mean), self.network
        dH, ddI, ddII = (jnp.asarray(x) for x in (net.dH, net.ddI, net.ddII))

        def end(size: jax.Array) -> State:
            return along.end(State(jnp.asarray(net.z), jnp.asarray(self._mean), size * dH), size * ddI, size * ddII)

        self.kept[t] = jax.jvp(end, (jnp.zeros(()),), (jnp.ones(()),))[1]
        return self.kept[t]

    def _length(self, H: np.ndarray) -> int:
        """Half as many steps again as the errors need to vanish."""
        masks, train, step = self.algorithm.masks(len(self.train)), list(self.train), 0
        assert masks is not None
        block = H[:, :, train][..., train]
        errors = self.network.z[:, train] - self.y.T
        start = left = float(np.abs(errors).max())
        while left > ENDED * start:
            seen = self.algorithm.rule(step).direct * masks[step % len(masks)] * errors
            errors, step = errors - np.einsum("ijab,jb->ia", block, seen), step + 1
            left = float(np.abs(errors).max())
            if not left < 1e8 * start or step > LONGEST:
                raise DivergentTraining(
                    f"{self.algorithm} has not converged after {step} steps: take a smaller eta or a time."
                )
        return step + step // 2
