"""A ridge at order 1/n: one network's parameters trained with a penalty, two routes to the ensemble, its networks."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import random_flow
from toy_network import STEP, ToyNetwork

from numeric import flow
from numeric.ensemble import Networks, train_ensemble
from numeric.errors import NumericError
from numeric.trained import (
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Schedule,
    StochasticDescent,
    TwoStep,
    predict,
)
from numeric.trained.dynamics import TrainingDynamics
from numeric.trained.penalized import Penalized, with_ridge
from numeric.trained.projectors import Projectors

RIDGE, ETA = 0.3, 0.2


def trained_with_a_penalty(toy, rates, mu, steps):
    """Outputs of zeroth and first order after heavy-ball descent on the parameters, the penalty's gradient by hand."""
    e = 1j * STEP
    u, w = np.zeros(toy.J.shape[-1], complex), np.zeros(toy.M.shape[-1], complex)
    vu, vw = 0 * u, 0 * w
    for step in range(steps):
        gu, gw = toy.gradients(u, w, e, toy.output(u, w, e)[:, toy.train] - toy.y.T)
        vu, vw = mu * vu + gu + RIDGE * u, mu * vw + gw + RIDGE * w
        rate = rates[min(step, len(rates) - 1)]
        u, w = u - rate * vu, w - rate * vw
    z = toy.output(u, w, e)
    return z.real, z.imag / STEP


@pytest.mark.parametrize("steps", [0, 1, 2, 7, None])
@pytest.mark.parametrize(
    ("algorithm", "rates", "mu"),
    [
        (GradientDescent(ETA), [ETA], 0.0),
        (Momentum(ETA, 0.4), [ETA], 0.4),
        (Schedule([0.4, 0.1, ETA]), [0.4, 0.1, ETA], 0),
    ],
    ids=str,
)
def test_one_network(algorithm, rates, mu, steps):
    toy = ToyNetwork(seed=4)
    d = TrainingDynamics(toy.tensors(), toy.mean_ntk, toy.y, toy.train, Penalized(algorithm, RIDGE))
    free, first = trained_with_a_penalty(toy, rates, mu, 1500 if steps is None else steps)
    assert np.abs(d.free(steps) - free).max() < 1e-12
    assert np.abs(d.interacting(steps) - first).max() < 1e-11 * max(1, np.abs(first).max())
    assert steps == 0 or np.abs(free[:, toy.train] - toy.y.T).max() > 0.05
    assert np.abs(first).max() > 0.01 or steps == 0
    if steps is None:
        with pytest.raises(NumericError, match="no trained NTK"):
            d.trained_ntk()


def test_one_mode_in_closed_form():
    """One training input, gradient flow to the end: every projector from e = ρ/(h+ρ), p = 1/(h+ρ), q = e p/ρ."""
    h, rho = 0.7, RIDGE
    Z = Projectors(Penalized(GradientFlow(), rho), np.array([h]))
    p, e = 1 / (h + rho), rho / (h + rho)
    q, r = e * p / rho, e * p * p / rho
    s = e * q / rho
    expected = {"Z_A": q, "Z_B": p * p / 2, "Z_IA": -r / 2, "Z_IB": -(p**3) / 6, "Z_IIA": -s, "Z_IIB": -p * q}
    for name, value in expected.items():
        assert getattr(Z, name).ravel()[0] == pytest.approx(value, rel=1e-13), name


def same(one, other, tolerance):
    for name in ("mean_infinite", "covariance_infinite", "ntk_change"):
        expected = getattr(other, name)
        assert np.abs(getattr(one, name) - expected).max() < tolerance * np.abs(expected).max(), name
    for name, part in other.parts.items():
        assert np.abs(one.parts[name] - part).max() < tolerance * max(1, np.abs(part).max()), name
    expected = other.plain("covariance")
    assert np.abs(one.plain("covariance") - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize("outputs", [1, 2])
def test_steps_on_samples_are_projectors_on_modes(outputs):
    """A schedule whose batches hold everything is descent: two calculi, the same means and covariances, for a ridge."""
    f, y = random_flow(4, seed=7), np.random.default_rng(3).normal(size=(2, outputs))
    eta = 0.8 / np.linalg.eigvalsh(f.Theta)[-1]
    for ridge in (0.0, RIDGE):
        times = np.array([3, 0, 1, 6])
        full = predict(f, y, [3, 1], StochasticDescent(eta, [[0, 1]]), time=times, ridge=ridge)
        same(full, predict(f, y, [3, 1], GradientDescent(eta), time=times, ridge=ridge), 1e-11)
    assert np.abs(full.plain("covariance")[0] - full.plain("covariance")[1]).max() > 0.01


@pytest.mark.parametrize("algorithm", [GradientFlow(), GradientDescent(0.2), Momentum(0.1, 0.5)], ids=str)
def test_the_end_does_not_know_the_algorithm(algorithm):
    """The loss with a ridge has one minimum near the start: late times of every algorithm reach it. It is not where
    training without a ridge ends, however small the ridge; at a given time a small ridge is none."""
    f, y = random_flow(4, seed=3), np.random.default_rng(0).normal(size=(2, 2))
    end = predict(f, y, [1, 3], GradientFlow(), ridge=RIDGE)
    same(predict(f, y, [1, 3], algorithm, ridge=RIDGE), end, 1e-12)
    same(predict(f, y, [1, 3], algorithm, ridge=RIDGE, time=400), end, 1e-9)
    same(predict(f, y, [1, 3], algorithm, ridge=1e-8, time=7), predict(f, y, [1, 3], algorithm, time=7), 1e-5)
    small, none = (predict(f, y, [1, 3], algorithm, **given) for given in ({"ridge": 1e-8}, {}))
    assert np.abs(small.mean_infinite - none.mean_infinite).max() < 1e-5
    assert np.abs(small.mean - none.mean).max() > 0.1


def test_where_a_ridge_makes_no_sense():
    f = random_flow(4)
    for algorithm in (Newton(), TwoStep()):
        with pytest.raises(NumericError, match="no ridge"):
            predict(f, [1.0, 2.0], [0, 1], algorithm, ridge=RIDGE).mean  # noqa: B018
        with pytest.raises(NumericError, match="no ridge"):
            Penalized(algorithm, RIDGE)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(NumericError, match="The ridge"):
            Penalized(GradientFlow(), wrong)
    batches = StochasticDescent(0.1, [[0], [1]])
    with pytest.raises(NumericError, match="round and round"):
        predict(f, [1.0, 2.0], [0, 1], batches, ridge=RIDGE).mean  # noqa: B018
    with pytest.raises(NumericError, match="an argument"):
        predict(f, [1.0, 2.0], [0, 1], Penalized(GradientFlow(), RIDGE))
    with pytest.raises(NumericError, match="does not converge"):
        predict(f, [1.0, 2.0], [0, 1], GradientDescent(1.0), ridge=2.0).mean  # noqa: B018


X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5], [0.2, -1.1]])


@pytest.mark.slow
def test_drawn_neurons_and_tensors_agree():
    """The end of training with a ridge by sampling, which knows nothing of projectors: mean, parts, variance."""
    f = flow("tanh", X, depth=3, width=64)
    exact = predict(f, [1.0, -1.0], [0, 1], ridge=1.0)
    drawn = predict(
        f, [1.0, -1.0], [0, 1], ridge=1.0, method="sampled", relative_error=0.03, seconds=60, progress=False
    )
    for name, part in exact.parts.items():
        assert np.abs(drawn.parts[name] - part).max() < 5 * drawn.standard_error[name].max() + 1e-12, name
    gap = np.abs(drawn.variance - np.diag(exact.covariance))
    assert (gap < 5 * drawn.variance_error).all()
    assert drawn.variance_error.max() < 0.3 * np.abs(np.diag(exact.covariance - exact.covariance_infinite)).max()


@pytest.mark.slow
@pytest.mark.parametrize("rule", [GradientDescent(0.3), StochasticDescent(0.3, [[0], [1], [0, 1]])], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_real_networks_with_batches_and_a_ridge(rule, ridge):
    """tanh, width 48, 192 pairs, four steps: what the differentials do, the covariance, the NTK's change."""
    f, y = flow("tanh", X, depth=3, width=48), np.array([1.0, -1.0])
    real = train_ensemble(
        Networks.of_flow(f, 1), X, y, [0, 1], with_ridge(rule, ridge), pairs=192, steps=4, batch=64, tolerance=None,
        ntk=True, progress=False,
    )  # fmt: skip
    p = predict(f, y, [0, 1], rule, time=4, ridge=ridge)
    mean, error = real.interaction
    differentials = p.parts["dNTK"] + p.parts["ddNTK-I"] + p.parts["ddNTK-II"]
    assert (np.abs(mean[0, 2:] - differentials) < 4 * error[0, 2:]).all()
    for (found, spread), expected in (
        ((real.covariance[0][..., 2:, 2:], real.covariance[1][..., 2:, 2:]), p.covariance),
        (real.ntk_change, p.ntk_change),
    ):
        assert (np.abs(found[0, 0] - expected) < 4 * spread[0, 0]).all()
    assert np.abs(p.ntk_change).max() > 3 * real.ntk_change[1].max()
