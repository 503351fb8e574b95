"""Makes fifty.json: real tanh networks on 50 training inputs, stopped early, for sampled predictions to be judged by.

Run: python tests/data/trained/make_fifty.py [width ...] (a few minutes of CPU; a width that is there is kept).
Per width: n × (trained - linearized) on the test inputs, with its standard error: what dNTK and ddNTKs do.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from effective_theory.files import write_file
from numeric.ensemble.networks import Networks
from numeric.ensemble.training import train_ensemble
from numeric.trained.algorithms import GradientDescent

FILE = Path(__file__).with_name("fifty.json")
TRAIN, TESTS, INPUTS = 50, 6, 6
HYPERPARAMETERS = {"C_b": 0.1, "C_W": 1.2, "lambda_b": 0.3, "lambda_W": 1.0}
ETA, STEPS = 0.02, 20
PAIRS = {48: 600, 96: 300, 192: 150}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Inputs, tests last, and two targets of each of the others."""
    random = np.random.default_rng(50)
    X = random.normal(size=(TRAIN + TESTS, INPUTS))
    y = np.stack([np.sin(X[:, 0]) + 0.3 * X[:, 1], X[:, 2] * X[:, 3]], axis=1)
    return X, y[:TRAIN]


def run(width: int) -> dict:
    X, y = data()
    networks = Networks("tanh", (INPUTS, width, width, y.shape[1]), **HYPERPARAMETERS)
    start = time.process_time()
    options = {"pairs": PAIRS[width], "steps": STEPS, "seed": 5000 + width, "batch": 50, "tolerance": None}
    result = train_ensemble(networks, X, y, range(TRAIN), GradientDescent(ETA), **options)
    value, error = result.interaction
    record = {"width": width, **options, "seconds": time.process_time() - start}
    for name, found in (("value", value), ("error", error)):
        record[name] = (width * found[:, TRAIN:]).T.tolist()
    return record


def main() -> None:
    stored = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    for width in [int(name) for name in sys.argv[1:]] or list(PAIRS):
        if all(own["width"] != width for own in stored):
            stored.append(run(width))
            write_file(FILE, json.dumps({"eta": ETA, "steps": STEPS, "runs": stored}, indent=1) + "\n")


if __name__ == "__main__":
    main()
