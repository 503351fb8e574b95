"""Softmax outputs of a network while it learns: one step by the NTK, and the path of the linearized network.

One step of gradient descent on the cross-entropy of a sample u changes the probabilities q = softmax(z) of another
sample o by eta A(o) K(o, u) (p - q(u)) + O(eta^2), with A = dq/dz and K the NTK block of both (Sutherland 2023, after
Ren, Guo, Sutherland 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.empirical.linearized import Linearized, LinearizedTraining
from numeric.empirical.model import Apply, Params
from numeric.empirical.ntk import empirical_ntk
from numeric.errors import NumericError
from numeric.given import finite
from numeric.trained.frozen_kernel import cross_entropy

Array = np.ndarray


def softmax_step(
    apply: Apply, params: Params, X: Any, updating: Any, target: Any, eta: float, rates: Params | None = None
) -> Array:
    """The first-order change of the probabilities on X, (inputs, classes), by a step on one sample with this target.

    >>> W = jnp.array([[0.3, -0.2], [0.1, 0.5]])
    >>> change = softmax_step(lambda w, x: x @ w, W, jnp.eye(2), jnp.eye(2)[0], jnp.array([1.0, 0.0]), 0.1)
    >>> bool(abs(change.sum()) < 1e-12), bool(change[0, 0] > 0)
    (True, True)
    """
    finite(eta, "The learning rate", least=0)
    inputs, sample = jnp.asarray(X, float), jnp.asarray(updating, float)[None]
    p = np.asarray(target, float)
    z = np.asarray(apply(params, sample))
    if z.ndim != 2 or p.shape != z.shape[1:]:
        raise NumericError(f"the target has one probability a class, {z.shape[1:]}, not {p.shape}")
    if (p < 0).any() or abs(float(p.sum()) - 1) > 1e-6:
        raise NumericError("a target is a list of probabilities that sum to 1")
    H = np.asarray(empirical_ntk(apply, params, inputs, rates, X2=sample))[..., 0]  # [class o, class u, input]
    q = np.asarray(jax.nn.softmax(apply(params, inputs), axis=-1))
    error = p - np.asarray(jax.nn.softmax(z[0]))
    moved = eta * np.einsum("abn,b->na", H, error)  # of z
    return q * (moved - np.sum(q * moved, axis=1, keepdims=True))  # A = diag(q) - q q^T


def learning_path(model: Linearized, X: Any, labels: Any, times: Sequence[float], watched: Any) -> Array:
    """Probabilities on `watched` inputs at each time of the linearized network's gradient flow on cross-entropy.

    `labels` are probabilities (inputs, classes); the answer has shape (times, watched, classes).
    """
    training = LinearizedTraining(model, jnp.asarray(X, float), np.asarray(labels, float))
    if training.y.ndim != 2:
        raise NumericError("labels have one probability a class: shape (inputs, classes)")
    paths = []
    for time in times:
        alpha = training.frozen.loss_flow_weights(finite(time, "A time", least=0), cross_entropy)
        paths.append(np.asarray(jax.nn.softmax(training.predict(watched, alpha), axis=-1)))
    return np.stack(paths)
