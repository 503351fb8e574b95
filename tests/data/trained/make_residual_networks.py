"""Train ensembles of real residual tanh networks to the end at several widths: writes residual.json.

    nice -n 19 python tests/data/trained/make_residual_networks.py

Three hidden layers joined by two skips of strength one, two outputs, two training and two test inputs, gradient descent
with a finite learning rate. Widths that are stored already are kept; the theory's prediction is stored beside them, so
that a quick test can compare (a slow one makes it again).
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from effective_theory.files import write_file
from numeric import flow, predict
from numeric.ensemble import Networks, train_ensemble
from numeric.trained.algorithms import GradientDescent

FILE = Path(__file__).with_name("residual.json")
SETTING = {
    "activation": "tanh",
    "depth": 4,
    "skip": 1.0,
    "X": [[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.7, 0.8, -0.1], [0.2, -0.5, 1.2]],
    "y": [[1.4, -1.0], [-1.1, 0.6]],
    "train": [0, 1],
    "hyperparameters": {
        "C_b": [0.1, 0.05, 0.05, 0.1],
        "C_W": [1.2, 0.8, 0.8, 1.1],
        "lambda_b": [0.1, 0.1, 0.1, 0.1],
        "lambda_W": [0.6, 0.6, 0.6, 0.8],
    },
    "eta": 0.4,
}
TEST = [2, 3]
BATCH = 50
RUNS = {24: (10_000, 30_000), 32: (10_000, 30_000), 48: (10_000, 30_000), 96: (10_000, 30_000)}
"""Width: trained pairs of networks, further pairs that are only linearized."""
STEPS, TOLERANCE = 80, 1e-3
PARTS = {"linearized": ("H1", "NTK variance"), "interaction": ("dNTK", "ddNTK-I", "ddNTK-II")}
"""What the theory adds up to n x (linearized - infinite width) and to n x (trained - linearized)."""


def theory() -> dict:
    """Coefficients of 1/n at the test inputs: a flow of width one a layer."""
    own = SETTING["hyperparameters"]
    f = flow(SETTING["activation"], SETTING["X"], SETTING["depth"], 1, skip=SETTING["skip"], tolerance=1e-8, **own)
    found = predict(f, np.array(SETTING["y"]), SETTING["train"], GradientDescent(SETTING["eta"]))
    sums = {name: sum(found.parts[part] for part in parts) for name, parts in PARTS.items()}
    assert np.allclose(sum(sums.values()), found.mean - found.mean_infinite, rtol=0, atol=1e-9)
    whole = {"infinite": found.mean_infinite, "covariance_infinite": found.covariance_infinite}
    return {name: np.asarray(value).tolist() for name, value in (whole | sums).items()}


def run(width: int, pairs: int, linear_pairs: int) -> dict:
    start = time.process_time()
    own, sizes = SETTING["hyperparameters"], (3, width, width, width, 2)
    networks = Networks(SETTING["activation"], sizes, **own, skip=SETTING["skip"])
    result = train_ensemble(
        networks,
        SETTING["X"],
        SETTING["y"],
        SETTING["train"],
        GradientDescent(SETTING["eta"]),
        pairs=pairs,
        linear_pairs=linear_pairs,
        steps=STEPS,
        seed=1000 + width,
        batch=BATCH,
        tolerance=TOLERANCE,
    )
    record: dict = {"width": width, "pairs": pairs, "linear_pairs": linear_pairs, "steps": STEPS}
    for name in PARTS:
        mean, error = getattr(result, name)
        record[name] = {"value": mean[:, TEST].T.tolist(), "error": error[:, TEST].T.tolist()}
    return record | {"training_error": result.training_error, "seconds": time.process_time() - start}


def main() -> None:
    old = json.loads(FILE.read_text()) if FILE.exists() else {}
    kept = old.get("runs", []) if old.get("setting") == SETTING else []
    record = {"setting": SETTING, "theory": old["theory"] if kept else theory(), "runs": kept}
    for width, (pairs, linear_pairs) in RUNS.items():
        if (width, pairs, linear_pairs) in [(r["width"], r["pairs"], r["linear_pairs"]) for r in kept]:
            continue
        record["runs"] = [r for r in record["runs"] if r["width"] != width] + [run(width, pairs, linear_pairs)]
        write_file(FILE, json.dumps(record, indent=1) + "\n")
        print(width, record["runs"][-1], flush=True)


if __name__ == "__main__":
    main()
