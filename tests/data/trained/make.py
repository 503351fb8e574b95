"""Train ensembles of real tanh networks to the end at several widths and store means with standard errors.

    nice -n 19 python tests/data/trained/make.py

About ten minutes of one core; widths that are stored already are kept.

Two hidden layers, two outputs, three training and three test inputs, gradient descent with a finite learning rate.
Everything is stored in tanh.json next to this script, width by width; tests compare it with the 1/n theory.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from numeric.ensemble.networks import Networks
from numeric.ensemble.training import train_ensemble
from numeric.trained.algorithms import GradientDescent

FILE = Path(__file__).with_name("tanh.json")
SETTING = {
    "activation": "tanh",
    "X": [[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.2, -0.5, 1.2], [0.7, 0.8, -0.1], [-0.3, 0.4, 0.9], [1.2, -0.9, 0.6]],
    "y": [[1.4, -1.0], [-1.1, 0.6], [0.8, 1.5]],
    "train": [0, 1, 2],
    "hyperparameters": {"C_b": 0.1, "C_W": 1.5, "lambda_b": 0.2, "lambda_W": 1.0},
    "eta": 0.25,
}
RUNS = [
    # width, trained pairs, further linearized pairs, steps, largest training error allowed
    (6, 10_000, 100_000, 2000, 1e-1),
    (16, 20_000, 300_000, 600, 1e-3),
    (24, 20_000, 300_000, 300, 1e-4),
    (64, 10_000, 0, 100, 1e-4),
    (32, 12_000, 0, 150, 1e-3),
    (96, 6_000, 0, 100, 1e-4),
    (48, 14_000, 0, 120, 1e-4),
    (128, 5_000, 0, 90, 1e-3),
]


def run(width: int, pairs: int, linear_pairs: int, steps: int, tolerance: float, batch: int = 50) -> dict:
    networks = Networks("tanh", (3, width, width, 2), **SETTING["hyperparameters"])
    start = time.process_time()
    result = train_ensemble(
        networks,
        SETTING["X"],
        SETTING["y"],
        SETTING["train"],
        GradientDescent(SETTING["eta"]),
        pairs=pairs,
        linear_pairs=linear_pairs,
        steps=steps,
        seed=width,
        batch=batch,
        tolerance=tolerance,
    )
    test = [k for k in range(len(SETTING["X"])) if k not in SETTING["train"]]
    record: dict = {"width": width, "pairs": pairs, "linear_pairs": linear_pairs, "steps": steps, "seed": width}
    record |= {"batch": batch, "training_error": result.training_error, "seconds": time.process_time() - start}
    for name in ("interaction", "linearized", "mean"):
        mean, error = getattr(result, name)
        record[name] = {"value": mean[:, test].T.tolist(), "error": error[:, test].T.tolist()}
    value, error = result.covariance
    record["covariance"] = {
        "value": value[:, :, test][..., test].tolist(),
        "error": error[:, :, test][..., test].tolist(),
    }
    return record


def main() -> None:
    old = json.loads(FILE.read_text()) if FILE.exists() else {"setting": None, "runs": []}
    runs: list[dict] = old["runs"] if old["setting"] == SETTING else []
    for arguments in RUNS:
        if arguments[:4] in [(r["width"], r["pairs"], r["linear_pairs"], r["steps"]) for r in runs]:
            continue
        runs.append(run(*arguments))
        partial = FILE.with_suffix(".partial")
        partial.write_text(json.dumps({"setting": SETTING, "runs": runs}, indent=1) + "\n")
        os.replace(partial, FILE)
        r = runs[-1]
        print(
            r["width"],
            f"{r['seconds']:.0f}s",
            r["training_error"],
            np.array(r["mean"]["value"]).round(4).tolist(),
            flush=True,
        )


if __name__ == "__main__":
    main()
