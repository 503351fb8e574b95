"""How cost grows with the number of inputs, depth and tolerance: CPU seconds of warm calls, and fitted exponents.

The numbers of docs/performance.md. CPU time of all threads, so that a loaded machine changes little.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from numeric import flow, kernel_matrices

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


def exponent(cost: dict[float, float]) -> float:
    """The slope of log cost against log x, from the last two points."""
    (x, a), (y, b) = list(cost.items())[-2:]
    return float(np.log(b / a) / np.log(y / x))


def show(what: str, cost: dict[float, float]) -> None:
    print(json.dumps({"what": what, "cost": cost, "exponent": round(exponent(cost), 2)}), flush=True)


def main(parts: list[str]) -> None:
    everything = {
        "kernels": lambda: [
            show(
                f"K, Theta of {name} in blocks, 10 hidden layers, against N",
                {
                    n: warm(lambda n=n, a=name: kernel_matrices(a, inputs(n), 11, **NETWORK), 1)
                    for n in (512, 1024, 2048)
                },
            )
            for name in ("relu", "erf", "tanh")
        ],
        "host": lambda: show(
            "all 15, tanh 1e-8, one hidden layer on the host, against N",
            {n: warm(lambda n=n: flow("tanh", inputs(n), 2, 64, **NETWORK, tolerance=1e-8)) for n in (2, 3, 4, 6)},
        ),
        "compiled": lambda: show(
            "all 15, tanh 1e-8, one hidden layer, compiled, against N",
            {n: warm(lambda n=n: flow("tanh", inputs(n), 2, 64, **NETWORK, tolerance=1e-8), 1) for n in (8, 16)},
        ),
        "depth": lambda: show(
            "all 15, tanh 1e-8, N = 6, against depth - 1",
            {d: warm(lambda d=d: flow("tanh", inputs(6), d + 1, 64, **NETWORK, tolerance=1e-8)) for d in (1, 2, 4, 8)},
        ),
        "tolerance": lambda: show(
            "all 15, tanh, N = 6, one hidden layer, against 1/tolerance",
            {
                1 / t: warm(lambda t=t: flow("tanh", inputs(6), 2, 64, **NETWORK, tolerance=t))
                for t in (1e-4, 1e-6, 1e-8, 1e-10)
            },
        ),
        "estimate": lambda: show(
            "f.error after a flow of tanh, 1e-10, three hidden layers, against N",
            {n: warm(lambda n=n: list(flow("tanh", inputs(n), 4, 64, **NETWORK).error.values())) for n in (2, 3, 4)},
        ),
    }
    for part in parts or everything:
        everything[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
