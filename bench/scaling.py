"""How cost grows with the number of inputs, depth and tolerance: CPU seconds of warm calls, and fitted exponents.

The numbers of docs/performance.md. CPU time of all threads, so that a loaded machine changes little.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from numeric import flow, kernel_matrices

Cost: TypeAlias = "dict[float, float]"
DIGITS = (1e-4, 1e-6, 1e-8, 1e-10)
NETWORK = {"C_b": 0.0, "C_W": 1.0, "lambda_b": 1.0, "lambda_W": 1.0}


def warm(function: Callable[[], Any], repeats: int = 2) -> float:
    """CPU seconds of the best call after the first."""
    jax.block_until_ready(function())
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(function())
        seconds.append(time.process_time() - start)
    return min(seconds)


def inputs(size: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(size, 64))


def fitted(cost: dict[float, float]) -> dict[str, Any]:
    """The slope of log cost against log x by least squares, and those between neighbouring points."""
    x, y = np.log(list(cost)), np.log(list(cost.values()))
    between = np.diff(y) / np.diff(x)
    return {"exponent": round(float(np.polyfit(x, y, 1)[0]), 2), "between": [round(float(s), 2) for s in between]}


def show(what: str, cost: dict[float, float]) -> dict[str, Any]:
    row = {"what": what, "cost": {f"{x:g}": round(seconds, 4) for x, seconds in cost.items()}} | fitted(cost)
    print(json.dumps(row), flush=True)
    return row


def of_all(sizes: tuple[int, ...], depths: tuple[int, ...] = (1,), tolerances: tuple[float, ...] = (1e-8,)) -> Cost:
    """All fifteen tensors of tanh, against whichever of the three has several values."""
    found: Cost = {}
    for n, hidden, tolerance in product(sizes, depths, tolerances):
        x = n if len(sizes) > 1 else hidden if len(depths) > 1 else 1 / tolerance
        settings = {**NETWORK, "tolerance": tolerance, "layers": "last"}
        found[x] = warm(lambda n=n, d=hidden, s=settings: flow("tanh", inputs(n), d + 1, 64, **s).U)
    return found


def kernels(name: str) -> Cost:
    return {n: warm(lambda n=n: kernel_matrices(name, inputs(n), 11, **NETWORK), 1) for n in (1024, 2048, 4096)}


def estimates() -> Cost:
    return {n: warm(lambda n=n: list(flow("tanh", inputs(n), 4, 64, **NETWORK).error.values())) for n in (2, 3, 4)}


JOBS: dict[str, Callable[[], Cost]] = {
    **{f"K, Theta of {n} in blocks, 10 hidden layers, against N": partial(kernels, n) for n in ("relu", "erf", "tanh")},
    "all 15, one hidden layer on the host, against N": lambda: of_all((2, 3, 4, 6)),
    "all 15, one hidden layer, compiled, against N": lambda: of_all((8, 16, 24, 32)),
    "all 15, N = 6 on the host, against hidden layers": lambda: of_all((6,), (1, 2, 4, 8)),
    "all 15, N = 12 compiled, against hidden layers": lambda: of_all((12,), (1, 2, 4, 8)),
    "all 15, N = 6 on the host, one hidden layer, against 1/tolerance": lambda: of_all((6,), (1,), DIGITS),
    "all 15, N = 16 compiled, one hidden layer, against 1/tolerance": lambda: of_all((16,), (1,), DIGITS),
    "f.error after a flow of three hidden layers, 1e-10, against N": estimates,
}


def cells(row: dict[str, Any]) -> str:
    """A row of the table in docs/performance.md."""
    cost = ", ".join(f"{x}: {seconds:.2g}" for x, seconds in row["cost"].items())
    return f"| {row['what']} | {cost} | {row['exponent']} | {', '.join(map(str, row['between']))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="words; rows that hold one of them (default: all)")
    parser.add_argument("-o", "--output", type=Path, help="write the rows as JSON besides")
    given = parser.parse_args()
    wanted = [what for what in JOBS if not given.parts or any(part in what for part in given.parts)]
    rows = [show(what, JOBS[what]()) for what in wanted]
    print(*map(cells, rows), sep="\n")
    if given.output:
        temporary = given.output.with_suffix(".tmp")
        temporary.write_text(json.dumps(rows, indent=1) + "\n")
        temporary.replace(given.output)


if __name__ == "__main__":
    main()
