"""The NTK's condition number against depth: what it says of trainability, measured by descent."""

import numpy as np
import pytest

from numeric import flow
from numeric.errors import NumericError
from numeric.spectra.conditioning import conditioning

X = np.random.default_rng(0).normal(size=(6, 3))


def test_each_depth_is_a_network_of_that_depth_and_descent_takes_that_many_steps():
    found = conditioning("tanh", X, [2, 5, 9], C_b=0.05, C_W=1.1)
    for k, depth in enumerate(found.depths):
        theta = np.asarray(flow("tanh", X, depth, C_b=0.05, C_W=1.1, lambda_b=1.0, lambda_W=1.0, tensors="Theta").Theta)
        h, U = np.linalg.eigh(theta)
        assert found.kappa[k] == pytest.approx(h[-1] / h[0], rel=1e-8)
        error, steps = U[:, 0].copy(), 0
        while np.linalg.norm(error) > np.exp(-1):
            error, steps = error - theta @ error / h[-1], steps + 1
        assert steps == pytest.approx(found.steps[k], abs=1)


def test_ordered_networks_lose_their_inputs():
    """Far below criticality all inputs become one: kappa grows without bound; at criticality it grows slowly."""
    ordered = conditioning("erf", X, [10, 40], C_b=0.5, C_W=0.5)
    critical = conditioning("erf", X, [10, 40], C_b=0.0, C_W=np.pi / 4)
    assert ordered.kappa[1] > 1e3 * critical.kappa[1]


def test_refusals():
    with pytest.raises(NumericError, match="from 1 on"):
        conditioning("tanh", X, [])
