"""Cost of sampled finite-width predictions against the number of training inputs, and the error that draws leave.

    python bench/sampled.py [--sizes 200 400 800] [--draws 256] [--activation tanh] [--depth 2]

For each size: CPU seconds for the setting (kernels, modes, H1, compilation) and for a draw, the standard error of one
draw over the correction (so that draws to 5 % follow), and the exponent of the cost of a draw. A ridge of 1 % of
the largest eigenvalue keeps the correction small against the prediction. `networks_for_5_percent` is how many real
networks of width 100 would have to be trained for the same accuracy, from their spread at infinite width.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from numeric import flow, predict


def measure(size: int, draws: int, activation: str, depth: int, width: int = 100) -> dict[str, float]:
    random = np.random.default_rng(0)
    X = random.normal(size=(size + 10, 16))
    y = np.sin(X[:size, 0]) + 0.3 * X[:size, 1]
    start = time.process_time()
    f = flow(activation, X, depth, width, tensors="Theta")
    largest = float(np.linalg.eigvalsh(np.asarray(f.Theta))[-1])
    batch = 64
    p = predict(
        f, y, range(size), ridge=0.01 * largest, method="sampled", batch=batch, relative_error=1e-9, seconds=1e-3
    )
    outcome = p.outcomes[0]
    ready = time.process_time()
    sampler = p.sampler(None)
    for number in range(2, 2 + draws // batch):
        outcome.sums.add(number, tuple(np.asarray(x) for x in sampler.launch(number)))
    spent = time.process_time() - ready
    mean, error = outcome.sums.estimate()
    total = mean["mean"] + p._first(None)
    one = float(np.sqrt(np.mean(error["mean"] ** 2) * outcome.sums.samples))
    signal = float(np.sqrt(max(np.mean(total**2) - np.mean(error["mean"] ** 2), 0.0)))
    spread = float(np.sqrt(np.mean(np.diagonal(p.covariance_infinite))))
    return {
        "inputs": size,
        "setting_cpu_s": ready - start,
        "draw_cpu_s": spent / draws,
        "error_of_a_draw": one / signal if signal else float("inf"),
        "cpu_s_to_5_percent": (one / signal / 0.05) ** 2 * spent / draws if signal else float("inf"),
        "networks_for_5_percent": (spread * width / signal / 0.05) ** 2 if signal else float("inf"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500, 1000, 2000])
    parser.add_argument("--draws", type=int, default=256)
    parser.add_argument("--activation", default="tanh")
    parser.add_argument("--depth", type=int, default=2)
    chosen = parser.parse_args()
    rows = []
    for size in chosen.sizes:
        rows.append(measure(size, chosen.draws, chosen.activation, chosen.depth))
        print(json.dumps(rows[-1]), flush=True)
    if len(rows) > 1:
        logs = np.log([[row["inputs"], row["draw_cpu_s"]] for row in rows])
        print(json.dumps({"exponent": float(np.polyfit(*logs.T, 1)[0])}))


if __name__ == "__main__":
    main()
