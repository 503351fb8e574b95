"""Four-point brackets with one delta function, from brackets without any.

Where sigma^(k) jumps at zero, sigma^(k+1) holds a delta function. Beside factors that are continuous with bounded
derivatives Stein's identity trades it for the jump, with C the covariance of the four slots:

    C_ss <sigma^(k+1)_s X> = <z_s sigma^(k)_s X> - sum_{j != s} C_sj <sigma^(k)_s d_j X>.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.functions import Functions
from numeric.brackets.patterns import Pattern
from numeric.errors import NumericError

Component = tuple[int, ...]  # orders at the four slots; -k stands for z sigma^(k)


@lru_cache(maxsize=64)
def without_deltas(functions: Functions, components: tuple[Pattern, ...]) -> tuple[Component, ...]:
    """The components from which `with_deltas` makes the given ones: the same, if none holds a delta function."""
    needed: dict[Component, None] = {}
    for pattern in components:
        slot = _delta_slot(functions, pattern)
        if slot is None:
            needed[pattern] = None
        else:
            needed |= dict.fromkeys(part for _, part in _parts(pattern, slot))
    return tuple(needed)


def with_deltas(
    functions: Functions, components: tuple[Pattern, ...], values: dict[Component, Array], C: Array
) -> Array:
    """The given components, (components, ...), from those of `without_deltas`; the slots' covariance is C (4, 4, ...).

    All of them at once: a few operations on long arrays.
    """
    xp, own = module_of(C), _traded(functions, components)
    every = xp.stack([values[part] for part in without_deltas(functions, components)])
    if not own.slot.size:
        return every[own.plain]
    total = every[own.parts[:, 0]]
    for place in (1, 2, 3):
        total = total - C[own.slot, own.others[:, place]] * every[own.parts[:, place]]
    return xp.concatenate([every[own.plain], total / C[own.slot, own.slot]])[own.order]


class Traded(NamedTuple):
    """Where the components without and with delta functions come from, and the place of each in that order."""

    plain: np.ndarray  # of the components without
    slot: np.ndarray  # of the others: where the delta function is
    others: np.ndarray  # (components, 4) the slots that C couples it to, after itself
    parts: np.ndarray  # (components, 4) what is added, then what is subtracted for each of them
    order: np.ndarray


@lru_cache(maxsize=64)
def _traded(functions: Functions, components: tuple[Pattern, ...]) -> Traded:
    index = {part: i for i, part in enumerate(without_deltas(functions, components))}
    slots = [_delta_slot(functions, pattern) for pattern in components]
    plain = [pattern for pattern, slot in zip(components, slots) if slot is None]
    traded = [(slot, _parts(pattern, slot)) for pattern, slot in zip(components, slots) if slot is not None]
    first = sorted(range(len(components)), key=lambda i: slots[i] is not None)
    return Traded(
        np.array([index[pattern] for pattern in plain], dtype=int),
        np.array([slot for slot, _ in traded], dtype=int),
        np.array([[j for j, _ in parts] for _, parts in traded], dtype=int).reshape(-1, 4),
        np.array([[index[part] for _, part in parts] for _, parts in traded], dtype=int).reshape(-1, 4),
        np.argsort(first),
    )


def _parts(pattern: Pattern, slot: int) -> list[tuple[int, Component]]:
    """(slot, component): what the delta function at `slot` is traded for, itself first."""
    found = [(slot, _changed(pattern, slot, 1 - pattern[slot]))]
    return found + [(j, _raised(pattern, slot, j)) for j in range(4) if j != slot]


@lru_cache(maxsize=4096)
def _delta_slot(functions: Functions, pattern: Pattern) -> int | None:
    slots = [i for i, k in enumerate(pattern) if functions.has_delta(k)]
    if not slots:
        return None
    slot = slots[0]
    alone = len(slots) == 1 and pattern[slot] >= 2 and not functions.has_delta(pattern[slot] - 1)
    if alone and not any(functions.has_delta(k + 1) for i, k in enumerate(pattern) if i != slot):
        return slot
    raise NumericError(
        f"{functions.name}: the four-point bracket with derivative orders {tuple(sorted(pattern))} holds delta "
        "functions and does not exist where inputs coincide; what needs it, derivatives included, is not available."
    )


def _changed(pattern: Component, slot: int, order: int) -> Component:
    return tuple(order if i == slot else k for i, k in enumerate(pattern))


def _raised(pattern: Component, slot: int, j: int) -> Component:
    """One derivative moved from the slot with the delta function to slot j."""
    return tuple(k - (i == slot) + (i == j) for i, k in enumerate(pattern))
