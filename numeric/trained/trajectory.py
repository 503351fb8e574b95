"""Training on any loss as iteration: outputs, NTK and dNTK of one network, step by step or along a gradient flow.

The updates of z, H and dH are generated; a flow's rates are what one step does to first order in its size, integrated
by the classical Runge-Kutta rule. Everything is JAX, so that derivatives of the end with respect to the start can be
taken.
"""

from __future__ import annotations

from collections.abc import Callable
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
        e = rate * ((self.newton * seen[None]) @ errors).T
        return State(step_z(net, e), step_H(net, e), step_dH(net, e))

    def end(self, start: State, first: jax.Array, second: jax.Array) -> State:
        """The state at the time; `first` and `second` are the ddNTKs."""

        def move(state: State, rate: jax.Array, seen: jax.Array) -> State:
            change = self._step(_Network(state, first, second, self.train), rate, seen)
            return State(*(x + dx for x, dx in zip(state, change)))

        if not self.algorithm.continuous:
            return jax.lax.scan(lambda s, x: (move(s, *x), None), start, self._schedule())[0]
        everything = jnp.ones(len(self.train))

        def rate(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            """The rates of a flow: what one step does, to first order in its size."""
            net = _Network(State(*state), first, second, self.train)
            return tuple(jax.jvp(lambda size: self._step(net, size, everything), (0.0,), (1.0,))[1])

        return State(*self._integrated(rate, tuple(start)))

    def frozen(self, z: jax.Array, H: jax.Array) -> jax.Array:
        """z at the time when the NTK stays H, (10.3): infinite width, or one draw of the NTK."""
        kernel = jnp.take(H, self.train, axis=3)

        def change(z: jax.Array, seen: jax.Array) -> jax.Array:
            factors = (self.newton * seen[None]) @ self.loss.error(z[:, self.train].T)
            return -jnp.einsum("ijxa,aj->ix", kernel, factors)

        if not self.algorithm.continuous:
            return jax.lax.scan(lambda z, x: (z + x[0] * change(z, x[1]), None), z, self._schedule())[0]
        everything = jnp.ones(len(self.train))

        def rate(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            return (change(state[0], everything),)

        return self._integrated(rate, (z,))[0]

    def _schedule(self) -> tuple[jax.Array, jax.Array]:
        """The rate of every step and the samples that it sees."""
        count, masks = int(self.time), self.algorithm.masks(len(self.train))
        rates = np.array([self.algorithm.rule(t).direct for t in range(count)])
        seen = np.ones((count, len(self.train))) if masks is None else masks[np.arange(count) % len(masks)]
        return jnp.asarray(rates), jnp.asarray(seen)

    def _integrated(
        self, rate: Callable[[tuple[jax.Array, ...]], tuple[jax.Array, ...]], start: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, ...]:
        """The classical Runge-Kutta rule from 0 to the time."""
        small = self.time / self.fine

        def shifted(state: tuple[jax.Array, ...], by: float, rates: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            return tuple(x + by * dx for x, dx in zip(state, rates))

        def step(state: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], None]:
            a = rate(state)
            b = rate(shifted(state, small / 2, a))
            c = rate(shifted(state, small / 2, b))
            d = rate(shifted(state, small, c))
            moved = zip(state, a, b, c, d)
            return tuple(x + small / 6 * (p + 2 * q + 2 * r + s) for x, p, q, r, s in moved), None

        return jax.lax.scan(step, start, None, length=self.fine)[0]
