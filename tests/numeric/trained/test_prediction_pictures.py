"""Pictures of predictions: lines, crosses, bands and images hold the numbers of the prediction, output by output."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot
from random_statistics import random_flow

from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, predict
from numeric.trained.picture import draw_ntk_change, draw_prediction

TRAIN, TEST = [0, 2, 3], [1, 4]
Y = np.array([[1.0, -0.5], [0.3, 0.8], [-1.2, 0.4]])
TIMES = np.array([3.0, 1.0, 2.0])
"""Not in order: lines are drawn in the order of time."""


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def prediction(y, time=None, algorithm=None):
    flow = random_flow(5, seed=3)
    flow.widths = (40.0, 40.0)
    flow.K = 0.05 * flow.K  # variances below one
    return predict(flow, y, TRAIN, algorithm or GradientFlow(), time=time)


def at(p, time, y):
    """The same prediction for one time alone."""
    return prediction(y, float(time), p.algorithm)


def band(axes, k):
    """x, lower and upper edge of a filled band."""
    vertices = axes.collections[k].get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    edges = [vertices[np.isclose(vertices[:, 0], own), 1] for own in x]
    return x, np.array([e.min() for e in edges]), np.array([e.max() for e in edges])


@pytest.mark.parametrize("output", [0, 1])
def test_means_against_time(output):
    p = prediction(Y, TIMES, GradientDescent(0.1))
    axes = draw_prediction(p, output=output)
    lines = axes.get_lines()
    assert len(lines) == 2 * len(TEST) and len(axes.collections) == len(TEST)
    for row in range(len(TEST)):
        dashed, solid = lines[2 * row], lines[2 * row + 1]
        assert dashed.get_linestyle() == "--" and solid.get_linestyle() == "-"
        assert dashed.get_color() == solid.get_color()
        own = [at(p, t, Y) for t in (1, 2, 3)]
        assert list(dashed.get_xdata()) == list(solid.get_xdata()) == [1, 2, 3]
        infinite = np.array([q.mean_infinite[row, output] for q in own])
        spread = np.array([np.sqrt(q.covariance_infinite[row, row]) for q in own])
        assert dashed.get_ydata() == pytest.approx(infinite)
        assert solid.get_ydata() == pytest.approx([q.mean[row, output] for q in own])
        x, low, high = band(axes, row)
        assert (
            list(x) == [1, 2, 3]
            and low == pytest.approx(infinite - spread)
            and high == pytest.approx(infinite + spread)
        )
    assert axes.get_xlabel() == "steps" and axes.get_ylabel() == f"output {output}"


def test_means_at_the_end():
    p = prediction(Y)
    axes = draw_prediction(p, output=1)
    (bars,) = axes.containers
    assert bars.lines[0].get_ydata() == pytest.approx(p.mean_infinite[:, 1])
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert ends[:, 1] - ends[:, 0] == pytest.approx(2 * np.sqrt(np.diag(p.covariance_infinite)))
    crosses = next(line for line in axes.get_lines() if line.get_label() == "with the order 1/n")
    assert list(crosses.get_xdata()) == [0, 1] and crosses.get_ydata() == pytest.approx(p.mean[:, 1])
    alone = draw_prediction(p, output=1, finite=False)
    assert not [line for line in alone.get_lines() if line.get_label() == "with the order 1/n"]
    assert draw_prediction(prediction(Y, TIMES)).get_xlabel() == "time"
    for wrong in (2, -1):
        with pytest.raises(NumericError, match="outputs 0 to 1"):
            draw_prediction(p, output=wrong)
    assert draw_prediction(p).get_ylabel() == "output 0"
    with pytest.raises(NumericError, match="outputs 0 to 0"):
        draw_prediction(prediction(Y[:, 0]), output=1)


@pytest.mark.parametrize("output", [None, 0, 1])
def test_change_of_the_ntk_against_time(output):
    y = Y[:, 0] if output is None else Y
    p = prediction(y, TIMES, GradientDescent(0.1))
    own = [at(p, t, y).ntk_change for t in (1, 2, 3)]
    lines = draw_ntk_change(p, output=output or 0).get_lines()
    assert [line.get_label() for line in lines] == [f"input {k}" for k in range(5)]
    for k, line in enumerate(lines):
        wanted = [change[k, k] if output is None else change[output, output, k, k] for change in own]
        assert list(line.get_xdata()) == [1, 2, 3] and line.get_ydata() == pytest.approx(wanted)
        assert line.get_linestyle() == ("-" if k in TRAIN else "--")


def test_there_is_no_third_output():
    for draw in (draw_prediction, draw_ntk_change):
        for output in (-1, 2):
            with pytest.raises(NumericError, match=f"outputs 0 to 1; {output} is not one of them"):
                draw(prediction(Y, 1.0), output=output)


def test_change_of_the_ntk_at_the_end():
    p = prediction(Y)
    own = pyplot.subplots()[1]
    assert draw_ntk_change(p, own, output=1) is own
    (image,) = own.get_images()
    change = p.ntk_change[1, 1]
    assert np.asarray(image.get_array()) == pytest.approx(change)
    assert image.get_clim() == pytest.approx((-np.abs(change).max(), np.abs(change).max()))  # no change is white
    for change in (np.array([[-3.0, 1.0], [1.0, 2.0]]), np.array([[3.0, -1.0], [-1.0, 2.0]])):
        p.__dict__["ntk_change"] = np.array([[change, 0 * change], [0 * change, 0 * change]])
        (image,) = draw_ntk_change(p).get_images()
        assert np.array_equal(image.get_array(), change) and image.get_clim() == (-3.0, 3.0)
