"""Sampled predictions on fifty training inputs, which no exact tensors reach, against ensembles of real networks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from numeric import flow, predict
from numeric.trained import GradientDescent

FOLDER = Path(__file__).parents[3] / "data" / "trained"
INTERACTION = ("dNTK", "ddNTK-I", "ddNTK-II")


def stored():
    return json.loads((FOLDER / "fifty.json").read_text())


def sampled(batches: int) -> tuple[np.ndarray, np.ndarray]:
    """n × what dNTK and ddNTKs do to the test outputs, (tests, outputs), and its standard error over batches."""
    sys.path.insert(0, str(FOLDER))
    import make_fifty as setting

    X, y = setting.data()
    f = flow("tanh", X, 3, 96, **setting.HYPERPARAMETERS, tensors="Theta")
    algorithm, train = GradientDescent(setting.ETA), range(setting.TRAIN)
    p = predict(f, y, train, algorithm, time=setting.STEPS, method="sampled", batch=128)
    sampler = p.sampler(float(setting.STEPS))
    from numeric.trained.sampled.estimate import part_names

    rows = [part_names().index(name) for name in INTERACTION]
    found = np.stack([np.asarray(sampler.launch(k)[0])[rows].sum(axis=0).T / 128 for k in range(batches)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(batches)


def judged(batches: int) -> tuple[np.ndarray, float]:
    """Differences to the widest networks in standard errors, and the standard error over the size of what is judged."""
    widest = max(stored()["runs"], key=lambda own: own["width"])
    value, error = np.array(widest["value"]), np.array(widest["error"])
    mean, noise = sampled(batches)
    both = np.hypot(error, noise)
    return (mean - value) / both, float(np.sqrt(np.mean(both**2) / np.mean(value**2)))


def test_the_stored_run_of_a_thousand_digits_adds_up():
    """bench/digits-1000.json: its error is that of its draws, and 5 % is within twenty CPU minutes and 4 GB."""
    run = json.loads((FOLDER.parents[2] / "bench" / "digits-1000.json").read_text())
    share = run["standard_error_times_width"] / run["correction_times_width"]
    assert np.isclose(share, run["relative_error"], rtol=0.01)
    assert np.isclose(share * run["draws"] ** 0.5, run["error_of_a_draw_over_the_correction"], rtol=0.01)
    needed = run["draws"] * (share / 0.05) ** 2
    assert np.isclose(needed, run["draws_to_5_percent_extrapolated"], rtol=0.01)
    assert run["cpu_seconds"] * needed / run["draws"] < 1200 and run["peak_gigabytes"] < 4


def test_networks_of_growing_width_agree():
    """What is stored: n × the shift hardly depends on n, as it must where order 1/n is meant to be judged."""
    runs = stored()["runs"]
    for run in runs:
        assert np.sqrt(np.mean(np.square(run["error"])) / np.mean(np.square(run["value"]))) < 0.5
    first, last = runs[0], runs[-1]
    gap = np.array(first["value"]) - np.array(last["value"])
    assert np.sqrt(np.mean((gap / np.hypot(first["error"], last["error"])) ** 2)) < 2


@pytest.mark.slow
def test_sampled_corrections_are_those_of_real_networks():
    pulls, share = judged(60)
    print(pulls, share)
    assert share < 0.3
    assert np.abs(pulls).max() < 4 and np.sqrt(np.mean(pulls**2)) < 1.6
