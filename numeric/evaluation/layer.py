"""The pure core of the flow: the first layer, and one layer step on arrays. It can be jitted, mapped, differentiated.

The brackets come from `numeric.brackets` by a plan that was chosen beforehand; the recursions from generated code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Order, Pattern, Plan, tensor
from numeric.evaluation.bracket_tables import brackets
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters
from numeric.subscripts import Rows, Steps, Stored, Values, View, views

Tensors = dict[str, jax.Array]


def layer_values(parameters: Parameters, widths: tuple[int, ...], layer: int) -> Values:
    """C_b, C_W, lambda_b, lambda_W of a layer (counted from 1) and the ratio r of the step that leads to it."""
    values = {name: getattr(parameters, name)[layer - 1] for name in HYPERPARAMETERS}
    ratio = widths[layer - 1] / widths[layer - 2] if layer > 1 else 1.0
    return values | {"r": jnp.asarray(ratio, values["C_W"].dtype)}


def host_values(parameters: Parameters, widths: tuple[int, ...], layer: int) -> Any:
    """`layer_values` as numbers of NumPy."""
    values: dict[str, Any] = {
        name: np.float64(np.asarray(getattr(parameters, name))[layer - 1]) for name in HYPERPARAMETERS
    }
    return values | {"r": np.float64(widths[layer - 1] / widths[layer - 2] if layer > 1 else 1.0)}


def first_kernel(steps: Steps, name: str, values: Values, gram: jax.Array) -> jax.Array:
    """K or Theta at the first layer, from x_a.x_b / n_0 of whatever rows and columns."""
    first = steps[name].first
    assert first is not None, f"{name} vanishes at the first layer"
    return first(values, View(gram, 2))


def first_layer(steps: Steps, names: tuple[str, ...], X: jax.Array, values: Values) -> Tensors:
    """Layer 1: K and Theta from the inputs, all others zero."""
    xp = np if isinstance(X, np.ndarray) else jnp
    size = X.shape[0]
    gram = X @ X.T / X.shape[1]
    tensors = {}
    for name in names:
        step = steps[name]
        start = step.first(values, View(gram, step.rank)) if step.first is not None else xp.zeros((), X.dtype)
        tensors[name] = xp.broadcast_to(start, (size,) * step.rank).astype(X.dtype)
    return tensors


def needed(steps: Steps, names: tuple[str, ...]) -> tuple[tuple[Order, ...], tuple[Pattern, ...]]:
    """The pair and four-point patterns that a set of tensors uses."""
    pairs = sorted({pattern for name in names for pattern in steps[name].pairs})
    quads = sorted({pattern for name in names for pattern in steps[name].quads})
    return tuple(pairs), tuple(quads)


def advance(
    functions: Functions, steps: Steps, names: tuple[str, ...], plan: Plan, values: Values, tensors: Tensors
) -> Tensors:
    """All tensors of the next layer."""
    orders_two, orders_four = needed(steps, names)
    pairs, unique = brackets(functions, plan, tensors["K"], orders_two, orders_four)
    return combine(steps, names, values, tensors, pairs, unique, orders_four)


def combine(
    steps: Steps,
    names: tuple[str, ...],
    values: Values,
    tensors: Mapping[str, jax.Array],
    pairs: Mapping[Order, jax.Array],
    unique: jax.Array | None,
    quads: tuple[Pattern, ...],
) -> Tensors:
    """The recursions, given the brackets: every four-point tensor is laid out once, then all are read from these."""
    size = tensors["K"].shape[0]
    four: dict[Pattern, jax.Array] = {}
    if unique is not None:
        used = needed(steps, names)[1]
        four = {p: tensor(unique, quads, p, size) for p in used}
    out = {}
    for name in names:
        rank = steps[name].rank
        s, m, t = views(pairs, rank), views(four, rank), views(tensors, rank)
        out[name] = steps[name].advance(values, s, m, t).astype(tensors["K"].dtype)
    return out


def combine_pairs(
    steps: Steps,
    names: tuple[str, ...],
    values: Values,
    tensors: Mapping[str, jax.Array],
    pairs: Mapping[Order, jax.Array],
) -> Tensors:
    """The recursions of K and Theta for whatever rows and columns the brackets are of."""
    s, t = views(pairs, 2), views(tensors, 2)
    return {name: steps[name].advance(values, s, {}, t).astype(tensors["K"].dtype) for name in names}


def combine_rows(
    steps: Steps,
    names: tuple[str, ...],
    values: Values,
    tensors: Mapping[str, jax.Array],
    pairs: Mapping[Order, jax.Array],
    unique: jax.Array,
    quads: tuple[Pattern, ...],
    rows: Rows,
) -> Tensors:
    """The recursions of four-point tensors on some rows only, brackets read straight from the unique quadruples."""
    size = tensors["K"].shape[0]
    s, t = views(pairs, 4, rows), views(tensors, 4, rows)
    m = {p: Stored(unique, quads, p, size, rows) for p in quads}
    return {name: steps[name].advance(values, s, m, t).astype(tensors["K"].dtype) for name in names}
