"""K and Theta through all layers in one compiled loop, where their brackets are closed forms that need no plan.

For a thousand inputs a layer takes milliseconds: looking at each layer's kernel would cost more than the layer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp

from numeric.brackets import Functions, Plan
from numeric.evaluation.compiled import Table
from numeric.evaluation.layer import Tensors, advance
from numeric.subscripts import Values

STEP = 16  # values are padded to a multiple of so many layers: one program serves many depths


def kernel_scan(
    functions: Functions, table: Table, names: tuple[str, ...], plan: Plan, values: Sequence[Values], tensors: Tensors
) -> tuple[Tensors, Tensors]:
    """The tensors after one step for each of `values`, and the largest entry of each on the way (NaN if one was)."""
    padded = [*values, *[values[-1]] * (-len(values) % STEP)]
    stacked = {name: jnp.stack([v[name] for v in padded]) for name in values[0]}
    return _loop(functions, table, names)(plan, stacked, tensors, len(values))


@lru_cache(maxsize=64)
def _loop(functions: Functions, table: Table, names: tuple[str, ...]) -> Callable[..., tuple[Tensors, Tensors]]:
    def loop(plan: Plan, values: Values, tensors: Tensors, count: jax.Array) -> tuple[Tensors, Tensors]:
        def step(layer: jax.Array, state: tuple[Tensors, Tensors]) -> tuple[Tensors, Tensors]:
            now, largest = state
            own = {name: array[layer] for name, array in values.items()}
            new = advance(functions, table.steps, names, plan, own, now)
            return new, {name: jnp.maximum(largest[name], x) for name, x in _largest(new).items()}

        return jax.lax.fori_loop(0, count, step, (tensors, _largest(tensors)))

    return jax.jit(loop)


def _largest(tensors: Tensors) -> Tensors:
    return {name: jnp.max(jnp.abs(x)) for name, x in tensors.items()}
