"""Makes the sampled reference: the fifteen tensors of real finite-width networks, by automatic differentiation.

    nice python tests/data/sampled/make.py [SETUP ...] [--scale 1.0]

It knows nothing of `derive` or `numeric`: a network is written down, its parameters are drawn, and H, dH, ddI, ddII
are lambda-contractions of jax.jacrev and jax.jvp. Each tensor is the coefficient of its Kronecker structure, read off
at two distinct output neurons i and k. What makes small errors affordable, without any forward equation:
 - Given the layers below, z_i is Gaussian with covariance G = Var(theta) dz/dtheta dz/dtheta: V is the covariance of G.
 - E[z_i f] = f(row i -> Cov(theta_i, z_i)) when f is linear in the parameters of output neuron i, which holds for
   H_ik, dH_ikk and dH_iik: outputs with these rows (and no learning rate, as they belong to other neurons) stand for
   the factors z in F, P and Q.
 - Everything else is at most quadratic in the parameters of one output neuron, so for that layer random signs have
   the same mean as Gaussians, and less noise.
 - The means of G and H have controls, variables of known mean that are subtracted with the coefficient that regression
   gives (`controls`).
Corrections of order 1/n^2 are removed by extrapolation in 1/w from two widths (the hidden widths are 2w and 3w): a
straight line leaves c/(w1 w2) with the coefficient c of 1/w^2, some 1/96 of the tensor. G1 and H1 are n (mean -
limit), where the limit K or Theta is the infinite-width one, by quadrature. Standard errors come from the scatter of
independent blocks of networks.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

HERE = Path(__file__).parent
INPUTS = np.array([[1.0, -0.4, 0.7], [0.3, 0.9, -0.6], [-0.8, 0.5, 1.1]])


def sigma(z):
    return jnp.sin(z + 1)


def tau(z):
    return jnp.tanh(z + 0.5)


VALUE = {"W": sigma, "X": tau}
SLOPE = {m: jnp.vectorize(jax.grad(f)) for m, f in VALUE.items()}
ACTIVATIONS = {"sigma": "sin(z + 1)", "tau": "tanh(z + 1/2)"}
HYPERPARAMETERS = {
    "C_b": [0.2, 0.1, 0.15],
    "C_W": [1.1, 1.3, 0.9],
    "C_X": [0.0, 0.6, 0.7],
    "C_Y": [0.0, 0.5, 0.4],
    "lambda_b": [0.4, 0.3, 0.5],
    "lambda_W": [1.0, 0.7, 1.2],
    "lambda_X": [0.0, 0.9, 0.5],
    "lambda_Y": [0.0, 0.8, 0.6],
}
SETUPS = {  # name: (matrices of layers 2 and 3, number of inputs, seed)
    "mlp": ("W", 2, 1),
    "two-matrices": ("WX", 2, 2),
    "input-skip": ("WY", 2, 3),
    "mlp-three-inputs": ("W", 3, 4),
}
WIDTHS = [  # (w, networks for the statistics of z alone, of z and H, of dH, ddI and ddII)
    (6, 80_000, 20_000, 1_500),
    (16, 150_000, 20_000, 1_500),
]


def features(matrices, layer, z, x):
    """What each matrix of a layer multiplies, on every input, as (inputs, size)."""
    if layer == 0:
        return {"W": x}
    return {m: x if m == "Y" else VALUE[m](z).T for m in matrices}


def advance(block, inputs):
    """One layer: z' = b + sum of matrices times what they multiply, as (neurons, inputs)."""
    return block["b"][:, None] + sum(block[m] @ f.T for m, f in inputs.items())


def preactivations(matrices, theta, x):
    """The network: z of the last layer."""
    z = None
    for layer, block in enumerate(theta):
        z = advance(block, features(matrices, layer, z, x))
    return z


def draw(key, matrices, w, x, outputs):
    """A random network with the given number of outputs and, after them, one for each input whose row is Cov(theta, z).

    Returns parameters, learning rates, the covariance G of an output given the layers below, and hidden z's.
    """
    sizes = [2 * w, 3 * w, outputs]
    theta, rates, hidden, z = [], [], [], None
    for layer, size in enumerate(sizes):
        inputs = features(matrices, layer, z, x)
        variance = {"b": HYPERPARAMETERS["C_b"][layer]}
        rate = {"b": HYPERPARAMETERS["lambda_b"][layer]}
        for m, f in inputs.items():
            variance[m] = HYPERPARAMETERS[f"C_{m}"][layer] / f.shape[1]
            rate[m] = HYPERPARAMETERS[f"lambda_{m}"][layer] / f.shape[1]
        last = layer == len(sizes) - 1
        block = {}
        for m in variance:
            key, sub = jax.random.split(key)
            shape = (size,) if m == "b" else (size, inputs[m].shape[1])
            kind = jax.random.rademacher if last else jax.random.normal
            block[m] = jnp.sqrt(variance[m]) * kind(sub, shape).astype(x.dtype)
        speed = {m: jnp.full(block[m].shape, rate[m], x.dtype) for m in block}
        if last:
            covariance = variance["b"] + sum(variance[m] * f @ f.T for m, f in inputs.items())
            rows = {m: variance[m] * (jnp.ones(len(x)) if m == "b" else inputs[m]) for m in block}
            block = {m: jnp.concatenate([block[m], rows[m]]) for m in block}
            speed = {m: jnp.concatenate([speed[m], 0 * rows[m]]) for m in block}
        theta.append(block)
        rates.append(speed)
        z = advance(block, inputs)
        hidden.append(z)
    return theta, rates, covariance, hidden[:2]


def controls(matrices, theta, hidden, x, known, outputs):
    """Variables of mean zero that go along with the fluctuations of G and H.

    Layer 1 is exactly Gaussian with the kernel K. So is layer 2 given layer 1, with a fluctuating covariance; the
    linear map that makes this the kernel gives the neurons that the infinitely wide network would have had. Averages
    over either of sigma sigma and sigma' sigma' have known means. The last ones are terms of the output's NTK that hold
    products of independent weights of the output layer: of neurons j != j', and of two matrices.
    """
    second = features(matrices, 1, hidden[0], x)
    variance = HYPERPARAMETERS["C_b"][1] + sum(
        HYPERPARAMETERS[f"C_{m}"][1] / f.shape[1] * f @ f.T for m, f in second.items()
    )
    map_ = known["root"] @ jnp.linalg.inv(jnp.linalg.cholesky(variance))
    found = []
    for layer, z in enumerate([hidden[0].T, map_ @ hidden[1].T]):
        for m in matrices:
            for kind, function in (("value", VALUE), ("slope", SLOPE)):
                if m != "Y":
                    f = function[m](z)
                    found.append(f @ f.T / f.shape[1] - known[layer, m, kind])
    if outputs == 0:
        return upper_triangles(found)
    down = sum(theta[1][m][:, :, None] * SLOPE[m](hidden[0]) for m in matrices if m != "Y")  # (j, m, sample)
    up_matrices = [theta[2][m][:outputs, :, None] * SLOPE[m](hidden[1]) for m in matrices if m != "Y"]
    up = sum(up_matrices)  # (k, j, sample)
    through = jnp.einsum("kja,jma->kma", up, down)
    diagonal = jnp.einsum("kja,kjb,jab->ab", up, up, jnp.einsum("jma,jmb->jab", down, down))
    found.append((jnp.einsum("kma,kmb->ab", through, through) - diagonal) / outputs)
    if len(up_matrices) > 1:  # products of two matrices' signs; the squares of signs do not fluctuate
        squares = sum(jnp.einsum("kja,kjb->ab", u, u) for u in up_matrices)
        found.append((jnp.einsum("kja,kjb->ab", up, up) - squares) / outputs)
    return upper_triangles(found)


def upper_triangles(matrices):
    """The independent entries of symmetric matrices, in one row."""
    return jnp.concatenate([m[jnp.triu_indices(len(m))] for m in matrices])


def kernel_statistics(key, matrices, w, x, known):
    """Per-network G with its controls."""
    theta, _, covariance, hidden = draw(key, matrices, w, x, 0)
    return {"G": covariance, "controls": controls(matrices, theta, hidden, x, known, 0)}


def contractions(key, matrices, w, x, outputs):
    """The Jacobian of a random network, and what the statistics of it need."""
    theta, rates, covariance, hidden = draw(key, matrices, w, x, outputs)
    flat, unravel = ravel_pytree(theta)
    rate, _ = ravel_pytree(rates)

    def function(p):
        return preactivations(matrices, unravel(p), x)

    jacobian = jax.jacrev(function)(flat)  # (outputs, inputs, parameters)
    return theta, covariance, hidden, flat, rate, function, jacobian


def ntk_statistics(key, matrices, w, x, known):
    """Per-network G, H of four outputs, controls, and estimates of F and B; sample axes in the subscripts' order."""
    outputs = 4
    theta, covariance, hidden, _, rate, _, jacobian = contractions(key, matrices, w, x, outputs)
    H = jnp.einsum("iap,jbp->ijab", jacobian, rate * jacobian)
    pairs = [(i, k) for i in range(outputs) for k in range(outputs) if i != k]
    return {
        "G": covariance,
        "H": jnp.stack([H[i, i] for i in range(outputs)]),
        "F": jnp.einsum("abcd->acbd", H[outputs:, outputs:]),  # rows 1 and 2, samples 3 and 4
        "B": sum(jnp.einsum("ab,cd->acbd", H[i, k], H[i, k]) for i, k in pairs) / len(pairs),
        "controls": controls(matrices, theta, hidden, x, known, outputs),
    }


def differential_statistics(key, matrices, w, x, known):
    """Per-network estimates of P, Q, R, S, T, U; sample axes in the subscripts' order."""
    n = len(x)
    _, _, _, flat, rate, function, jacobian = contractions(key, matrices, w, x, 2)
    v = rate * jacobian
    vi, vk, standing = v[0], v[1], v[2:]

    def along(direction):
        return jax.jvp(jax.jacrev(function), (flat,), (direction,))[1]

    def third(v1, v2, v3):
        first = lambda p: jax.jvp(function, (p,), (v1,))[1]  # noqa: E731
        second = lambda p: jax.jvp(first, (p,), (v2,))[1]  # noqa: E731
        return jax.jvp(second, (flat,), (v3,))[1][0]

    U = jax.vmap(jax.vmap(along))(v[:2])  # Hess z v: [neuron and sample of v, output and sample of z, parameter]
    pairs = [(b, c) for b in range(n) for c in range(b, n)]
    v2, v3 = jnp.stack([vk[b] for b, _ in pairs]), jnp.stack([vk[c] for _, c in pairs])
    cubic = jax.vmap(lambda a: jax.vmap(lambda b, c: third(a, b, c))(v2, v3))(vi)  # [1, pair 23, 0]
    R = jnp.zeros((n,) * 4, x.dtype)
    for number, (b, c) in enumerate(pairs):
        R = R.at[:, :, b, c].set(cubic[:, number].T).at[:, :, c, b].set(cubic[:, number].T)
    return {
        # dH_{i0 i1 i2; 012} = v_1 Hess z_0 v_2; the output that stands for z_3 is i0 in P and i2 in Q
        "P": jnp.einsum("cdap,bp->abcd", U[1, :, 2:], vk),
        "Q": jnp.einsum("bap,dcp->abcd", U[0, :, 0], standing),
        "R": R,
        # ddII_{1234} = (Hess z_1 v_3) lambda (Hess z_2 v_4)
        "S": jnp.einsum("cap,p,dbp->abcd", U[1, :, 0], rate, U[1, :, 0]),
        "T": jnp.einsum("bap,p,cdp->abcd", U[0, :, 0], rate, U[1, :, 1]),
        "U": jnp.einsum("dap,p,bcp->abcd", U[1, :, 0], rate, U[0, :, 1]),
    }


STATISTICS = (kernel_statistics, ntk_statistics, differential_statistics)
BLOCKS = (1000, 100, 50)
"""Networks a block."""
FACTORS = {  # times as many networks, where a mean is close to its limit or a tensor has small parts; or fewer
    ("two-matrices", "H"): 3,
    ("two-matrices", ""): 3,
    ("input-skip", "H"): 2,
    ("mlp-three-inputs", "G"): 0.4,
    ("mlp-three-inputs", "H"): 0.4,
    ("mlp-three-inputs", ""): 0.4,
}


def block_estimates(found):
    """Unbiased estimates from one block of independent networks."""
    if "controls" not in found:
        return {name: values.mean(0) for name, values in found.items()}
    G, H = found["G"], found.get("H")
    count = len(G)

    def covariance(a, b):
        return jnp.einsum("nab,ncd->abcd", a - a.mean(0), b - b.mean(0)) / (count - 1)

    mean = G if H is None else H.mean(1)
    both = jnp.concatenate([jax.vmap(lambda m: upper_triangles([m]))(mean), found["controls"]], axis=1)
    deviation = both - both.mean(0)
    result = {"first": both.mean(0), "second": deviation.T @ deviation / (count - 1)}
    if H is None:
        return result | {"V": covariance(G, G)}
    pairs = [(i, k) for i in range(H.shape[1]) for k in range(H.shape[1]) if i != k]
    return result | {
        "D": covariance(G, mean),
        "A": sum(covariance(H[:, i], H[:, k]) for i, k in pairs) / len(pairs),
        "F": found["F"].mean(0),
        "B": found["B"].mean(0),
    }


def sample(key, statistics, arguments, networks, block, report):
    """The estimates of many independent blocks, stacked."""
    run = jax.jit(lambda k: block_estimates(jax.vmap(lambda s: statistics(s, *arguments))(jax.random.split(k, block))))
    collected, started, count = [], time.time(), max(networks // block, 4)
    for number in range(count):
        key, sub = jax.random.split(key)
        collected.append({k: np.asarray(v, float) for k, v in run(sub).items()})
        if number % 10 == 0:
            report(f"{(number + 1) * block}/{count * block} networks, {time.time() - started:.0f} s")
    return {name: np.stack([c[name] for c in collected]) for name in collected[0]}


def summarize(blocks, inputs, mean_name):
    """(mean, standard error) of every tensor; the mean of G or H has its controls regressed out."""

    def mean(values):
        return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))

    result = {name: mean(values) for name, values in blocks.items() if name not in ("first", "second")}
    if "first" in blocks:
        half = inputs * (inputs + 1) // 2
        first, second = blocks["first"], blocks["second"].mean(0)
        level, error = mean(first[:, half:])
        assert np.all(np.abs(level) < 5 * error), f"a control's mean is not zero: {level / error}"
        controlled = first[:, :half] - first[:, half:] @ np.linalg.solve(second[half:, half:], second[half:, :half])
        upper = np.triu_indices(inputs)
        full = np.empty((len(first), inputs, inputs))
        full[:, upper[0], upper[1]] = full[:, upper[1], upper[0]] = controlled
        result[mean_name] = mean(full)
    return result


def limits(matrices, x):
    """K and Theta of the infinitely wide network at the output, and the means that the controls need.

    2-d Gauss-Hermite quadrature with 80 nodes a side, in float64.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def mean(f, K):
        result = np.empty_like(K)
        for a, b in np.ndindex(*K.shape):
            c = K[a, b] / np.sqrt(K[a, a])
            rest = np.sqrt(max(K[b, b] - c**2, 0.0))
            u, v = np.sqrt(K[a, a]) * nodes[:, None], c * nodes[:, None] + rest * nodes[None, :]
            result[a, b] = weights @ (np.asarray(f(u), float) * np.asarray(f(v), float)) @ weights
        return result

    exact = {
        ("W", "value"): lambda z: np.sin(z + 1),
        ("W", "slope"): lambda z: np.cos(z + 1),
        ("X", "value"): lambda z: np.tanh(z + 0.5),
        ("X", "slope"): lambda z: 1 - np.tanh(z + 0.5) ** 2,
    }
    h = HYPERPARAMETERS
    gram = x @ x.T / x.shape[1]
    K = h["C_b"][0] + h["C_W"][0] * gram
    Theta = h["lambda_b"][0] + h["lambda_W"][0] * gram
    known = {}
    for layer in (1, 2):
        K_next, Theta_next = h["C_b"][layer] + 0 * K, h["lambda_b"][layer] + 0 * K
        for m in matrices:
            C, rate = h[f"C_{m}"][layer], h[f"lambda_{m}"][layer]
            if m == "Y":
                K_next, Theta_next = K_next + C * gram, Theta_next + rate * gram
                continue
            value, slope = mean(exact[m, "value"], K), mean(exact[m, "slope"], K)
            known[layer - 1, m, "value"], known[layer - 1, m, "slope"] = value, slope
            K_next, Theta_next = K_next + C * value, Theta_next + rate * value + C * slope * Theta
        K, Theta = K_next, Theta_next
        if layer == 1:
            known["root"] = np.linalg.cholesky(K)
    return K, Theta, known


def fit(points, degree=1):
    """Weighted least squares of a polynomial in 1/w: (value at 1/w = 0, its standard error)."""
    w = np.array([p[0] for p in points], float)
    y, s = np.stack([p[1] for p in points]), np.stack([p[2] for p in points])
    value, error = np.empty(y.shape[1:]), np.empty(y.shape[1:])
    for index in np.ndindex(*y.shape[1:]):
        target, scatter = y[(slice(None), *index)], s[(slice(None), *index)]
        basis = np.stack([w**-k for k in range(degree + 1)], axis=1) / scatter[:, None]
        inverse = np.linalg.inv(basis.T @ basis)
        solution = inverse @ basis.T @ (target / scatter)
        value[index], error[index] = solution[0], np.sqrt(inverse[0, 0])
    return value, error


def extrapolate(data, K, Theta):
    """The tensors at order 1/n, n = 3w the width of the last hidden layer, from the estimates at several widths."""
    tensors = {}
    for name in data[0][1]:
        points = [(w, *found[name]) for w, found in data]
        if name in "GH":
            tensors[{"G": "K", "H": "Theta"}[name]] = fit(points)
            limit = {"G": K, "H": Theta}[name]
            points = [(w, mean - limit, error) for w, mean, error in points]
        scaled = [(w, 3 * w * mean, 3 * w * error) for w, mean, error in points]
        tensors[{"G": "G1", "H": "H1"}.get(name, name)] = fit(scaled)
    return tensors


def make(setup, scale):
    matrices, count, seed = SETUPS[setup]
    K, Theta, known = limits(matrices, INPUTS[:count])
    x = jnp.asarray(INPUTS[:count], jnp.float32)  # rounding (1e-7) is far below the statistical errors
    known = {k: jnp.asarray(v, jnp.float32) for k, v in known.items()}
    key, data = jax.random.key(seed), []
    for w, *counts in WIDTHS:
        found = {}
        for statistics, name, networks, block in zip(STATISTICS, ("G", "H", ""), counts, BLOCKS):
            key, sub = jax.random.split(key)
            report = lambda text, w=w, s=statistics: print(f"{setup} w={w} {s.__name__}: {text}", flush=True)  # noqa: E731
            networks = int(networks * scale * FACTORS.get((setup, name), 1))
            blocks = sample(sub, statistics, (matrices, w, x, known), networks, block, report)
            found |= summarize(blocks, count, name)
        data.append((w, found))
    write(setup, data, K, Theta)


def write(setup, data, K, Theta):
    """The record as JSON, and one line a tensor on the screen."""
    matrices, count, seed = SETUPS[setup]
    tensors = extrapolate(data, K, Theta)
    used = ["b", *sorted(set(matrices) | {"W"})]
    record = {
        "setup": setup,
        "made_by": "tests/data/sampled/make.py",
        "seed": seed,
        "matrices": matrices,
        "activations": {k: v for k, v in ACTIVATIONS.items() if k == "sigma" or "X" in matrices},
        "inputs": INPUTS[:count].tolist(),
        "hidden_widths_over_w": [2, 3],
        "hyperparameters": {k: v for k, v in HYPERPARAMETERS.items() if k.split("_")[1] in used},
        "tensors": {name: {"value": v.tolist(), "standard_error": e.tolist()} for name, (v, e) in tensors.items()},
        "by_width": [
            {"w": w, **{name: {"mean": m.tolist(), "standard_error": e.tolist()} for name, (m, e) in found.items()}}
            for w, found in data
        ],
    }
    path = HERE / f"{setup}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record) + "\n")
    temporary.replace(path)
    for name, (v, e) in tensors.items():
        print(f"{name:6s} size {abs(v).max():9.5f}  worst error {e.max() / abs(v).max():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="*", default=list(SETUPS), metavar="SETUP")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many networks")
    arguments = parser.parse_args()
    for name in arguments.setups:
        make(name, arguments.scale)
