"""Hidden layers at infinite width: the penultimate update (10.11), (10.12) and L2 regularization (10.42), (10.43).

Both need brackets of pairs at a layer's kernel, from `numeric.brackets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from numeric.brackets import make_pair_plan, pair_brackets
from numeric.errors import NumericError
from numeric.trained.infinite import kernel_prediction


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
    mixed, slopes = (brackets[order][np.ix_(picked, picked)] for order in ((1, 0), (1, 1)))
    C_W = float(np.asarray(flow.parameters.C_W)[-1])
    K = np.asarray(flow.K)[np.ix_(picked, picked)]
    errors = metric @ (y.shape[1] * K + y @ y.T) @ metric.T
    mean = -eta * C_W / flow.widths[-1] * y.shape[1] * theta @ np.sum(metric * mixed, axis=1)
    drive = eta**2 * C_W * errors * slopes
    frozen = theta @ drive @ theta.T / flow.widths[-1]
    return PenultimateUpdate(mean, frozen, np.einsum("deab,ab->de", B, drive) / flow.widths[-2])


@dataclass(frozen=True)
class RegularizationTensor:
    """Second moments at infinite width of R (10.42) with z and with itself, at the output layer: (N, N) arrays."""

    with_z: np.ndarray
    with_itself: np.ndarray


def regularization_tensor(flow: Any, a_b: Any, a_W: Any) -> RegularizationTensor:
    """E[R z] and E[R R] through the layers, from the iteration (10.43), by Gaussian integration by parts.

    The penalty is Σ a_b b² + Σ n_{l-1} a_W W²: weights have variance C_W/n, so only a coefficient of order n acts on
    them at infinite width. a_b and a_W are numbers or one value a layer.
    """
    depth = flow.depth
    a_b, a_W = (np.broadcast_to(np.asarray(a, dtype=float), (depth,)) for a in (a_b, a_W))
    p = {name: np.asarray(getattr(flow.parameters, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
    first = np.asarray(flow.layer(1).K) - p["C_b"][0]
    bias, weight = a_b * p["lambda_b"], a_W * p["lambda_W"]
    with_z = bias[0] * p["C_b"][0] + weight[0] * first
    with_itself = bias[0] ** 2 * p["C_b"][0] + weight[0] ** 2 * first
    for layer in range(1, depth):
        b = layer_brackets(flow, layer, [(0, 0), (1, 1), (2, 0), (3, 1), (2, 2)])
        own = np.diagonal(with_z)
        carried = own[:, None] * b[2, 0] + with_z * b[1, 1]
        third = np.einsum("a,ba,ab->ab", own, with_z, b[3, 1])
        curved = np.outer(own, own) * b[2, 2] + with_z * with_z.T * b[2, 2] + third + third.T
        C_b, C_W, beta, omega = p["C_b"][layer], p["C_W"][layer], bias[layer], weight[layer]
        with_itself = (
            beta**2 * C_b
            + omega**2 * C_W * b[0, 0]
            + omega * C_W * (carried + carried.T)
            + C_W * (with_itself * b[1, 1] + curved)
        )
        with_z = beta * C_b + omega * C_W * b[0, 0] + C_W * carried
    return RegularizationTensor(with_z, with_itself)


@dataclass(frozen=True)
class RegularizedPrediction:
    """Mean (N,) or (N, n_L) and covariance (N, N) of infinitely wide networks at the minimum of the penalized loss."""

    mean: np.ndarray
    covariance: np.ndarray


def regularized_prediction(flow: Any, y: np.ndarray, train: Sequence[int], gamma: float) -> RegularizedPrediction:
    """The end of training on MSE + Σ a_μ θ_μ² with a_μ = γ/λ_μ, the penalty that decays all parameters alike.

    The minimum is z - R/γ moved by kernel ridge regression with ridge 2γ, R the tensor (10.42): the initial function
    is forgotten, except for what is not linear in the parameters.
    """
    if gamma <= 0:
        raise NumericError("gamma must be positive; without a penalty use kernel_prediction.")
    p = {name: np.asarray(getattr(flow.parameters, name)) for name in ("lambda_b", "lambda_W")}
    safe = {name: np.where(value > 0, value, 1.0) for name, value in p.items()}
    tensor = regularization_tensor(
        flow,
        np.where(p["lambda_b"] > 0, gamma / safe["lambda_b"], 0.0),
        np.where(p["lambda_W"] > 0, gamma / safe["lambda_W"], 0.0),
    )
    theta, K, picked = np.asarray(flow.Theta), np.asarray(flow.K), list(train)
    start = K - (tensor.with_z + tensor.with_z.T) / gamma + tensor.with_itself / gamma**2
    ridge = kernel_prediction(theta + 2 * gamma * np.eye(len(theta)), K, y, train)
    map_ = (theta[:, picked] @ ridge.modes.U / ridge.modes.h) @ ridge.modes.U.T
    moved = np.eye(len(theta))
    moved[:, picked] -= map_
    return RegularizedPrediction(map_ @ ridge.y, moved @ start @ moved.T)
