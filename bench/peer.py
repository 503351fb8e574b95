"""neural-tangents' side of the benchmark: run in an environment of its own, reads a job from stdin, writes results.

Not imported by anything: `bench/run.py` starts it with the peer environment's Python (neural-tangents 0.6.5 with jax
0.5.3). A job is JSON {inputs: file.npy, cases: [{name, activation, W_std, b_std, hidden, degree}], output: folder}.
"""

import json
import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from neural_tangents import stax  # noqa: E402


def nonlinearity(name, degree):
    if name == "relu":
        return stax.Relu()
    if name == "erf":
        return stax.Erf()
    if name == "gelu":
        return stax.Gelu()
    return stax.ElementwiseNumerical({"tanh": jax.numpy.tanh}[name], deg=degree)


def main():
    job = json.load(sys.stdin)
    X = np.load(job["inputs"])
    results = []
    for case in job["cases"]:
        layers = []
        for _ in range(case["hidden"]):
            layers += [stax.Dense(1, case["W_std"], case["b_std"]), nonlinearity(case["activation"], case["degree"])]
        *_, kernel = stax.serial(*layers, stax.Dense(1, case["W_std"], case["b_std"]))
        function = jax.jit(lambda x, kernel=kernel: tuple(kernel(x, None, ("nngp", "ntk"))))
        x = jax.numpy.asarray(X)
        seconds = []
        for _ in range(case.get("repeats", 3)):
            start = time.perf_counter()
            K, Theta = jax.block_until_ready(function(x))
            seconds.append(time.perf_counter() - start)
        path = f"{job['output']}/{case['name']}.npz"
        np.savez(path, K=np.asarray(K), Theta=np.asarray(Theta))
        results.append({"name": case["name"], "first": seconds[0], "seconds": min(seconds[1:]), "file": path})
    json.dump({"jax": jax.__version__, "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
