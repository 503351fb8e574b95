"""The error of a prediction by hand: tensors are moved by what is known, fragile kernels are looked at."""

from __future__ import annotations

from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from random_statistics import Tensors, random_flow

from numeric.trained import GradientFlow, predict
from numeric.trained import error as errors
from numeric.trained.error import UnreliablePrediction, _moved, checked

TRAIN, Y = [0, 2], np.array([0.7, -0.4])


def wide_flow(**tensors) -> Tensors:
    f = random_flow(4, seed=3)
    return Tensors(**(vars(f) | {"widths": (10**6, 10**6)} | tensors))


def exact_flow(**tensors) -> Tensors:
    """A flow that says its tensors are exact."""
    f = wide_flow(**tensors)
    f.known_error = dict.fromkeys(f.names, 0.0)
    return f


def moving(monkeypatch, name, *shares):
    """Every other evaluation of a prediction has one tensor larger by a share, the first by the first one."""
    each = cycle(shares)

    def moved(flow, names, known, random):
        return Tensors(**(vars(flow) | {name: (1 + next(each)) * getattr(flow, name)}))

    monkeypatch.setattr(errors, "_moved", moved)


@pytest.mark.parametrize("shares", [(1e-3, 3e-3), (3e-3, 1e-3), (-3e-3, 1e-3)])
def test_the_error_is_three_times_the_largest_change(monkeypatch, shares):
    """The covariance at infinite width is linear in K, H1's share of the mean in H1; the others do not move."""
    p = predict(wide_flow(), Y, TRAIN, GradientFlow())
    moving(monkeypatch, "K", *shares)
    assert p.error["covariance_infinite"] == pytest.approx(9e-3 * np.abs(p.covariance_infinite).max(), rel=1e-6)
    assert p.error["mean_infinite"] < 1e-14 and 0 < p.error["mean"] < 1e-6
    q = predict(wide_flow(), Y, TRAIN, GradientFlow())
    moving(monkeypatch, "H1", *shares)
    assert q.error["mean"] == pytest.approx(9e-3 * np.abs(q.parts["H1"]).max(), rel=1e-6)
    assert q.error["covariance_infinite"] < 1e-13 < q.error["covariance"] < 1e-6


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_exact_tensors_leave_rounding(size):
    p = predict(exact_flow(), size * Y, TRAIN, GradientFlow())
    share = p.error["mean_infinite"] / np.abs(p.mean_infinite).max()
    assert 0.9e-15 < share < 1e-13


def test_tensors_without_an_estimate_are_nearly_exact():
    """Nothing is known of their error: it is taken to be small, and singular kernels have infinite ones."""
    f = SimpleNamespace(K=random_flow(3).K, Theta=random_flow(3).Theta, widths=(None, None))
    moved = _moved(f, ("K",), errors._errors(f), np.random.default_rng(1))
    assert 0 < np.abs(moved.K - f.K).max() < 1e-11
    p = predict(Tensors(**vars(f)), Y, TRAIN, GradientFlow())
    assert set(p.error) == {"mean_infinite", "covariance_infinite"} and 0 < max(p.error.values()) < 1e-9
    f.Theta = np.diag([1.0, 1.0, 1e-3])
    q = predict(Tensors(**vars(f), known_error={"Theta": 0.5, "K": 0.0}), Y, TRAIN, GradientFlow())
    assert max(q.error.values()) > 1e-3


def test_no_tensor_is_moved_by_more_than_itself():
    f = SimpleNamespace(D=np.full((3,) * 4, -2.0), widths=(1, 1))
    for known in (1.0, 7.0, np.inf):
        far = np.abs(_moved(f, ("D",), {"D": known}, np.random.default_rng(0)).D - f.D)
        assert 1.8 < far.max() <= 2.0


@pytest.mark.parametrize(("ratio", "looked"), [(1.5, False), (950.0, False), (1050.0, True)])
def test_kernels_are_looked_at_from_a_ratio_of_a_thousand_on(monkeypatch, ratio, looked):
    asked = []
    monkeypatch.setattr(errors, "prediction_error", lambda p, names: asked.append(names) or dict.fromkeys(names, 0.0))
    p = predict(wide_flow(Theta=np.diag([2.0, 1.0, 2.0 * ratio, 1.0])), Y, TRAIN, GradientFlow())
    assert p.mean.shape == (2,) and asked == [("mean",)] * looked


def test_a_fragile_covariance_of_several_outputs(monkeypatch):
    """The correction is what differs from one infinite-width covariance for each output, zero between outputs."""
    monkeypatch.setattr(errors, "prediction_error", lambda p, names: {"covariance": 1e-3})
    p = predict(wide_flow(Theta=np.diag([1.0, 1.0, 1e4, 1.0])), np.outer(Y, [1.0, 2.0, 0.5]), TRAIN, GradientFlow())
    exact = np.zeros((3, 3, 2, 2))
    for k in range(3):
        exact[k, k] = p.covariance_infinite
    assert checked(p, "covariance", exact + 2e-3) is not None
    for place in ((0, 0, 1, 1), (2, 1, 0, 1)):
        value = exact.copy()
        value[place] += 5e-4
        with pytest.raises(UnreliablePrediction, match=r"correction of order 1/n is 0\.0005, .* error 0\.001"):
            checked(p, "covariance", value)
