"""A prediction as rows, its sizes and its refusals: numbers against the arrays that they come from."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import random_flow

from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, predict
from numeric.trained.any_loss import LossPrediction, Starts

TRAIN, TEST = [0, 2], [1, 3]
Y = np.array([[1.0, -0.5], [0.3, 0.8]])


def prediction(y, time=None, algorithm=None, width=40.0):
    flow = random_flow(4, seed=6)
    flow.widths = (width, width)
    return predict(flow, y, TRAIN, algorithm or GradientFlow(), time=time)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("time", [None, 2.0, np.array([1.0, 3.0])], ids=["end", "time", "times"])
def test_rows(outputs, time):
    y = Y[:, 0] if outputs == 1 else Y
    p = prediction(y, time, GradientDescent(0.1))
    rows = p.rows()
    times = [None] if time is None else list(np.ravel(time))
    assert len(rows) == len(times) * len(TEST) * outputs
    places = [(t, place, k) for t in times for place in TEST for k in range(outputs)]
    for row, (t, place, k) in zip(rows, places):
        own = prediction(y, t, GradientDescent(0.1))
        at = TEST.index(place)
        value = own.mean[at] if outputs == 1 else own.mean[at, k]
        infinite = own.mean_infinite[at] if outputs == 1 else own.mean_infinite[at, k]
        assert row.get("time") == t and row["input"] == place and row["output"] == k
        assert row["mean"] == pytest.approx(value) and row["mean_infinite"] == pytest.approx(infinite)
        assert row["standard_deviation_infinite"] == pytest.approx(np.sqrt(own.covariance_infinite[at, at]))


@pytest.mark.parametrize("outputs", [1, 2])
def test_sizes_of_the_corrections(outputs):
    """The largest correction over the prediction's own size, which is that of means and spread together."""
    p = prediction(Y[:, 0] if outputs == 1 else Y)
    spread = np.diag(p.covariance_infinite)
    size = np.sqrt(np.mean(p.mean_infinite**2) + np.mean(spread))
    assert p.correction_size == pytest.approx(np.abs(p.mean - p.mean_infinite).max() / size)
    own = [p.covariance] if outputs == 1 else [p.covariance[k, k] for k in range(2)]
    largest = max(np.abs(np.diag(c) - spread).max() for c in own)
    assert p.covariance_correction_size == pytest.approx(largest / spread.max())
    wide = prediction(Y[:, 0] if outputs == 1 else Y, width=4000.0)
    assert wide.correction_size == pytest.approx(p.correction_size / 100, rel=1e-6)
    assert any("finite width: first order in 1/n, n = 4000" in note for note in wide.notes)


def test_refusals():
    with pytest.raises(NumericError, match="method is one of exact, sampled, auto, not 'fast'"):
        predict(random_flow(4), Y, TRAIN, method="fast")
    assert prediction(Y).has_finite_width


def test_errors_and_controls_of_other_losses():
    """Standard errors add in quadrature, the coefficient's divided by the width; controls need five times as many."""
    mean = {"mean": np.array([1.0])}
    p = LossPrediction(
        4.0,
        (0,),
        mean,
        {"mean": np.array([8.0])},
        {},
        {},
        {"mean": np.array([3.0])},
        {"mean": np.array([16.0])},
        1.0,
        (),
    )
    assert p.errors["mean"] == pytest.approx([5.0]) and p.mean == pytest.approx([3.0])
    assert p.mean_infinite == pytest.approx([1.0])
    with pytest.raises(NumericError, match="has no probabilities: it has mean"):
        _ = p.probabilities
    for pairs, columns in ((14, 1), (15, 4)):  # three quadratic polynomials of two numbers, and a constant
        normal = np.random.default_rng(0).normal(size=(2 * pairs, 1, 2))
        starts = Starts(normal, normal, np.full(2 * pairs, 1 / (2 * pairs)), True)
        assert starts._controls.shape == (pairs, columns)
