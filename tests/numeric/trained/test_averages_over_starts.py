"""What any loss is made of: initial outputs, averages, joint statistics, when training has ended; by loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from random_statistics import joint, random_flow

from numeric.errors import NumericError
from numeric.trained import DivergentTraining, GradientDescent, GradientFlow, Schedule, StochasticDescent, any_loss
from numeric.trained import joint as joint_module
from numeric.trained.joint import JointStatistics, _roots
from numeric.trained.losses import MSE, CrossEntropy, soft_labels

N, OUTPUTS = 3, 2
F = random_flow(N, seed=9)
STATISTICS = JointStatistics(F, OUTPUTS)


def test_draws_come_in_pairs():
    starts = any_loss._draws(STATISTICS, 51, 4)
    assert starts.z.shape == (50, OUTPUTS, N) and starts.drawn
    assert np.array_equal(starts.z[0::2], -starts.z[1::2]) and np.array_equal(starts.normal[0::2], -starts.normal[1::2])
    assert starts.weights == pytest.approx(np.full(50, 1 / 50))
    root = np.linalg.cholesky(F.K)
    for row, i in ((0, 0), (7, 1)):
        assert starts.z[row, i] == pytest.approx(root @ starts.normal[row, i])
    assert np.array_equal(any_loss._draws(STATISTICS, 51, 4).z, starts.z)
    assert not np.array_equal(any_loss._draws(STATISTICS, 51, 5).z, starts.z)
    many = any_loss._draws(STATISTICS, 40_000, 1).z
    assert (
        np.abs(np.einsum("ria,rjb->ijab", many, many) / 40_000 - np.einsum("ij,ab->ijab", np.eye(2), F.K)).max() < 0.1
    )


def test_nodes_are_a_rule_of_the_normal_distribution():
    starts = any_loss._nodes(STATISTICS, 3)
    assert len(starts.z) == 3**6 and not starts.drawn and starts.weights.sum() == pytest.approx(1)
    mean, error = starts.mean(np.einsum("ria,rjb->rijab", starts.z, starts.z))
    assert np.abs(mean - np.einsum("ij,ab->ijab", np.eye(2), F.K)).max() < 1e-12
    assert error.shape == (2, 2, 3, 3) and np.abs(error).max() == 0
    fourth, _ = starts.mean(starts.z[:, 0, 1] ** 4)
    assert fourth == pytest.approx(3 * F.K[1, 1] ** 2)
    one = any_loss._nodes(STATISTICS, 1)
    assert one.z.shape == (1, OUTPUTS, N) and np.abs(one.z).max() == 0 and one.weights == pytest.approx([1])
    for wrong in (0, 21):
        with pytest.raises(NumericError, match="nodes is a whole number from 1 to 20"):
            any_loss._nodes(STATISTICS, wrong)


def test_averages_have_controls_and_standard_errors():
    """Quadratic functions are averaged without an error; for others it is the scatter of what the controls leave."""
    starts = any_loss._draws(STATISTICS, 400, 0)
    flat = starts.normal.reshape(400, -1)
    mean, error = starts.mean(2.0 + flat[:, 0] * flat[:, 3] + 5 * flat[:, 2] ** 2 + flat[:, 1])
    assert mean == pytest.approx(7.0, abs=1e-12) and error < 1e-12
    x = np.cos(2 * flat[:, 0]) + flat[:, 1] ** 3
    pairs = (x[0::2] + x[1::2]) / 2
    design = [np.ones(200)]
    for a in range(6):
        for b in range(a, 6):
            design.append(flat[0::2, a] * flat[0::2, b] - (a == b))
    design = np.array(design).T
    solution = np.linalg.lstsq(design, pairs, rcond=None)[0]
    left = pairs - design @ solution
    mean, error = starts.mean(x)
    assert mean == pytest.approx(solution[0])
    assert error == pytest.approx(np.sqrt(np.sum(left**2) / (200 - 22) / 200))
    assert abs(mean - np.exp(-2)) < 4 * error and error > 0
    several = np.stack([[x, 3 * x], [x**2, np.exp(flat[:, 5])], [x, x + 1]]).transpose(2, 0, 1)
    means, errors = starts.mean(several)
    assert means.shape == errors.shape == (3, 2)
    for k in np.ndindex(3, 2):  # each by itself
        mean, error = starts.mean(several[:, *k])
        assert means[k] == pytest.approx(mean) and errors[k] == pytest.approx(error)
    few = any_loss._draws(STATISTICS, 200, 0)  # 100 pairs for 21 products: no controls but the constant
    assert few._controls.shape == (100, 1) and starts._controls.shape == (200, 22)
    mean, error = few.mean(few.normal[:, 0, 0] ** 2)
    assert mean == pytest.approx(np.mean(few.normal[:, 0, 0] ** 2)) and error > 0.01


def test_what_is_known_of_the_ntk_given_outputs():
    """E[H - Θ | z] and E[dH | z] of two outputs, by the Hermite expansion in the initial outputs."""
    E, Ki = joint(F, OUTPUTS), np.linalg.inv(F.K)
    z = np.random.default_rng(3).normal(size=(2, OUTPUTS, N))
    ntk, dntk = STATISTICS.ntk_mean(z), STATISTICS.dntk_mean(z)
    for row in range(2):
        s = z[row] @ Ki
        for k, l, c, d in np.ndindex(OUTPUTS, OUTPUTS, N, N):
            own = F.H1[c, d] * (k == l)
            for i, j, a, b in np.ndindex(OUTPUTS, OUTPUTS, N, N):
                own += E["zzH"][i, j, k, l, a, b, c, d] * (s[i, a] * s[j, b] - (i == j) * Ki[a, b]) / 2
            assert ntk[row, k, l, c, d] == pytest.approx(own)
        expected = np.einsum("ijklabcd,ld->ijkabc", E["dHz"], s)
        assert np.abs(dntk[row] - expected).max() < 1e-12


def test_roots_of_covariances():
    roots = np.random.default_rng(0).normal(size=(2, 4))
    covariance = roots.T @ roots
    found = _roots(covariance, "V")
    assert len(found) == 2 and np.abs(found.T @ found - covariance).max() < 1e-12
    assert np.abs(_roots(np.zeros((3, 3)), "V")).sum() == 0
    with pytest.raises(NumericError, match="not accurate enough"):
        _roots(np.diag([1.0, -1e-3]), "V")


def test_roots_of_covariances_that_are_nearly_none():
    """Rounding counts beside the largest eigenvalue, whatever the size: below zero, near zero, or off the diagonal."""
    for size in (1e-20, 1.0, 1e12):
        found = _roots(size * np.diag([10.0, 1.0, -5e-7]), "V")  # a negative share of 5e-8 is rounding
        kept = np.diag([10.0, 1.0, 0.0])
        assert found.shape == (2, 3) and found.T @ found / size == pytest.approx(kept, rel=1e-12, abs=0)
        with pytest.raises(NumericError, match=r"eigenvalue -2e.* beside 1.*: the flow's A and B are not accurate"):
            _roots(size * np.diag([10.0, 1.0, -2e-6]), "A and B")
        assert len(_roots(size * np.diag([1e-16, 1e-15, 1.0]), "V")) == 1  # these have no weight
    skew = np.array([[0.0, 1e-3], [-1e-3, 0.0]])
    found = _roots(np.eye(2) + skew, "V")
    assert np.abs(found.T @ found - np.eye(2)).max() < 1e-15


def test_joint_statistics_have_a_largest_size(monkeypatch):
    monkeypatch.setattr(joint_module, "LARGEST", 6**4)
    assert JointStatistics(F, 2).inverse @ F.K == pytest.approx(np.eye(N))
    with pytest.raises(NumericError, match="With 3 outputs and 3 inputs the joint statistics have 6561 entries"):
        JointStatistics(F, 3)
    repeated = random_flow(N)
    repeated.K = np.ones((N, N))
    with pytest.raises(NumericError, match="kernel of all inputs is singular: leave out inputs that repeat others"):
        _ = JointStatistics(repeated, 1).inverse


def until(loss, rule, time=None, z=None, newton=None):
    train = np.array([0, 2])
    start = np.random.default_rng(2).normal(size=(5, loss_outputs(loss), N)) if z is None else z
    metric = np.eye(2) if newton is None else newton
    return any_loss._until(loss, F.Theta, train, metric, rule, time, start), start, train


def loss_outputs(loss):
    return (loss.p if isinstance(loss, CrossEntropy) else loss.y).shape[1]


@pytest.mark.parametrize("kind", ["descent", "batches", "schedule", "metric"])
@pytest.mark.parametrize("soft", [True, False])
def test_the_end_of_training_is_found_by_training(kind, soft):
    """Half as many steps again as the slowest of the networks needs to bring its error factors below 1e-7."""
    loss = CrossEntropy(soft_labels([0, 1], 2, 0.2)) if soft else MSE(np.array([[1.0], [-0.5]]))
    h = np.linalg.eigvalsh(F.Theta)[-1]
    newton = np.array([[1.0, 0.2], [0.2, 0.5]]) if kind == "metric" else np.eye(2)
    rule = {
        "batches": StochasticDescent(0.7 / h, [[0], [0, 1]]),
        "schedule": Schedule([0.1 / h, 0.9 / h]),
    }.get(kind, GradientDescent(0.9 / h))
    found, z, train = until(loss, rule, newton=newton)
    z, steps = z.copy(), 0
    while True:
        errors = [loss.error(network[:, train].T) for network in z]
        if np.abs(errors).max() < 1e-7:
            break
        for network, error in zip(z, errors):
            seen = np.array([1, 0] if kind == "batches" and steps % 2 == 0 else [1, 1])
            rate = {"batches": 0.7, "schedule": 0.1 if steps == 0 else 0.9}.get(kind, 0.9) / h
            network -= rate * (F.Theta[:, train] @ newton @ (seen[:, None] * error)).T
        steps += 1
    assert found == steps + steps // 2 and steps > 5


def test_the_end_of_a_flow_and_given_times():
    loss = MSE(np.array([[1.0], [-0.5]]))
    found, z, train = until(loss, GradientFlow())
    h = np.linalg.eigvalsh(F.Theta[np.ix_(train, train)])
    start = np.abs(z[:, 0, train] - loss.y[:, 0]).max()
    assert 1.4 * np.log(start / 1e-7) / h[0] < 1.2 * found and found < 3 * np.log(10 * start / 1e-7) / h[0]
    assert until(loss, GradientFlow(), 0.0)[0] == 0 and until(loss, GradientFlow(), 0.5)[0] == 0.5
    assert until(loss, GradientFlow(), 1.7)[0] == 1.7 and until(loss, GradientDescent(0.1), 4)[0] == 4
    for time, rule in ((1.5, GradientDescent(0.1)), (-1, GradientFlow()), (np.nan, GradientFlow())):
        with pytest.raises(NumericError):
            until(loss, rule, time)
    with pytest.raises(DivergentTraining, match="not ended after 20000 steps"):
        until(loss, GradientDescent(1e-9), z=np.ones((1, 1, N)))


def averages(width, infinite, coefficient):
    totals = any_loss._Averages(any_loss._nodes(JointStatistics(F, 1), 1))
    totals.add("mean", "infinite", np.array([[infinite]]))
    totals.add("mean", "dNTK", np.array([[coefficient]]))
    totals.add("mean", "ddNTKs", np.array([[0.5 * coefficient]]))
    return totals.prediction(width, (1,), 3.0, ("trained",))


def test_predictions_from_averages():
    p = averages(50.0, 2.0, 4.0)
    assert p.mean == pytest.approx([2.0 + 6.0 / 50]) and p.mean_infinite == pytest.approx([2.0])
    assert p.parts["mean"]["ddNTKs"] == pytest.approx([2.0]) and p.coefficients["mean"] == pytest.approx([6.0])
    assert p.steps == 3.0 and p.width == 50.0 and p.test == (1,)
    assert p.notes == ("trained",)  # 6/50 of 2 is small
    assert p.part_errors["mean"].keys() == p.parts["mean"].keys() == {"dNTK", "ddNTKs"}
    assert p.part_errors["mean"]["dNTK"] == pytest.approx([0.0])
    (_, warning) = averages(5.0, 2.0, 4.0).notes
    assert "at width 5 the order 1/n of the mean is 0.6" in warning
    assert len(averages(5.0, 0.5, 1.0).notes) == 2  # 1.5/5 of a half
    assert len(averages(5.0, 0.0, 4.0).notes) == 1  # nothing to compare it with
    for wrong in ((np.nan, 1.0), (1.0, np.inf), (np.inf, 1.0), (1.0, 1.5e308)):
        with pytest.raises(DivergentTraining, match="range of floating-point numbers"):
            averages(50.0, *wrong)
    with pytest.raises(NumericError, match="has no probabilities"):
        _ = p.probabilities


def test_errors_of_parts_are_those_of_their_averages():
    starts = any_loss._draws(JointStatistics(F, 1), 20, 0)
    totals, x = any_loss._Averages(starts), np.random.default_rng(5).normal(size=(3, 20, 2))
    for part, values in zip(("infinite", "dNTK", "ddNTKs"), x):
        totals.add("mean", part, values[:8])
        totals.add("mean", part, values[8:])
    p = totals.prediction(10.0, (1,), 3.0, ())
    pairs = (x[:, 0::2] + x[:, 1::2]) / 2
    errors = pairs.std(axis=1, ddof=1) / np.sqrt(10)
    assert p.infinite_errors["mean"] == pytest.approx(errors[0])
    assert p.part_errors["mean"]["dNTK"] == pytest.approx(errors[1])
    assert p.part_errors["mean"]["ddNTKs"] == pytest.approx(errors[2])
    both = (pairs[1] + pairs[2]).std(axis=0, ddof=1) / np.sqrt(10)
    assert p.coefficient_errors["mean"] == pytest.approx(both)
    assert p.errors["mean"] == pytest.approx(np.hypot(errors[0], both / 10))


def test_what_leaves_the_range_of_numbers_is_told_at_once_and_without_warnings():
    totals = any_loss._Averages(any_loss._draws(JointStatistics(F, 1), 8, 0))
    for wrong in (np.nan, np.inf):
        with pytest.raises(DivergentTraining, match="range of floating-point numbers"):
            totals.add("mean", "infinite", np.full((8, 1), wrong))
    totals.add("mean", "infinite", np.ones((8, 1)))
    for part in ("dNTK", "ddNTKs"):  # their sum is infinite, plus and minus
        totals.add("mean", part, np.tile([[1.5e308], [-1.5e308]], (4, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DivergentTraining, match="range of floating-point numbers"):
            totals.prediction(10.0, (1,), 3.0, ())
