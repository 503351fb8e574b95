"""Makes cross_entropy.json: real tanh networks trained on the cross-entropy with hard and with soft labels.

Run: python tests/data/trained/make_cross_entropy.py (some ten minutes of CPU; a run that is there is kept).
Per run: what trained networks have above the same initial outputs trained with the frozen infinite-width NTK: outputs,
probabilities and the loss on the test inputs, with standard errors over pairs of sign-flipped last layers.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np

from effective_theory.files import write_file
from numeric import flow
from numeric.ensemble.networks import Networks, flip_last_layer
from numeric.ensemble.training import mean_and_error, trained_outputs
from numeric.trained.algorithms import GradientDescent
from numeric.trained.losses import CrossEntropy, soft_labels

FILE = Path(__file__).with_name("cross_entropy.json")
X = np.array([[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.2, -0.5, 1.2], [0.7, 0.8, -0.1], [-0.3, 0.4, 0.9]])
LABELS, TRAIN, TEST = [0, 1, 2, 0, 2], (0, 1, 2), [3, 4]
HYPERPARAMETERS = {"C_b": 0.1, "C_W": 1.5, "lambda_b": 0.2, "lambda_W": 1.0}
DEPTH, ETA, BATCH = 3, 0.5, 50
PAIRS = {32: 6000, 64: 4000, 128: 2000}
RUNS = {"hard": (0.0, 12), "soft": (0.3, 12), "soft, long": (0.3, 60)}
"""Name: how much of a label is shared among the other classes, steps."""


def run(name: str, width: int) -> dict:
    epsilon, steps = RUNS[name]
    labels = soft_labels(LABELS, 3, epsilon)
    loss, judge = CrossEntropy(labels[list(TRAIN)]), CrossEntropy(labels[TEST])
    f = flow("tanh", X, DEPTH, width, **HYPERPARAMETERS, tensors=["K", "Theta"])
    networks, algorithm = Networks.of_flow(f, 3), GradientDescent(ETA)
    theta, start = jnp.asarray(np.asarray(f.Theta)[:, TRAIN]), time.process_time()

    def asked(z):
        own = jnp.swapaxes(z, -1, -2)[..., np.array(TEST), :]
        return {
            "mean": own,
            "probabilities": CrossEntropy.softmax(own),
            "test loss": jax.vmap(judge.total)(own),
        }

    @jax.jit
    def pair(params):
        totals = []
        for own in (params, flip_last_layer(params)):
            z = networks.outputs(own, jnp.asarray(X))
            frozen = jnp.swapaxes(z, 1, 2)
            for _ in range(steps):
                frozen = frozen - ETA * theta @ loss.error(frozen[:, np.array(TRAIN)])
            end = trained_outputs(networks, own, jnp.asarray(X), labels[list(TRAIN)], TRAIN, algorithm, steps, loss)
            one, two = asked(end), asked(jnp.swapaxes(frozen, 1, 2))
            totals.append({key: one[key] - two[key] for key in one})
        return {key: (totals[0][key] + totals[1][key]) / 2 for key in totals[0]}

    found: dict[str, list] = {}
    for index in range(PAIRS[width] // BATCH):
        params = networks.sample(jax.random.fold_in(jax.random.key(7000 + width), index), BATCH)
        for key, values in pair(params).items():
            found.setdefault(key, []).append(np.asarray(values))
    record: dict = {"name": name, "width": width, "epsilon": epsilon, "steps": steps, "pairs": PAIRS[width]}
    for key, values in found.items():
        value, error = mean_and_error(np.concatenate(values))
        record[key] = {"value": value.tolist(), "error": error.tolist()}
    return record | {"seconds": time.process_time() - start}


def main() -> None:
    runs = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {(r["name"], r["width"]) for r in runs}
    setting = {"X": X.tolist(), "labels": LABELS, "train": TRAIN, "eta": ETA, "depth": DEPTH} | HYPERPARAMETERS
    for width in PAIRS:
        for name in RUNS:
            if (name, width) not in done:
                runs.append(run(name, width))
                write_file(FILE, json.dumps({"setting": setting, "runs": runs}) + "\n")
                print(name, width, runs[-1]["test loss"], f"{runs[-1]['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
