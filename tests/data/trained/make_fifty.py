"""Makes fifty.json: real tanh networks on 50 training inputs, stopped early, for sampled predictions to be judged by.

Run: python tests/data/trained/make_fifty.py [width ...] (a few minutes of CPU; a width that is there is kept).
Per width: n × (trained - linearized) on the test inputs, with its standard error: what dNTK and ddNTKs do; and the
sampled theory of the same.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from effective_theory.files import write_file
from numeric import flow, predict
from numeric.ensemble.networks import Networks
from numeric.ensemble.training import train_ensemble
from numeric.trained.algorithms import GradientDescent
from numeric.trained.sampled.estimate import part_names

FILE = Path(__file__).with_name("fifty.json")
TRAIN, TESTS, INPUTS = 50, 6, 6
HYPERPARAMETERS = {"C_b": 0.1, "C_W": 1.2, "lambda_b": 0.3, "lambda_W": 1.0}
ETA, STEPS = 0.02, 20
DRAWS, BATCHES = 128, 377
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


def sampled(batches: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The theory: n × what dNTK and ddNTKs do to the test outputs, (tests, outputs), and its standard error."""
    X, y = data()
    f = flow("tanh", X, 3, 96, **HYPERPARAMETERS, tensors="Theta")
    p = predict(f, y, range(TRAIN), GradientDescent(ETA), time=STEPS, method="sampled", batch=DRAWS)
    sampler = p.sampler(float(STEPS))
    rows = [part_names().index(name) for name in ("dNTK", "ddNTK-I", "ddNTK-II")]
    each = [np.asarray(sampler.launch(k)[0])[rows].sum(axis=0).T / DRAWS for k in range(first, first + batches)]
    return np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / np.sqrt(batches)


def main() -> None:
    old = json.loads(FILE.read_text()) if FILE.exists() else {}
    stored, theory = old.get("runs", []), old.get("sampled")
    if theory is None:
        mean, error = sampled(BATCHES, 16)
        theory = {"draws": DRAWS * BATCHES, "mean": mean.tolist(), "error": error.tolist()}
    for width in [int(name) for name in sys.argv[1:]] or list(PAIRS):
        if all(own["width"] != width for own in stored):
            stored.append(run(width))
            write_file(
                FILE, json.dumps({"eta": ETA, "steps": STEPS, "sampled": theory, "runs": stored}, indent=1) + "\n"
            )


if __name__ == "__main__":
    main()
