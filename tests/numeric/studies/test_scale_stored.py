"""Stored results of real tanh networks between the NTK and maximal update (tests/data/studies/make_scale.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

DATA = json.loads((Path(__file__).parents[2] / "data" / "studies" / "scale.json").read_text())


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


def test_losses_at_a_rate_carry_over():
    """At s = 1 a learning rate up to eta_0/2 gives the same loss at n = 64, 256, 1024; the standard one another."""
    found = DATA["transfer"]
    spread = {}
    for scheme in ("1.0", "standard"):
        own = np.array(
            [[np.inf if x is None else x for x in found[scheme][n]["losses"]] for n in ("64", "256", "1024")]
        )
        low = own[:, : found["powers"].index(-1) + 1]
        spread[scheme] = float((low.max(axis=0) / low.min(axis=0)).max())
    assert spread["1.0"] < 1.15 and spread["standard"] > 5
