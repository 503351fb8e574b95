"""Deep linear networks on the line through two inputs: straight before training, and straight after it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from numeric import flow, predict
from numeric.ensemble import Networks
from numeric.ensemble.training import trained_outputs
from numeric.trained import GradientDescent

S = np.array([-0.7, 0.25, 1.6])
ENDS = np.array([[1.0, 2.0, 0.0], [-0.5, 1.0, 3.0]])
X = np.concatenate([ENDS, S[:, None] * ENDS[0] + (1 - S)[:, None] * ENDS[1]])
"""x_+, x_- and s x_+ + (1 - s) x_-, (10.99)."""
SETTINGS = dict(C_b=0.3, C_W=0.9, lambda_b=0.2, lambda_W=0.05)


def straight(values):
    """The line through the first two along the last axis."""
    return S * values[..., :1] + (1 - S) * values[..., 1:2]


@pytest.fixture(scope="module")
def networks():
    own = Networks("linear", (3, 4, 5, 2), **SETTINGS)
    return own, own.sample(jax.random.key(3), 2)


@pytest.mark.equation("10.100")
@pytest.mark.equation("10.101")
@pytest.mark.equation("10.102")
@pytest.mark.equation("10.103")
def test_outputs_are_products_of_matrices_and_straight(networks):
    own, params = networks
    z = np.asarray(own.outputs(params, jax.numpy.asarray(X)))
    layer = np.broadcast_to(X.T, (2, 3, len(X)))
    for weight, bias in params:  # one layer after the other, (10.101) and (10.102)
        layer = np.asarray(weight) @ layer + np.asarray(bias)[:, :, None]
        assert np.abs(layer[..., 2:] - straight(layer)).max() < 1e-12
    assert np.abs(z - layer).max() < 1e-12
    assert np.abs(z[..., 2:] - straight(z)).max() < 1e-12 and np.ptp(z) > 0.1


@pytest.mark.equation("10.104")
def test_trained_networks_interpolate_linearly(networks):
    """The ensemble of infinite width ends on the straight line between the targets; one real network on its own."""
    y = np.array([3.0, -5.0])
    f = flow("linear", X, depth=3, tensors=["K", "Theta"], **SETTINGS)
    p = predict(f, y, train=[0, 1])
    assert np.abs(p.mean_infinite - straight(y)).max() < 1e-11
    assert np.abs(p.covariance_infinite).max() < 1e-11  # the initial line is forgotten
    own, params = networks
    targets = jax.numpy.asarray(np.stack([y, -y], axis=1))
    z = np.asarray(trained_outputs(own, params, jax.numpy.asarray(X), targets, (0, 1), GradientDescent(0.1), 1500))
    assert np.abs(z[..., :2] - np.stack([y, -y])).max() < 1e-2
    assert np.abs(z[..., 2:] - straight(z)).max() < 1e-10
