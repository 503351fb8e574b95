"""Leading statistics of the NTK and its differentials at initialization, and how they contract with training errors.

Each joint cumulant is a sum over the three ways to pair four slots by Kronecker deltas of the output components, each
with a tensor of the flow (the decompositions (8.82), (11.42), (infinity.176), (infinity.178)). One contraction engine
for all of them keeps index orders in one place: the table below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Pairing(NamedTuple):
    """δ δ of the two pairs of slots, times the tensor with its axes in the slots' `order`."""

    tensor: str
    pairs: tuple[tuple[int, int], tuple[int, int]]
    order: tuple[int, int, int, int]


DECOMPOSITIONS: Mapping[str, tuple[Pairing, Pairing, Pairing]] = {
    "z z ΔH": (
        Pairing("D", ((0, 1), (2, 3)), (0, 1, 2, 3)),
        Pairing("F", ((0, 2), (1, 3)), (0, 2, 1, 3)),
        Pairing("F", ((0, 3), (1, 2)), (0, 3, 1, 2)),
    ),
    "ΔH ΔH": (
        Pairing("A", ((0, 1), (2, 3)), (0, 1, 2, 3)),
        Pairing("B", ((0, 2), (1, 3)), (0, 2, 1, 3)),
        Pairing("B", ((0, 3), (1, 2)), (0, 3, 1, 2)),
    ),
    "dH z": (
        Pairing("P", ((0, 3), (1, 2)), (0, 1, 2, 3)),
        Pairing("Q", ((0, 1), (2, 3)), (0, 1, 2, 3)),
        Pairing("Q", ((0, 2), (1, 3)), (0, 2, 1, 3)),
    ),
    "ddI": (
        Pairing("R", ((0, 1), (2, 3)), (0, 1, 2, 3)),
        Pairing("R", ((0, 2), (3, 1)), (0, 2, 3, 1)),
        Pairing("R", ((0, 3), (1, 2)), (0, 3, 1, 2)),
    ),
    "ddII": (
        Pairing("S", ((0, 1), (2, 3)), (0, 1, 2, 3)),
        Pairing("T", ((0, 2), (3, 1)), (0, 2, 3, 1)),
        Pairing("U", ((0, 3), (1, 2)), (0, 3, 1, 2)),
    ),
}
"""Slots are numbered from the left: E[z_0 z_1 ΔH_23], E[ΔH_01 ΔH_23], E[dH_012 z_3], E[ddI_0123], E[ddII_0123]."""


def contract_one(
    flow: Any, cumulant: str, external: int, internal: Sequence[int], moments: Sequence[np.ndarray]
) -> np.ndarray:
    """Contract three slots with a moment of the training errors; the external slot is left: shape (n, N).

    `moments[k]` has shape (n, N, N, N), axes in the order of `internal`: its k-th slot carries the output component
    that is left, the components of the other two are summed together.
    """
    total: np.ndarray | float = 0.0
    for tensor, pairs, order in DECOMPOSITIONS[cumulant]:
        carrier = internal.index(_partner(pairs, external))
        axes = [internal.index(slot) + 1 for slot in order if slot != external]
        coefficients = moments[carrier].transpose(0, *axes)
        total = total + _apply(np.asarray(getattr(flow, tensor)), order.index(external), coefficients)
    return np.asarray(total)


def contract_two(
    flow: Any, cumulant: str, external: tuple[int, int], internal: tuple[int, int], moment: np.ndarray
) -> np.ndarray:
    """Contract two slots with moment[j, k, a, b] of the internal slots; the externals are left: shape (n, n, N, N)."""
    outputs = len(moment)
    total = np.zeros((outputs, outputs, moment.shape[-1], moment.shape[-1]))
    for tensor, pairs, order in DECOMPOSITIONS[cumulant]:
        partner = _partner(pairs, external[0])
        letters = dict(zip((*external, *internal), "deab"))
        subscripts = "".join(letters[slot] for slot in order)
        array = np.asarray(getattr(flow, tensor))
        if partner == external[1]:
            traced = np.einsum("jjab->ab", moment)
            total += np.eye(outputs)[:, :, None, None] * np.einsum(f"{subscripts},ab->de", array, traced, optimize=True)
        else:
            aligned = moment if partner == internal[0] else moment.transpose(1, 0, 2, 3)
            total += np.einsum(f"{subscripts},ijab->ijde", array, aligned, optimize=True)
    return total


def _partner(pairs: tuple[tuple[int, int], tuple[int, int]], slot: int) -> int:
    for first, second in pairs:
        if slot in (first, second):
            return second if slot == first else first
    raise KeyError(slot)


def _apply(array: np.ndarray, axis: int, coefficients: np.ndarray) -> np.ndarray:
    """Σ over the three other axes of array·coefficients, without moving the large array's axes: shape (n, N)."""
    size, outputs = array.shape[axis], len(coefficients)
    before, after = size**axis, size ** (3 - axis)
    if axis == 3:
        return coefficients.reshape(outputs, before) @ array.reshape(before, size)
    blocks = array.reshape(before, size, after)
    weights = coefficients.reshape(outputs, before, after)
    return np.einsum("pid->id", np.matmul(weights.transpose(1, 0, 2), blocks.transpose(0, 2, 1)))
