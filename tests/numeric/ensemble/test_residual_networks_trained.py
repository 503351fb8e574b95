"""`predict` for residual networks against real ones, trained to the end (make_residual_networks.py in tests/data)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from numeric import flow, predict
from numeric.ensemble import extrapolate
from numeric.trained import GradientDescent

DATA = Path(__file__).parents[2] / "data" / "trained" / "residual.json"
PAGE = Path(__file__).parents[3] / "docs" / "residual.md"
ORDERS = {"linearized": 1, "interaction": 2}
"""Degree of the polynomial in 1/n, as for plain networks."""


def judged(name):
    """(pulls, errors over the size of the whole correction)."""
    data = json.loads(DATA.read_text())
    expected = np.array(data["theory"][name])
    infinite = np.array(data["theory"]["infinite"]) if name == "linearized" else 0.0
    runs = sorted(data["runs"], key=lambda r: r["width"])
    n = np.array([r["width"] for r in runs])
    values, errors = (np.array([r[name][key] for r in runs]) for key in ("value", "error"))
    fit = extrapolate(n, n[:, None, None] * (values - infinite), n[:, None, None] * errors, order=ORDERS[name])
    whole = np.sum([data["theory"][part] for part in ORDERS], axis=0)
    return (fit.limit - expected) / fit.error, np.linalg.norm(fit.error) / np.linalg.norm(whole)


@pytest.mark.parametrize("name", ORDERS)
def test_networks_confirm_the_theory(name):
    pulls, size = judged(name)
    assert np.abs(pulls).max() < 3.5
    assert np.sum(pulls**2) < 13.3  # chi² of four numbers, 1 %
    assert size < 0.06
    said = re.search(rf"{name} part: largest pull ([\d.]+), s.e. ([\d.]+) %", PAGE.read_text())
    assert said and abs(float(said[1]) - np.abs(pulls).max()) < 0.01 and abs(float(said[2]) - 100 * size) < 0.06


@pytest.mark.slow
def test_the_stored_theory_is_what_predict_says():
    data = json.loads(DATA.read_text())
    s, expected = data["setting"], data["theory"]
    f = flow(s["activation"], s["X"], s["depth"], 1, skip=s["skip"], **s["hyperparameters"])
    found = predict(f, np.array(s["y"]), s["train"], GradientDescent(s["eta"]))
    sums = {"linearized": ("H1", "NTK variance"), "interaction": ("dNTK", "ddNTK-I", "ddNTK-II")}
    for name, parts in sums.items():
        total = sum(found.parts[part] for part in parts)
        assert np.abs(total - expected[name]).max() < 1e-6 * np.abs(total).max()
