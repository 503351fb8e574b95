"""Two processes under jax.distributed add up the same batches as one, and each makes half of them."""

from __future__ import annotations

import socket
import subprocess
import sys

import numpy as np
import pytest

CODE = """
import sys
import jax
if sys.argv[1] == "2":
    jax.distributed.initialize("localhost:" + sys.argv[2], num_processes=2, process_id=int(sys.argv[3]))
import numpy as np
from numeric import flow, predict
from numeric.trained import GradientDescent
random = np.random.default_rng(1)
X, y = random.normal(size=(6, 3)), random.normal(size=5)
f = flow("tanh", X, 2, 64, 0.1, 1.2, 0.3, 1.0, tensors="Theta")
from numeric.trained.sampled.estimate import Sampler
launch, made = Sampler.launch, []
Sampler.launch = lambda self, number, device=None: (made.append(number), launch(self, number, device))[1]
p = predict(f, y, range(5), GradientDescent(0.1), method="sampled", batch=64, relative_error=1e9, seconds=1e9)
np.savez(sys.argv[4], mean=p.mean, error=p.standard_error["mean"], samples=p.samples, made=made)
"""


@pytest.mark.slow
def test_two_processes_make_the_estimate_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    files = [tmp_path / f"{k}.npz" for k in range(3)]
    runs = [("2", port, "0", files[0]), ("2", port, "1", files[1]), ("1", port, "0", files[2])]
    started = [subprocess.Popen([sys.executable, "-c", CODE, *map(str, run)]) for run in runs]
    assert [process.wait(timeout=900) for process in started] == [0, 0, 0]
    results = [np.load(file) for file in files]
    for name in ("mean", "error", "samples"):
        for other in results[:2]:
            np.testing.assert_array_equal(other[name], results[2][name])
    assert sorted([*results[0]["made"], *results[1]["made"]]) == sorted(results[2]["made"])
    assert len(results[0]["made"]) == len(results[1]["made"])
