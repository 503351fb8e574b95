"""Makes test_loss.json: the mean test loss of real tanh networks trained by descent, at two depths and several widths.

Run: python tests/data/trained/make_test_loss.py (some 25 minutes of CPU; a run that is there is kept).
Critical networks with equivalent learning rates; targets as given and rescaled to the outputs' scale, (infinity.26).

The loss is measured as the sum of two differences, each with little noise and each with a theory of its own:
- interaction: a trained network's loss less that of its own linearization after as many steps. Few networks will do:
  the difference of a pair with flipped last layers is of order 1/n, and so is its noise.
- linear: the loss of the linearization less that of the same initial outputs with the frozen infinite-width NTK. The
  noise is of order n^(-1/2), but no network is trained: many can be had.
What the frozen kernel's loss has at order 1/n is the covariance of initial outputs, G1.

The learning rate is a fraction of what infinite width allows: at narrow widths the largest eigenvalue of a network's
own NTK reaches far above its mean, and where a step is unstable no expansion in 1/n holds. float32 is enough: its
rounding is some hundred times below the standard errors.
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
from numeric.ensemble.training import linear_outputs, mean_and_error, trained
from numeric.trained.algorithms import GradientDescent

FILE = Path(__file__).with_name("test_loss.json")
X = np.array(
    [[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.2, -0.5, 1.2], [0.7, 0.8, -0.1], [-0.3, 0.4, 0.9], [1.2, -0.9, 0.6]]
)
TARGETS = np.stack([X[:, 0] + X[:, 1] * X[:, 2] / 2, np.sin(1.5 * X[:, 1]) - X[:, 2]], axis=1)
TRAIN, TEST = (0, 1, 2), [3, 4, 5]
ETA, STEPS, BATCH = 0.2, 120, 20
PAIRS = {  # (trained pairs, pairs that are only linearized) by depth and width
    3: {32: (1000, 40000), 64: (1000, 40000)},
    6: {64: (1400, 80000), 128: (1000, 80000), 256: (400, 60000)},
}


def scale(depth: int) -> float:
    """The outputs' scale: the square root of the kernel at the output over that of the first layer."""
    f = flow("tanh", X, depth, tensors=["K", "Theta"])
    return float(np.sqrt(np.trace(np.asarray(f.K)) / np.trace(np.asarray(f.layer(1).K))))


def frozen_response(theta: np.ndarray) -> np.ndarray:
    """What the training errors at the start do to all outputs under the frozen NTK in STEPS steps, (N, N_train)."""
    block = theta[np.ix_(TRAIN, TRAIN)]
    decay = np.linalg.matrix_power(np.eye(len(TRAIN)) - ETA * block, STEPS)
    return theta[:, list(TRAIN)] @ np.linalg.solve(block, np.eye(len(TRAIN)) - decay)


def run(depth: int, width: int, trained_pairs: int, linear_pairs: int) -> list[dict]:
    """The two differences, for targets as given and rescaled, from the same networks."""
    f = flow("tanh", X, depth, width, tensors=["K", "Theta"])
    networks, algorithm = Networks.of_flow(f, 2), GradientDescent(ETA)
    factors, picked, start = (1.0, scale(depth)), jnp.array(TRAIN), time.process_time()
    inputs, response = (jnp.asarray(a, jnp.float32) for a in (X, frozen_response(np.asarray(f.Theta))))
    targets = [jnp.asarray(factor * TARGETS, jnp.float32) for factor in factors]

    def loss(z: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum((z - y.T)[..., jnp.array(TEST)] ** 2, axis=(-1, -2)) / 2

    @jax.jit
    def linear(params):
        """Losses of the linearized networks and those with the frozen NTK, averaged over pairs: (2, factors, BATCH)."""
        z, found = networks.outputs(params, inputs), []
        for y in targets:
            ends = linear_outputs(networks, params, inputs, y[picked], TRAIN, algorithm, STEPS)
            frozen = (s * z - jnp.einsum("da,cia->cid", response, s * z[..., picked] - y[picked].T) for s in (1, -1))
            found.append([sum(loss(end, y) for end in both) / 2 for both in (ends, frozen)])
        return jnp.array(found).transpose(1, 0, 2)

    @jax.jit
    def end(params):
        """Losses of the trained networks, averaged over pairs, and the worst training error."""
        found, missed = [], 0.0
        for y in targets:
            both = [
                networks.outputs(trained(networks, own, inputs, y[picked], TRAIN, algorithm, STEPS), inputs)
                for own in (params, flip_last_layer(params))
            ]
            found.append(sum(loss(z, y) for z in both) / 2)
            missed = jnp.maximum(missed, jnp.max(jnp.abs(jnp.stack(both)[..., picked] - y[picked].T)))
        return jnp.array(found), missed

    interaction, fluctuation, plain, missed = [], [], [], 0.0
    for index in range(linear_pairs // BATCH):
        params = networks.sample(jax.random.fold_in(jax.random.key(1000 * depth + width), index), BATCH)
        params = jax.tree.map(lambda x: x.astype(jnp.float32), params)
        linearized, frozen = np.asarray(linear(params), dtype=float)
        fluctuation.append(linearized - frozen)
        if index < trained_pairs // BATCH:
            losses, miss = end(params)
            interaction.append(np.asarray(losses, dtype=float) - linearized)
            plain.append(np.asarray(losses, dtype=float))
            missed = max(missed, float(miss))
    records: list[dict] = []
    for place, factor in enumerate(factors):
        record: dict = {"depth": depth, "width": width, "factor": factor, "pairs": [trained_pairs, linear_pairs]}
        for name, rows in (("interaction", interaction), ("linear", fluctuation), ("loss", plain)):
            value, error = mean_and_error(np.concatenate(rows, axis=1)[place])
            record[name] = {"value": float(value), "error": float(error)}
        records.append(record | {"training_error": missed, "seconds": time.process_time() - start})
    return records


def main() -> None:
    runs = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {(r["depth"], r["width"]) for r in runs}
    setting = {"X": X.tolist(), "targets": TARGETS.tolist(), "train": TRAIN, "eta": ETA, "steps": STEPS}
    for depth, widths in PAIRS.items():
        for width, counts in widths.items():
            if (depth, width) not in done:
                runs += run(depth, width, *counts)
                write_file(FILE, json.dumps({"setting": setting, "runs": runs}, indent=1) + "\n")
                print(*runs[-2:], sep="\n", flush=True)


if __name__ == "__main__":
    main()
