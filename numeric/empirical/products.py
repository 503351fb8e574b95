"""The NTK of a real network without its matrix: products for the iterative solvers, and random features of it.

A product is one backward and one forward pass over the training set, in batches. Random features are directional
derivatives along random signs s_j: psi_j(x) = grad f(x) . sqrt(lambda) s_j / sqrt(p), whose products have the NTK as
their mean and fall on it as 1/sqrt(p); p forward passes, and no gradient is held.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from numeric.empirical.model import Apply, Params, flat_rates
from numeric.errors import NumericError
from numeric.given import a_seed, finite, whole
from numeric.progress import progress_bar
from numeric.trained.operators import MEMORY, KernelOperator

Array = np.ndarray


def _double(X: Any) -> jax.Array:
    """Inputs that are real numbers in double precision, as the parameters; others (labels of words) as they are."""
    inputs = jnp.asarray(X)
    return inputs.astype(float) if jnp.issubdtype(inputs.dtype, jnp.floating) else inputs


class NTKOperator(KernelOperator):
    """The NTK of `apply(params, X)` on X, acting on (sample, output) rows; the learning rates are `rates`.

    Parameters are taken in double precision, as the solvers' residuals need.

    >>> ntk = NTKOperator(lambda w, X: X @ w, jnp.ones(2), jnp.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> ntk.product(np.array([[1.0], [1.0]])).tolist()
    [[4.0], [28.0]]
    """

    def __init__(
        self,
        apply: Apply,
        params: Params,
        X: Any,
        rates: Params | None = None,
        memory: float = MEMORY,
        progress: bool | None = None,
    ) -> None:
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), params)
        self.apply, self.params, self.X = apply, params, _double(X)
        if self.X.ndim < 1 or len(self.X) == 0:
            raise NumericError("the NTK needs at least one input")
        shape = jax.eval_shape(apply, params, self.X).shape
        if len(shape) not in (1, 2) or shape[0] != len(self.X):
            raise NumericError(
                f"apply(params, X) must return (inputs,) or (inputs, outputs), not an array of shape {shape}"
            )
        self.outputs = 1 if len(shape) == 1 else shape[1]
        self.size, self.progress = len(self.X) * self.outputs, progress
        self.point, self._unravel = ravel_pytree(params)
        self.rates = flat_rates(params, rates)
        self.batch = batch_rows(apply, params, self.X, memory)
        self._back = jax.jit(self._backward)
        self._forth = jax.jit(self._forward)

    def product(self, V: Array) -> Array:
        given = np.asarray(V, float).reshape(len(self.X), self.outputs, -1)
        return self.along(self.directions(given)).reshape(self.size, -1)

    def directions(self, V: Array) -> jax.Array:
        """lambda grad f . V, one parameter vector a column: (columns, parameters)."""
        total = jnp.zeros((V.shape[2], self.point.size), self.point.dtype)
        with progress_bar(-(-len(self.X) // self.batch), self.progress, "backward") as tick:
            for i in range(0, len(self.X), self.batch):
                rows = slice(i, i + self.batch)
                total = total + self._back(self.X[rows], jnp.asarray(V[rows], self.point.dtype))
                tick(1)
        return self.rates[None] * total

    def along(self, directions: jax.Array, X: Any = None) -> Array:
        """grad f(x) . direction for every direction, (inputs, outputs, columns), on the training inputs or others."""
        inputs = self.X if X is None else _double(X)
        parts = [
            np.asarray(self._forth(inputs[i : i + self.batch], directions)) for i in range(0, len(inputs), self.batch)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.outputs, len(directions)))

    def _outputs(self, point: jax.Array, X: jax.Array) -> jax.Array:
        return self.apply(self._unravel(point), X).reshape(len(X), self.outputs)

    def _backward(self, X: jax.Array, V: jax.Array) -> jax.Array:
        out, pull = jax.vjp(lambda p: self._outputs(p, X), self.point)
        return jax.lax.map(lambda v: pull(v.astype(out.dtype))[0], jnp.moveaxis(V, 2, 0))

    def _forward(self, X: jax.Array, directions: jax.Array) -> jax.Array:
        _, push = jax.linearize(lambda p: self._outputs(p, X), self.point)
        return jnp.moveaxis(jax.lax.map(push, directions), 0, 2)


def batch_rows(apply: Apply, params: Params, X: jax.Array, memory: float) -> int:
    """Inputs whose activations, a number for every two operations, fit into the budget; a quarter of it at a time."""
    finite(memory, "The memory", above=0)
    one = jax.ShapeDtypeStruct((1, *X.shape[1:]), X.dtype)
    traced = jax.make_jaxpr(apply)(params, one)
    numbers = sum(_size(v) for eqn in traced.jaxpr.eqns for v in eqn.outvars) + int(np.prod(X.shape[1:], dtype=int))
    fits = int(memory / (4 * 8 * max(numbers, 1)))
    if fits < 1:
        raise NumericError(f"memory={memory:g} bytes does not hold the activations of one input, about {32 * numbers}")
    return min(len(X), fits)


def _size(v: Any) -> int:
    return int(np.prod(getattr(v.aval, "shape", ()), dtype=int))


def random_features(
    apply: Apply,
    params: Params,
    X: Any,
    count: int,
    *,
    rates: Params | None = None,
    seed: int = 0,
    memory: float = MEMORY,
) -> Array:
    """`count` random features of the NTK, (inputs, count), or (inputs x outputs, count) for models with outputs.

    The same seed gives the same directions, so that features of training and test inputs belong together.

    >>> psi = random_features(lambda w, X: X @ w, jnp.ones(2), jnp.eye(2), 4000)
    >>> bool(np.abs(psi @ psi.T - np.eye(2)).max() < 0.1)
    True
    """
    whole(count, "The number of features", least=1)
    ntk = NTKOperator(apply, params, X, rates, memory)
    root = jnp.sqrt(ntk.rates)
    key = jax.random.key(a_seed(seed))
    parts, step = [], max(1, min(count, int(memory / (4 * 8 * max(ntk.point.size, 1)))))
    for start in range(0, count, step):
        which = jnp.arange(start, min(start + step, count))
        signs = jax.vmap(lambda j: jax.random.rademacher(jax.random.fold_in(key, j), (ntk.point.size,)))(which)
        parts.append(ntk.along(root[None] * signs.astype(ntk.point.dtype)))
    return np.concatenate(parts, axis=2).reshape(ntk.size, count) / np.sqrt(count)
