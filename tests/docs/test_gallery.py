"""Every picture of the gallery is drawn by at most five lines."""

import sys
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from pictures import pictures

LONG = ("06_training", "04_depth_over_width", "03_half_stable")


@pytest.mark.parametrize(
    "picture",
    [pytest.param(p, marks=pytest.mark.slow) if p.name in LONG else p for p in pictures()],
    ids=lambda p: p.name,
)
def test_picture(picture):
    from matplotlib import pyplot

    assert picture.title and picture.caption and picture.lines <= 5
    axes = picture.draw()
    assert axes.get_xlabel() and axes.get_ylabel()
    assert any(len(line.get_xdata()) > 1 for line in axes.get_lines()) and axes.get_legend() is not None
    pyplot.close("all")
