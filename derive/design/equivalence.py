r"""The equivalence principle at any depth: every layer contributes the same to the output's NTK.

The NTK of layer l+1 is Theta' = B lambda_b + W lambda_W + M Theta (for an MLP B = 1, W = <ss> and M = chi_perp). The
biases of layer l thus add lambda_b^(l) B^(l) prod_{m=l}^{L-1} M^(m) to the output's NTK, its weights
lambda_W^(l) W^(l) prod M^(m): equal shares for all layers fix both rates, with no large-depth formula. At large depth
they become the power laws of PDLT (9.95), (∞.29).

Nothing of the package is imported here: the function works on NumPy and JAX arrays alike, and `derive.codegen` hands it
to `numeric` as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Array(Protocol):
    """What NumPy and JAX arrays have in common, as far as it is used here."""

    def __mul__(self, other: float, /) -> Array: ...
    def mean(self) -> float: ...


def equal_shares(
    multipliers: Sequence[Array],
    biases: Sequence[Array],
    weights: Sequence[Array],
    total: float = 1.0,
    bias_share: float = 0.5,
) -> tuple[list[float], list[float]]:
    """(lambda_b, lambda_W) of every layer, layer 1 first, for an output NTK that sums to `total` over all shares.

    `multipliers` holds M of the L - 1 steps between layers, `biases` and `weights` hold B and W of the L layers, each
    an array over inputs; with several inputs it is the mean of the NTK's diagonal to which layers contribute equally.
    `bias_share` is the part of the NTK that the biases make.

    >>> import numpy as np
    >>> one = np.ones(1)
    >>> rates = equal_shares([one / 2], [one, one], [one, one])
    >>> [[float(x) for x in own] for own in rates]
    [[0.5, 0.25], [0.5, 0.25]]
    """
    carried: list = [1.0]
    for multiplier in reversed(multipliers):
        carried.append(carried[-1] * multiplier)
    carried.reverse()
    share = total / len(carried)
    lambda_b = [bias_share * share / (own * later).mean() for own, later in zip(biases, carried)]
    lambda_W = [(1 - bias_share) * share / (own * later).mean() for own, later in zip(weights, carried)]
    return lambda_b, lambda_W
