"""Draws: neurons of each hidden layer as sources, initial outputs, random vectors; compiled, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions
from numeric.brackets.rules import evaluate
from numeric.trained.sampled.kept import Kept, kept
from numeric.trained.sampled.objects import HIGHEST, Activities, activities_of
from numeric.trained.sampled.theory import Theory

Array = jax.Array


Noise = Callable[[int, int, int], Array]
"""Standard normal numbers (S, 1, outputs, rank) for a place, a number there and a rank."""


@dataclass(frozen=True)
class Draw:
    """Drawn neurons of each hidden layer as a source, and initial outputs z for each output: (S, 1, outputs, M).

    `errors` are initial errors ±z - y in the modes, (S, 2, outputs, M); `mixed` are they in an order that a random
    number shifts, times the root of their number: the mean of mixed ⊗ mixed in a row is the sum over outputs of
    errors ⊗ errors, and so is its mean over the rows, draw by draw. `targets` are the targets likewise, each row with a
    random sign. `noise` makes the random vectors of pairs that are opened; `ones` is (1, 1, 1, N).
    """

    sources: Sequence[Activities]
    z: Array
    errors: Array
    mixed: Array
    targets: Array
    noise: Noise
    ones: Array


def draw(theory: Theory, key: Array, count: int) -> tuple[Draw, Array]:
    """`count` draws, and the initial outputs on all inputs (S, outputs, N); the same ones in either precision."""
    kind = theory.U.dtype
    keys = iter(jax.random.split(key, 4 + len(theory.layers)))
    sources = []
    for factor in theory.factors:
        noise = jax.random.normal(next(keys), (count, 1, 1, len(theory.U)), jnp.float32).astype(kind)
        sources.append(activities_of(theory.derivatives, noise @ factor.T))
    outputs = len(theory.y)
    noise = jax.random.normal(next(keys), (count, outputs, theory.initial.shape[1]), jnp.float32).astype(kind)
    z = noise @ theory.initial.T
    modes, y = z @ theory.U, theory.y[None]
    errors = jnp.stack([modes - y, -modes - y], axis=1)
    shift = jax.random.randint(next(keys), (count, 1), 0, outputs)
    order = ((jnp.arange(outputs)[None, :] + shift) % outputs)[:, None, :, None]
    mixed = outputs**0.5 * jnp.take_along_axis(errors, order, axis=2)
    signs = jax.random.rademacher(next(keys), (count, 1, outputs, 1), kind)
    every = jnp.broadcast_to(theory.y, (count, 1, *theory.y.shape))
    targets = outputs**0.5 * signs * jnp.take_along_axis(every, order, axis=2)
    last = next(keys)

    def vectors(place: int, number: int, rank: int) -> Array:
        own = jax.random.fold_in(jax.random.fold_in(last, place), number)
        return jax.random.normal(own, (count, 1, outputs, rank), jnp.float32).astype(kind)

    ones = jnp.ones((1, 1, 1, len(theory.U)), kind)
    return Draw(sources, modes[:, None], errors, mixed, targets, vectors, ones), z


def host_draw(theory: Theory, functions: Functions, seed: tuple[int, int], count: int) -> tuple[Draw, np.ndarray]:
    """`draw` of a theory of kept arrays, by NumPy."""
    made, kind = cast(Kept, theory.U).made, theory.U.dtype
    random = np.random.default_rng((*seed, 0))
    size, outputs = len(theory.U), len(theory.y)

    def normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
        return generator.standard_normal(shape, np.float32).astype(kind, copy=False)

    sources = []
    for factor in theory.factors:
        z = normal(random, count, size) @ _plain(factor).T
        values = {k: evaluate(functions, k, np.asarray(z, float)).astype(kind) for k in range(HIGHEST + 1)}
        sources.append({k: Kept(x[:, None, None], made) for k, x in values.items()})
    initial, U, y = (_plain(x) for x in (theory.initial, theory.U, theory.y))
    start = (normal(random, count * outputs, initial.shape[1]) @ initial.T).reshape(count, outputs, -1)
    modes = start @ U
    errors = np.stack([modes - y, -modes - y], axis=1)
    order = ((np.arange(outputs) + random.integers(0, outputs, (count, 1))) % outputs)[:, None, :, None]
    root = float(outputs**0.5)
    mixed = root * np.take_along_axis(errors, order, axis=2)
    signs = random.choice(np.array([-1, 1], kind), (count, 1, outputs, 1))
    targets = root * signs * np.take_along_axis(np.broadcast_to(y, (count, 1, *y.shape)), order, axis=2)

    def vectors(place: int, number: int, rank: int) -> Array:
        own = normal(np.random.default_rng((*seed, 1, place, number)), count, 1, outputs, rank)
        return cast(Array, Kept(own, made))

    z, errors, mixed, targets, ones = kept(
        (modes[:, None], errors, mixed, targets, np.ones((1, 1, 1, size), kind)), made
    )
    return Draw(cast(Any, sources), z, errors, mixed, targets, vectors, ones), start


def _plain(array: Any) -> np.ndarray:
    return cast(Kept, array).array
