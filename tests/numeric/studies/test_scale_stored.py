"""Stored results of real tanh networks between the NTK and maximal update (tests/data/studies/make_scale.py)."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "data" / "studies"
STORED = json.loads((FOLDER / "scale.json").read_text())
DATA = {name: part["result"] for name, part in STORED.items()}
WIDTHS = [64, 128, 256, 512, 1024]


def test_stored_with_the_settings_of_the_script():
    script = runpy.run_path(str(FOLDER / "make_scale.py"))
    assert {name: script["settings"](study) for name, study in script["STUDIES"].items()} == {
        name: part["settings"] for name, part in STORED.items()
    }


@pytest.mark.parametrize("s", [0.0, 0.5, 1.0])
def test_ntk_moves_as_depth_over_width_to_the_one_minus_s(s):
    """|H - H_0|/|H_0| goes as n^(s - 1): the power fitted from n = 64 on, within 0.08; its standard error is below."""
    rows = DATA[f"s={s:g}"]
    n, mean, error = (np.array(x) for x in zip(*((row["width"], *row["norm"]) for row in rows)))
    assert n[0] == 64 and n[-1] >= 256
    weights = mean / error
    design = np.stack([np.log(n), np.ones(len(n))], axis=1) * weights[:, None]
    power = np.linalg.lstsq(design, np.log(mean) * weights, rcond=None)[0][0]
    assert np.sqrt(np.linalg.inv(design.T @ design)[0, 0]) < 0.04
    assert abs(power - (s - 1)) < 0.08


def test_ntk_change_is_predicted():
    """At s = 0, n >= 128: the mean change of the NTK's trace within 10 % of first order in 1/n."""
    rows = [row for row in DATA["s=0"] if row["width"] >= 128]
    assert len(rows) >= 2
    for row in rows:
        measured, error = row["trace"]
        predicted = DATA["predicted"] / row["width"]
        assert abs(measured / predicted - 1) < 0.1 and error < 0.06 * abs(predicted), row["width"]


def losses(scheme):
    return np.array([[np.inf if x is None else x for x in row["losses"]] for row in DATA[f"transfer, {scheme}"]])


def test_best_rate_carries_over_at_maximal_update():
    """n = 64 ... 1024, 16 networks on four data sets: the best of rates that differ by factors of 2 moves by at most
    one step, and the minimum of a parabola by less than that, beyond its error."""
    rows = DATA["transfer, s=1"]
    assert [row["width"] for row in rows] == WIDTHS and STORED["transfer, s=1"]["settings"]["networks"] >= 16
    best = [row["best"] for row in rows]
    powers = STORED["transfer, s=1"]["settings"]["powers"]
    assert min(powers) < min(best) and max(best) < max(powers)  # a minimum, not an edge
    assert max(best) - min(best) <= 1
    optimum, error = np.array([row["optimum"] for row in rows]).T
    assert optimum.max() - optimum.min() < 1 and error.max() < 0.5


def test_best_rate_falls_with_width_in_the_standard_parametrization():
    """One learning rate for all parameters: the best one falls as 1/n, four steps here, give or take one."""
    rows = DATA["transfer, standard"]
    assert [row["width"] for row in rows] == WIDTHS
    assert 3 <= rows[0]["best"] - rows[-1]["best"] <= 5


def test_losses_at_a_rate_carry_over():
    """At s = 1 a learning rate up to eta_0/2 gives the same loss at every width; the standard one does not."""
    low = losses("s=1")[:, :2]
    assert (low.max(axis=0) / low.min(axis=0)).max() < 1.15
    standard = losses("standard")
    same = standard[:, STORED["transfer, standard"]["settings"]["powers"].index(-1)]
    assert same.max() / same.min() > 3
