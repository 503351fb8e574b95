"""How the cumulants of the NTK and its differentials at initialization contract with moments of the training errors.

Each joint cumulant is a sum over the three ways to pair four slots by Kronecker deltas of the output components, each
with a tensor of the flow: the generated table `CUMULANTS`. External slots stay, internal ones meet moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from numeric.contributions import Contribution
from numeric.generated.training import CUMULANTS

Read = Callable[[str, str], np.ndarray]
"""A tensor by its name and the bases of its axes: "x" for all inputs, "m" for the training modes, e.g. "xmmm"."""


def contract_one(read: Read, c: Contribution, moments: Sequence[np.ndarray]) -> np.ndarray:
    """Contract three slots with a moment of the training errors; the external slot is left: shape (rows, N).

    `moments[k]` has shape (rows, N, N, N), axes in the order of `c.internal`: its k-th slot carries the output
    component that is left, the components of the other two are summed together.
    """
    total: np.ndarray | float = 0.0
    for array, carrier, order in _one(read, c, "xxxx"):
        axes = [c.internal.index(slot) + 1 for slot in order if slot != c.external[0]]
        total = total + _apply(array, order.index(c.external[0]), moments[carrier].transpose(0, *axes))
    return np.asarray(total)


def contract_answers(
    read: Read, c: Contribution, moments: Sequence[np.ndarray], answer: np.ndarray, mode: int
) -> np.ndarray:
    """Σ over three internal modes for one external mode, with a weight of its own: (times, rows).

    `answer` broadcasts to (times, M, M, M) and `moments[k]` is (rows, M, M, M), both
    in the order of `c.internal`.
    """
    total: np.ndarray | float = 0.0
    for array, carrier, order in _one(read, c, "mmmm"):
        block = array.transpose([order.index(slot) for slot in (*c.external, *c.internal)])[mode]
        weighted = np.broadcast_to(answer * block, (len(answer), *block.shape)).reshape(len(answer), -1)
        total = total + weighted @ moments[carrier].reshape(len(moments[carrier]), -1).T
    return np.asarray(total)


def contract_two(
    read: Read,
    c: Contribution,
    moment: np.ndarray,
    bases: str = "xxxx",
    weights: Sequence[tuple[str, np.ndarray]] = (),
) -> np.ndarray:
    """Contract two slots with moment[j, k, a, b] of the internal slots; the externals are left: shape (n, n, N, N).

    `bases` are those of the slots d, e (external), a, b (internal); `weights` are more factors with their subscripts.
    """
    outputs = len(moment)
    total: np.ndarray | float = 0.0
    for tensor, pairs, order in CUMULANTS[c.product]:
        where = (*c.external, *c.internal)
        inputs = ",".join(["".join("deab"[where.index(slot)] for slot in order), *(letters for letters, _ in weights)])
        operands = [read(tensor, "".join(bases[where.index(slot)] for slot in order)), *(x for _, x in weights)]
        mate = partner(pairs, c.external[0])
        if mate == c.external[1]:
            traced = np.einsum("jjab->ab", moment)
            joined = np.einsum(f"{inputs},ab->de", *operands, traced, optimize=True)
            total = total + np.eye(outputs)[:, :, None, None] * joined
        else:
            aligned = moment if mate == c.internal[0] else moment.transpose(1, 0, 2, 3)
            total = total + np.einsum(f"{inputs},ijab->ijde", *operands, aligned, optimize=True)
    return np.asarray(total)


def _one(read: Read, c: Contribution, bases: str) -> Iterator[tuple[np.ndarray, int, tuple[int, int, int, int]]]:
    """(tensor, which internal slot carries the external component, the slots of its axes) of each pairing."""
    for tensor, pairs, order in CUMULANTS[c.product]:
        yield read(tensor, bases), c.internal.index(partner(pairs, c.external[0])), order


def partner(pairs: tuple[tuple[int, int], tuple[int, int]], slot: int) -> int:
    (a, b), (c, d) = pairs
    return {a: b, b: a, c: d, d: c}[slot]


def _apply(array: np.ndarray, axis: int, coefficients: np.ndarray) -> np.ndarray:
    """Σ over the three other axes of array·coefficients, without moving the large array's axes: shape (rows, N)."""
    size, rows = array.shape[axis], len(coefficients)
    before, after = size**axis, size ** (3 - axis)
    if axis == 3:
        return coefficients.reshape(rows, before) @ array.reshape(before, size)
    blocks = array.reshape(before, size, after)
    weights = coefficients.reshape(rows, before, after)
    return np.einsum("pid->id", np.matmul(weights.transpose(1, 0, 2), blocks.transpose(0, 2, 1)))
