"""What a prediction for any loss says, what is asked of the outputs, and how a training is cut into steps; by loops."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import random_flow

from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, any_loss
from numeric.trained.losses import MSE, CrossEntropy

RNG = np.random.default_rng(4)
OUTPUTS, TEST = 2, 3
F = random_flow(4, seed=6)
TRAIN, TARGETS = [3, 1], RNG.normal(size=(2, 1))


def test_the_covariance_to_first_order():
    """Second moments less the product of the means, cut after the order 1/n."""
    shapes = {"mean": (TEST, OUTPUTS), "second moment": (OUTPUTS, OUTPUTS, TEST, TEST), "test loss": ()}
    infinite, coefficients = ({name: np.array(RNG.normal(size=s)) for name, s in shapes.items()} for _ in range(2))
    none = {name: np.zeros(s) for name, s in shapes.items()}
    p = any_loss.LossPrediction(7.0, (0, 2, 5), infinite, coefficients, {}, {}, none, coefficients, 3.0, ())
    first = {name: x / 7.0 for name, x in coefficients.items()}
    m, s = infinite["mean"], first["mean"]
    for i, j, a, b in np.ndindex(OUTPUTS, OUTPUTS, TEST, TEST):
        moment = infinite["second moment"][i, j, a, b] + first["second moment"][i, j, a, b]
        product = m[a, i] * m[b, j] + s[a, i] * m[b, j] + m[a, i] * s[b, j]
        assert p.covariance[i, j, a, b] == pytest.approx(moment - product)
    assert isinstance(p.test_loss, float) and p.test_loss == infinite["test loss"] + first["test loss"]
    assert np.array_equal(p.mean, m + s) and np.array_equal(p.mean_infinite, m)
    assert p.errors["mean"] == pytest.approx(np.abs(s))


@pytest.mark.parametrize("classes", [True, False])
def test_what_is_asked_of_the_outputs(classes):
    z, test = RNG.normal(size=(OUTPUTS, 4)), np.array([2, 0, 1])
    labels = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    found = any_loss._questions(test, classes, CrossEntropy(labels) if classes else None)(z)
    assert set(found) == {"mean", "second moment"} | ({"probabilities", "test loss"} if classes else set())
    own = np.array([[z[i, a] for i in range(OUTPUTS)] for a in test])
    assert np.array_equal(found["mean"], own)
    for i, j, a, b in np.ndindex(OUTPUTS, OUTPUTS, 3, 3):
        assert found["second moment"][i, j, a, b] == pytest.approx(own[a, i] * own[b, j])
    if classes:
        p = np.array([np.exp(row) / np.exp(row).sum() for row in own])
        assert np.asarray(found["probabilities"]) == pytest.approx(p)
        assert float(found["test loss"]) == pytest.approx(-np.sum(labels * np.log(p)))


class Planned(Exception):
    """What a training would be, instead of it."""


def stopped(monkeypatch, name, rule, **given):
    """The arguments with which a prediction calls `name`."""

    def stop(*arguments):
        raise Planned(*arguments)

    monkeypatch.setattr(any_loss, name, stop)
    with pytest.raises(Planned) as told:
        any_loss.predict_loss(F, MSE(TARGETS), TRAIN, rule, **given)
    return told.value.args


def plan(monkeypatch, rule, **given):
    _, chosen, newton, algorithm, until, fine = stopped(monkeypatch, "Trajectory", rule, **given)
    assert list(chosen) == TRAIN and algorithm is rule and np.array_equal(newton, np.eye(2))
    return until, fine


def test_a_flow_is_cut_into_steps_by_its_fastest_mode(monkeypatch):
    """Twenty steps while the fastest mode decays by a factor e, at least four; descent has steps of its own."""
    fastest = np.linalg.eigvalsh(F.Theta[np.ix_(TRAIN, TRAIN)])[-1]
    for time, steps in ((5.03 / fastest, 101), (0.27 / fastest, 6), (0.01 / fastest, 4), (0.0, 4)):
        assert plan(monkeypatch, GradientFlow(), time=time, samples=8) == (time, steps)
    assert plan(monkeypatch, GradientDescent(0.1), time=7, samples=8) == (7.0, 0)


def test_how_many_initial_outputs_are_drawn(monkeypatch):
    """Two thousand from the seed zero unless told; four are enough."""
    assert stopped(monkeypatch, "_draws", GradientDescent(0.1), time=1)[1:] == (2000, 0)
    assert stopped(monkeypatch, "_draws", GradientDescent(0.1), time=1, samples=4, seed=3)[1:] == (4, 3)
    with pytest.raises(NumericError, match="samples is a whole number from 4 to"):
        any_loss.predict_loss(F, MSE(TARGETS), TRAIN, GradientDescent(0.1), time=1, samples=3)


def test_notes_tell_how_networks_were_trained_and_averaged():
    z = np.zeros((6, 1, 2))
    for drawn, how in ((True, "6 initial outputs drawn in pairs"), (False, "6 quadrature nodes")):
        starts = any_loss.Starts(z, z, np.full(6, 1 / 6), drawn)
        for rule, unit in ((GradientFlow(), "time 2.5"), (GradientDescent(0.1), "step 2.5")):
            told = any_loss._notes(rule, 2.5, starts, MSE(TARGETS))
            assert told == (f"MSE loss, trained with {rule} until {unit}", how)
