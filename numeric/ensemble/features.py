"""Random features: what a network's outputs are linear in, and the stochastic kernel of these, (10.134)-(10.140).

With the last layer alone the features are its inputs, and the kernel's mean is K; with all parameters they are the
gradients, and the kernel is the NTK. A linear model of the features (`numeric.trained.linear_models.fit_linear`) is
then what training such a network, linearized, comes to.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from numeric.ensemble.networks import Networks, Params


@dataclass(frozen=True)
class RandomFeatures:
    """Features φ (count, n_L, N, parameters) of a batch of networks and the weight c of each, (10.139) with c diagonal.

    For features that are the same for every output n_L is 1.
    """

    values: np.ndarray
    weights: np.ndarray

    def kernel(self) -> np.ndarray:
        """The stochastic kernel Σ c φ φ of (10.135), (10.140): (count, n_L, n_L, N, N)."""
        scaled = self.scaled
        return np.einsum("ciap,cjbp->cijab", scaled, scaled, optimize=True)

    @property
    def scaled(self) -> np.ndarray:
        """√c φ: features whose plain kernel is the weighted one, ready for a linear model."""
        return self.values * np.sqrt(self.weights)


def last_layer_features(networks: Networks, params: Params, X: np.ndarray) -> RandomFeatures:
    """(10.134): the last layer's inputs with a constant first, weighted with C_b and C_W/n (10.135).

    >>> nets = Networks("tanh", (2, 8, 1), C_b=0.1, C_W=1.2, lambda_b=0.1, lambda_W=1.2)
    >>> last_layer_features(nets, nets.sample(jax.random.key(0), 3), np.eye(2)).kernel().shape
    (3, 1, 1, 2, 2)
    """
    before = jax.vmap(lambda p: networks.output_one(p[:-1], jnp.asarray(X)))(params)
    hidden = np.asarray(networks.sigma(before) if networks.depth > 1 else before)
    values = np.concatenate([np.ones((len(hidden), 1, len(X))), hidden], axis=1)
    width = networks.widths[-2]
    weights = np.concatenate([[networks.C_b[-1]], np.full(width, networks.C_W[-1] / width)])
    return RandomFeatures(values.swapaxes(1, 2)[:, None], weights)


def gradient_features(networks: Networks, params: Params, X: np.ndarray) -> RandomFeatures:
    """(10.137), (10.138): the gradients of the outputs with respect to all parameters, weighted with their rates."""
    jacobian = jax.vmap(jax.jacrev(networks.output_one), in_axes=(0, None))(params, jnp.asarray(X))
    columns, weights = [], []
    for (weight, bias), (rate_w, rate_b) in zip(jacobian, networks.rates()):
        for block, rate in ((weight, rate_w), (bias, rate_b)):
            flat = np.asarray(block).reshape(*block.shape[:3], -1)
            columns.append(flat)
            weights.append(np.full(flat.shape[-1], rate))
    return RandomFeatures(np.concatenate(columns, axis=-1), np.concatenate(weights))
