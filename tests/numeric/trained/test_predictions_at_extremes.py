"""Predictions of nothing, of small numbers and of none; what their notes say; which method answers."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import Tensors, random_flow

from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, GradientFlow, predict
from numeric.trained.prediction import Prediction
from numeric.trained.sampled import prediction as sampling

TRAIN = [0, 2]
Y = np.array([0.7, -0.4])


def wide_flow(width=10**6, samples=4, **tensors):
    f = random_flow(samples, seed=2)
    f.widths = (width, width)
    f.__dict__.update(tensors)
    return f


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("time", [None, [1, 3]], ids=["end", "times"])
def test_all_inputs_are_trained_on(outputs, time):
    """Then there is nothing to predict: empty arrays, errors and corrections of size zero, no rows."""
    f = wide_flow(samples=3)
    f.known_error = dict.fromkeys(f.names, 1e-3)
    y = np.ones((3, outputs)) if outputs > 1 else np.ones(3)
    p = predict(f, y, [1, 0, 2], GradientDescent(0.1), time=time)
    assert p.mean.size == p.covariance.size == p.variance_change.size == 0
    assert p.mean.shape == np.shape(time) + (0,) + (2,) * (outputs > 1)
    assert p.correction_size == p.covariance_correction_size == 0.0
    assert p.rows() == [] and len(p.notes) == 2
    assert p.error == {"mean_infinite": 0.0, "covariance_infinite": 0.0, "mean": 0.0, "covariance": 0.0}


def test_no_test_inputs_at_fragile_kernels():
    """The look at the errors of nearly singular kernels finds nothing wrong with empty answers."""
    f = wide_flow(samples=3, Theta=np.diag([1.0, 1.0, 1e5]))
    p = predict(f, np.ones(3), [0, 1, 2], GradientFlow())
    assert p.mean.shape == (0,) and p.covariance.shape == (0, 0)


def test_networks_that_are_always_zero():
    """Targets and kernel are zero, so is every prediction: corrections are no share of it."""
    p = predict(wide_flow(K=np.zeros((4, 4))), np.zeros(2), TRAIN, GradientFlow())
    assert np.abs(p.mean).max() == 0 and p.correction_size == 0.0
    p.__dict__["covariance"] = np.eye(2)
    assert p.covariance_correction_size == 0.0


def test_small_predictions_have_sizes_of_their_own():
    """Everything far below one: sizes are shares of the prediction, standard deviations are roots of variances."""
    f = wide_flow(10**9, K=1e-6 * random_flow(4, seed=2).K)
    p = predict(f, 1e-3 * Y, TRAIN, GradientFlow())
    spread = np.diag(p.covariance_infinite)
    assert 0 < spread.max() < 1e-3
    size = np.sqrt(np.mean(p.mean_infinite**2) + np.mean(spread))
    assert p.correction_size == pytest.approx(np.abs(p.mean - p.mean_infinite).max() / size)
    share = np.abs(np.diag(p.plain("covariance")) - spread).max() / spread.max()
    assert p.covariance_correction_size == pytest.approx(share)
    assert [row["standard_deviation_infinite"] for row in p.rows()] == pytest.approx(np.sqrt(spread))


def test_notes_name_the_ridge_and_the_width():
    assert "and a ridge of 0.25" in predict(wide_flow(), Y, TRAIN, ridge=0.25).notes[0]
    assert "ridge" not in predict(wide_flow(), Y, TRAIN).notes[0]
    for widths, told in (((30, None), False), ((None, 30), True)):
        notes = predict(wide_flow(widths=widths, names=("K", "Theta")), Y, TRAIN).notes
        assert any("finite width: first order in 1/n, n = 30" in note for note in notes) == told


def test_the_covariance_warns_once_it_has_been_asked_for():
    p = predict(wide_flow(), Y, TRAIN)
    p.__dict__.update(correction_size=0.1, covariance_correction_size=0.5)
    assert p.warnings == ()
    p.__dict__["covariance"] = np.eye(2)
    (warning,) = p.warnings
    assert "the order 1/n of the covariance is 0.5 of the leading order" in warning and warning in p.notes
    p.__dict__["correction_size"] = 0.3
    assert [("the mean" in w, "the covariance" in w) for w in p.warnings] == [(True, False), (False, True)]


def test_the_change_of_the_ntk_falls_with_the_width():
    narrow, wide = (predict(wide_flow(width), Y, TRAIN, GradientDescent(0.1), time=2) for width in (2, 50))
    assert np.abs(narrow.ntk_change).max() > 0.01
    assert narrow.ntk_change == pytest.approx(25 * wide.ntk_change)


def test_training_without_an_end_has_no_trained_ntk():
    p = predict(wide_flow(), Y, TRAIN, GradientDescent(50.0))
    with pytest.raises(DivergentTraining, match="does not converge on a mode"):
        _ = p.ntk_change
    assert np.isfinite(predict(wide_flow(), Y, TRAIN, GradientDescent(50.0), time=2).ntk_change).all()


def test_which_method_answers(monkeypatch):
    """Tensors where the flow has all of them, draws where it has not or where they are asked for."""
    asked = []
    monkeypatch.setattr(sampling, "sampled_prediction", lambda *given: asked.append(given) or "sampled")
    full = wide_flow()
    few = Tensors(K=full.K, Theta=full.Theta, widths=(30, 30))
    for f, method, sampled in (
        (full, "exact", False),
        (full, "auto", False),
        (full, "sampled", True),
        (few, "exact", False),
        (few, "auto", True),
        (few, "sampled", True),
    ):
        p = predict(f, Y, TRAIN, GradientDescent(0.1), time=[2, 0], method=method)
        assert (p == "sampled") if sampled else isinstance(p, Prediction), method
    assert len(asked) == 3
    predict(few, Y, TRAIN, time=1.5, method="sampled", seed=3, batch=10)
    flow, kernel, algorithm, test, time, options = asked[-1]
    assert flow is few and kernel.train == tuple(TRAIN) and test == (1, 3)
    assert algorithm == GradientFlow() and time == 1.5 and options == {"seed": 3, "batch": 10}
    with pytest.raises(NumericError, match="seed is an option of sampled predictions: add method='sampled'"):
        predict(full, Y, TRAIN, seed=3)
    with pytest.raises(NumericError, match="whole number of them"):
        predict(few, Y, TRAIN, GradientDescent(0.1), time=1.5, method="sampled")
