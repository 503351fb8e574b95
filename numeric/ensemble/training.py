"""Train ensembles of real networks to the end, in batches, with the same algorithm objects as the theory.

The judge of the theory: n × (mean prediction - infinite-width mean), with standard errors. Two devices cut the noise:
each network is paired with its partner of sign-flipped last layer (odd fluctuations cancel), and the same network's
linearized prediction, which needs no training, is the control variate that isolates the effect of the differentials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.ensemble.networks import Networks, Params, check_data, flip_last_layer
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.given import a_seed
from numeric.progress import progress_bar
from numeric.trained.algorithms import Algorithm, DivergentTraining
from numeric.trained.losses import Loss
from numeric.trained.modes import modes_of


def newton_tensors(
    networks: Networks, params: Params, X: jax.Array, train: tuple[int, ...], algorithm: Algorithm
) -> jax.Array | None:
    """The Newton tensors (infinity.67)-(infinity.70) of a batch, (count or 1, n_L N_train, n_L N_train); None for none.

    Of each network's own NTK where the algorithm says so, with components mixed; else of the infinite-width NTK.
    """
    if not algorithm.preconditions:
        return None
    outputs, picked = networks.widths[-1], X[jnp.array(train)]
    size = outputs * len(train)
    if algorithm.own_ntk:
        ntk = np.asarray(networks.ntk(params, picked)).transpose(0, 1, 3, 2, 4)
        blocks = ntk.reshape(len(ntk), size, size)
        return jnp.asarray(np.stack([algorithm.newton(modes_of(block)) for block in blocks]))
    hyperparameters = (networks.C_b, networks.C_W, networks.lambda_b, networks.lambda_W)
    own = map(list, hyperparameters)
    f = flow(networks.activation, picked, networks.depth, None, *own, skip=networks.skip)
    newton = algorithm.newton(modes_of(np.asarray(f.Theta), train))
    return jnp.asarray(np.kron(np.eye(outputs), newton))[None]


def trained(
    networks: Networks,
    params: Params,
    X: jax.Array,
    y: jax.Array,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
    newton: jax.Array | None = None,
    loss: Loss | None = None,
) -> Params:
    """A batch of networks after `steps` steps of the algorithm on the MSE loss over `train` (or another loss, which has
    its own targets), Newton tensor and batches included."""
    picked, rates = X[jnp.array(train)], networks.rates()

    def gradients(batch: Params, index: jax.Array) -> Params:
        z, pull = jax.vjp(lambda p: networks.outputs(p, picked), batch)
        errors = z - y.T[None] if loss is None else jax.vmap(lambda own, error=loss.error: error(own.T).T)(z)
        return pull(_factors(errors, newton, algorithm, index))[0]

    def step(batch: Params, memories: list, index: jax.Array, stage: int) -> tuple[Params, list]:
        new_batch: Params = []
        new_memories = []
        for pair, slope, rate, memory in zip(batch, gradients(batch, index), rates, memories):
            moved = [algorithm.update(m, r * g, stage) for m, r, g in zip(memory, rate, slope)]
            first, second = (x - move for x, (_, move) in zip(pair, moved))
            new_batch.append((first, second))
            new_memories.append(tuple(m for m, _ in moved))
        return new_batch, new_memories

    zeros = [tuple((jnp.zeros_like(x),) * algorithm.memory_size for x in pair) for pair in params]
    return _repeat(step, params, zeros, algorithm, steps)


def linear_outputs(
    networks: Networks,
    params: Params,
    X: jax.Array,
    y: jax.Array,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
    newton: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Outputs of each network's linearization after `steps` steps, and those of its sign-flipped partner."""
    ntk, z = networks.ntk(params, X), networks.outputs(params, X)
    picked = jnp.array(train)

    def step(z: jax.Array, memories: tuple, index: jax.Array, stage: int) -> tuple[jax.Array, tuple]:
        factor = _factors(z[:, :, picked] - y.T[None], newton, algorithm, index)
        memories, move = algorithm.update(memories, factor, stage)
        return z - jnp.einsum("cijda,cja->cid", ntk[..., picked], move), memories

    zeros = (jnp.zeros((*z.shape[:2], len(train))),) * algorithm.memory_size
    return tuple(_repeat(step, sign * z, zeros, algorithm, steps) for sign in (1, -1))


def _factors(errors: jax.Array, newton: jax.Array | None, algorithm: Algorithm, index: jax.Array) -> jax.Array:
    """What multiplies the gradients in a step: the training errors (count, n_L, N_train) of its batch, times κ."""
    masks = algorithm.masks(errors.shape[-1])
    if masks is not None:
        errors = errors * jnp.asarray(masks)[index % len(masks)][None, None]
    if newton is not None:
        flat = errors.reshape(len(errors), -1, 1)
        errors = (newton @ flat).reshape(errors.shape)
    return errors


def _repeat(step: Callable, state: Any, memories: Any, algorithm: Algorithm, steps: int) -> Any:
    """The state after `steps` steps; the first ones have rules of their own."""
    if algorithm.continuous:
        raise NumericError("Real networks train in steps: give GradientDescent with a small eta for gradient flow.")
    first = min(algorithm.stages, steps)
    for index in range(first):
        state, memories = step(state, memories, jnp.asarray(index), index)

    def lasting(carry: tuple, index: jax.Array) -> tuple[tuple, None]:
        return step(*carry, index, algorithm.stages), None

    (state, memories), _ = jax.lax.scan(lasting, (state, memories), jnp.arange(first, steps))
    return state


def trained_outputs(
    networks: Networks,
    params: Params,
    X: jax.Array,
    y: jax.Array,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
    loss: Loss | None = None,
) -> jax.Array:
    """Outputs (count, n_L, N) of a batch after `steps` steps of the algorithm on the MSE loss over `train`, or another
    loss."""
    newton = newton_tensors(networks, params, X, train, algorithm)
    return networks.outputs(trained(networks, params, X, y, train, algorithm, steps, newton, loss), X)


def linearized_outputs(
    networks: Networks, params: Params, X: jax.Array, y: jax.Array, train: tuple[int, ...]
) -> tuple[jax.Array, jax.Array]:
    """The end of training (infinity.93) of each network's linearization, and of its sign-flipped partner's."""
    ntk, z = networks.ntk(params, X), networks.outputs(params, X)
    picked, outputs = jnp.array(train), z.shape[1]
    cross = ntk[..., picked].transpose(0, 1, 3, 2, 4).reshape(*z.shape, outputs * len(train))
    block = cross[:, :, picked].reshape(-1, outputs * len(train), outputs * len(train))
    flat = jnp.stack([(sign * z[:, :, picked] - y.T[None]).reshape(len(z), -1) for sign in (1, -1)], axis=-1)
    weights = jnp.linalg.solve(block, flat)
    first, second = jnp.einsum("cidm,cms->scid", cross, weights)
    return z - first, -z - second


@dataclass(frozen=True)
class EnsembleResult:
    """Per-pair averages of trained and linearized outputs on all inputs, (pairs, n_L, N), and the worst train error.

    Networks come in pairs of sign-flipped last layers; a pair is one independent sample. `linear` may hold more pairs.
    """

    trained: np.ndarray
    linear: np.ndarray
    products: np.ndarray
    training_error: float
    ntks: np.ndarray | None = None

    @property
    def ntk_change(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of H(t) - H(0), [i, j, δ1, δ2]; networks are trained with `ntk=True` for it."""
        if self.ntks is None:
            raise NumericError("The NTK's change is measured when asked for: train_ensemble(..., ntk=True).")
        return mean_and_error(self.ntks)

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
    tolerance: float | None = 1e-6,
    ntk: bool = False,
    progress: bool | None = None,
) -> EnsembleResult:
    """Train `pairs` pairs of networks (and linearize `linear_pairs` more); reproducible from the seed and the batch.

    The algorithm is what it says: Newton tensors (of each network's own NTK, or of the infinite-width one) and batches
    included. Raises if a network has not reached its targets to `tolerance` after `steps` steps. With tolerance=None
    training stops after `steps` steps wherever it is, and the linearized networks are those after as many steps. `ntk`
    measures the change of the NTK.
    """
    X, y, chosen = check_data(X, y, train, networks.widths[-1])
    root = jax.random.key(a_seed(seed))
    rounds, extra = -(-pairs // batch), -(-linear_pairs // batch)
    ends, linear, products, changes, worst = [], [], [], [], 0.0
    with progress_bar(rounds + extra, progress, "training networks") as tick:
        for index in range(rounds + extra):
            params = networks.sample(jax.random.fold_in(root, index), batch)
            if index < rounds:
                newton = newton_tensors(networks, params, X, chosen, algorithm)
                end, start, product, miss, change = _pair(
                    params, X, y, newton, networks, chosen, algorithm, steps, tolerance is not None, ntk
                )
                ends.append(np.asarray(end))
                products.append(np.asarray(product))
                changes.append(np.asarray(change))
                worst = max(worst, float(miss))
                if tolerance is not None and not worst < tolerance:
                    raise DivergentTraining(
                        f"After {steps} steps a network misses its targets by {worst:.3g}: take more steps or a "
                        "smaller learning rate."
                    )
            else:
                newton = newton_tensors(networks, params, X, chosen, algorithm) if tolerance is None else None
                start = _linear_pair(params, X, y, newton, networks, chosen, algorithm, steps, tolerance is not None)
            linear.append(np.asarray(start))
            tick(1)
    return EnsembleResult(
        np.concatenate(ends),
        np.concatenate(linear),
        np.concatenate(products),
        worst,
        np.concatenate(changes) if ntk else None,
    )


@partial(jax.jit, static_argnums=(4, 5, 6, 7, 8, 9))
def _pair(
    params: Params,
    X: jax.Array,
    y: jax.Array,
    newton: jax.Array | None,
    networks: Networks,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
    ended: bool,
    ntk: bool,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array | None]:
    """Averages over each pair: trained and linearized outputs, products of trained ones, worst error, NTK change."""
    both = [trained(networks, p, X, y, train, algorithm, steps, newton) for p in (params, flip_last_layer(params))]
    ends = jnp.stack([networks.outputs(end, X) for end in both])
    products = jnp.einsum("scia,scjb->cijab", ends, ends) / 2
    worst = jnp.max(jnp.abs(ends[..., np.array(train)] - y.T[None, None]))
    linear = _linear_pair(params, X, y, newton, networks, train, algorithm, steps, ended)
    change = None
    if ntk:
        change = jnp.stack([networks.ntk(end, X) for end in both]).mean(axis=0) - networks.ntk(params, X)
    return ends.mean(axis=0), linear, products, worst, change


@partial(jax.jit, static_argnums=(4, 5, 6, 7, 8))
def _linear_pair(
    params: Params,
    X: jax.Array,
    y: jax.Array,
    newton: jax.Array | None,
    networks: Networks,
    train: tuple[int, ...],
    algorithm: Algorithm,
    steps: int,
    ended: bool,
) -> jax.Array:
    found = (
        linearized_outputs(networks, params, X, y, train)
        if ended
        else linear_outputs(networks, params, X, y, train, algorithm, steps, newton)
    )
    return jnp.stack(found).mean(axis=0)
