"""What a model is: apply(params, X), a tree of parameters, and the diagonal of its learning-rate tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from numeric.errors import NumericError

Params = Any
Apply = Callable[[Params, Array], Array]


def flat_rates(params: Params, rates: Params | None) -> Array:
    """The diagonal of the learning-rate tensor as one vector; ones by default."""
    if rates is None:
        return jnp.ones_like(ravel_pytree(params)[0])
    expected: object = jax.tree.structure(params)
    if expected != jax.tree.structure(rates):
        raise NumericError("the learning rates must be a tree of the same structure as the parameters")
    try:
        full = jax.tree.map(lambda p, rate: jnp.broadcast_to(jnp.asarray(rate, p.dtype), p.shape), params, rates)
    except ValueError as error:
        raise NumericError(f"a learning rate does not broadcast to its parameters: {error}") from None
    return ravel_pytree(full)[0]
