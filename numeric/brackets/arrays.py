"""NumPy or JAX: one formula for both, on the host where compiling would take longer than computing, and compiled.

Formulas are written for the module that their arrays come from; only loops and the activation itself differ.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.rules import evaluate

Carry = TypeVar("Carry")


def module_of(x: Any) -> ModuleType:
    """numpy for its arrays and numbers, jax.numpy for all others."""
    return np if isinstance(x, np.ndarray | np.generic) else jnp


def sigma(functions: Functions, z: Any, order: int) -> Any:
    """sigma^(order)(z), in the kind of array that z is."""
    if isinstance(z, np.ndarray):
        return evaluate(functions, order, z)
    return functions.derivatives(z, order)


def loop(
    body: Callable[[Carry, Any], tuple[Carry, Any]], start: Carry, items: Any, reverse: bool = False
) -> tuple[Carry, Any]:
    """`jax.lax.scan`; a loop of Python for NumPy arrays."""
    leaves = jax.tree_util.tree_leaves(items)
    if not all(isinstance(leaf, np.ndarray) for leaf in leaves):
        return jax.lax.scan(body, start, items, reverse=reverse)
    found = []
    places = range(len(leaves[0]))
    for i in reversed(places) if reverse else places:
        start, value = body(start, jax.tree_util.tree_map(lambda x, i=i: x[i], items))
        found.append(value)
    found = found[::-1] if reverse else found
    if all(value is None for value in found):
        return start, None
    return start, jax.tree_util.tree_map(lambda *values: np.stack(values), *found)


def only_if(condition: Any, body: Callable[[Carry], Carry], value: Carry) -> Carry:
    """body(value) where the condition holds, else the value: nothing is computed in vain."""
    if isinstance(condition, bool | np.bool_):
        return body(value) if condition else value
    return jax.lax.cond(condition, body, lambda same: same, value)
