"""The 1/n theory against real trained tanh networks: the stored long run, and a small run made here."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "trained"))
from trained_setting import stored, theory

from numeric.ensemble import Networks, extrapolate, train_ensemble
from numeric.trained import GradientDescent, Preconditioned, StochasticDescent, TwoStep, predict

README = Path(__file__).parents[3] / "README.md"
SMALLEST = 24
"""The narrowest width for which a quadratic in 1/n describes the interactions (16 needs the cubic term)."""
LINEAR = ("H1", "NTK variance")
INTERACTION = ("dNTK", "ddNTK-I", "ddNTK-II")


@pytest.fixture(scope="module")
def prediction():
    setting = stored()["setting"]
    return predict(theory(), np.array(setting["y"]), setting["train"], GradientDescent(setting["eta"]))


def runs(smallest: int = 0):
    return sorted((r for r in stored()["runs"] if r["width"] >= smallest), key=lambda r: r["width"])


def scaled(name, smallest, infinite=0.0):
    """widths, n × (measured - infinite-width value), n × standard error."""
    chosen = runs(smallest)
    n = np.array([r["width"] for r in chosen])
    values, errors = (np.array([r[name][key] for r in chosen]) for key in ("value", "error"))
    return n, n[:, None, None] * (values - infinite), n[:, None, None] * errors


@pytest.mark.equation("infinity.162")
def test_linearized_networks_confirm_H1_and_the_ntk_variance(prediction):
    n, values, errors = scaled("linearized", 16, prediction.mean_infinite)
    fit = extrapolate(n, values, errors, order=1)
    expected = sum(prediction.parts[name] for name in LINEAR)
    pulls = (fit.limit - expected) / fit.error
    assert np.abs(pulls).max() < 3.5
    assert np.sum(pulls**2) < 16.8  # chi² of six numbers, 1 %
    assert np.linalg.norm(fit.error) < 0.1 * np.linalg.norm(expected)


@pytest.mark.equation("infinity.163")
@pytest.mark.equation("infinity.164")
@pytest.mark.equation("infinity.165")
def test_trained_networks_confirm_the_interactions(prediction):
    n, values, errors = scaled("interaction", SMALLEST)
    fit = extrapolate(n, values, errors, order=2)
    expected = sum(prediction.parts[name] for name in INTERACTION)
    pulls = (fit.limit - expected) / fit.error
    assert np.abs(pulls).max() < 3.5
    assert np.sum(pulls**2) < 16.8
    size = np.linalg.norm(fit.error) / np.linalg.norm(expected)
    assert size < 0.1
    said = re.search(r"(\d) components, largest pull ([\d.]+) s.e., s.e. ([\d.]+) % of it", README.read_text())
    assert said and int(said[1]) == pulls.size
    assert abs(float(said[2]) - np.abs(pulls).max()) < 0.06 and abs(float(said[3]) - 100 * size) < 0.06


@pytest.mark.equation("infinity.160")
def test_mean_of_trained_networks(prediction):
    """n × (mean - infinite-width mean), extrapolated, within its error, which is below 10 % of the correction."""
    n, linear, linear_error = scaled("linearized", 16, prediction.mean_infinite)
    m, rest, rest_error = scaled("interaction", SMALLEST)
    first, second = extrapolate(n, linear, linear_error, order=1), extrapolate(m, rest, rest_error, order=2)
    limit, error = first.limit + second.limit, np.hypot(first.error, second.error)
    expected = prediction.mean - prediction.mean_infinite
    assert np.abs((limit - expected) / error).max() < 3.5
    assert np.linalg.norm(error) < 0.1 * np.linalg.norm(expected)


def test_first_order_stops_agreeing_where_depth_over_width_is_large(prediction):
    """Width 6, depth 3: the measured correction is far from first order; it comes closer as the width grows."""
    n, values, errors = scaled("interaction", 0)
    expected = sum(prediction.parts[name] for name in INTERACTION)
    gaps = np.linalg.norm((values - expected).reshape(len(n), -1), axis=1)
    narrow = int(np.argmin(n))
    assert n[narrow] == 6
    assert gaps[narrow] > 0.5 * np.linalg.norm(expected)
    assert gaps[narrow] > 20 * np.linalg.norm(errors[narrow])
    assert gaps[np.argmax(n)] < 0.5 * gaps[narrow]


@pytest.mark.equation("infinity.166")
def test_covariance_of_trained_networks(prediction):
    """n × (covariance - infinite-width covariance) extrapolates to the theory's coefficient."""
    outputs = np.eye(2)[:, :, None, None]
    chosen = runs(16)
    n = np.array([r["width"] for r in chosen])
    scale = n[:, None, None, None, None]
    values = scale * (np.array([r["covariance"]["value"] for r in chosen]) - outputs * prediction.covariance_infinite)
    errors = scale * np.array([r["covariance"]["error"] for r in chosen])
    fit = extrapolate(n, values, errors, order=1)
    expected = prediction.plain("covariance") - outputs * prediction.covariance_infinite
    pulls = (fit.limit - expected) / fit.error
    assert np.abs(pulls).max() < 4.5
    assert np.linalg.norm(fit.error) < np.linalg.norm(expected)


def test_small_run_agrees_with_the_stored_one():
    """An independent seed, few networks: sampling, training and statistics as they are in this tree."""
    setting, reference = stored()["setting"], runs(24)[0]
    width = reference["width"]
    networks = Networks("tanh", (3, width, width, 2), **setting["hyperparameters"])
    result = train_ensemble(
        networks,
        setting["X"],
        setting["y"],
        setting["train"],
        GradientDescent(setting["eta"]),
        pairs=150,
        steps=reference["steps"],
        seed=123,
        batch=50,
        tolerance=1e-3,
    )
    test = [k for k in range(len(setting["X"])) if k not in setting["train"]]
    for name in ("interaction", "linearized"):
        mean, error = (x[:, test].T for x in getattr(result, name))
        other = np.array(reference[name]["value"])
        assert np.abs((mean - other) / np.hypot(error, reference[name]["error"])).max() < 4


ALGORITHMS = json.loads((Path(__file__).parents[2] / "data" / "trained" / "algorithms.json").read_text())


def measured(name, quantity="interaction"):
    """n × measured, extrapolated linearly in 1/n from widths 32 and 64, and its standard error."""
    at = {r["width"]: r[quantity] for r in ALGORITHMS["runs"] if r["name"] == name}
    value = {n: n * np.array(at[n]["value"]) for n in (32, 64)}
    error = {n: n * np.array(at[n]["error"]) for n in (32, 64)}
    return 2 * value[64] - value[32], np.hypot(2 * error[64], error[32])


def by_theory(algorithm, time=None):
    setting = ALGORITHMS["setting"]
    return predict(theory(), np.array(setting["y"]), setting["train"], algorithm, time=time)


def interactions(p):
    return sum(p.parts[name] for name in INTERACTION)


TRAINED_BY = {
    "descent": GradientDescent(0.25),
    "preconditioned": Preconditioned(0.05, lambda h: 1 + h**2),
    "two-step": TwoStep(),
    "stochastic": StochasticDescent(0.25, ALGORITHMS["batches"]),
}


@pytest.mark.equation("infinity.71")
@pytest.mark.parametrize("name", TRAINED_BY)
def test_each_algorithm_ends_where_its_theory_says(name):
    """Real networks trained with Newton tensors, batches, two steps: the interactions of order 1/n."""
    limit, error = measured(name)
    expected = interactions(by_theory(TRAINED_BY[name]))
    assert np.abs((limit - expected) / error).max() < 3.5
    assert np.linalg.norm(error) < 0.5 * np.linalg.norm(expected)


def test_the_solution_depends_on_the_algorithm():
    """Two steps and descent end at different places at order 1/n: by theory, and the same networks by measurement."""
    two, descent = (interactions(by_theory(TRAINED_BY[name])) for name in ("two-step", "descent"))
    apart = {n: {} for n in (32, 64)}
    for run in ALGORITHMS["runs"]:
        apart[run["width"]][run["name"]] = run["width"] * np.array(run["interaction"]["value"])
    gap = 2 * (apart[64]["two-step"] - apart[64]["descent"]) - (apart[32]["two-step"] - apart[32]["descent"])
    assert np.linalg.norm(two - descent) > 1
    assert np.linalg.norm(gap - (two - descent)) < 0.3 * np.linalg.norm(two - descent)


@pytest.mark.equation("infinity.117")
@pytest.mark.parametrize("steps", [2, 5, 12])
def test_networks_in_the_course_of_training(steps):
    """Interactions and the NTK's change after a few steps of descent."""
    p = by_theory(GradientDescent(0.25), steps)
    limit, error = measured(f"descent {steps}")
    assert np.abs((limit - interactions(p)) / error).max() < 3.5
    change, error = measured(f"descent {steps}", "ntk_change")
    assert np.linalg.norm(change - p.ntk_change) < 3 * np.linalg.norm(error)
    assert np.linalg.norm(error) < 0.5 * np.linalg.norm(p.ntk_change)
