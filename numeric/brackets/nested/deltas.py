"""Four-point brackets with one delta function, from brackets without any.

Where sigma^(k) jumps at zero, sigma^(k+1) holds a delta function. Beside factors that are continuous with bounded
derivatives Stein's identity trades it for the jump, with C the covariance of the four slots:

    C_ss <sigma^(k+1)_s X> = <z_s sigma^(k)_s X> - sum_{j != s} C_sj <sigma^(k)_s d_j X>.
"""

from __future__ import annotations

from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.functions import Functions
from numeric.brackets.patterns import Pattern
from numeric.errors import NumericError

Component = tuple[int, ...]  # orders at the four slots; -k stands for z sigma^(k)


def without_deltas(functions: Functions, components: tuple[Pattern, ...]) -> tuple[Component, ...]:
    """The components from which `with_deltas` makes the given ones: the same, if none holds a delta function."""
    needed: dict[Component, None] = {}
    for pattern in components:
        slot = _delta_slot(functions, pattern)
        if slot is None:
            needed[pattern] = None
            continue
        needed[_changed(pattern, slot, 1 - pattern[slot])] = None
        for j in range(4):
            if j != slot:
                needed[_raised(pattern, slot, j)] = None
    return tuple(needed)


def with_deltas(
    functions: Functions, components: tuple[Pattern, ...], values: dict[Component, Array], C: Array
) -> Array:
    """The given components, (components,), from those of `without_deltas`, with the slots' covariance C (4, 4)."""
    out = []
    for pattern in components:
        slot = _delta_slot(functions, pattern)
        if slot is None:
            out.append(values[pattern])
            continue
        total = values[_changed(pattern, slot, 1 - pattern[slot])]
        for j in range(4):
            if j != slot:
                total = total - C[slot, j] * values[_raised(pattern, slot, j)]
        out.append(total / C[slot, slot])
    return module_of(C).stack(out)


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
