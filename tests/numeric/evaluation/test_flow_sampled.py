"""The flow against real finite-width networks: sampled tensors, stored with their standard errors by NETWORK's script.

The samples are extrapolated from two widths, which leaves some 1/96 of a tensor's size (tests/data/sampled/make.py).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from numeric import flow

DATA = Path(__file__).resolve().parents[2] / "data" / "sampled"
TENSORS = ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U")
ORDER_TWO = 2 / 96


@pytest.fixture(scope="module", params=["mlp", "mlp-three-inputs"])
def sampled(request):
    record = json.loads((DATA / f"{request.param}.json").read_text())
    ratio = record["hidden_widths_over_w"]
    hyper = {name: record["hyperparameters"][name] for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
    f = flow(record["activations"]["sigma"], record["inputs"], depth=3, width=[10 * x for x in ratio], **hyper)
    return record, f


@pytest.mark.parametrize("name", TENSORS)
def test_every_tensor_within_the_error_of_the_samples(sampled, name):
    record, f = sampled
    entry = record["tensors"][name]
    value, error = np.asarray(entry["value"]), np.asarray(entry["standard_error"])
    got = np.asarray(f.layer(3)[name])
    size = np.abs(value).max()
    assert got.shape == value.shape
    # the three-input samples are fewer: their G1 and H1 are known to 8 %, all others to 5 % or better
    assert error.max() < (0.1 if len(record["inputs"]) == 3 and name in ("G1", "H1") else 0.05) * size
    assert np.all(np.abs(got - value) < 4.5 * error + ORDER_TWO * size)
