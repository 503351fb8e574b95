"""A sampled prediction by one process on a core, and by two (jax.distributed) on a core each: equal, in half the time.

    python bench/processes.py [--inputs 300] [--batches 64]

Wall seconds of the draws alone, after everything is compiled; needs two idle cores and Linux's taskset.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CODE = """
import sys
import jax
count, port, own, file, inputs, batches = sys.argv[1:]
if count == "2":
    jax.distributed.initialize("localhost:" + port, num_processes=2, process_id=int(own))
import numpy as np
from numeric import flow, predict
from numeric.trained.sampled import run
size = int(inputs)
random = np.random.default_rng(1)
X, y = random.normal(size=(size + 50, 16)), random.normal(size=size)
f = flow("tanh", X, 3, 100, tensors="Theta")
def ask(seed, least):
    run.FEWEST = least
    return predict(f, y, range(size), ridge=10.0, method="sampled", relative_error=1e9, seconds=1e9, seed=seed)
ask(1, 2).mean
p = ask(0, int(batches))
np.savez(file, mean=p.mean, error=p.standard_error["mean"], seconds=p.outcomes[0].seconds, samples=p.samples)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=300)
    parser.add_argument("--batches", type=int, default=64)
    chosen = parser.parse_args()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{k}.npz") for k in range(3)]
        more = (str(chosen.inputs), str(chosen.batches))
        for runs in ([("0", "1", "0", files[0])], [("0", "2", "0", files[1]), ("1", "2", "1", files[2])]):
            started = [
                subprocess.Popen(
                    ["taskset", "-c", core, sys.executable, "-c", CODE, count, port, own, file, *more],
                    stderr=subprocess.DEVNULL,
                )
                for core, count, own, file in runs
            ]
            if any(process.wait() for process in started):
                raise SystemExit("A process ended with an error: run tests/numeric/trained/sampled to see it.")
        one, *two = (np.load(file) for file in files)
    difference = max(float(np.max(np.abs(own["mean"] - one["mean"]))) for own in two)
    seconds = [float(own["seconds"]) for own in (one, *two)]
    print(
        json.dumps(
            {
                "inputs": chosen.inputs,
                "draws": int(one["samples"]),
                "seconds_one_process": seconds[0],
                "seconds_two_processes": max(seconds[1:]),
                "ratio": seconds[0] / max(seconds[1:]),
                "largest_difference": difference,
                "standard_error": float(np.max(one["error"])),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
