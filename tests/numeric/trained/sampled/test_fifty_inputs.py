"""Sampled predictions on fifty training inputs, which no exact tensors reach, against ensembles of real networks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[3] / "data" / "trained"


def stored():
    return json.loads((FOLDER / "fifty.json").read_text())


def pulls(mean: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, float]:
    """Differences to the networks (all widths, weighted) in standard errors, and those over the size of the shift."""
    runs = stored()["runs"]
    weights = np.array([np.square(run["error"]) ** -1 for run in runs])
    value = np.sum(weights * [run["value"] for run in runs], axis=0) / weights.sum(axis=0)
    both = np.sqrt(1 / weights.sum(axis=0) + noise**2)
    return (mean - value) / both, float(np.sqrt(np.mean(both**2) / np.mean(value**2)))


@pytest.mark.parametrize(("train", "error", "minutes", "gigabytes"), [(1000, 0.05, 10, 4), (5000, 0.1, 60, 16)])
def test_stored_runs_of_digits_keep_to_their_bounds(train, error, minutes, gigabytes):
    """bench/digits-runs.json: the error asked for, within the time and memory that the documents tell."""
    every = json.loads((FOLDER.parents[2] / "bench" / "digits-runs.json").read_text())
    runs = [run for run in every if run["train"] == train]
    assert {run["activation"] for run in runs} >= {"tanh"}
    for run in runs:
        share = run["standard_error_times_width"] / run["correction_times_width"]
        assert run["relative_error"] == pytest.approx(share) and run["ended"] == "the relative error was reached"
        assert share <= 1.01 * error and run["wall_seconds"] < 60 * minutes and run["peak_gigabytes"] < gigabytes


def test_stored_costs_are_far_below_those_of_real_networks():
    """bench/sampled-cost.json: what the documents tell of it."""
    found = json.loads((FOLDER.parents[2] / "bench" / "sampled-cost.json").read_text())
    rows = found["rows"]
    assert [row["inputs"] for row in rows] == [200, 500, 1000, 2000]
    assert all(row["networks_cpu_s"] > 100 * row["cpu_s_to_5_percent"] for row in rows)
    sizes, cost = (np.log([row[name] for row in rows]) for name in ("inputs", "draw_cpu_s"))
    assert np.polyfit(sizes, cost, 1)[0] < 2


def test_networks_of_growing_width_agree():
    """What is stored: n × the shift hardly depends on n, as it must where order 1/n is meant to be judged."""
    runs = stored()["runs"]
    for run in runs:
        assert np.sqrt(np.mean(np.square(run["error"])) / np.mean(np.square(run["value"]))) < 0.5
    first, last = runs[0], runs[-1]
    gap = np.array(first["value"]) - np.array(last["value"])
    assert np.sqrt(np.mean((gap / np.hypot(first["error"], last["error"])) ** 2)) < 2


def test_the_sampled_theory_is_what_real_networks_do():
    theory = stored()["sampled"]
    found, share = pulls(np.array(theory["mean"]), np.array(theory["error"]))
    assert share < 0.3
    assert np.abs(found).max() < 3 and np.sqrt(np.mean(found**2)) < 1.5
    halved, _ = pulls(np.array(theory["mean"]) / 3, np.array(theory["error"]))
    assert np.sqrt(np.mean(halved**2)) > 1.5  # the networks would see a third of it


@pytest.mark.slow
def test_the_stored_theory_is_made_again():
    sys.path.insert(0, str(FOLDER))
    import make_fifty

    mean, error = make_fifty.sampled(60, 1000)
    theory = stored()["sampled"]
    found = (mean - theory["mean"]) / np.hypot(error, theory["error"])
    assert np.abs(found).max() < 4 and np.sqrt(np.mean(found**2)) < 1.8
