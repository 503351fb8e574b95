"""One network whose steps see batches: outputs, NTK and dNTK in time against iterating the coupled updates."""

from __future__ import annotations

import numpy as np
import pytest
from toy_network import ToyNetwork, coupled_updates

from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, StochasticDescent
from numeric.trained.dynamics import TrainingDynamics


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_one_network_with_batches(steps):
    """z(t), H(t), dH(t) against iterating the coupled updates with the batches' masks; the end is on the targets."""
    toy = ToyNetwork(seed=2)
    eta = 0.8 / np.linalg.eigvalsh(toy.mean_ntk)[-1]
    rule = StochasticDescent(eta, [[1], [0, 1], [0]])
    masks = np.array([[0, 1], [1, 1], [1, 0]], dtype=float)
    (zeroth, first), (_, change), dntk = coupled_updates(toy.tensors(), toy.y, toy.train, eta, steps, masks)
    d = TrainingDynamics(toy.tensors(), toy.mean_ntk, toy.y, toy.train, rule)
    assert np.abs(d.free(steps) - zeroth).max() < 1e-12
    assert np.abs(d.interacting(steps) - first).max() < 1e-12
    assert np.abs(d.output(steps) - zeroth - first).max() < 1e-12
    assert np.abs(d.ntk(steps) - toy.tensors().H - change).max() < 1e-12
    assert np.abs(d.dntk(steps) - dntk).max() < 1e-12
    with pytest.raises(NumericError, match="mixes the modes"):
        d.projectors()


def test_the_end_of_batches():
    toy = ToyNetwork(seed=2)
    eta = 0.8 / np.linalg.eigvalsh(toy.mean_ntk)[-1]
    full, halves = (
        TrainingDynamics(toy.tensors(), toy.mean_ntk, toy.y, toy.train, StochasticDescent(eta, batches))
        for batches in ([[0, 1]], [[0], [1]])
    )
    descent = TrainingDynamics(toy.tensors(), toy.mean_ntk, toy.y, toy.train, GradientDescent(eta))
    assert np.abs(full.output() - descent.output()).max() < 1e-9
    assert np.abs(halves.output()[:, toy.train] - toy.y.T).max() < 1e-9
    assert np.abs(halves.interacting() - full.interacting()).max() > 1e-3
    with pytest.raises(DivergentTraining, match="has not converged"):
        TrainingDynamics(toy.tensors(), toy.mean_ntk, toy.y, toy.train, StochasticDescent(9.0, [[0, 1]])).output()
