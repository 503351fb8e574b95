"""The setting of tests/data/trained: its data, and the theory's flow for it (compiled once for all tests)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
from random_statistics import Tensors

from numeric import flow

FILE = Path(__file__).parents[2] / "data" / "trained" / "tanh.json"
FINITE = ("G1", "H1", "A", "B", "D", "F", "P", "Q", "R", "S", "T", "U")


@lru_cache
def stored() -> dict:
    return json.loads(FILE.read_text())


@lru_cache
def theory(lambda_b=None, lambda_W=None):
    """The flow at width 1 per layer: tensors as coefficients of 1/n."""
    setting = stored()["setting"]
    p = setting["hyperparameters"]
    rates = (
        p["lambda_b"] if lambda_b is None else list(lambda_b),
        p["lambda_W"] if lambda_W is None else list(lambda_W),
    )
    return flow("tanh", np.array(setting["X"]), 3, 1, p["C_b"], p["C_W"], *rates, tolerance=1e-8)


def reindexed(f, labels):
    """The same networks on another list of inputs, repetitions allowed: the tensors with their axes relabelled."""
    arrays = {name: np.asarray(getattr(f, name)) for name in ("K", "Theta", *FINITE)}
    picked = {name: x[np.ix_(*[labels] * x.ndim)] for name, x in arrays.items()}
    return Tensors(widths=f.widths, **picked)
