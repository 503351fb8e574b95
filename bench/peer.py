"""neural-tangents' side of the benchmark: run in an environment of its own, reads a job from stdin, writes results.

Not imported by anything: `bench/run.py` starts it with the peer environment's Python (neural-tangents 0.6.5 with jax
0.5.3). A job is JSON {inputs: file.npy, cases: [{name, activation, W_std, b_std, hidden, degree}], output: folder} for
infinite width, or {empirical: file.npz of X, W0, b0, W1, ..., output: file.npy} for the NTK of a real tanh network.
"""

import importlib
import json
import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import neural_tangents as nt  # noqa: E402
from neural_tangents import stax  # noqa: E402


def nonlinearity(name, degree):
    if name == "relu":
        return stax.Relu()
    if name == "erf":
        return stax.Erf()
    if name == "gelu":
        return stax.Gelu()
    return stax.ElementwiseNumerical({"tanh": jax.numpy.tanh}[name], deg=degree)


def empirical(job):
    """H[input, input, output, output] by each of its implementations: the file of the last one, CPU seconds of all."""
    arrays = np.load(job["empirical"])
    count = sum(name.startswith("W") for name in arrays)
    params = [(jax.numpy.asarray(arrays[f"W{k}"]), jax.numpy.asarray(arrays[f"b{k}"])) for k in range(count)]
    x = jax.numpy.asarray(arrays["X"])

    def apply(params, z):
        for k, (W, b) in enumerate(params):
            z = z @ W / np.sqrt(W.shape[0]) + b
            z = jax.numpy.tanh(z) if k < count - 1 else z
        return z

    moved = {"source_info_util": importlib.import_module("jax._src.source_info_util"), "config": jax.config}
    for name, home in moved.items():  # moved in JAX after the peer's last release
        if not hasattr(jax.interpreters.ad, name):
            setattr(jax.interpreters.ad, name, home)
    results = []
    for name in job["implementations"]:
        kind = getattr(nt.NtkImplementation, name)
        ntk = nt.empirical_ntk_fn(apply, trace_axes=(), vmap_axes=0, implementation=kind)
        function, seconds = jax.jit(lambda x, ntk=ntk: ntk(x, None, params)), []
        try:
            for _ in range(3):
                start = time.process_time()
                H = jax.block_until_ready(function(x))
                seconds.append(time.process_time() - start)
        except Exception as error:  # dead on this JAX: said, and the others are still compared
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        np.save(job["output"], np.asarray(H))
        results.append({"name": name, "first": seconds[0], "seconds": min(seconds[1:])})
    json.dump({"jax": jax.__version__, "results": results}, sys.stdout)


def main():
    job = json.load(sys.stdin)
    if "empirical" in job:
        empirical(job)
    else:
        infinite(job)


def infinite(job):
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
