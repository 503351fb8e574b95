"""Pictures in one call: what they show is what closed forms say, and Matplotlib is not loaded before."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot

import derive
from numeric import GradientDescent, flow, predict
from numeric.errors import NumericError


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def test_matplotlib_is_loaded_late():
    code = "import sys, derive; derive.criticality('relu'); sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_flow_of_relu_and_its_band():
    """At C_W = 2 the kernel stays, and V = 5 (l - 1) K^2 for all widths equal."""
    n, depth = 50, 6
    f = flow(
        "relu",
        [[1.0, 1.0], [0.5, -1.5]],
        depth=depth,
        width=n,
        C_b=0,
        C_W=2,
        lambda_b=0,
        lambda_W=1,
        tensors=["V", "G1"],
    )
    axes = f.plot()
    K = np.array([2.0, 2.5])  # C_W x.x/n_0
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert lines["input 0"] == pytest.approx(np.full(depth, K[0])) and lines["input 1"] == pytest.approx(
        np.full(depth, K[1])
    )
    layers = np.arange(1, depth + 1)
    for band, kernel in zip(axes.collections, K):
        corners = band.get_paths()[0].vertices
        for layer in layers:
            own = corners[np.isclose(corners[:, 0], layer), 1]
            spread = kernel * np.sqrt((5 * (layer - 1) + 2) / n)
            assert (own.min(), own.max()) == pytest.approx((kernel - spread, kernel + spread))
    own = pyplot.subplots()[1]
    assert f.plot("V", axes=own) is own
    assert own.get_lines()[0].get_ydata() == pytest.approx(5 * (layers - 1) * K[0] ** 2)
    with pytest.raises(NumericError, match="several layers"):
        flow("relu", [[1.0, 1.0]], depth=2, tensors="K", layers="last").plot()


def test_exponents_of_relu_are_lines_of_slope_one():
    axes = derive.exponents("relu").plot()
    line = next(line for line in axes.get_lines() if line.get_label() == r"$\frac{V}{K^{2}}$")
    layers, values = line.get_data()
    assert values == pytest.approx(5 * layers)  # V/K^2 = 5 (l - 1)


def test_criticality_and_activation():
    axes = derive.criticality("tanh").plot()
    star = next(line for line in axes.get_lines() if line.get_label() == "critical point")
    assert star.get_xydata().tolist() == [[1.0, 0.0]]
    weight, bias = next(line for line in axes.get_lines() if "critical line" in line.get_label()).get_data()
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    weights = weights / weights.sum()
    seen = 0
    for w, b in zip(weight, bias):  # on the line there is a K with K = C_b + C_W <ss> and C_W <s's'> = 1
        if 1.2 < w < 2:
            low, high = 1e-6, 20.0
            for _ in range(60):
                K = (low + high) / 2
                low, high = (K, high) if w * (weights @ np.cosh(np.sqrt(K) * nodes) ** -4.0) > 1 else (low, K)
            assert b + w * (weights @ np.tanh(np.sqrt(K) * nodes) ** 2) == pytest.approx(K, rel=1e-6)
            seen += 1
    assert seen > 3
    drawn = derive.activation("relu").plot().get_lines()
    assert np.array_equal(drawn[0].get_ydata(), np.maximum(drawn[0].get_xdata(), 0))


def test_predictions_over_inputs_and_in_time():
    X = [[1.0, 0.3], [-0.4, 1.0], [0.7, -0.8]]
    f = flow("erf", X, depth=2, width=64, C_b=0.1, C_W=1.5, lambda_b=0.3, lambda_W=1.0)
    y, train = [1.0, -1.0], [0, 1]
    p = predict(f, y, train, GradientDescent(eta=0.05))
    axes = p.plot()
    crosses = next(line for line in axes.get_lines() if line.get_label() == "with the order 1/n")
    assert crosses.get_ydata() == pytest.approx(p.mean)
    late = predict(f, y, train, GradientDescent(eta=0.05), time=[0, 20, 4000]).plot()
    dashed, solid = (line.get_ydata() for line in late.get_lines())
    assert dashed[0] == pytest.approx(0) and solid[0] == pytest.approx(0)  # untrained networks predict zero on average
    assert dashed[-1] == pytest.approx(p.mean_infinite[0], abs=1e-6) and solid[-1] == pytest.approx(p.mean[0], abs=1e-6)
    with pytest.raises(NumericError, match="output"):
        p.plot(output=3)
