"""Stored results of real tanh networks between the NTK and maximal update (tests/data/studies/make_scale.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

DATA = json.loads((Path(__file__).parents[2] / "data" / "studies" / "scale.json").read_text())


@pytest.mark.parametrize("s", [0.0, 0.5, 1.0])
def test_ntk_moves_as_depth_over_width_to_the_one_minus_s(s):
    """|H - H_0|/|H_0| goes as n^(s - 1): the fitted power within 0.08 and two standard errors, at n = 64 ... 256."""
    own = DATA["exponents"][str(s)]
    n, mean, error = (np.array(own[key]) for key in ("widths", "means", "errors"))
    weights = mean / error
    design = np.stack([np.log(n), np.ones(len(n))], axis=1) * weights[:, None]
    power = np.linalg.lstsq(design, np.log(mean) * weights, rcond=None)[0][0]
    spread = np.sqrt(np.linalg.inv(design.T @ design)[0, 0])
    assert spread < 0.1
    assert abs(power - (s - 1)) < 0.08 + 2 * spread
