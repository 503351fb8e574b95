"""`make bench`: how fast and how accurate the flow is, against the machine's dgemm, sampled networks and a peer.

Prints a table and writes JSON. Times are the best of a few runs after the first (which compiles; given apart). The
peer, neural-tangents, needs an environment of its own (TensorFlow comes with it): `--peer` creates it in the user's
cache folder and uses it; without it the comparison is left out. Compare ratios within one run only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import engine
import jax
import jax.numpy as jnp
import numpy as np
import peer_environment
from rich.console import Console
from rich.table import Table

import numeric
from numeric import flow
from numeric.activations import load
from numeric.brackets import PATTERNS, arrangements
from numeric.brackets.series.conditioned import families

CASES = [
    {"name": "tanh", "activation": "tanh", "W_std": 1.0, "b_std": 0.1, "degree": 25},
    {"name": "tanh, W_std 3", "activation": "tanh", "W_std": 3.0, "b_std": 0.1, "degree": 25},
    {"name": "gelu", "activation": "gelu", "W_std": 1.4, "b_std": 0.1, "degree": 0},
    {"name": "erf", "activation": "erf", "W_std": 1.2, "b_std": 0.1, "degree": 0},
    {"name": "relu", "activation": "relu", "W_std": 1.4142135623730951, "b_std": 0.1, "degree": 0},
]
HIDDEN = 10


def best(function: Callable[[], Any], repeats: int = 3) -> tuple[float, float, Any]:
    """(first call, best of the others, result)."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        result = jax.block_until_ready(function())
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds[1:]), result


def dgemm_speed(size: int = 2000) -> float:
    """The machine's own float64 matrix product, in flop/s."""
    a = jnp.asarray(np.random.default_rng(0).normal(size=(size, size)))
    product = jax.jit(lambda x: x @ x)
    _, seconds, _ = best(lambda: product(a), 5)
    return 2 * size**3 / seconds


def kernels(X: np.ndarray, peer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """K and Theta through ten hidden layers, against the peer's values and times."""
    rows = []
    for case in CASES:
        C_W, C_b = case["W_std"] ** 2, case["b_std"] ** 2
        network = {"C_W": C_W, "C_b": C_b, "lambda_W": C_W, "lambda_b": C_b, "tensors": "Theta", "layers": "last"}
        first, seconds, _ = best(lambda a=case["activation"], n=network: flow(a, X, HIDDEN + 1, 1, **n).Theta)
        f = flow(case["activation"], X, HIDDEN + 1, 1, **network)
        row = {"what": f"K, Theta: {case['name']}, N = {len(X)}", "first": first, "seconds": seconds}
        row["error"] = max(f.error.values())
        if peer is not None:
            theirs = next(r for r in peer["results"] if r["name"] == case["name"])
            arrays = np.load(theirs["file"])
            row["peer"] = theirs["seconds"]
            row["ratio"] = theirs["seconds"] / seconds
            row["peer_error"] = float(np.max(np.abs(arrays["Theta"] - f.Theta)) / np.max(np.abs(f.Theta)))
            if case["activation"] == "relu":
                row["peer_diagonal_error"] = _relu_diagonal_error(X, C_W, C_b, arrays["Theta"])
        if case["activation"] == "relu":
            row["diagonal_error"] = _relu_diagonal_error(X, C_W, C_b, np.asarray(f.Theta))
        rows.append(row)
    return rows


def _relu_diagonal_error(X: np.ndarray, C_W: float, C_b: float, Theta: np.ndarray) -> float:
    """Of the NTK's diagonal, whose recursion is linear for relu: <s s> = K/2 and <s' s'> = 1/2 at one input."""
    K = C_b + C_W * np.sum(X * X, axis=1) / X.shape[1]
    exact = K
    for _ in range(HIDDEN):
        K, exact = C_b + C_W * K / 2, C_b + C_W * K / 2 + C_W * exact / 2
    return float(np.max(np.abs(np.diag(Theta) / exact - 1)))


def all_tensors(quick: bool) -> list[dict[str, Any]]:
    """All fifteen tensors: small N through ten layers, and one layer for N = 32; `flops` of the plans' products."""
    generator = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    jobs = [("tanh", 8, 10, 1e-8), ("tanh", 16, 10, 1e-8), ("gelu", 16, 10, 1e-12)]
    jobs += [] if quick else [("tanh", 32, 1, 1e-8), ("gelu", 32, 1, 1e-12)]
    for name, size, hidden, tolerance in jobs:
        X = generator.normal(size=(size, 64))
        settings = {"C_b": 0.0, "C_W": 1.0, "lambda_b": 1, "lambda_W": 1, "tolerance": tolerance, "layers": "last"}
        first, seconds, f = best(lambda n=name, x=X, h=hidden, s=settings: flow(n, x, h + 1, 64, **s), 2)
        row = {"what": f"all 15: {name}, N = {size}, {hidden} hidden", "first": first, "seconds": seconds}
        row["tolerance"] = tolerance
        flops = _flops(f, load(name).FUNCTIONS.parity)
        if flops:
            row["flops"] = flops
        same = next((r for r in rows if r["what"] == row["what"].replace(name, "tanh")), None)
        if same is not None:
            row["tanh_over_this"] = same["seconds"] / seconds
        row["error"] = max(f.error.values())
        rows.append(row)
    return rows


def against_dgemm(rows: list[dict[str, Any]], speed: float) -> None:
    """Their times over the machine's matrix product for the flops of their plan, and for those of the first one."""
    first_plan = first_plans()
    for row in rows:
        if "flops" in row:
            row["dgemm_seconds"] = row["flops"] / speed
            row["over_dgemm"] = row["seconds"] / row["dgemm_seconds"]
        if row["what"] in first_plan:
            row["over_dgemm_of_first_plan"] = row["seconds"] * speed / first_plan[row["what"]]


def first_plans() -> dict[str, float]:
    """Operations that the plans of version 0.1.0 asked for, as it was measured: a yardstick that plans do not move."""
    stored = json.loads((Path(__file__).parent / "results-2026-11-16.json").read_text())
    speed = 1e9 * stored["machine"]["dgemm_gflops"]
    return {row["what"]: speed * row["dgemm_seconds"] for row in stored["rows"] if "dgemm_seconds" in row}


def _flops(f: numeric.Flow, parity: int) -> float | None:
    """Multiplications and additions of the matrix products that the plans ask for.

    A product for each family of derivative orders (`numeric.brackets.conditioned.families`), one for the moments, at
    the nodes that a layer uses. Evaluating the activation, exponentials and the recursions themselves are not counted.
    """
    products = len(families(arrangements(PATTERNS)))
    total = 0.0
    for plan in f.plan:
        buckets = getattr(plan.quadruples, "buckets", None)
        if not buckets:
            return None
        for bucket in buckets:
            jobs, labels = bucket.labels.shape
            nodes = int((bucket.nodes[:, 2] != 0).any(axis=1).sum()) * bucket.nodes.shape[-1]
            moments = bucket.y.size if not bucket.terms else bucket.terms // 2 if parity else bucket.terms
            total += 2.0 * jobs * nodes * bucket.n * labels * (products * labels + moments)
    return total


COLD = """
import time; start = time.perf_counter()
import numpy as np
from numeric import flow
imported = time.perf_counter()
f = flow("tanh", np.random.default_rng(1).normal(size=(8, 64)), 11, 64, 0.0, 1.0, 1.0, 1.0, tolerance=1e-8)
f.U.block_until_ready()
print(imported - start, time.perf_counter() - imported)
"""


def cold_start() -> list[dict[str, Any]]:
    """The first call in a new process, N = 8 and all tensors: with an empty compilation cache, then with a full one."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for what in ("empty", "full"):
            environment = {**os.environ, "NUMERIC_CACHE_DIR": folder}
            done = subprocess.run(
                [sys.executable, "-c", COLD], env=environment, capture_output=True, text=True, check=True
            )
            imported, first = (float(x) for x in done.stdout.split())
            row = {"what": f"first call, all 15: tanh, N = 8, 10 hidden, {what} cache", "first": first}
            rows.append(row | {"import": imported})
    return rows


def sampling(seconds_budget: float = 20.0) -> dict[str, Any]:
    """V of a two-hidden-layer tanh network by sampling real networks: the time for the flow's accuracy, extrapolated.

    Four inputs, width 64. The estimator of V_(00)(00) averages over all pairs of output neurons; its standard error
    falls as the inverse root of the time, so an error e takes (standard error / e)^2 times the time spent (its bias,
    of the next order in 1/n, would not fall at all).
    """
    X = np.random.default_rng(2).normal(size=(4, 8))
    width, outputs = 64, 64
    f = flow("tanh", X, depth=3, width=width, C_b=0.0, C_W=1.0, lambda_b=1, lambda_W=1, tensors="V")
    _, ours, _ = best(
        lambda: flow("tanh", X, depth=3, width=width, C_b=0.0, C_W=1.0, lambda_b=1, lambda_W=1, tensors="V").V, 2
    )

    @jax.jit
    def batch(key: jax.Array) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            keys = jax.random.split(key, 3)
            z = jax.random.normal(keys[0], (width, X.shape[1])) @ X.T / np.sqrt(X.shape[1])
            z = jax.random.normal(keys[1], (width, width)) @ jnp.tanh(z) / np.sqrt(width)
            z = jax.random.normal(keys[2], (outputs, width)) @ jnp.tanh(z) / np.sqrt(width)
            both = jnp.einsum("ia,ib,ja,jb->ab", z, z, z, z) - jnp.einsum("ia,ib,ia,ib->ab", z, z, z, z)
            return both / (outputs * (outputs - 1))

        return jax.vmap(one)(jax.random.split(key, 512))

    jax.block_until_ready(batch(jax.random.key(0)))
    start, count, values = time.perf_counter(), 0, []
    while time.perf_counter() - start < seconds_budget:
        values.append(np.asarray(batch(jax.random.key(count + 1))[:, 0, 0]))
        count += 1
    spent = time.perf_counter() - start
    samples = np.concatenate(values)
    error = width * samples.std() / np.sqrt(samples.size) / float(jnp.max(jnp.abs(f.V)))
    goal = 1e-8
    return {
        "what": "V by sampling networks, N = 4, width 64",
        "seconds": ours,
        "sampled_seconds": spent,
        "sampled_error": float(error),
        "sampled_seconds_for_1e-8": float(spent * (error / goal) ** 2),
        "ratio": float(spent * (error / goal) ** 2 / ours),
    }


def run_peer(X: np.ndarray, folder: Path) -> dict[str, Any] | None:
    """The peer's K and Theta of the same inputs, and its times."""
    np.save(folder / "X.npy", X)
    cases = [case | {"hidden": HIDDEN, "repeats": 2} for case in CASES]
    return peer_environment.run({"inputs": str(folder / "X.npy"), "cases": cases, "output": str(folder)})


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="times in seconds; ratio = the other's time over ours")
    columns = ["what", "first", "seconds", "error", "peer", "ratio", "peer_error", "diagonal_error"]
    columns += [
        "peer_diagonal_error",
        "dgemm_seconds",
        "over_dgemm",
        "over_dgemm_of_first_plan",
        "tanh_over_this",
        "over_tanh",
    ]
    columns += ["first_cpu", "warm_cpu", "f_error_cpu", "f_error_allowed", "ms_a_quadruple", "over_N_squared"]
    columns = [c for c in columns if any(c in row for row in rows)]
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in rows:
        cells = [row.get(column, "") for column in columns]
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells))
    Console(width=220).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="also run neural-tangents in its own environment")
    parser.add_argument("--quick", action="store_true", help="leave out N = 32")
    parser.add_argument("--size", type=int, default=1000, help="inputs for K and Theta (default 1000)")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench/results.json"))
    parser.add_argument("--minutes", type=float, default=12.0, help="rows that would start later are left out")
    options = parser.parse_args()
    X = np.random.default_rng(0).normal(size=(options.size, 64))
    speeds = [dgemm_speed()]
    with tempfile.TemporaryDirectory() as folder:
        peer = run_peer(X, Path(folder)) if options.peer else None
        end = time.monotonic() + 60 * options.minutes  # installing the peer is not counted
        rows = kernels(X, peer)
    speeds.append(dgemm_speed())
    rows += all_tensors(options.quick)
    speed = max(*speeds, dgemm_speed())  # the best of several: something else may have run for a moment
    against_dgemm(rows, speed)
    rows += [*cold_start(), sampling(5.0)]
    by_name = {row["what"]: row for row in rows}
    tanh = by_name["all 15: tanh, N = 16, 10 hidden"]
    thousand = by_name[f"K, Theta: erf, N = {len(X)}"]["seconds"] * (1000 / len(X)) ** 2
    rows += engine.rows(options.quick, tanh, thousand, lambda: time.monotonic() > end)
    show(rows)
    machine = {"platform": platform.platform(), "python": platform.python_version(), "jax": jax.__version__}
    machine |= {"devices": [str(d) for d in jax.devices()], "dgemm_gflops": speed / 1e9}
    machine |= {"peer_jax": peer["jax"]} if peer else {}
    report = {"date": datetime.now(UTC).isoformat(timespec="minutes"), "machine": machine, "rows": rows}
    temporary = options.output.with_suffix(".tmp")
    temporary.write_text(json.dumps(report, indent=2) + "\n")
    temporary.replace(options.output)
    print(f"dgemm {speed / 1e9:.0f} Gflop/s; written to {options.output}")


if __name__ == "__main__":
    main()
