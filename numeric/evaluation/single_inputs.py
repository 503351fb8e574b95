"""Single inputs through all layers, where brackets are closed forms that need no plan: the variances that tiles of
K and Theta (`numeric.evaluation.kernel_tiles`) stand on. On the host unless layers are very many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan
from numeric.evaluation.compiled import Table
from numeric.evaluation.layer import Tensors, combine_pairs, first_kernel, needed
from numeric.subscripts import Steps, Values

DEEP = 512  # layers from which compiling the loop over variances pays


class Start(NamedTuple):
    """The network's first layer: inputs, which of them are the same, and the values of its hyperparameters."""

    X: np.ndarray
    names: np.ndarray
    values: Any

    @classmethod
    def of(cls, X: np.ndarray, values: Any) -> Start:
        return cls(X, np.unique(X, axis=0, return_inverse=True)[1].ravel().astype(np.int32), values)

    def single(self, steps: Steps, names: tuple[str, ...]) -> Any:
        """The tensors at each input, (N, 1)."""
        line: Any = np.sum(self.X * self.X, axis=1)[:, None] / self.X.shape[1]
        return {name: first_kernel(steps, name, self.values, line) for name in names}


class Diagonals(NamedTuple):
    """The variances before each step and after the last, (steps + 1, N), and the largest entry of each tensor on the
    way (NaN if one was): it stands on the diagonal of K and Theta, since both are positive.
    """

    variances: np.ndarray
    largest: dict[str, float]


def diagonals(
    functions: Functions, table: Table, names: tuple[str, ...], plan: Plan, values: Sequence[Any], start: Start
) -> Diagonals:
    """The tensors of single inputs through all layers, one step for each of `values`."""
    now = start.single(table.steps, names)
    if len(values) > DEEP:
        stacked = {name: jnp.asarray(np.stack([v[name] for v in values])) for name in values[0]}
        line, most = _line(functions, table, names)(plan, stacked, now)
        return Diagonals(np.asarray(line), {name: float(x) for name, x in most.items()})
    orders = needed(table.steps, names)[0]
    host: Any = jax.tree_util.tree_map(np.asarray, plan.pairs)
    variances = [now["K"][:, 0]]
    largest = {name: float(np.max(np.abs(x))) for name, x in now.items()}
    with np.errstate(all="ignore"):
        for own in values:
            found = host.single(functions, orders, variances[-1])
            now = combine_pairs(table.steps, names, own, now, {o: value[:, None] for o, value in found.items()})
            largest = {name: float(np.maximum(largest[name], np.max(np.abs(x)))) for name, x in now.items()}
            variances.append(now["K"][:, 0])
    return Diagonals(np.stack(variances), largest)


@lru_cache(maxsize=64)
def _line(functions: Functions, table: Table, names: tuple[str, ...]) -> Callable[..., tuple[jax.Array, Tensors]]:
    orders = needed(table.steps, names)[0]

    def line(plan: Plan, values: Values, start: Tensors) -> tuple[jax.Array, Tensors]:
        def step(state: tuple[Tensors, Tensors], own: Values) -> tuple[tuple[Tensors, Tensors], jax.Array]:
            now, largest = state
            variances = now["K"][:, 0]
            found = plan.pairs.single(functions, orders, variances)
            new = combine_pairs(table.steps, names, own, now, {order: value[:, None] for order, value in found.items()})
            return (new, {name: jnp.maximum(largest[name], jnp.max(jnp.abs(new[name]))) for name in names}), variances

        largest = {name: jnp.max(jnp.abs(start[name])) for name in names}
        (end, largest), variances = jax.lax.scan(step, (start, largest), values)
        return jnp.concatenate([variances, end["K"].T]), largest

    return jax.jit(line)
