"""Rows of the benchmark about the bracket engine: first calls, f.error, imports, activations over tanh, formulas, many
inputs in blocks, what nested quadrature did. CPU seconds of all threads where processes start: compiling takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from derive.activations import BUILTIN
from numeric import flow, kernel_blocks, kernel_matrices
from numeric.activations import load
from numeric.brackets import PATTERNS, arrangements, make_quadruple_plan, sorted_quadruples

Row = dict[str, Any]

BUILT_IN = (*(name for name in BUILTIN if name != "monomial"), "z**3")  # monomial is a family: one of it

FIRST = """
import sys, time
import numpy as np, jax
from numeric import flow
X = np.random.default_rng(3).normal(size=(3, 5)) / 2
def run():
    start = time.process_time()
    f = flow(sys.argv[1], X, depth=3, width=64, C_b=0.1, C_W=1.0, lambda_b=1.0, lambda_W=1.0)
    jax.block_until_ready([f.layer(3)[name] for name in f.layer(3)])
    return f, time.process_time() - start
f, first = run()
start = time.process_time()
f.error
error = time.process_time() - start
print(first, error, min(run()[1] for _ in range(3)))
"""

FORMULA = """
import time
import derive.activations, derive.codegen
from numeric.activations import load
start = time.process_time()
load("tanh(11*z/10) + z/7")
again = time.process_time()
load("tanh(11*z/10) + z/7")
print(again - start, time.process_time() - again)
"""


BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Modules that have been imported once are kept as bytecode, as they are where a user has installed them."""


def _process(code: str, *arguments: str, **environment: str) -> list[float]:
    """The numbers that a new process prints."""
    own = {**os.environ, **BYTECODE, **environment}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=own, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return [float(x) for x in done.stdout.split()]


def first_calls(name: str) -> Iterator[Row]:
    """Three inputs, depth 3, all tensors that exist: with empty caches, then with full ones; f.error; a warm flow."""
    with tempfile.TemporaryDirectory() as folder:
        for state in ("empty", "full"):
            first, error, warm = _process(FIRST, name, NUMERIC_CACHE_DIR=folder, DERIVE_CACHE_DIR=folder)
            row = {"what": f"first call, N = 3, depth 3: {name}, {state} caches", "first_cpu": first, "warm_cpu": warm}
            yield row | {"f_error_cpu": error, "f_error_allowed": 2 * warm + 1}


def imports() -> Iterator[Row]:
    """CPU seconds of `import jax` and of `import numeric`, which imports it: medians of several processes."""
    code = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    every = [[_process(code.format(name))[0] for name in ("jax", "numeric")] for _ in range(6)][1:]  # bytecode first
    jax_cpu, numeric_cpu = np.median(every, axis=0)
    ratio = float(np.median([own / jax for jax, own in every]))
    yield {"what": "import numeric", "jax_cpu": jax_cpu, "numeric_cpu": numeric_cpu, "over_jax": ratio}


def formula() -> Iterator[Row]:
    """Generating code for a formula, SymPy imported: CPU seconds of the first time, and of the second in a process."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = _process(FORMULA, DERIVE_CACHE_DIR=folder)
    yield {"what": "formula tanh(11 z/10) + z/7: generation", "first_cpu": first, "warm_cpu": second}


def timed(function: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """(first call, best of the others), seconds."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(function())
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds[1:])


def over_tanh(name: str, tanh: Row) -> Iterator[Row]:
    """All tensors of 16 inputs through ten hidden layers, over tanh's time in the same run."""
    X = np.random.default_rng(1).normal(size=(16, 64))
    settings = {"C_b": 0.0, "C_W": 1.0, "lambda_b": 1, "lambda_W": 1, "tolerance": tanh["tolerance"], "layers": "last"}
    first, seconds = timed(lambda: flow(name, X, 11, 64, **settings).U, 3)
    row = {"what": f"all 15: {name}, N = 16, 10 hidden", "first": first, "seconds": seconds}
    yield row | {"tolerance": tanh["tolerance"], "over_tanh": seconds / tanh["seconds"]}


def cut(name: str, variance: float = 1.0, dimensions: int = 64) -> Iterator[Row]:
    """Four different inputs where nested quadrature stood, all components, 1e-8: a quadruple alone, and each of many.

    Kinked activations, smooth ones of a large variance, inputs in few dimensions.
    """
    functions = load(name).FUNCTIONS
    patterns = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1)) if name == "selu" else PATTERNS
    components = arrangements(patterns)
    where = (
        f"{name}{f', K near {variance:g}' if variance > 1 else ''}{f', {dimensions} dimensions' * (dimensions < 64)}"
    )
    for size in (4, 16) if dimensions == 64 else (4,):
        X = np.random.default_rng(1).normal(size=(size, dimensions))
        K = variance * X @ X.T / dimensions
        different = (np.diff(sorted_quadruples(size), axis=1) > 0).all(axis=1)
        spent = [time.process_time()]
        plan = make_quadruple_plan(functions, K, patterns, 1e-8, wanted=different)
        host = jax.tree_util.tree_map(np.asarray, plan)
        for _ in range(4):
            host.unique(functions, components, K)
            spent.append(time.process_time())
        warm = float(np.diff(spent)[1:].min())
        row = {"what": f"{where}, four different inputs of {size}", "first_cpu": spent[1] - spent[0], "warm_cpu": warm}
        yield row | {"ms_a_quadruple": 1e3 * warm / int(different.sum())}


def interpolated(name: str, size: int) -> Iterator[Row]:
    """K and Theta of many inputs of a kinked activation, ten hidden layers."""
    X = np.random.default_rng(0).normal(size=(size, 64))
    network = {"C_b": 0.01, "C_W": 1.44, "lambda_b": 0.01, "lambda_W": 1.44, "progress": False}
    first, seconds = timed(lambda: kernel_matrices(name, X, 11, **network).Theta, 2)
    yield {"what": f"K, Theta: {name}, N = {size}", "first": first, "seconds": seconds}


def blocks(name: str, size: int, thousand: float) -> Iterator[Row]:
    """K and Theta of many inputs in blocks of a gigabyte, ten hidden layers; all pairs, then 1000 against them."""
    X = np.random.default_rng(0).normal(size=(size, 64))
    network = {"C_b": 0.01, "C_W": 1.44, "lambda_b": 0.01, "lambda_W": 1.44, "memory": 1e9, "progress": False}

    def run(rows: np.ndarray, against: np.ndarray | None) -> float:
        start, total = time.perf_counter(), 0.0
        for block in kernel_blocks(name, rows, 11, against=against, **network):
            total += float(block.Theta[0, -1])
        assert np.isfinite(total)
        return time.perf_counter() - start

    seconds = run(X, None)
    row = {"what": f"K, Theta: {name}, N = {size} in blocks", "seconds": seconds}
    yield row | {"over_N_squared": seconds / (thousand * (size / 1000) ** 2)}
    yield {"what": f"K, Theta: {name}, 1000 against {size} in blocks", "seconds": run(X[:1000] + 1.0, X)}


def rows(quick: bool, tanh: Row, thousand: float, late: Callable[[], bool]) -> list[Row]:
    """All of them, as long as there is time; what was left out or failed is said in its row."""
    jobs: list[tuple[str, Callable[[], Iterator[Row]]]] = [
        (f"over tanh: {n}", lambda n=n: over_tanh(n, tanh)) for n in ("swish", "softplus", "mish")
    ]
    jobs += [("formula", formula)]
    jobs += [(f"first call: {n}", lambda n=n: first_calls(n)) for n in BUILT_IN]
    jobs += [("imports", imports)]
    jobs += [(f"cut: {n}", lambda n=n: cut(n)) for n in ("elu", "softsign", "selu")]
    jobs += [(f"cut: {n}, large", lambda n=n: cut(n, 50.0)) for n in ("tanh", "sigmoid", "swish")]
    jobs += [(f"cut: elu, {d}", lambda d=d: cut("elu", 1.0, d)) for d in (2, 3)]
    jobs += [(f"interpolated: {n}", lambda n=n: interpolated(n, 1000)) for n in ("elu", "softsign", "selu")]
    jobs += [("blocks", lambda: blocks("erf", 2000 if quick else 10_000, thousand))]
    found: list[Row] = []
    for what, job in jobs:
        if late():
            found.append({"what": what, "left_out": "no time was left"})
            continue
        try:
            found += job()
        except Exception as error:  # one row's failure is a row, not the end of the run
            found.append({"what": what, "failed": f"{type(error).__name__}: {error}"})
        print(json.dumps(found[-1]), flush=True)
    return found
