"""The residual theory against tensors of sampled networks, stored with the script that made them.

V and G1 within 3 standard errors, the others too; the truncated theory, which knows the tensors only, is far off.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from numeric import flow

DATA = Path(__file__).parents[2] / "data" / "sampled"
STORED = sorted(DATA.glob("residual-*.json"))
SEVEN = ["V", "G1", "D", "F", "H1", "A", "B"]


def read(path):
    return json.loads(path.read_text())


def theory(record):
    """The seven tensors at the output."""
    return flow(
        record["activation"],
        record["X"],
        depth=record["depth"],
        width=64,
        skip=record["skip"],
        tensors=SEVEN,
        tolerance=1e-7,
        **record["hyperparameters"],
    )


def compare(record, f):
    assert np.abs(np.asarray(f.K) - record["K"]).max() < 1e-10
    assert np.abs(np.asarray(f.Theta) - record["Theta"]).max() < 1e-10
    for name in SEVEN:
        stored = record["tensors"][name]
        value, error = np.array(stored["value"]), np.array(stored["standard_error"])
        ours = np.asarray(getattr(f, name))
        far = np.abs(value - ours) / error
        # sixteen entries, few of them independent: the mean square is 1, the largest deviation below 3.5
        assert np.sqrt((far**2).mean()) < 2.2 and far.max() < 3.5, (name, far.max())


def test_a_shallow_network():
    record = read(DATA / "residual-tanh-0.8-4.json")
    compare(record, theory(record))


@pytest.mark.slow
@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_every_stored_network(path):
    record = read(path)
    compare(record, theory(record))


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_stored_errors_are_small(path):
    """Relative to the largest entry, as they were reached; H1 is small by cancellation in some."""
    for name, stored in read(path)["tensors"].items():
        size = np.abs(stored["value"]).max()
        limit = {"V": 0.02, "G1": 0.05, "H1": 0.25}.get(name, 0.06)
        assert np.max(stored["standard_error"]) < limit * size, name
