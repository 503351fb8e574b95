"""Where the order 1/n is not small, a sentence says so; where it is, nothing does."""

import numpy as np
import pytest

from numeric import flow, predict
from numeric.evaluation.validity import LARGE, first_order, flow_ratios

X = [[1.0, 0.3], [-0.4, 1.0], [0.2, -0.7]]


def test_the_ratios_of_deep_relu_networks():
    """V = 5 (L - 1) K^2 for inputs of any norm, at C_b = 0, C_W = 2 (PDLT 5.114 at width n for every layer)."""
    f = flow("relu", X, depth=9, width=64, C_b=0.0, C_W=2.0, lambda_b=0.0, lambda_W=1.0, tensors=["V"])
    tensors = {name: np.asarray(f.layer(9)[name]) for name in ("K", "V")}
    assert flow_ratios(tensors, 64)["V/(n K^2)"] == pytest.approx(5 * 8 / 64, rel=1e-12)
    (warning,) = f.notes
    assert "V/(n K^2)" in warning and "0.63 of" in warning and "width of about 400 would" in warning
    assert flow("relu", X, depth=9, width=400, C_b=0.0, C_W=2.0, tensors=["V"]).notes == ()
    assert flow("relu", X, depth=9).notes == ()  # infinite width has no 1/n


def test_a_prediction_says_when_its_correction_is_no_correction():
    """The same network at two widths: the share is what the warning says, and falls as 1/n."""
    options = {"depth": 3, "C_b": 0.1, "C_W": 1.5, "lambda_b": 0.3, "lambda_W": 1.0}
    narrow, wide = (predict(flow("tanh", X, width=n, **options), [1.0, -1.0], [0, 1]) for n in (1, 1000))
    assert wide.warnings == () and not any(note.startswith("Warning") for note in wide.notes)
    assert narrow.correction_size == pytest.approx(1000 * wide.correction_size, rel=1e-9)
    assert narrow.correction_size > LARGE and f"{narrow.correction_size:.2g}" in narrow.warnings[0]
    assert wide.covariance.shape == (1, 1) and wide.warnings == ()
    share = abs(wide.covariance[0, 0] - wide.covariance_infinite[0, 0]) / wide.covariance_infinite[0, 0]
    assert wide.covariance_correction_size == pytest.approx(share)


def test_the_sentence_names_the_quantity_and_a_width():
    assert first_order("the loss", LARGE, 10) == ()
    (sentence,) = first_order("the loss", 3.0, 10)
    assert (
        sentence.startswith("Warning: at width 10 the order 1/n of the loss is 3 of") and "about 300 would" in sentence
    )
