"""One network whose steps see batches: outputs, NTK and dNTK in time against iterating the coupled updates."""

from __future__ import annotations

import numpy as np
import pytest
from toy_network import ToyNetwork, coupled_updates

from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, GradientFlow, Momentum, StochasticDescent
from numeric.trained.batched import BatchedNetwork
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


def steps_until(toy, y, eta, masks, over):
    """How many steps it takes until the errors, whose largest is 1 at first, satisfy `over`."""
    z, kernel, steps = toy.z0, toy.tensors().H[..., toy.train], 0
    start = np.abs(z[:, toy.train] - y.T).max()
    while not over(np.abs(z[:, toy.train] - y.T).max() / start):
        error = masks[steps % len(masks)] * (z[:, toy.train] - y.T)
        z = z - eta * np.einsum("ijab,jb->ia", kernel, error)
        steps += 1
    return steps


@pytest.mark.parametrize("size", [1.0, 1e5, 1e-3])
def test_batches_end_when_errors_are_gone(size):
    """Half as many steps again as it takes to bring the errors to 1e-12 of what they were; given up at 1e8 times it."""
    toy = ToyNetwork(n_train=3, seed=2)
    toy.z0, y = size * toy.z0, size * toy.y
    fastest = np.linalg.eigvalsh(toy.mean_ntk)[-1]
    masks, batches = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=float), [[1, 2], [0, 1], [0, 2]]
    for eta, diverges in ((1 / fastest, False), (9 / fastest, True)):
        network = BatchedNetwork(toy.tensors(), toy.mean_ntk, y, (0, 1, 2), StochasticDescent(eta, batches))
        if diverges:
            steps = steps_until(toy, y, eta, masks, lambda left: left > 1e8)
            with pytest.raises(DivergentTraining, match=f"has not converged after {steps} steps"):
                network._length(toy.tensors().H)
        else:
            steps = steps_until(toy, y, eta, masks, lambda left: left <= 1e-12)
            assert steps == 109 and network._length(toy.tensors().H) == 109 + 54


def test_batches_are_given_up_after_20000_steps():
    toy = ToyNetwork(seed=2)
    network = BatchedNetwork(toy.tensors(), toy.mean_ntk, toy.y, (0, 1), StochasticDescent(1e-9, [[0], [1]]))
    with pytest.raises(DivergentTraining, match="has not converged after 20001 steps"):
        network._length(toy.tensors().H)


def test_batches_are_for_descent_without_memory():
    toy = ToyNetwork(seed=2)
    for rule in (Momentum(0.1, 0.5), GradientFlow()):
        with pytest.raises(NumericError, match="descent without memory"):
            BatchedNetwork(toy.tensors(), toy.mean_ntk, toy.y, (0, 1), rule)
