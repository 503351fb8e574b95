"""Infinite width against neural-tangents' kernels, means and covariances, at three times (stored data)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from numeric import flow
from numeric.trained import GradientFlow, kernel_prediction

DATA = json.loads((Path(__file__).parents[2] / "data" / "trained" / "neural_tangents.json").read_text())


@pytest.mark.equation("10.40")
@pytest.mark.equation("10.41")
@pytest.mark.equation("10.44")
@pytest.mark.equation("10.45")
@pytest.mark.parametrize("name", sorted(DATA["activations"]))
def test_kernels_and_predictions(name):
    stored = DATA["activations"][name]
    C_b, C_W = DATA["C_b"], DATA["C_W"]
    f = flow(name, DATA["X"], DATA["depth"], 1, C_b, C_W, C_b, C_W, tensors=["K", "Theta"])
    assert np.abs(np.asarray(f.K) - stored["K"]).max() < 1e-10
    assert np.abs(np.asarray(f.Theta) - stored["Theta"]).max() < 1e-10
    kernel = kernel_prediction(f.Theta, f.K, DATA["y"], [0, 1, 2])
    for p in stored["predictions"]:
        assert np.abs(kernel.mean(GradientFlow(), p["t"])[3:] - p["mean"]).max() < 1e-8
        assert np.abs(kernel.covariance(GradientFlow(), p["t"])[3:, 3:] - p["covariance"]).max() < 1e-8
