"""Training on any loss as iteration: outputs, NTK and dNTK of one network, step by step or along a gradient flow.

The updates of z, H and dH are generated; a flow's rates are what one step does to first order in its size, integrated
by the classical Runge-Kutta rule. Everything is JAX, so that derivatives of the end with respect to the start can be
taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from numeric.generated.training import step_dH, step_H, step_z
from numeric.trained.algorithms import Algorithm
from numeric.trained.losses import Loss


class State(NamedTuple):
    """Outputs [i, x], NTK [i, j, x, y], dNTK [i, j, k, x, y, z] of one network at a time."""

    z: jax.Array
    H: jax.Array
    dH: jax.Array


@dataclass(frozen=True)
class _Network:
    """A state and the ddNTKs as the generated updates ask for them: training samples in all but the external slots."""

    state: State
    first: jax.Array
    second: jax.Array
    train: np.ndarray

    def _cut(self, array: jax.Array, external: tuple[int, ...]) -> jax.Array:
        slots = array.ndim // 2
        for slot in range(slots):
            if slot not in external:
                array = jnp.take(array, self.train, axis=slots + slot)
        return array

    def H(self, *external: int) -> jax.Array:
        return self._cut(self.state.H, external)

    def dH(self, *external: int) -> jax.Array:
        return self._cut(self.state.dH, external)

    def ddI(self, *external: int) -> jax.Array:
        return self._cut(self.first, external)

    def ddII(self, *external: int) -> jax.Array:
        return self._cut(self.second, external)


@dataclass(frozen=True)
class Trajectory:
    """Training on a loss, with an algorithm without memory, for `steps` steps (a time, for a flow)."""

    loss: Loss
    train: np.ndarray
    newton: np.ndarray
    algorithm: Algorithm
    time: float
    fine: int
    """Into how many steps the time of a flow is cut."""

    def _step(self, net: _Network, rate: jax.Array, seen: jax.Array) -> State:
        """One update: the changes of z, H and dH when the error factors are multiplied with `rate`."""
        errors = self.loss.error(net.state.z[:, self.train].T)
        e = rate * ((self.newton * seen) @ errors).T
        return State(step_z(net, e), step_H(net, e), step_dH(net, e))

    def end(self, start: State, first: jax.Array, second: jax.Array) -> State:
        """The state at the time; `first` and `second` are the ddNTKs."""

        def move(state: State, rate: jax.Array, seen: jax.Array) -> State:
            change = self._step(_Network(state, first, second, self.train), rate, seen)
            return State(*(x + dx for x, dx in zip(state, change)))

        if not self.algorithm.continuous:
            count, masks = int(self.time), self.algorithm.masks(len(self.train))
            rates = np.array([self.algorithm.rule(t).direct for t in range(count)])
            seen = np.ones((1, len(self.train))) if masks is None else masks
            batches = seen[np.arange(count) % len(seen)]
            return jax.lax.scan(lambda s, x: (move(s, *x), None), start, (jnp.asarray(rates), jnp.asarray(batches)))[0]
        everything, small = jnp.ones(len(self.train)), self.time / self.fine

        def slope(state: State) -> State:
            """The rates of a flow: what one step does, to first order in its size."""
            net = _Network(state, first, second, self.train)
            return jax.jvp(lambda rate: self._step(net, rate, everything), (0.0,), (1.0,))[1]

        def shifted(state: State, rate: State, by: float) -> State:
            return State(*(x + by * dx for x, dx in zip(state, rate)))

        def runge_kutta(state: State, _: None) -> tuple[State, None]:
            a = slope(state)
            b = slope(shifted(state, a, small / 2))
            c = slope(shifted(state, b, small / 2))
            d = slope(shifted(state, c, small))
            moved = zip(state, a, b, c, d)
            return State(*(x + small / 6 * (p + 2 * q + 2 * r + s) for x, p, q, r, s in moved)), None

        return jax.lax.scan(runge_kutta, start, None, length=self.fine)[0]

    def frozen(self, z: jax.Array, H: jax.Array) -> jax.Array:
        """z at the time when the NTK stays H: infinite width, or one draw of the NTK."""
        outputs, samples = z.shape
        none = jnp.zeros((outputs,) * 3 + (samples,) * 3)
        still = jnp.zeros((outputs,) * 4 + (samples,) * 4)
        return self.end(State(z, H, none), still, still).z
