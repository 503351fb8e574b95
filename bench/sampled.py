"""Cost of sampled finite-width predictions against the number of training inputs, beside real networks.

    python bench/sampled.py [--sizes 200 500 1000 2000] [--data digits] [--draws 256] [--depth 3] [--ridge 0.02]

For each size: CPU seconds for the setting (kernels, modes, H1, compilation) and for a draw, the standard error of one
draw over the correction (so that draws to 5 % follow), and the exponent of the cost of a draw. `--ridge` is a share of
the largest eigenvalue of the training NTK. Beside it `--networks` real networks of width 100 are trained with the same
ridge by gradient descent, 3 h_max / ridge steps: `networks_for_5_percent` is how many of them would have to be trained
for the same accuracy, from the spread of their outputs, and `networks_cpu_s` what that would take. `--plain` also
makes the draws of plain Monte Carlo: nothing averaged but the drawn neurons and outputs themselves.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from plain import PlainForces

from effective_theory.files import write_file
from numeric import Flow, flow, predict
from numeric.ensemble.networks import Networks, Params
from numeric.generated.training import MEAN
from numeric.trained.sampled.draws import draw
from numeric.trained.sampled.estimate import TOTAL, Sampler, Sums

WIDTH, TESTS = 100, 100


@jax.jit
def plain_batch(program, key, weights):
    """As `numeric.trained.sampled.estimate`, for one sign of the initial outputs, drawn where they are linear too."""
    forces = PlainForces(program.theory, draw(program.theory, key, program.count)[0])
    total = sum(forces.signed(c, weights[k])[:, 0] for k, c in enumerate(MEAN)) @ program.ahead.T
    total = total.astype(jnp.float64)
    return jnp.sum(total, axis=0), jnp.sum(total**2, axis=0)


def plain_error(sampler: Sampler, batches: int) -> float:
    """The standard deviation of one draw of plain Monte Carlo, root mean square over the test outputs."""
    sums = []
    for number in range(batches):
        weights, _ = sampler._weights(number)
        sums.append([np.asarray(x) for x in plain_batch(sampler.program, jax.random.key(number), weights)])
    count = sampler.program.count * batches
    first, second = (np.sum([s[k] for s in sums], axis=0) / count for k in range(2))
    return float(np.sqrt(np.mean(second - first**2)))


def data(name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of norm x.x/n_0 near 1, tests last, and the targets of the others."""
    if name == "digits":
        from digits import digits

        X, labels = digits(size, TESTS)
        return X, np.eye(10)[labels[:size]] - 0.1
    random = np.random.default_rng(0)
    X = random.normal(size=(size + TESTS, 16))
    return X, np.sin(X[:size, 0]) + 0.3 * X[:size, 1]


def ensemble(f: Flow, X: np.ndarray, y: np.ndarray, ridge: float, largest: float, count: int) -> tuple[float, float]:
    """CPU seconds that training one real network takes, double precision, and the spread of outputs on the tests."""
    targets = jnp.asarray(y.reshape(len(y), -1).T)[None]
    networks = Networks.of_flow(f, targets.shape[1])
    start, rates, inputs = networks.sample(jax.random.key(0), count), networks.rates(), jnp.asarray(X[: len(y)])
    eta, steps = 1 / (largest + ridge), int(np.ceil(3 * (largest + ridge) / ridge))

    @jax.jit
    def trained(start: Params) -> Params:
        def step(params: Params, _: None) -> tuple[Params, None]:
            z, pull = jax.vjp(lambda own: networks.outputs(own, inputs), params)
            fours = zip(params, rates, pull(z - targets)[0], start)
            return [
                tuple(w - eta * (rate * slope + ridge * (w - w0)) for w, rate, slope, w0 in zip(*four))
                for four in fours
            ], None

        return jax.lax.scan(step, start, None, steps)[0]

    compiled = trained.lower(start).compile()
    begun = time.process_time()
    end = jax.block_until_ready(compiled(start))
    spent = (time.process_time() - begun) / count
    outputs = np.asarray(networks.outputs(end, jnp.asarray(X[len(y) :])))
    assert np.isfinite(outputs).all()
    return spent, float(np.sqrt(np.mean(np.var(outputs, axis=0, ddof=1))))


def measure(size: int, chosen: argparse.Namespace) -> dict[str, float]:
    X, y = data(chosen.data, size)
    start = time.process_time()
    f = flow(chosen.activation, X, chosen.depth, WIDTH, tensors="Theta")
    largest = float(np.linalg.eigvalsh(np.asarray(f.Theta)[:size, :size])[-1])
    ridge = chosen.ridge * largest
    p = predict(
        f,
        y,
        range(size),
        ridge=ridge,
        method="sampled",
        batch=chosen.batch,
        relative_error=1e-9,
        seconds=1e-3,
        dtype=chosen.dtype,
    )
    first, sampler = p._first(None), p.sampler(None)
    sums = Sums(chosen.batch)
    jax.block_until_ready(sampler.launch(0))
    ready = time.process_time()
    for number in range(1, 1 + chosen.draws // chosen.batch):
        sums.add(number, tuple(np.asarray(x) for x in sampler.launch(number)))
    spent = (time.process_time() - ready) / sums.samples
    mean, error = sums.estimate()
    noise = float(np.mean(error[TOTAL] ** 2))
    one = np.sqrt(noise * sums.samples)
    signal = np.sqrt(max(np.mean((mean[TOTAL] + first) ** 2) - noise, 0.0))
    infinite = float(np.sqrt(np.mean(np.diagonal(p.covariance_infinite))))
    each, spread = ensemble(f, X, y, ridge, largest, chosen.networks)
    networks = (spread * WIDTH / signal / 0.05) ** 2 if signal else float("inf")
    ours = (one / signal / 0.05) ** 2 * spent + ready - start if signal else float("inf")
    theirs = networks * each
    found = {
        "inputs": size,
        "condition_number": float(p.kernel.modes.h[-1] / p.kernel.modes.h[0]),
        "ridge": ridge,
        "correction_over_prediction": float(signal / WIDTH / np.sqrt(np.mean(p.mean_infinite**2) + infinite**2)),
        "setting_cpu_s": ready - start,
        "draws": sums.samples,
        "draw_cpu_s": spent,
        "relative_error_reached": float(np.sqrt(noise) / signal) if signal else float("inf"),
        "error_of_a_draw": float(one / signal) if signal else float("inf"),
        "cpu_s_to_5_percent": float(ours),
        "network_cpu_s": each,
        "spread_of_networks": spread,
        "spread_at_infinite_width": infinite,
        "networks_for_5_percent": float(networks),
        "networks_cpu_s": float(theirs),
        "times_cheaper": float(theirs / ours),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    if chosen.plain:
        found["plain_over_ours_draws"] = float((plain_error(sampler, max(2, chosen.draws // chosen.batch)) / one) ** 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500, 1000, 2000])
    parser.add_argument("--data", choices=["normal", "digits"], default="normal")
    parser.add_argument("--draws", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--activation", default="tanh")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--ridge", type=float, default=0.02)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--networks", type=int, default=16)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="also write all of it to a file")
    chosen = parser.parse_args()
    rows = []
    for size in chosen.sizes:
        rows.append(measure(size, chosen))
        print(json.dumps(rows[-1]), flush=True)
    found: dict[str, Any] = {"options": vars(chosen) | {"output": None}, "rows": rows}
    for what in ("draw_cpu_s", "cpu_s_to_5_percent"):
        logs = np.log([[row["inputs"] + TESTS, row[what]] for row in rows])
        found[f"exponent of {what}"] = float(np.polyfit(*logs.T, 1)[0]) if len(rows) > 1 else None
    print(json.dumps(found, indent=1))
    if chosen.output is not None:
        write_file(chosen.output, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
