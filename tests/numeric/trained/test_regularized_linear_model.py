"""Regularization with a coefficient for biases and one for weights: a network of one layer, its parameters by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, GradientFlow, Momentum, Newton, Schedule
from numeric.trained import StochasticDescent as Batches
from numeric.trained.regularization import ParameterGroups, regularization_tensor, regularized_prediction

X = np.array([[1.0, 0.2, -0.4], [-0.3, 0.9, 0.5], [0.5, 0.5, 1.1], [0.1, -0.7, 0.6]])
Y, TRAIN = np.array([0.7, -1.2]), [3, 1]
C_B, C_W, L_B, L_W = 0.3, 0.5, 0.4, 0.9
PHI = np.concatenate([np.ones((4, 1)), X], axis=1)
"""A bias and three weights."""
RATES = np.array([L_B, *[L_W / 3] * 3])
SPREAD = np.diag([C_B, *[C_W / 3] * 3])


def network(L_b=L_B, L_W=L_W):
    own = SimpleNamespace(C_b=[C_B], C_W=[C_W], lambda_b=[L_b], lambda_W=[L_W])
    K = C_B + C_W * X @ X.T / 3
    theta = L_b + L_W * X @ X.T / 3
    return SimpleNamespace(
        depth=1, parameters=own, K=K, Theta=theta, layer=lambda number: {1: SimpleNamespace(K=K)}[number]
    )


def by_hand(a_b, a_W, rates, steps, learn=RATES):
    """Mean and covariance of the outputs after steps on MSE + a_b b² + n_0 a_W |W|²: θ → M θ + v, step by step."""
    decay = np.array([a_b, *[3 * a_W] * 3])
    features = PHI[TRAIN]
    M, v = np.eye(4), np.zeros(4)
    for step in range(steps):
        eta = rates[min(step, len(rates) - 1)]
        slope = features.T @ features + 2 * np.diag(decay)
        M, v = M - eta * learn[:, None] * (slope @ M), v - eta * learn * (slope @ v - features.T @ Y)
    return PHI @ v, PHI @ M @ SPREAD @ M.T @ PHI.T


@pytest.mark.parametrize(("a_b", "a_W"), [(0.2, 0.05), (0.0, 0.3), (0.0, 0.0)])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_steps(a_b, a_W, steps):
    for rule, rates in ((GradientDescent(0.3), [0.3]), (Schedule([0.5, 0.1]), [0.5, 0.1])):
        p = regularized_prediction(network(), Y, TRAIN, a_b, a_W, rule, steps)
        mean, covariance = by_hand(a_b, a_W, rates, steps)
        assert np.abs(p.mean - mean).max() < 1e-13 and np.abs(p.covariance - covariance).max() < 1e-13


def test_the_end_and_flows():
    """Many small steps; parameters that do not learn keep their spread and need no coefficient."""
    p = regularized_prediction(network(), Y, TRAIN, 0.2, 0.1)
    mean, covariance = by_hand(0.2, 0.1, [0.3], 800)
    assert np.abs(p.mean - mean).max() < 1e-12 and np.abs(p.covariance - covariance).max() < 1e-12
    late = regularized_prediction(network(), Y, TRAIN, 0.2, 0.1, GradientFlow(), 400.0)
    assert np.abs(late.mean - p.mean).max() < 1e-12
    one, two = (by_hand(0.2, 0.1, [0.5 / n], n)[0] for n in (2000, 4000))
    flow = regularized_prediction(network(), Y, TRAIN, 0.2, 0.1, GradientFlow(), 0.5)
    assert np.abs(flow.mean - (2 * two - one)).max() < 1e-7
    still = regularized_prediction(network(L_b=0.0), Y, TRAIN, 0.0, 0.1)
    mean, covariance = by_hand(0.0, 0.1, [0.3], 2000, np.array([0.0, *[L_W / 3] * 3]))
    assert np.abs(still.mean - mean).max() < 1e-12 and np.abs(still.covariance - covariance).max() < 1e-12
    several = regularized_prediction(network(), np.stack([Y, 2 * Y], axis=1), TRAIN, 0.2, 0.1)
    assert np.abs(several.mean - np.stack([p.mean, 2 * p.mean], axis=1)).max() < 1e-13


def test_the_tensor():
    """R = Σ a λ θ ∂z/∂θ of a linear model: a_b λ_b b + n_0 a_W (λ_W/n_0) W x."""
    weights = np.array([0.2 * L_B, *[0.1 * L_W] * 3])
    found = regularization_tensor(network(), 0.2, [0.1])
    assert np.abs(found.with_z - PHI @ np.diag(weights) @ SPREAD @ PHI.T).max() < 1e-14
    assert np.abs(found.with_itself - PHI @ np.diag(weights**2) @ SPREAD @ PHI.T).max() < 1e-14
    groups = ParameterGroups(network())
    assert np.abs(np.einsum("g,gab->ab", groups.rates, groups.kernels()) - network().Theta).max() < 1e-14


def test_refusals():
    ask = lambda *given, **more: regularized_prediction(network(), Y, TRAIN, *given, **more)  # noqa: E731
    for rule in (Momentum(0.1, 0.5), Newton(), Batches(0.1, [[0], [1]])):
        with pytest.raises(NumericError, match="no memory, no Newton tensor and no batches"):
            ask(0.1, 0.1, rule, 2)
    for given in ((-0.1, 0.1), (0.1, [0.1, 0.2]), (0.1, np.nan)):
        with pytest.raises(NumericError, match="is one number, or 1 of them"):
            ask(*given)
    with pytest.raises(NumericError, match="number of steps"):
        ask(0.1, 0.1, GradientDescent(0.1), 1.5)
    with pytest.raises(NumericError, match="A time of training"):
        ask(0.1, 0.1, GradientFlow(), -1.0)
    with pytest.raises(NumericError, match="needs a positive coefficient"):
        ask(0.1, 0.0)
    with pytest.raises(DivergentTraining, match="smaller learning rate"):
        ask(0.1, 0.1, GradientDescent(1e30), 20)
    flat = network()
    flat.parameters.C_W = [0.0]
    with pytest.raises(NumericError, match="C_W > 0"):
        regularized_prediction(flat, Y, TRAIN, 0.1, 0.1)
