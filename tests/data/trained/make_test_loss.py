"""Makes test_loss.json: the mean test loss of real tanh networks trained by descent, at two depths and three widths.

Run: python tests/data/trained/make_test_loss.py (some twenty minutes of CPU; a run that is there is kept).
Critical networks with equivalent learning rates; targets as given and rescaled to the outputs' scale, (infinity.26).
Per run: the loss, and its difference to the loss that the same initial outputs reach with the frozen infinite-width
NTK, whose mean is known. That control variate takes away most of the noise.
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

FILE = Path(__file__).with_name("test_loss.json")
X = np.array(
    [[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.2, -0.5, 1.2], [0.7, 0.8, -0.1], [-0.3, 0.4, 0.9], [1.2, -0.9, 0.6]]
)
TARGETS = np.stack([X[:, 0] + X[:, 1] * X[:, 2] / 2, np.sin(1.5 * X[:, 1]) - X[:, 2]], axis=1)
TRAIN, TEST = (0, 1, 2), [3, 4, 5]
ETA, STEPS, BATCH = 0.5, 80, 50
PAIRS = {32: 6000, 64: 4000, 128: 2000}
DEPTHS = (3, 6)


def scale(depth: int) -> float:
    """The outputs' scale: the square root of the kernel at the output over that of the first layer."""
    f = flow("tanh", X, depth, tensors=["K", "Theta"])
    return float(np.sqrt(np.trace(np.asarray(f.K)) / np.trace(np.asarray(f.layer(1).K))))


def run(depth: int, width: int, factor: float) -> dict:
    f = flow("tanh", X, depth, width, tensors=["K", "Theta"])
    networks = Networks.of_flow(f, 2)
    theta, y = np.asarray(f.Theta), factor * TARGETS
    leap = theta[:, TRAIN] @ np.linalg.inv(theta[np.ix_(TRAIN, TRAIN)])
    algorithm, start = GradientDescent(ETA), time.process_time()

    @jax.jit
    def pair(params):
        """Outputs of a batch and of its partners, trained and with the frozen kernel: (2, 2, BATCH, 2, N)."""
        found = []
        for own in (params, flip_last_layer(params)):
            z = networks.outputs(own, jnp.asarray(X))
            frozen = z - jnp.einsum("da,cia->cid", leap, z[..., jnp.array(TRAIN)] - y[np.array(TRAIN)].T)
            targets = jnp.asarray(y[np.array(TRAIN)])
            found.append([trained_outputs(networks, own, jnp.asarray(X), targets, TRAIN, algorithm, STEPS), frozen])
        return jnp.array(found)

    losses, shifts, missed = [], [], 0.0
    for index in range(PAIRS[width] // BATCH):
        params = networks.sample(jax.random.fold_in(jax.random.key(100 * depth + width), index), BATCH)
        ends = np.asarray(pair(params))
        missed = max(missed, float(np.abs(ends[:, 0][..., TRAIN] - y[list(TRAIN)].T).max()))
        losses.append(((ends[..., TEST] - y[TEST].T) ** 2).sum(axis=(-1, -2)).mean(axis=0) / 2)
        shifts.append((ends[:, 0] - ends[:, 1])[..., TEST].mean(axis=0))
    trained, frozen = np.concatenate(losses, axis=1)
    record: dict = {"depth": depth, "width": width, "factor": factor, "pairs": len(trained)}
    for name, samples in (
        ("loss", trained),
        ("above_frozen", trained - frozen),
        ("shift", np.concatenate(shifts).transpose(0, 2, 1)),
    ):
        value, error = mean_and_error(samples)
        record[name] = {"value": value.tolist(), "error": error.tolist()}
    return record | {"training_error": missed, "seconds": time.process_time() - start}


def main() -> None:
    runs = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {(r["depth"], r["width"], r["factor"] != 1) for r in runs}
    setting = {"X": X.tolist(), "targets": TARGETS.tolist(), "train": TRAIN, "eta": ETA, "steps": STEPS}
    for width in PAIRS:
        for depth in DEPTHS:
            for rescaled in (False, True):
                if (depth, width, rescaled) in done:
                    continue
                runs.append(run(depth, width, scale(depth) if rescaled else 1.0))
                write_file(FILE, json.dumps({"setting": setting, "runs": runs}) + "\n")
                print({k: v for k, v in runs[-1].items() if k != "shift"}, flush=True)


if __name__ == "__main__":
    main()
