"""Train ensembles of real networks to the end, in batches, with the same algorithm objects as the theory.

The judge of the theory: n × (mean prediction - infinite-width mean), with standard errors. Two devices cut the noise:
each network is paired with its partner of sign-flipped last layer (odd fluctuations cancel), and the same network's
linearized prediction, which needs no training, is the control variate that isolates the effect of the differentials.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.ensemble.networks import Networks, Params, check_data, flip_last_layer
from numeric.errors import NumericError
from numeric.trained.algorithms import Algorithm, DivergentTraining


def trained_outputs(
    networks: Networks,
    params: Params,
    X: jax.Array,
    y: jax.Array,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
) -> jax.Array:
    """Outputs (count, n_L, N) of a batch after `steps` steps of the algorithm on the MSE loss over `train`."""
    if algorithm.continuous:
        raise NumericError("Real networks train in steps: give GradientDescent with a small eta for gradient flow.")
    picked = X[jnp.array(train)]
    rates = networks.rates()

    def loss(batch: Params) -> jax.Array:
        return jnp.sum((networks.outputs(batch, picked) - y.T) ** 2) / 2

    def step(carry: tuple[Params, list], index: int) -> tuple[tuple[Params, list], None]:
        batch, memories = carry
        gradients = jax.grad(loss)(batch)
        new_batch, new_memories = [], []
        for layer, pair in enumerate(batch):
            new_pair, new_pair_memories = [], []
            for kind in range(2):
                memory, move = algorithm.update(
                    memories[layer][kind], rates[layer][kind] * gradients[layer][kind], index
                )
                new_pair.append(pair[kind] - move)
                new_pair_memories.append(memory)
            new_batch.append(tuple(new_pair))
            new_memories.append(tuple(new_pair_memories))
        return (new_batch, new_memories), None

    zeros = [tuple((jnp.zeros_like(x),) * algorithm.memory_size for x in pair) for pair in params]
    carry = (params, zeros)
    for index in range(min(algorithm.stages, steps)):
        carry, _ = step(carry, index)
    rest = steps - min(algorithm.stages, steps)
    lasting = partial(step, index=algorithm.stages)
    carry, _ = jax.lax.scan(lambda c, _: lasting(c), carry, None, length=rest)
    return networks.outputs(carry[0], X)


def linearized_outputs(
    networks: Networks, params: Params, X: jax.Array, y: jax.Array, train: tuple[int, ...]
) -> tuple[jax.Array, jax.Array]:
    """The end of training (infinity.93) of each network's linearization, and of its sign-flipped partner's."""
    ntk, z = networks.ntk(params, X), networks.outputs(params, X)
    picked, outputs = jnp.array(train), z.shape[1]
    cross = ntk[..., picked].transpose(0, 1, 3, 2, 4).reshape(*z.shape, outputs * len(train))
    block = cross[:, :, picked].reshape(-1, outputs * len(train), outputs * len(train))
    flat = jnp.stack([(sign * z[:, :, picked] - y.T).reshape(len(z), -1) for sign in (1, -1)], axis=-1)
    weights = jnp.linalg.solve(block, flat)
    moved = jnp.einsum("cidm,cms->scid", cross, weights)
    return z - moved[0], -z - moved[1]


@dataclass(frozen=True)
class EnsembleResult:
    """Per-pair averages of trained and linearized outputs on all inputs, (pairs, n_L, N), and the worst train error.

    Networks come in pairs of sign-flipped last layers; a pair is one independent sample. `linear` may hold more pairs.
    """

    trained: np.ndarray
    linear: np.ndarray
    products: np.ndarray
    training_error: float

    @property
    def interaction(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of (trained - linearized): what the dNTK and ddNTKs do."""
        return mean_and_error(self.trained - self.linear[: len(self.trained)])

    @property
    def linearized(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of the linearized prediction: the NTK's mean and fluctuation."""
        return mean_and_error(self.linear)

    @property
    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of the trained prediction, the linearized one as control variate."""
        if len(self.linear) == len(self.trained):
            return mean_and_error(self.trained)
        (a, error_a), (b, error_b) = self.interaction, self.linearized
        return a + b, np.hypot(error_a, error_b)

    @property
    def covariance(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariance [i, j, δ1, δ2] of the trained outputs and its standard error."""
        center = self.trained.mean(axis=0)
        second, error = mean_and_error(self.products)
        return second - np.einsum("ia,jb->ijab", center, center), error


def mean_and_error(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and its standard error."""
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def train_ensemble(
    networks: Networks,
    X: Any,
    y: Any,
    train: Sequence[int],
    algorithm: Algorithm,
    *,
    pairs: int,
    steps: int,
    seed: int = 0,
    linear_pairs: int = 0,
    batch: int = 256,
    tolerance: float = 1e-6,
    progress: bool | None = None,
) -> EnsembleResult:
    """Train `pairs` pairs of networks (and linearize `linear_pairs` more); reproducible from the seed and the batch.

    Raises if a network has not reached its targets to `tolerance` after `steps` steps.
    """
    X, y, chosen = check_data(X, y, train, networks.widths[-1])
    root = jax.random.key(seed)
    rounds, extra = -(-pairs // batch), -(-linear_pairs // batch)
    trained, linear, products, worst = [], [], [], 0.0
    with _progress(rounds + extra, progress) as tick:
        for index in range(rounds + extra):
            params = networks.sample(jax.random.fold_in(root, index), batch)
            if index < rounds:
                end, start, product, miss = _pair(params, X, y, networks, chosen, algorithm, steps)
                trained.append(np.asarray(end))
                products.append(np.asarray(product))
                worst = max(worst, float(miss))
                if not worst < tolerance:
                    raise DivergentTraining(
                        f"After {steps} steps a network misses its targets by {worst:.3g}: take more steps or a "
                        "smaller learning rate."
                    )
            else:
                start = _linear_pair(params, X, y, networks, chosen)
            linear.append(np.asarray(start))
            tick()
    return EnsembleResult(np.concatenate(trained), np.concatenate(linear), np.concatenate(products), worst)


@partial(jax.jit, static_argnums=(3, 4, 5, 6))
def _pair(
    params: Params,
    X: jax.Array,
    y: jax.Array,
    networks: Networks,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Averages over each pair: trained outputs, linearized ones, products of trained ones; and the worst error."""
    ends = jnp.stack(
        [trained_outputs(networks, p, X, y, train, algorithm, steps) for p in (params, flip_last_layer(params))]
    )
    products = jnp.einsum("scia,scjb->cijab", ends, ends) / 2
    worst = jnp.max(jnp.abs(ends[..., np.array(train)] - y.T))
    return ends.mean(axis=0), _linear_pair(params, X, y, networks, train), products, worst


@partial(jax.jit, static_argnums=(3, 4))
def _linear_pair(params: Params, X: jax.Array, y: jax.Array, networks: Networks, train: tuple[int, ...]) -> jax.Array:
    return jnp.stack(linearized_outputs(networks, params, X, y, train)).mean(axis=0)


class _progress:
    """A rich progress bar when standard error is a terminal (or when asked for)."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        self.total, self.wanted = total, sys.stderr.isatty() if wanted is None else wanted

    def __enter__(self):
        if not self.wanted:
            return lambda: None
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True))
        self.bar.start()
        task = self.bar.add_task("training networks", total=self.total)
        return lambda: self.bar.advance(task)

    def __exit__(self, *_: object) -> None:
        if self.wanted:
            self.bar.stop()
