"""Any loss at order 1/n: the MSE's closed forms to rounding, and real networks trained on the cross-entropy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from random_statistics import random_flow

from numeric import NumericError, flow
from numeric.trained import (
    GradientDescent,
    GradientFlow,
    Momentum,
    Preconditioned,
    StochasticDescent,
    predict,
)
from numeric.trained.any_loss import predict_loss
from numeric.trained.losses import MSE, CrossEntropy, soft_labels

TRAIN, Y = [2, 0], np.array([[0.7], [-1.1]])


@pytest.fixture(scope="module")
def tensors():
    """Random tensors; V, A and B are made of random directions, since covariances are positive."""
    f, rng = random_flow(3, seed=11), np.random.default_rng(0)
    for name in ("V", "A"):
        roots = rng.normal(size=(12, 3, 3))
        roots = roots + roots.transpose(0, 2, 1)
        setattr(f, name, np.einsum("kab,kcd->abcd", roots, roots) / 12)
    f.B = np.zeros_like(f.B)
    return f


@pytest.mark.equation("10.3")
@pytest.mark.parametrize(("algorithm", "time", "tolerance"), [("descent", 2, 1e-12), ("flow", 0.9, 1e-5)])
def test_quadratic_losses_have_the_closed_form(tensors, algorithm, time, tolerance):
    """A Gauss-Hermite rule of four nodes is exact: mean, covariance and infinite width of `predict`."""
    rule = GradientFlow() if algorithm == "flow" else GradientDescent(0.6 / np.linalg.eigvalsh(tensors.Theta)[-1])
    p = predict(tensors, Y, TRAIN, rule, time=time)
    q = predict_loss(tensors, MSE(Y), TRAIN, rule, time=time, nodes=4, test_loss=MSE(np.array([[0.3]])))
    assert np.abs(q.mean_infinite - p.mean_infinite).max() < tolerance
    assert np.abs(q.mean - p.mean).max() < tolerance * np.abs(p.mean).max()
    assert np.abs(q.covariance - p.plain("covariance")).max() < 10 * tolerance * np.abs(q.covariance).max()
    assert np.abs(p.mean - p.mean_infinite).max() > 0.1
    first = (
        np.sum((p.mean_infinite - 0.3) * (p.mean - p.mean_infinite))
        + np.trace(p.plain("covariance")[0, 0] - p.covariance_infinite) / 2
    )
    assert q.coefficients["test loss"] == pytest.approx(first, rel=100 * tolerance)
    if algorithm == "descent":
        drawn = predict_loss(tensors, MSE(Y), TRAIN, rule, time=time, samples=100, seed=3)
        assert np.abs(drawn.mean - p.mean).max() < 1e-12  # quadratic in the draws, which are control variates
        assert drawn.errors["mean"].max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["batches", "metric", "the end", "the end of a flow"])
def test_every_way_of_training_on_a_quadratic_loss(tensors, kind):
    """Batches, a Newton tensor and the end of training, against `predict`, which has them by other routes."""
    h = np.linalg.eigvalsh(tensors.Theta)[-1]
    rule, time = {
        "batches": (StochasticDescent(0.6 / h, [[1], [0, 1]]), 3),
        "metric": (Preconditioned(0.5 / h, lambda h: 1 / (1 + h)), 3),
        "the end": (GradientDescent(0.9 / h), None),
        "the end of a flow": (GradientFlow(), None),
    }[kind]
    p = predict(tensors, Y, TRAIN, rule, time=time)
    q = predict_loss(tensors, MSE(Y), TRAIN, rule, time=time, nodes=4)
    tolerance = 1e-11 if time else 1e-5
    assert np.abs(q.mean_infinite - p.mean_infinite).max() < tolerance
    assert np.abs(q.mean - p.mean).max() < tolerance * np.abs(p.mean).max()
    assert np.abs(q.covariance - p.plain("covariance")).max() < 10 * tolerance * np.abs(q.covariance).max()


@pytest.mark.slow
def test_draws_begin_with_the_seed_zero_and_stop_at_what_is_asked(tensors):
    """Standard errors fall as one over the root of the draws, and cover the rule's answer."""
    loss, rule = CrossEntropy(soft_labels([0, 1], 2, 0.2)), GradientDescent(0.1)
    two = [predict_loss(tensors, loss, TRAIN, rule, time=3, samples=100, **given) for given in ({}, {"seed": 0})]
    assert np.array_equal(two[0].mean, two[1].mean)
    exact = predict_loss(tensors, loss, TRAIN, rule, time=3, nodes=4)
    many = predict_loss(tensors, loss, TRAIN, rule, time=3, samples=1000)
    for name in ("mean", "probabilities"):
        value, error = many.infinite[name] + many.coefficients[name], many.errors[name]
        assert np.abs((value - exact.infinite[name] - exact.coefficients[name]) / error).max() < 4.5, name
        assert error.max() < 0.5 * two[0].errors[name].max()
    assert many.probabilities.sum(axis=1) == pytest.approx(1)


def test_draws_are_those_of_seed_zero_unless_told(tensors):
    """Before the first step, with too few draws for controls, the covariance is that of the draws."""
    found = [
        predict_loss(tensors, MSE(Y), TRAIN, GradientDescent(0.1), time=0, samples=8, **given).infinite["second moment"]
        for given in ({}, {"seed": 0}, {"seed": 1})
    ]
    assert np.array_equal(found[0], found[1]) and not np.allclose(found[0], found[2])


def test_bad_questions(tensors):
    labels = soft_labels([0, 1], 2, 0.1)
    for loss, rule, time, message in (
        (CrossEntropy(np.eye(2)), GradientDescent(0.1), None, "Hard labels"),
        (CrossEntropy(labels), Momentum(0.1, 0.5), 2, "no memory"),
        (CrossEntropy(2 * labels), GradientDescent(0.1), 2, "probabilities"),
        (CrossEntropy(labels[:1]), GradientDescent(0.1), 2, "training inputs"),
        (CrossEntropy(labels), GradientDescent(0.1), 1.5, "whole number"),
    ):
        with pytest.raises(NumericError, match=message):
            predict_loss(tensors, loss, TRAIN, rule, time=time, samples=8)
    with pytest.raises(NumericError, match="more than 40000"):
        predict_loss(tensors, CrossEntropy(labels), TRAIN, GradientDescent(0.1), time=1, nodes=20)
    with pytest.raises(NumericError, match="needs test inputs"):
        predict_loss(tensors, MSE(np.zeros((3, 1))), [0, 1, 2], GradientDescent(0.1), time=1)
    wide = np.full((2, 20), 0.05)
    with pytest.raises(NumericError, match="fewer test inputs"):
        predict_loss(tensors, CrossEntropy(wide), TRAIN, GradientDescent(0.1), time=1)


STORED = json.loads((Path(__file__).parents[2] / "data" / "trained" / "cross_entropy.json").read_text())


@pytest.mark.slow
@pytest.mark.equation("10.36")
@pytest.mark.parametrize("name", ["hard", "soft", "soft, long"])
def test_networks_trained_on_the_cross_entropy(name):
    """n × (trained - frozen NTK) at widths 32 and 64, extrapolated: outputs, probabilities, test loss.

    The frozen NTK starts from the networks' own initial outputs, so that the share of their covariance is left out.
    """
    setting = STORED["setting"]
    runs = {r["width"]: r for r in STORED["runs"] if r["name"] == name}
    train, steps, labels = setting["train"], runs[32]["steps"], soft_labels(setting["labels"], 3, runs[32]["epsilon"])
    test = [k for k in range(len(labels)) if k not in train]
    hyper = [setting[key] for key in ("C_b", "C_W", "lambda_b", "lambda_W")]
    f = flow("tanh", np.array(setting["X"]), setting["depth"], 1, *hyper, tolerance=1e-8)
    p = predict_loss(
        f, CrossEntropy(labels[train]), train, GradientDescent(setting["eta"]), time=steps,
        test_loss=CrossEntropy(labels[test]), samples=2000,
    )  # fmt: skip
    for quantity in ("mean", "probabilities", "test loss"):
        parts = p.parts[quantity]
        expected = sum(value for part, value in parts.items() if part != "initial outputs")
        own = np.sqrt(sum(e**2 for part, e in p.part_errors[quantity].items() if part != "initial outputs"))
        value = {n: n * np.array(runs[n][quantity]["value"]) for n in (32, 64)}
        error = {n: n * np.array(runs[n][quantity]["error"]) for n in (32, 64)}
        limit, spread = 2 * value[64] - value[32], np.hypot(2 * error[64], error[32])
        assert np.abs((limit - expected) / np.hypot(spread, own)).max() < 3.5, quantity
        assert np.linalg.norm(own) < 0.5 * np.linalg.norm(spread), quantity
        if quantity == "mean":
            assert np.linalg.norm(spread) < 0.8 * np.linalg.norm(expected)
