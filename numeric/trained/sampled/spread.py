"""Variances of trained outputs at order 1/n, at a time or at the end: the same draws, initial outputs kept.

By Stein's lemma the response of the mean to the initial outputs is the mean of their product with the drawn forces.
What else correlates with an initial output (z with ΔH and dH) and the NTK's fluctuation with itself have two test
inputs; their diagonals come from random signs ε: the mean of ε_δ (M ε)_δ is M_δδ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions
from numeric.contributions import Contribution
from numeric.generated.training import CROSS, CUMULANTS, MEAN, SQUARE
from numeric.runtime import one_thread
from numeric.trained.finite import FiniteWidth
from numeric.trained.sampled.clock import Clock
from numeric.trained.sampled.draws import Draw, draw, host_draw
from numeric.trained.sampled.forces import Forces
from numeric.trained.sampled.kept import kept, stacked
from numeric.trained.sampled.theory import Theory
from numeric.trained.sampled.times import Moment
from numeric.trained.statistics import partner

Array = jax.Array
Packed = Mapping[str, tuple[Array, Sequence[Array]]]


@partial(jax.tree_util.register_dataclass, data_fields=["theory", "residual", "response"], meta_fields=["count"])
@dataclass(frozen=True)
class SpreadProgram:
    """`residual` (tests, inputs): how initial outputs and lasting forces reach the trained outputs of test inputs.

    `response` (tests, modes) is Θ of the test inputs with the training modes, for forces that change in time.
    """

    theory: Theory
    residual: Array
    response: Array
    count: int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SpreadWeights:
    """Weights at the time asked for, and twice, drawn apart, at an earlier one with the modes' answer to it (S, M)."""

    now: Packed
    late: tuple[tuple[Packed, Array], tuple[Packed, Array]] | None


@jax.jit
def spread_batch(program: SpreadProgram, key: Array, weights: SpreadWeights) -> tuple[Array, Array]:
    """Sums over a batch of draws of the variance's correction, and of its squares: (outputs, tests)."""
    own, signs_key = jax.random.split(key)
    drawn, z = draw(program.theory, own, program.count)
    shape = (program.count, 1, 1, len(program.residual))
    return _sums(program, drawn, z, jax.random.rademacher(signs_key, shape, program.residual.dtype), weights)


@one_thread()
def host_spread_batch(
    program: SpreadProgram, functions: Functions, seed: tuple[int, int], weights: SpreadWeights
) -> tuple[Array, Array]:
    """As `spread_batch`, by NumPy: nothing is compiled."""
    made: dict = {}
    own, packed = kept((program, weights), made)
    drawn, z = host_draw(own.theory, functions, seed, program.count)
    kind, random = np.dtype(program.residual.dtype), np.random.default_rng((*seed, 2))
    signs = random.choice(np.array([-1, 1], kind), (program.count, 1, 1, len(program.residual)))
    try:
        return _sums(own, drawn, kept(z, made), kept(signs, made), packed)
    finally:
        made.clear()


def _sums(program: SpreadProgram, drawn: Draw, z: Array, signs: Array, weights: SpreadWeights) -> tuple[Array, Array]:
    W, forces = program.residual, Forces(program.theory, drawn)
    outside = signs @ W

    def odd(packed: Packed) -> Array:
        every = [forces.signed(c, packed[c.weight]) for c in MEAN]
        return sum(((both[:, 0] - both[:, 1]) * 0.5 for both in every[1:]), (every[0][:, 0] - every[0][:, 1]) * 0.5)

    def crossed(packed: Packed) -> Array:
        first, *others = (_crossed(forces, c, packed[c.weight], outside) for c in CROSS)
        return sum(others, first)

    def square(packed: Packed) -> Array:
        number, (factor,) = packed[SQUARE.weight]
        first, *others = (
            _crossed(forces, SQUARE, (scale * number, (left, factor)), vector)
            for (scale, (left,)), vector in _outsides(program, weights, signs, outside)
        )
        return sum(others, first)

    total = 2.0 * (z @ W.T) * _answered(program, weights, odd)
    total = total + signs[:, 0] * _answered(program, weights, lambda packed: 2.0 * crossed(packed) + square(packed))
    found = stacked([total])[0].astype(jnp.float64)
    return found.sum(axis=0), (found**2).sum(axis=0)


def _answered(program: SpreadProgram, weights: SpreadWeights, force: Callable[[Packed], Array]) -> Array:
    """A force on the outputs as the test inputs see it, training's answer to it included: (S, outputs, tests)."""
    now = force(weights.now)
    moved = now @ program.residual.T
    if weights.late is None:
        return moved
    packed, kernel = weights.late[0]
    gap = (now - force(packed)) @ program.theory.U
    return moved + (gap * kernel[:, None, :]) @ program.response.T


def _outsides(
    program: SpreadProgram, weights: SpreadWeights, signs: Array, outside: Array
) -> Iterator[tuple[tuple[Array, Sequence[Array]], Array]]:
    """The transpose of `_answered` on the signs: weights of a force and the vector that takes it, for each time."""
    if weights.late is None:
        yield weights.now[SQUARE.weight], outside
        return
    packed, kernel = weights.late[1]
    late = ((signs @ program.response) * kernel[:, None, None, :]) @ program.theory.U.T
    yield weights.now[SQUARE.weight], outside + late
    yield packed[SQUARE.weight], -late


def _crossed(forces: Forces, c: Contribution, weight: tuple[Array, Sequence[Array]], outside: Array) -> Array:
    """A contribution with `outside` on its first external slot, and the second left: (S, outputs, inputs)."""
    number, factors = weight
    total: Array | None = None
    for pairing in CUMULANTS[c.product]:
        together = partner(pairing.pairs, c.external[0]) == c.external[1]
        if set(c.kinds) == {"e"}:
            errors = forces.draw.mixed if together else forces.draw.errors
            scale, bridge = 1.0, None
            vectors = {slot: forces.vector(c, slot, errors, factors) for slot in range(2)}
        else:
            scale, vectors = float(len(forces.theory.y)) if together else 1.0, {}
            bridge = forces.delta(c, (0, 1), factors)
        value = scale * forces.tensor(pairing, c, vectors, bridge, c.external[1], outside=outside).mean(axis=1)
        total = value if total is None else total + value
    assert total is not None
    return number[:, None, None] * total


def exact_part(exact: FiniteWidth, residual: np.ndarray, test: Sequence[int]) -> np.ndarray:
    """What needs no draws, (tests,): G1's share and H1's; `residual` (tests, inputs) moves initial outputs."""
    toward = residual @ exact.kernel.K @ exact.U
    own = np.einsum("xa,ab,xb->x", residual, np.asarray(exact.flow.G1), residual)
    return own + 2 * np.diagonal(exact.first(toward)[0][:, list(test)])


@dataclass(frozen=True)
class SpreadSampler:
    """Batches of the variance's correction at one time (None: the end of training)."""

    program: SpreadProgram
    clock: Clock
    seed: int
    functions: Functions | None = None

    def launch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if self.functions is not None:
            found = host_spread_batch(self.program, self.functions, (self.seed, number), self._weights(number))
            return np.asarray(found[0]), np.asarray(found[1])
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        first, second = spread_batch(self.program, key, self._weights(number))
        return np.asarray(first), np.asarray(second)

    def _weights(self, number: int) -> SpreadWeights:
        random, kind = np.random.default_rng((self.seed, number)), self.program.theory.U.dtype
        now = self.clock.now(self.program.count, random)
        if self.clock.time is None:
            return SpreadWeights(self._packed(now, kind), None)
        (first, over), (second, more) = (self.clock.late(now, random) for _ in range(2))
        late = (
            (self._packed(first, kind), jnp.asarray(over, kind)),
            (self._packed(second, kind), jnp.asarray(more, kind)),
        )
        return SpreadWeights(self._packed(now, kind), late)

    def _packed(self, now: Moment, kind: np.dtype) -> Packed:
        """Every weight that the contributions name."""
        found = {}
        for c in (*MEAN, *CROSS, SQUARE):
            weight = self.clock.weight(c.weight, now)
            found[c.weight] = (
                jnp.asarray(weight.number, kind),
                tuple(jnp.asarray(f, kind) for f in weight.factors.values()),
            )
        return found
