"""Predictions at their edges: sizes of corrections in time, what is refused where, arrays of several outputs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from random_statistics import random_flow

from derive.errors import DeriveError
from derive.training.projectors import AnyAlgorithm
from numeric.errors import NumericError
from numeric.trained import (
    DivergentTraining,
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Preconditioned,
    Schedule,
    StochasticDescent,
    TwoStep,
    predict,
    projectors,
    stepwise,
)
from numeric.trained import error as errors
from numeric.trained.algorithms import Algorithm
from numeric.trained.error import UnreliablePrediction, _moved, checked
from numeric.trained.infinite import KernelPrediction
from numeric.trained.modes import modes_of
from numeric.trained.penalized import Penalized
from numeric.trained.projectors import Projectors

TRAIN = [0, 2]


def wide_flow(samples: int, seed: int, width: float):
    f = random_flow(samples, seed)
    f.widths = (width, width)
    return f


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("times", [[0, 2, 5], 4])
def test_how_large_the_corrections_are(outputs, times):
    """Shares of the largest correction, of all times and outputs, by loops."""
    f, rng = wide_flow(4, 2, 100.0), np.random.default_rng(5)
    y = rng.normal(size=(2, outputs)) if outputs > 1 else rng.normal(size=2)
    p = predict(f, y, TRAIN, GradientDescent(0.1), time=times)
    count = np.size(times)
    mean, infinite = (x.reshape(count, 2, outputs) for x in (p.mean, p.mean_infinite))
    before = p.covariance_infinite.reshape(count, 2, 2)
    after = p.plain("covariance").reshape(count, outputs, outputs, 2, 2)
    change = p.variance_change.reshape(count, 2, outputs)
    squares, spreads, worst = 0.0, 0.0, 0.0
    moved, largest = 0.0, 0.0
    for t in range(count):
        for x in range(2):
            spreads += before[t, x, x] / (2 * count)
            largest = max(largest, before[t, x, x])
            for i in range(outputs):
                squares += infinite[t, x, i] ** 2 / (2 * count * outputs)
                worst = max(worst, abs(mean[t, x, i] - infinite[t, x, i]))
                moved = max(moved, abs(after[t, i, i, x, x] - before[t, x, x]))
                assert change[t, x, i] == pytest.approx(after[t, i, i, x, x] - before[t, x, x])
    assert p.correction_size == pytest.approx(worst / np.sqrt(squares + spreads))
    assert p.covariance_correction_size == pytest.approx(moved / largest)


def test_negative_variances_are_seen_at_every_time_and_output():
    """A variance below zero is refused; a negative covariance of two outputs is none."""
    f, y = wide_flow(3, 4, 1e9), np.array([[0.2, 0.1], [0.5, -0.4]])
    p = predict(f, y, TRAIN, GradientDescent(0.1), time=[1, 3])
    value = np.zeros((2, 2, 2, 1, 1))
    value[:, 0, 0], value[:, 1, 1], value[:, 0, 1], value[:, 1, 0] = 1.0, 1.0, -0.5, -0.5
    assert checked(p, "covariance", value) is value
    for place in ((0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)):
        wrong = value.copy()
        wrong[place] = -0.2
        with pytest.raises(UnreliablePrediction, match=r"A variance comes out as -0\.2"):
            checked(p, "covariance", wrong)
        with pytest.raises(UnreliablePrediction, match="A variance comes out as -2e-09"):
            checked(p, "covariance", 1e-8 * wrong)
        wrong[place] = -1e-12  # rounding beside the other variances
        assert checked(p, "covariance", 1e6 * wrong).min() < 0


def test_errors_count_from_a_billionth_of_the_answer_on(monkeypatch):
    """Where the NTK is fragile: an error above the correction is refused unless it is below 1e-9 of the answer."""
    f = random_flow(3, seed=4)
    f.Theta = np.diag([1.0, 1.0, 1e4])
    p = predict(f, [0.2, 0.5], TRAIN, GradientFlow())
    monkeypatch.setattr(errors, "prediction_error", lambda p, asked: {"mean": 1e-10})
    p.__dict__["mean_infinite"] = np.array([1e-3])
    with pytest.raises(UnreliablePrediction, match="nearly coincide"):
        checked(p, "mean", p.mean_infinite)
    for large in (np.array([1.0]), np.array([0.2])):
        p.__dict__["mean_infinite"] = large
        assert checked(p, "mean", large) is large


def test_moved_kernels_stay_symmetric():
    f = random_flow(3, seed=1)
    moved = _moved(f, ("K", "Theta", "D"), {"K": 0.1, "Theta": 0.2, "D": 0.5}, np.random.default_rng(0))
    for name, share in (("K", 0.1), ("Theta", 0.2)):
        x, exact = getattr(moved, name), getattr(f, name)
        assert np.array_equal(x, x.T) and not np.array_equal(x, exact)
        assert np.abs(x - exact).max() < share * np.abs(exact).max()
    assert np.abs(moved.D - f.D).max() > 0.4 * np.abs(f.D).max()
    large = SimpleNamespace(K=np.ones((60, 60)), widths=(1, 1))
    noise = np.abs(np.diagonal(_moved(large, ("K",), {"K": 0.5}, np.random.default_rng(0)).K) - 1)
    assert 0.45 < noise.max() < 0.5  # up to the whole error
    assert np.abs(moved.D - moved.D.T).max() > 0.01


def test_training_that_does_not_converge_has_no_covariance_either():
    f = random_flow(4, seed=2)
    p = predict(f, [1.0, 2.0], TRAIN, GradientDescent(50.0))
    with pytest.raises(DivergentTraining):
        _ = p.covariance_infinite
    with pytest.raises(DivergentTraining):
        _ = p.mean_infinite
    assert np.isfinite(predict(f, [1.0, 2.0], TRAIN, GradientDescent(50.0), time=2).covariance_infinite).all()


@pytest.mark.parametrize("rule", [GradientDescent(1e200), StochasticDescent(1e200, [[0], [1]])], ids=str)
def test_numbers_that_leave_their_range_are_told_once(rule):
    """A sentence, and none of NumPy's warnings before it (they are errors in these tests)."""
    p = predict(random_flow(4, seed=2), [1.0, 2.0], TRAIN, rule, time=4)
    for name in ("mean_infinite", "covariance_infinite", "mean", "covariance", "ntk_change"):
        with pytest.raises(NumericError, match="range of floating-point"):
            getattr(p, name)


def test_notes_name_the_times():
    f = random_flow(4, seed=2)
    assert "until time 2, 0.5" in predict(f, [1.0, 2.0], TRAIN, GradientFlow(), time=[2, 0.5]).notes[0]
    assert predict(f, [1.0, 2.0], TRAIN, GradientDescent(0.1), time=3).notes[0].endswith("until step 3")
    assert "until" not in predict(f, [1.0, 2.0], TRAIN, GradientDescent(0.1)).notes[0]


def test_at_two_over_h_descent_goes_on_for_ever():
    """Errors that neither grow nor vanish are no end: eta = 2/h exactly."""
    GradientDescent(1.999).check(np.array([1.0]))
    for eta in (2.0, 2.001):
        with pytest.raises(DivergentTraining, match="below 2"):
            GradientDescent(eta).check(np.array([1.0]))
    with pytest.raises(DivergentTraining, match=r"eigenvalue 1; the largest eigenvalue is 10, .* below 0\.5\."):
        Preconditioned(1.0, lambda h: 4 / h**2).check(np.array([1.0, 10.0]))  # the slow mode has the larger step
    Preconditioned(0.49, lambda h: 4 / h**2).check(np.array([1.0, 10.0]))
    with pytest.raises(DivergentTraining, match="whatever the learning rate"):
        Preconditioned(1.0, lambda h: -h).check(np.array([1.0, 10.0]))
    for rule in (GradientFlow(), GradientDescent(0.1)):  # a mode without an eigenvalue stays where it is
        with pytest.raises(DivergentTraining, match="largest eigenvalue is 0, whatever the learning rate"):
            rule.check(np.array([0.0]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientDescent(-0.1),
        lambda: GradientDescent(0.0),
        lambda: Momentum(0.1, np.nan),
        lambda: Momentum(-0.1, 0.5),
        lambda: Schedule([0.1, np.inf]),
        lambda: Schedule([]),
        lambda: StochasticDescent(0.1, [[0.5]]),
        lambda: StochasticDescent(0.1, [[-1]]),
        lambda: StochasticDescent(0.0, [[0]]),
        lambda: StochasticDescent(-1.0, [[0]]),
        lambda: Preconditioned(np.nan, np.sqrt),
        lambda: Preconditioned(-0.1, np.sqrt),
        lambda: Preconditioned(0.0, np.sqrt),
    ],
)
def test_rates_are_checked_where_they_are_given(make):
    with pytest.raises(NumericError, match=r"learning rate|momentum|position in a batch"):
        make()


def test_a_kernel_prediction_has_no_ridge_unless_told():
    theta, modes = np.array([[2.0, 1.0], [1.0, 2.0]]), modes_of(np.array([[2.0]]))
    p = KernelPrediction(theta, np.eye(2), np.array([3.0]), (0,), modes)
    assert p.ridge == 0 and p.mean(Newton()) == pytest.approx([3.0, 1.5])


def test_the_first_of_two_steps_lands_at_the_end_of_the_linearized_network():
    """Each network's own NTK is inverted: mean and fluctuation of the NTK have done all they do after one step."""
    f, y = random_flow(4, seed=6), np.random.default_rng(1).normal(size=(2, 2))
    first, end, start = (predict(f, y, TRAIN, TwoStep(), time=t) for t in (1, None, 0))
    for part in ("H1", "NTK variance"):
        assert np.abs(first.parts[part] - end.parts[part]).max() < 1e-12
        assert np.abs(end.parts[part]).max() > 0.01 and np.abs(start.parts[part]).max() == 0
    shared = predict(f, y, TRAIN, Newton(), time=1)  # one inverse for all: the fluctuation is still there
    assert np.abs(shared.parts["NTK variance"] - end.parts["NTK variance"]).max() > 0.01


def test_how_many_training_inputs_a_schedule_of_batches_may_have(monkeypatch):
    monkeypatch.setattr(stepwise, "LARGEST", 2)
    f = random_flow(4, seed=1)
    assert predict(f, [1.0, 2.0], [0, 1], StochasticDescent(0.1, [[0], [1]]), time=1).mean.shape == (2,)
    with pytest.raises(NumericError, match="2 training inputs at most, not 3"):
        predict(f, [1.0, 2.0, 3.0], [0, 1, 2], StochasticDescent(0.1, [[0, 1, 2]]), time=1).mean  # noqa: B018


def test_nine_training_inputs_are_too_many_for_a_schedule_of_batches():
    f = random_flow(10, seed=1)
    with pytest.raises(NumericError, match="8 training inputs at most, not 9"):
        predict(f, np.ones(9), range(9), StochasticDescent(0.1, [range(9)]), time=1).mean  # noqa: B018


def test_step_by_step_there_is_descent_without_memory():
    for rule in (Momentum(0.1, 0.5), GradientFlow()):
        with pytest.raises(NumericError, match="Step by step there is descent without memory only"):
            stepwise.Steps(np.eye(2), rule)
    assert stepwise.Steps(np.eye(2), Schedule([0.1])).now == 0


def test_when_training_with_batches_is_given_up(monkeypatch):
    """The end of an NTK of one: errors fall as 2^-t, and are 1e-12 of their start after 40 steps."""
    f, halving = random_flow(3, seed=1), StochasticDescent(0.5, [[0]])
    f.Theta = np.eye(3)
    end = predict(f, [1.0], [0], halving).finite
    assert end._length(np.eye(1)) == 40 + 20
    assert end._length(2 * np.eye(1)) == 1  # one step does it
    monkeypatch.setattr(stepwise, "LONGEST", 5)
    with pytest.raises(DivergentTraining, match="has not converged after 6 steps: take a smaller eta or a time"):
        end._length(np.eye(1))
    for large in (1e9, 1e200):
        with pytest.raises(DivergentTraining, match="has not converged after 1 steps"):
            end._length(np.array([[large]]))


def test_a_constant_newton_tensor_is_a_learning_rate():
    f = random_flow(4, seed=1)
    one, other = (predict(f, [1.0, 2.0], TRAIN, r) for r in (Preconditioned(0.1, lambda h: 2), GradientDescent(0.2)))
    assert one.mean == pytest.approx(other.mean, rel=1e-12)
    with pytest.raises(DivergentTraining):
        predict(f, [1.0, 2.0], TRAIN, Preconditioned(0.1, lambda h: -h)).mean  # noqa: B018


def test_unknown_algorithms_have_no_rates():
    for ask in (lambda: AnyAlgorithm().rate("a"), lambda: AnyAlgorithm().decay(("a",))):
        with pytest.raises(DeriveError, match="unspecified algorithm"):
            ask()


def test_when_the_order_one_over_n_is_there():
    """A width, and all tensors: a table of a prediction has finite-width columns only then."""
    for names, widths, there in (
        (random_flow(4).names, (30.0, 30.0), True),
        (random_flow(4).names, (30.0, None), False),
        (("K", "Theta"), (30.0, 30.0), False),
        (("K", "Theta"), (30.0, None), False),
    ):
        f = random_flow(4, seed=1)
        f.names, f.widths = names, widths
        p = predict(f, [1.0, 2.0], TRAIN)
        assert p.has_finite_width == there and ("mean" in p.rows()[0]) == there


def test_a_ridge_is_one_more_slot_of_memory():
    """θ → θ - η v, v → μ v + g - ρ d with the displacement d: the rule's matrices by hand; batches stay."""
    eta, mu, rho = 0.3, 0.6, 0.2
    rule = Penalized(Momentum(eta, mu), rho).rule(0)
    step = np.array([[1 - eta * rho, eta * mu], [-rho, mu]])  # of (d, v)
    assert np.abs(np.eye(2) - step - rule.decay).max() < 1e-15
    assert rule.input == pytest.approx([eta, 1]) and rule.output == pytest.approx([-eta * rho, eta * mu])
    assert rule.direct == pytest.approx(eta)
    rule = Penalized(GradientDescent(1.0), 0.4)  # it decays as a mode with eigenvalue h + ρ, below 2/η
    rule.check(np.array([0.1, 1.5]))
    with pytest.raises(DivergentTraining, match=r"below 0\.95"):
        rule.check(np.array([0.1, 1.7]))
    seen = Penalized(StochasticDescent(0.1, [[1], [0, 1]]), rho).masks(2)
    assert seen.tolist() == [[0, 1], [1, 1]] and Penalized(GradientFlow(), rho).masks(2) is None


def test_modes_in_blocks(monkeypatch):
    """One mode at a time: what descent piles up of one mode's error, and of one that another one drives, at times."""
    monkeypatch.setattr(projectors, "CHUNK", 1)
    h, eta, times = np.array([0.2, 0.7, 1.1]), 0.5, np.array([0, 2, 5])
    own = Projectors(GradientDescent(eta), h, times)
    u = 1 - eta * h
    assert own.p == pytest.approx((1 - u ** times[:, None]) / h)
    piled = [sum((eta * u[:, None] ** s * (1 - u**s) / h for s in range(t)), np.zeros((3, 3))) for t in times]
    assert own.q == pytest.approx(np.array(piled))


def test_algorithms_know_what_they_are():
    assert Algorithm.ridge == 0 and not Algorithm.continuous and not Algorithm.own_ntk
    assert Algorithm.memory_size == Algorithm.stages == 0
    assert Schedule([0.3, 0.2, 0.1]).stages == 2  # two steps of their own before the rule that stays
    assert StochasticDescent(0.1, [[0]]).update((), np.array([2.0, -3.0]), 0)[1] == pytest.approx([0.2, -0.3])
    assert GradientFlow.continuous and TwoStep.own_ntk and not Newton.own_ntk
