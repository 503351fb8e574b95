"""Variances of trained outputs at order 1/n, at the end of training: the same draws, initial outputs kept.

By Stein's lemma the response of the mean to the initial outputs is the mean of their product with the drawn forces.
What else correlates with an initial output (z with ΔH and dH) and the NTK's fluctuation with itself have two test
inputs; their diagonals come from random signs ε: the mean of ε_δ (M ε)_δ is M_δδ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.contributions import Contribution
from numeric.generated.training import CROSS, CUMULANTS, MEAN, SQUARE, WEIGHTS
from numeric.trained.infinite import KernelPrediction
from numeric.trained.sampled.forces import Forces, Theory, draw
from numeric.trained.sampled.times import Evolution, Mixture, Moment, Nodes, letters
from numeric.trained.statistics import partner

Array = jax.Array
Packed = Mapping[str, tuple[Array, Sequence[Array]]]


@partial(jax.tree_util.register_dataclass, data_fields=["theory", "residual"], meta_fields=["count"])
@dataclass(frozen=True)
class SpreadProgram:
    """`residual` (tests, inputs): how initial outputs and forces reach the trained outputs of test inputs."""

    theory: Theory
    residual: Array
    count: int


@jax.jit
def spread_batch(program: SpreadProgram, key: Array, weights: Packed) -> tuple[Array, Array]:
    """Sums over a batch of draws of the variance's correction, and of its squares: (outputs, tests)."""
    theory, W = program.theory, program.residual
    own, signs_key = jax.random.split(key)
    drawn, z = draw(theory, own, program.count)
    forces = Forces(theory, drawn)
    signs = jax.random.rademacher(signs_key, (program.count, 1, 1, len(W)), W.dtype)
    outside = signs @ W
    odd = jnp.zeros((), W.dtype)
    for c in MEAN:
        both = forces.signed(c, weights[c.weight])
        odd = odd + (both[:, 0] - both[:, 1]) / 2
    total = 2 * (z @ W.T) * (odd @ W.T)
    for c in CROSS:
        total = total + 2 * signs[:, 0] * (_crossed(forces, c, weights[c.weight], outside) @ W.T)
    number, (factor,) = weights[SQUARE.weight]
    both_modes = (number**2, (factor, factor))
    total = total + signs[:, 0] * (_crossed(forces, SQUARE, both_modes, outside) @ W.T)
    total = total.astype(jnp.float64)
    return jnp.sum(total, axis=0), jnp.sum(total**2, axis=0)


def _crossed(forces: Forces, c: Contribution, weight: tuple[Array, Sequence[Array]], outside: Array) -> Array:
    """A contribution with `outside` on its first external slot, and the second left: (S, outputs, inputs)."""
    number, factors = weight
    total: Array | None = None
    for pairing in CUMULANTS[c.product]:
        together = partner(pairing.pairs, c.external[0]) == c.external[1]
        if set(c.kinds) == {"e"}:
            errors = forces.draw.mixed if together else forces.draw.errors
            scale, bridges = 1.0, {}
            vectors = {slot: forces.vector(c, slot, errors, factors) for slot in range(2)}
        else:
            scale, vectors = float(len(forces.theory.y)) if together else 1.0, {}
            bridges = {(0, 1): forces.factor(c, (0, 1), factors)}
        value = scale * jnp.mean(forces.tensor(pairing, c, vectors, bridges, c.external[1], outside), axis=1)
        total = value if total is None else total + value
    assert total is not None
    return number[:, None, None] * jnp.broadcast_to(total, (total.shape[0], len(forces.theory.y), total.shape[2]))


def exact_part(kernel: KernelPrediction, residual: np.ndarray, kernels: Mapping[str, np.ndarray]) -> np.ndarray:
    """What needs no draws, (tests,): G1's share and H1's."""
    train = list(kernel.train)
    own = np.einsum("xa,ab,xb->x", residual, kernels["G1"], residual)
    moved = residual @ kernels["H1"][:, train] @ kernel.modes.inverse @ kernel.K[train]
    return own - 2 * np.einsum("xa,xa->x", moved, residual)


@dataclass(frozen=True)
class SpreadSampler:
    """Batches of the variance's correction at the end of training."""

    program: SpreadProgram
    weights: Callable[[int], Packed]
    seed: int

    def launch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        key = jax.random.fold_in(jax.random.key(self.seed), number)
        first, second = spread_batch(self.program, key, self.weights(number))
        return np.asarray(first), np.asarray(second)


def spread_weights(evolution: Evolution, mixture: Mixture, seed: int, count: int, dtype: Any, number: int) -> Packed:
    """Every weight that the contributions name, with times drawn for batch `number`."""
    random = np.random.default_rng((seed, number))
    now = Moment(evolution, mixture, np.full(count, np.inf), random)
    found = {}
    for c in (*MEAN, *CROSS, SQUARE):
        rank = WEIGHTS[c.weight].__code__.co_argcount - 1
        weight = WEIGHTS[c.weight](Nodes(), *letters(rank)).at(now)
        factors = tuple(jnp.asarray(weight.factors[label], dtype) for label in letters(rank))
        found[c.weight] = (jnp.asarray(weight.number, dtype), factors)
    return found
