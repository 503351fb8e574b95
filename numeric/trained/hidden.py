"""Hidden layers at infinite width: the penultimate update (10.11), (10.12).

It needs brackets of pairs at a layer's kernel, from `numeric.brackets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from numeric.brackets import make_pair_plan, pair_brackets
from numeric.errors import NumericError
from numeric.generated.training import penultimate_errors, penultimate_mean, penultimate_others, penultimate_own


def layer_brackets(flow: Any, layer: int, orders: Sequence[tuple[int, int]]) -> dict[tuple[int, int], np.ndarray]:
    """⟨σ^(j)_1 σ^(k)_2⟩ over the kernel of a layer, for all pairs of inputs."""
    functions, K = flow.activation.FUNCTIONS, jnp.asarray(flow.layer(layer).K)
    plan = make_pair_plan(functions, np.asarray(K), max(max(order) for order in orders), 1e-12)
    return {order: np.asarray(value) for order, value in pair_brackets(functions, K, list(orders), plan).items()}


@dataclass(frozen=True)
class PenultimateUpdate:
    """Statistics of one neuron's first update in layer L-1, to order 1/n: mean (N,) and second moments (N, N).

    `frozen` is (10.12) as printed, with the mean NTK; `fluctuation` is what the NTK's off-diagonal components add.
    """

    mean: np.ndarray
    frozen: np.ndarray
    fluctuation: np.ndarray

    @property
    def second_moment(self) -> np.ndarray:
        """E[dz_1 dz_2] of one neuron."""
        return self.frozen + self.fluctuation


def penultimate_update(
    flow: Any, y: np.ndarray, train: Sequence[int], eta: float, kappa: np.ndarray | None = None
) -> PenultimateUpdate:
    """(10.11) and (10.12) for the MSE loss, or the generalized one with metric κ: both are O(1/n), none is O(1).

    Linear order in eta, as in PDLT; y is (N_train, n_L). Different neurons are uncorrelated at this order. The flow
    needs the tensor B: the n off-diagonal components of the layer's NTK, each of size 1/√n, drive the neuron with all
    other neurons' gradients, which adds B/n_{L-2} to Θ Θ/n_{L-1} in (10.12), an equal order that the book drops.
    """
    depth = flow.depth
    if depth < 2:
        raise NumericError("A network of one layer has no penultimate layer.")
    picked, y = list(train), np.asarray(y, dtype=float).reshape(len(train), -1)
    metric = np.eye(len(picked)) if kappa is None else np.asarray(kappa)
    before = flow.layer(depth - 1)
    theta, B = np.asarray(before.Theta)[:, picked], np.asarray(before.B)[:, :, picked][..., picked]
    brackets = layer_brackets(flow, depth - 1, [(1, 0), (1, 1)])
    at_training = {order: value[np.ix_(picked, picked)] for order, value in brackets.items()}
    C_W = float(np.asarray(flow.parameters.C_W)[-1])
    K = np.asarray(flow.K)[np.ix_(picked, picked)]
    errors = penultimate_errors(y.T, K, metric)
    return PenultimateUpdate(
        eta * C_W / flow.widths[-1] * penultimate_mean(theta, y.T, metric, at_training),
        eta**2 * C_W / flow.widths[-1] * penultimate_own(theta, errors, at_training),
        eta**2 * C_W / flow.widths[-2] * penultimate_others(B, errors, at_training),
    )
