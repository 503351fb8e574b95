"""What a user hands to `flow`, checked and brought into one form; each complaint is one clear sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from numeric.errors import NumericError

Values: TypeAlias = ArrayLike | Sequence[float]
"""A hyperparameter: one number, or one a layer."""
Inputs: TypeAlias = ArrayLike | Sequence[Sequence[float]]
"""X: one row for each input."""
HYPERPARAMETERS = ("C_b", "C_W", "lambda_b", "lambda_W")
LARGEST_DEPTH = 100_000
FLOATS = {"float64": jnp.float64, "float32": jnp.float32}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Parameters:
    """Per-layer hyperparameters, each an array of L values: entry l - 1 belongs to layer l."""

    C_b: jax.Array
    C_W: jax.Array
    lambda_b: jax.Array
    lambda_W: jax.Array


def is_traced(*values: Any) -> bool:
    """Whether JAX is transforming: then values cannot be looked at."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(values))


def read_dtype(dtype: Any) -> Any:
    """float64 or float32, by name or type."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    if name not in FLOATS:
        raise NumericError(f"dtype is float64 or float32, not {name}.")
    return FLOATS[name]


def _real(values: Any) -> np.ndarray | None:
    """An array of floats, or None if these are no real numbers."""
    try:
        array = np.asarray(values)
        return array.astype(float) if array.dtype.kind in "biuf" else None
    except (TypeError, ValueError):
        return None


def read_inputs(X: Any, dtype: Any) -> jax.Array:
    """X as an array of shape (N, n_0)."""
    if not is_traced(X):
        host = _real(X)
        if host is None:
            raise NumericError("X must be a rectangular array of real numbers, one row for each input.")
        if host.ndim != 2 or 0 in host.shape:
            raise NumericError(f"X must have shape (N, n_0), one row for each input; its shape is {host.shape}.")
        if not np.isfinite(host).all():
            row = int(np.argwhere(~np.isfinite(host).all(axis=1))[0, 0])
            raise NumericError(f"Input {row} of X holds NaN or infinity.")
        X = host
    array = jnp.asarray(X, dtype=dtype)
    if array.ndim != 2:
        raise NumericError(f"X must have shape (N, n_0), one row for each input; its shape is {array.shape}.")
    return array


def read_depth(depth: Any) -> int:
    """L, the number of weight layers."""
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 1:
        raise NumericError(f"depth is the number of weight layers, a whole number from 1 on, not {depth!r}.")
    if depth > LARGEST_DEPTH:
        raise NumericError(f"depth is at most {LARGEST_DEPTH}, not {depth}.")
    return int(depth)


def read_widths(width: Any, depth: int, n_0: int) -> tuple[int, ...]:
    """(n_0, n_1, ..., n_{L-1}): the input dimension and the hidden widths."""
    if isinstance(width, np.ndarray | jax.Array):
        width = np.asarray(width).tolist()
    if isinstance(width, Sequence) and not isinstance(width, str):
        widths = list(width)
        if len(widths) != depth - 1:
            raise NumericError(f"depth {depth} has {depth - 1} hidden layers, but {len(widths)} widths are given.")
    else:
        widths = [width] * (depth - 1)
    for value in widths:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise NumericError(f"A width is a whole number from 1 on, not {value!r}.")
    return (n_0, *(int(value) for value in widths))


def read_memory(memory: Any) -> float:
    """A budget in bytes."""
    if isinstance(memory, bool) or not isinstance(memory, int | float | np.number) or not memory > 0:
        raise NumericError(f"memory is a budget in bytes, a positive number such as 8e9, not {memory!r}.")
    return float(memory)


def read_parameters(depth: int, dtype: Any, given: Mapping[str, Values]) -> dict[str, jax.Array]:
    """Scalars or L values each, as arrays of length L."""
    arrays = {}
    for name, value in given.items():
        if not is_traced(value):
            host = _real(value)
            if host is None:
                raise NumericError(f"{name} must be a number or a sequence of {depth} numbers.")
            if not np.isfinite(host).all():
                raise NumericError(f"{name} holds NaN or infinity.")
            if (host < 0).any():
                raise NumericError(f"{name} must not be negative; it is {float(host.min()):g}.")
            value = host
        xp: Any = jnp if is_traced(value) else np  # numbers need no program to be repeated
        array = xp.asarray(value, dtype=dtype)
        if array.shape not in ((), (depth,)):
            raise NumericError(
                f"{name} must be one number or {depth} numbers, one a layer; its shape is {array.shape}."
            )
        arrays[name] = jnp.asarray(xp.broadcast_to(array, (depth,)))
    return arrays


def read_skip(skip: Any, depth: int, widths: tuple[int, ...], dtype: Any) -> jax.Array | None:
    """The skip into each layer, L values, zero into the first and the last; None if there is none at all.

    One number is for all layers between hidden ones; else L - 2 numbers, or L with zeros at both ends.
    """
    if skip is None:
        return None
    traced, steps = is_traced(skip), max(depth - 2, 0)
    given = skip if traced else _real(skip)
    if given is None or (not traced and not np.isfinite(given).all()):
        raise NumericError(f"skip is a number, or {steps} numbers, one for each step between hidden layers.")
    xp: Any = jnp if traced else np  # numbers that are known stay on the host, under jit too
    array = xp.asarray(given, dtype)
    if array.shape == ():
        array = xp.full(steps, array)
    elif array.shape == (depth,) and depth > 1:
        if not traced and (given[0] or given[-1]):
            raise NumericError("The first and the last layer have no skip: their entries of skip are 0.")
        array = array[1:-1]
    elif array.shape != (steps,):
        raise NumericError(
            f"skip is a number, or {steps} numbers, one for each step between hidden layers; its shape is "
            f"{array.shape}."
        )
    if not traced and not np.asarray(array).any():
        return None
    for number, (below, above) in enumerate(pairwise(widths[1:])):
        if below != above and (traced or bool(array[number])):
            raise NumericError(
                f"A skip joins layers of equal width; hidden layers {number + 1} and {number + 2} have {below} and "
                f"{above} neurons."
            )
    return jnp.concatenate([jnp.zeros(1, dtype), jnp.asarray(array), jnp.zeros(1, dtype)])
