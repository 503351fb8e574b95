"""L2 regularization at infinite width with a coefficient for every layer's biases and weights: (10.42), (10.43).

The penalty Σ a_b b² + Σ n_{l-1} a_W W² makes each group of parameters decay on its own. What a group g adds to the
linearized output, q_g = Σ θ_μ ∂z/∂θ_μ over the group, obeys dq_g/dt = -λ_g M_g ∂L/∂z - 2 a_g λ_g q_g with the kernel
M_g of its gradients, and the rest of the output stays: a linear equation, solved at any time, so that early stopping
and the end of training are the same formula. At the end it is ridge regression with the NTK of learning rates 1/(2a).
The tensor R of (10.42) is Σ a_g λ_g q_g. All moments come from the iteration (10.43) by Gaussian integration by parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from numeric.errors import NumericError
from numeric.generated.training import carried_q, carried_z
from numeric.given import finite, whole
from numeric.trained.algorithms import Algorithm, DivergentTraining, GradientFlow
from numeric.trained.hidden import layer_brackets
from numeric.trained.infinite import kernel_prediction
from numeric.trained.signals import exponentials


@dataclass(frozen=True)
class RegularizationTensor:
    """Second moments at infinite width of R (10.42) with z and with itself, at the output layer: (N, N) arrays."""

    with_z: np.ndarray
    with_itself: np.ndarray


@dataclass(frozen=True)
class ParameterGroups:
    """The groups of a flow's parameters: biases of layers 1 to L, then weights. `flow` is at any width, or infinite."""

    flow: Any

    @cached_property
    def _parameters(self) -> dict[str, np.ndarray]:
        return {
            name: np.asarray(getattr(self.flow.parameters, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")
        }

    @property
    def depth(self) -> int:
        return int(self.flow.depth)

    @property
    def rates(self) -> np.ndarray:
        """λ of every group."""
        return np.concatenate([self._parameters["lambda_b"], self._parameters["lambda_W"]])

    @cached_property
    def _brackets(self) -> list[dict[tuple[int, int], np.ndarray]]:
        orders = [(0, 0), (1, 1), (2, 0), (3, 1), (2, 2)]
        return [layer_brackets(self.flow, layer, orders) for layer in range(1, self.depth)]

    @cached_property
    def _inputs(self) -> np.ndarray:
        """x·x/n_0 of all pairs of inputs."""
        p = self._parameters
        if not p["C_W"][0] > 0:
            raise NumericError("Regularization needs a first layer with C_W > 0.")
        return (np.asarray(self.flow.layer(1).K) - p["C_b"][0]) / p["C_W"][0]

    def kernels(self) -> np.ndarray:
        """M_g at the output for every group: the NTK is Σ λ_g M_g; (2L, N, N)."""
        C_W, found = self._parameters["C_W"], []
        sources = [self._inputs, *(b[0, 0] for b in self._brackets)]
        for kind in (np.ones_like(self._inputs), None):
            for layer, source in enumerate(sources):
                kernel = source if kind is None else kind
                for later in range(layer, self.depth - 1):
                    kernel = C_W[later + 1] * self._brackets[later][1, 1] * kernel
                found.append(kernel)
        return np.stack(found)

    @cached_property
    def joint(self) -> np.ndarray:
        """The covariance of (q_1, …, q_2L, z) on all inputs at initialization, (2L + 1, N, 2L + 1, N).

        The iteration (10.43) group by group: what is there is carried on, q' = W σ' q, and the layer's own biases and
        weights begin, q' = b and q' = W σ. All are Gaussian with z, so that brackets with q's are derivatives.
        """
        depth, size, p = self.depth, len(self._inputs), self._parameters
        z = np.zeros((2 * depth, size, size))  # E[q_g z]
        q = np.zeros((2 * depth, 2 * depth, size, size))  # E[q_g q_h]
        for layer in range(depth):
            C_b, C_W = p["C_b"][layer], p["C_W"][layer]
            own = self._inputs
            if layer:
                b = self._brackets[layer - 1]
                own = b[0, 0]
                z, q = C_W * carried_z(z, b), C_W * carried_q(z, q, b)
                q[:, depth + layer], q[depth + layer] = z, np.swapaxes(z, 1, 2)
            z[layer] = q[layer, layer] = C_b
            z[depth + layer] = q[depth + layer, depth + layer] = C_W * own
        total = np.zeros((2 * depth + 1, size, 2 * depth + 1, size))
        total[:-1, :, :-1] = q.transpose(0, 2, 1, 3)
        total[:-1, :, -1], total[-1, :, :-1] = z, z.transpose(2, 0, 1)
        total[-1, :, -1] = np.asarray(self.flow.K)
        return total

    def moments(self, weights: ArrayLike) -> RegularizationTensor:
        """E[R z] and E[R R] of R = Σ weights_g q_g."""
        c = np.asarray(weights, dtype=float)
        with_itself = np.einsum("g,gahb,h->ab", c, self.joint[:-1, :, :-1], c)
        return RegularizationTensor(np.einsum("g,gab->ab", c, self.joint[:-1, :, -1]), with_itself)


def regularization_tensor(flow: Any, a_b: ArrayLike, a_W: ArrayLike) -> RegularizationTensor:
    """E[R z] and E[R R] of (10.42); a_b and a_W are numbers or one value a layer.

    The penalty is Σ a_b b² + Σ n_{l-1} a_W W²: weights have variance C_W/n, so only a coefficient of order n acts on
    them at infinite width.
    """
    groups = ParameterGroups(flow)
    return groups.moments(_coefficients(groups, a_b, a_W) * groups.rates)


def _coefficients(groups: ParameterGroups, a_b: ArrayLike, a_W: ArrayLike) -> np.ndarray:
    found = []
    for name, given in (("a_b", a_b), ("a_W", a_W)):
        values = np.asarray(given, dtype=float)
        if values.shape not in ((), (groups.depth,)) or not np.isfinite(values).all() or (values < 0).any():
            raise NumericError(f"{name} is one number, or {groups.depth} of them, not negative.")
        found.append(np.broadcast_to(values, (groups.depth,)))
    return np.concatenate(found)


@dataclass(frozen=True)
class RegularizedPrediction:
    """Mean (N,) or (N, n_L) and covariance (N, N) of infinitely wide networks, trained with a penalty."""

    mean: np.ndarray
    covariance: np.ndarray


def regularized_prediction(
    flow: Any,
    y: ArrayLike,
    train: Sequence[int],
    a_b: ArrayLike,
    a_W: ArrayLike,
    algorithm: Algorithm | None = None,
    time: float | None = None,
) -> RegularizedPrediction:
    """Training on MSE + Σ a_b b² + Σ n_{l-1} a_W W² until a time (early stopping), or to the end.

    a_b and a_W are numbers or one value a layer, and groups may have learning rate zero. At the end every group that
    learns needs a positive coefficient; at a time it may be zero: then this is early stopping alone. The algorithm is
    gradient flow, or one without memory, Newton tensor and batches.

    >>> from numeric import flow
    >>> f = flow("tanh", [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]], depth=2)
    >>> p = regularized_prediction(f, [1.0, -1.0], [0, 1], a_b=0.1, a_W=0.1)
    >>> p.mean.shape, bool(abs(p.mean[0]) < 1)
    ((3,), True)
    """
    rule = GradientFlow() if algorithm is None else algorithm
    if rule.memory_size or rule.preconditions or rule.masks(len(train)) is not None:
        raise NumericError(f"With a penalty an algorithm has no memory, no Newton tensor and no batches: {rule}.")
    groups = ParameterGroups(flow)
    coefficients = _coefficients(groups, a_b, a_W)
    kernel = kernel_prediction(np.asarray(flow.Theta), np.asarray(flow.K), y, train)
    if time is None:
        return _end(groups, coefficients, kernel.y, list(kernel.train))
    until = finite(time, "A time of training", least=0)
    if not rule.continuous:
        whole(int(until) if until == int(until) else until, "The number of steps")
    return _until(groups, coefficients, kernel.y, list(kernel.train), rule, until)


def _end(groups: ParameterGroups, a: np.ndarray, y: np.ndarray, train: list[int]) -> RegularizedPrediction:
    """Ridge regression with the NTK of learning rates 1/(2a), from z - Σ q_g: what is not linear in the parameters."""
    learns = groups.rates > 0
    if not (a[learns] > 0).all():
        raise NumericError(
            "At the end of training every parameter that learns needs a positive coefficient: some a_b or a_W is zero; "
            "give a time instead."
        )
    rates = np.divide(0.5, a, out=np.zeros_like(a), where=learns)
    theta = np.tensordot(rates, groups.kernels(), axes=1)
    total = groups.moments(learns.astype(float))
    start = np.asarray(groups.flow.K) - total.with_z - total.with_z.T + total.with_itself
    map_ = np.linalg.solve(theta[np.ix_(train, train)] + np.eye(len(train)), theta[train]).T
    moved = np.eye(len(theta))
    moved[:, train] -= map_
    return RegularizedPrediction(map_ @ y, moved @ start @ moved.T)


def _until(
    groups: ParameterGroups, a: np.ndarray, y: np.ndarray, train: list[int], rule: Algorithm, time: float
) -> RegularizedPrediction:
    """The linear equation of (q_1, …, q_2L) with the rest of the output and the targets as sources."""
    kernels, rates = groups.kernels(), groups.rates
    count, size, outside = len(kernels), len(groups.flow.K), len(train)
    drive = rates[:, None, None] * kernels[:, :, train]
    n = np.zeros((count * size + size + outside,) * 2)  # states: q's, z - Σ q, targets
    for g in range(count):
        rows = slice(g * size, (g + 1) * size)
        for other in range(count):
            n[rows, other * size + np.array(train)] += drive[g]
        n[rows, rows] += 2 * a[g] * rates[g] * np.eye(size)
        n[rows, count * size + np.array(train)] += drive[g]
        n[rows, (count + 1) * size :] -= drive[g]
    if rule.continuous:
        evolved = exponentials(-time * n[None])[0]
    else:
        evolved = np.eye(len(n))
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            for step in range(int(time)):
                evolved = evolved - rule.rule(step).direct * n @ evolved
    if not np.isfinite(evolved).all():
        raise DivergentTraining(f"{rule} diverges with this penalty: take a smaller learning rate.")
    outputs = np.zeros((size, len(n)))  # z is the sum of the q's and the rest
    for block in range(count + 1):
        outputs[:, block * size : (block + 1) * size] += np.eye(size)
    map_ = outputs @ evolved
    rest = map_[:, count * size : (count + 1) * size]
    starts = [map_[:, g * size : (g + 1) * size] - rest for g in range(count)] + [rest]
    moved = np.stack(starts, axis=1)
    covariance = np.einsum("xga,gahb,yhb->xy", moved, groups.joint, moved, optimize=True)
    return RegularizedPrediction(map_[:, (count + 1) * size :] @ y, covariance)
