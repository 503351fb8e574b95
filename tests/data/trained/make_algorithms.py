"""Makes algorithms.json: real tanh networks trained by different algorithms, to the end and to three times.

Run: python tests/data/trained/make_algorithms.py [width ...] (some ten minutes of CPU; a run that is there is kept).
The networks are those of tanh.json. Per width and algorithm: n × (trained - linearized) on the test inputs, with its
standard error; after a few steps also the change of the NTK on all inputs.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from make import SETTING

from effective_theory.files import write_file
from numeric.ensemble.networks import Networks
from numeric.ensemble.training import train_ensemble
from numeric.trained.algorithms import (
    Algorithm,
    GradientDescent,
    Preconditioned,
    StochasticDescent,
    TwoStep,
)

FILE = Path(__file__).with_name("algorithms.json")
TEST = [k for k in range(len(SETTING["X"])) if k not in SETTING["train"]]
BATCHES = [[0, 1], [2], [1, 2], [0]]


def metric(h):
    """The Newton tensor of the preconditioned runs, as a function of the training NTK."""
    return 1 + h**2


RUNS: dict[str, tuple[Algorithm, int, float | None]] = {
    # name: algorithm, steps, largest training error allowed (None: stop there)
    "descent": (GradientDescent(0.25), 140, 1e-3),
    "preconditioned": (Preconditioned(0.05, metric), 160, 1e-2),
    "two-step": (TwoStep(), 40, 1e-1),
    "stochastic": (StochasticDescent(0.25, BATCHES), 280, 1e-2),
    "descent 2": (GradientDescent(0.25), 2, None),
    "descent 5": (GradientDescent(0.25), 5, None),
    "descent 12": (GradientDescent(0.25), 12, None),
    "two-step 1": (TwoStep(), 1, None),
}
PAIRS = {32: 1500, 64: 1000, 128: 500}


def run(name: str, width: int) -> dict:
    algorithm, steps, tolerance = RUNS[name]
    networks = Networks("tanh", (3, width, width, 2), **SETTING["hyperparameters"])
    start, in_time = time.process_time(), tolerance is None
    result = train_ensemble(
        networks,
        SETTING["X"],
        SETTING["y"],
        SETTING["train"],
        algorithm,
        pairs=PAIRS[width],
        steps=steps,
        seed=1000 + width,
        batch=50,
        tolerance=tolerance,
        ntk=in_time,
    )
    record: dict = {"name": name, "width": width, "pairs": PAIRS[width], "steps": steps, "seed": 1000 + width}
    record["seconds"] = time.process_time() - start
    record["training_error"] = result.training_error
    value, error = result.interaction
    record["interaction"] = {"value": value[:, TEST].T.tolist(), "error": error[:, TEST].T.tolist()}
    if in_time:
        value, error = result.ntk_change
        record["ntk_change"] = {"value": value.tolist(), "error": error.tolist()}
    return record


def main() -> None:
    runs = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {(r["name"], r["width"]) for r in runs}
    for width in [int(x) for x in sys.argv[1:]] or list(PAIRS):
        for name in RUNS:
            if (name, width) not in done:
                runs.append(run(name, width))
                write_file(FILE, json.dumps({"setting": SETTING, "batches": BATCHES, "runs": runs}) + "\n")
                print(name, width, f"{runs[-1]['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
