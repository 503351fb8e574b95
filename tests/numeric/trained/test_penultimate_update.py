"""The penultimate layer's update (10.11), (10.12) written out in sums, for tensors that were drawn at random."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained import hidden

RNG = np.random.default_rng(2)
N, TRAIN, ETA, C_W, WIDTHS = 4, [3, 1], 0.7, 1.3, (50.0, 20.0, 30.0)


def random_layer():
    layer = SimpleNamespace(Theta=RNG.normal(size=(N, N)), B=RNG.normal(size=(N,) * 4), K=np.eye(N))
    parameters = SimpleNamespace(C_W=np.array([0.5, 0.7, C_W]))
    return SimpleNamespace(
        depth=3,
        widths=WIDTHS,
        K=RNG.normal(size=(N, N)),
        parameters=parameters,
        layer=lambda number: {2: layer}[number],
    )


@pytest.mark.equation("10.11")
@pytest.mark.equation("10.12")
@pytest.mark.parametrize("kappa", [None, np.array([[2.0, 0.4], [0.1, 0.5]])])
def test_sums_over_samples_and_outputs(monkeypatch, kappa):
    brackets = {(1, 0): RNG.normal(size=(N, N)), (1, 1): RNG.normal(size=(N, N))}

    def of_layer(flow, layer, orders):
        assert layer == 2  # the one before the output
        return {order: brackets[order] for order in orders}

    monkeypatch.setattr(hidden, "layer_brackets", of_layer)
    flow, y = random_layer(), RNG.normal(size=(2, 2))
    found = hidden.penultimate_update(flow, y, TRAIN, ETA, kappa)
    k, Theta, B = np.eye(2) if kappa is None else kappa, flow.layer(2).Theta, flow.layer(2).B
    mean, frozen, fluctuation = np.zeros(N), np.zeros((N, N)), np.zeros((N, N))
    for d in range(N):
        for a in range(2):
            for b in range(2):
                s, t = TRAIN[a], TRAIN[b]
                mean[d] -= ETA * C_W / 30 * 2 * Theta[d, s] * k[a, b] * brackets[1, 0][s, t]
    errors = np.zeros((2, 2))  # E[(κ ε)_a (κ ε)_b] summed over two outputs
    for a, b, c, e in np.ndindex(2, 2, 2, 2):
        errors[a, b] += k[a, c] * k[b, e] * (2 * flow.K[TRAIN[c], TRAIN[e]] + y[c] @ y[e])
    for d, e, a, b in np.ndindex(N, N, 2, 2):
        drive = ETA**2 * C_W * errors[a, b] * brackets[1, 1][TRAIN[a], TRAIN[b]]
        frozen[d, e] += Theta[d, TRAIN[a]] * Theta[e, TRAIN[b]] * drive / 30
        fluctuation[d, e] += B[d, e, TRAIN[a], TRAIN[b]] * drive / 20
    assert np.abs(found.mean - mean).max() < 1e-13
    assert np.abs(found.frozen - frozen).max() < 1e-13
    assert np.abs(found.fluctuation - fluctuation).max() < 1e-13
    assert np.abs(found.second_moment - frozen - fluctuation).max() < 1e-13
    shallow = SimpleNamespace(**(vars(flow) | {"depth": 2, "layer": lambda number: {1: flow.layer(2)}[number]}))
    monkeypatch.setattr(hidden, "layer_brackets", lambda flow, layer, orders: brackets if layer == 1 else {})
    assert np.array_equal(hidden.penultimate_update(shallow, y, TRAIN, ETA, kappa).mean, found.mean)
    with pytest.raises(NumericError, match="no penultimate layer"):
        hidden.penultimate_update(SimpleNamespace(depth=1), y, TRAIN, ETA)
