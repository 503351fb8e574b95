"""Tensors of residual networks z' = xi z + b + W sigma(z), estimated on sampled networks: writes residual.json.

    python tests/data/sampled/make_residual.py [SETUP ...] [--scale S]

Two inputs, hidden layers of equal width n with a skip, a plain output layer, L weight layers. Nothing here knows the
theory at order 1/n; three exact statements make the samples cheap and quiet:

- Given the layer below, the preactivations of a layer's neurons are independent Gaussians, so that the forward pass
  needs no weight matrix, and the output's covariance given the hidden layers is known: V and G1 are its covariance and
  its mean's shift.
- Given the forward pass, W is still an unconditioned Gaussian matrix on the complement of sigma(z): the backward pass
  needs W^T u for a few vectors u only, which are drawn jointly. The NTK is a sum over layers of their products.
- The Gaussian noise of each neuron, put into the infinitely wide network, gives neurons whose averages have known
  means. They go along with the fluctuations of the real averages and are regressed out of the means (G1, H1), and so
  are the norms of the vectors u of the backward pass, less their means given the layer above.

Widths 32, 64 and 128 are extrapolated to infinite width by a polynomial in 1/n of degree two.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

HERE = Path(__file__).parent
X = np.array([[1.0, -0.4, 0.7], [0.3, 0.9, -0.6]])
OUTPUTS = 6
ACTIVATIONS = {
    "tanh": (jnp.tanh, lambda z: 1 / jnp.cosh(z) ** 2),
    "gelu": (lambda z: z * jax.scipy.stats.norm.cdf(z), None),
}
ACTIVATIONS["gelu"] = (
    ACTIVATIONS["gelu"][0],
    lambda z: jax.scipy.stats.norm.cdf(z) + z * jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
)
WIDTHS = {32: 100_000, 64: 100_000, 128: 100_000}
"""Width: networks with their NTK; ten times as many give their kernels only."""
SETUPS = {
    f"{name}-{xi}-{L}": (name, float(xi), L, 100 * index + L)
    for index, (name, xi) in enumerate((a, x) for a in ("tanh", "gelu") for x in ("1.0", "0.8"))
    for L in (4, 8)
}


def hyperparameters(L, name):
    """One value a layer; the branches of deeper networks are weaker, so that 1/n corrections stay moderate."""
    branch = {4: 0.8, 8: 0.5}[L]
    return {
        "C_b": [0.2] + [0.05] * (L - 2) + [0.1],
        "C_W": [1.2] + [branch] * (L - 2) + [1.1],
        "lambda_b": [0.3] + [0.1] * (L - 2) + [0.2],
        "lambda_W": [0.5] + [0.4] * (L - 2) + [0.7],
    }


def mean(f, g, K):
    """<f_a g_b> over N(0, K) for all pairs: a product of trapezoidal rules."""
    x = np.arange(-40, 41) * 0.22
    w = np.exp(-(x**2) / 2) * 0.22 / np.sqrt(2 * np.pi)
    out = np.empty_like(K)
    for a, b in np.ndindex(*K.shape):
        c = K[a, b] / np.sqrt(K[a, a])
        rest = np.sqrt(max(K[b, b] - c**2, 0.0))
        u, v = np.sqrt(K[a, a]) * x[:, None], c * x[:, None] + rest * x[None, :]
        out[a, b] = w @ (np.asarray(f(u), float) * np.asarray(g(v), float)) @ w
    return out


def limits(name, xi, L):
    """K and Theta of every layer of the infinitely wide network, and the brackets that the controls need."""
    s, ds = ACTIVATIONS[name]
    h = hyperparameters(L, name)
    gram = X @ X.T / X.shape[1]
    K, Theta = h["C_b"][0] + h["C_W"][0] * gram, h["lambda_b"][0] + h["lambda_W"][0] * gram
    kernels, thetas, values, slopes = [K], [Theta], [], []
    with jax.enable_x64(True):
        for layer in range(1, L):
            skip = xi if layer < L - 1 else 0.0
            value, slope = mean(s, s, K), mean(ds, ds, K)
            values.append(value)
            slopes.append(slope)
            C, rate = h["C_W"][layer], h["lambda_W"][layer]
            Theta = skip**2 * Theta + h["lambda_b"][layer] + rate * value + C * slope * Theta
            K = skip**2 * K + h["C_b"][layer] + C * value
            kernels.append(K)
            thetas.append(Theta)
    return kernels, thetas, values, slopes


def root(a):
    """The Cholesky factor of a symmetric matrix of two rows, written out."""
    x = jnp.sqrt(a[0, 0])
    y = a[0, 1] / x
    return jnp.array([[x, 0.0], [y, jnp.sqrt(a[1, 1] - y**2)]])


def forward(key, name, xi, L, n, known):
    """Preactivations of the hidden layers (layer, sample, neuron), the output's covariance given them, the controls."""
    s, ds = ACTIVATIONS[name]
    h = {k: jnp.asarray(v, jnp.float32) for k, v in hyperparameters(L, name).items()}

    def step(carry, layer):
        z, ideal, covariance = carry
        noise = jax.random.normal(jax.random.fold_in(key, layer), (2, n))
        skip = jnp.where(layer > 0, xi, 0.0)
        z = skip * z + root(covariance) @ noise
        ideal = skip * ideal + known["roots"][layer] @ noise
        controls = []
        for function, value in ((s, known["values"]), (ds, known["slopes"])):
            f = function(ideal)
            controls.append((f @ f.T / n - value[layer])[jnp.triu_indices(2)])
        f = s(z)
        covariance = h["C_b"][layer + 1] + h["C_W"][layer + 1] * f @ f.T / n
        return (z, ideal, covariance), (z, jnp.stack(controls))

    start = (jnp.zeros((2, n)), jnp.zeros((2, n)), known["first"])
    (_, _, covariance), (hidden, controls) = jax.lax.scan(step, start, jnp.arange(L - 1))
    return hidden, covariance, controls


def kernel_statistics(key, name, xi, L, n, known):
    _, covariance, controls = forward(key, name, xi, L, n, known)
    return {"G": covariance, "controls": controls[:, 0].ravel()}


def ntk_statistics(key, name, xi, L, n, known):
    """G, H of some outputs, the estimate of F; the last two "outputs" stand for z_1 and z_2 averaged over W."""
    s, ds = ACTIVATIONS[name]
    h = {k: jnp.asarray(v, jnp.float32) for k, v in hyperparameters(L, name).items()}
    key, sub = jax.random.split(key)
    hidden, covariance, controls = forward(key, name, xi, L, n, known)
    f, df = s(hidden), ds(hidden)
    own = jax.random.normal(jax.random.fold_in(sub, 0), (OUTPUTS, n)) * jnp.sqrt(h["C_W"][-1] / n)
    rows = jnp.concatenate([own, h["C_W"][-1] / n * f[-1]])
    u = rows[:, None, :] * df[-1]  # d output / d z at the last hidden layer: (output, sample, neuron)
    top = norms(u) - h["C_W"][-1] / n * df[-1] @ df[-1].T

    def share(layer, gram, u):
        return (h["lambda_b"][layer] + h["lambda_W"][layer] * gram) * jnp.einsum("iaj,kbj->ikab", u, u)

    def step(carry, layer):
        u, H = carry
        below, slope, C = f[layer - 1], df[layer - 1], h["C_W"][layer] / n
        overlap = below @ below.T
        H = H + share(layer, overlap / n, u)
        flat = u.reshape(-1, n)
        # the branch's increment g = b + W s is known; b is drawn given it, then W^T u given W s
        increment = hidden[layer] - xi * hidden[layer - 1]
        weight = h["C_b"][layer] * jnp.ones(2) @ inverse(h["C_b"][layer] + C * overlap)  # regression of b on g
        left = jnp.maximum(h["C_b"][layer] * (1 - weight.sum()), 0.0)
        b = weight @ increment + jnp.sqrt(left) * jax.random.normal(jax.random.fold_in(sub, 10 + layer), (n,))
        dual = inverse(overlap) @ below  # (sample, neuron below)
        along = (((increment - b) @ flat.T).T @ dual).reshape(u.shape)  # W^T u on the span of s
        products = flat @ flat.T
        products = products + 1e-6 * jnp.trace(products) / len(flat) * jnp.eye(len(flat))
        fresh = jnp.linalg.cholesky(products) @ jax.random.normal(jax.random.fold_in(sub, 100 + layer), (len(flat), n))
        fresh = jnp.sqrt(C) * (fresh - (fresh @ below.T) @ dual).reshape(u.shape)
        kept = xi * u + along * slope
        expected = norms(kept) + norms(u) * C * ((slope * (1 - (below * dual).sum(0))) @ slope.T)
        u = kept + fresh * slope
        return (u, H), norms(u) - expected

    start = (u, jnp.zeros((OUTPUTS + 2, OUTPUTS + 2, 2, 2)))
    (u, H), noise = jax.lax.scan(step, start, jnp.arange(L - 2, 0, -1))
    H = H + share(0, jnp.asarray(X @ X.T / X.shape[1], jnp.float32), u)
    diagonal = h["lambda_b"][-1] + h["lambda_W"][-1] * f[-1] @ f[-1].T / n
    pairs = np.array([(i, k) for i in range(OUTPUTS) for k in range(OUTPUTS) if i != k])
    mixed = H[pairs[:, 0], pairs[:, 1]]
    return {
        "G": covariance,
        "H": H[np.arange(OUTPUTS), np.arange(OUTPUTS)] + diagonal,
        "F": jnp.einsum("abcd->acbd", H[OUTPUTS:, OUTPUTS:]),
        "B": jnp.einsum("pab,pcd->acbd", mixed, mixed) / len(pairs),
        "controls": jnp.concatenate([controls.ravel(), upper(top).ravel(), upper(noise).ravel()]),
    }


def inverse(a):
    """Of a symmetric matrix of two rows."""
    return jnp.array([[a[1, 1], -a[0, 1]], [-a[0, 1], a[0, 0]]]) / (a[0, 0] * a[1, 1] - a[0, 1] ** 2)


def norms(u):
    """u_a . u_b, averaged over the real outputs."""
    return jnp.einsum("iaj,ibj->ab", u[:OUTPUTS], u[:OUTPUTS]) / OUTPUTS


def upper(m):
    return m[..., *jnp.triu_indices(2)]


def block_estimates(found):
    """Unbiased estimates from one block of independent networks."""
    G, H = found["G"], found.get("H")
    count = len(G)

    def covariance(a, b):
        return jnp.einsum("nab,ncd->abcd", a - a.mean(0), b - b.mean(0)) / (count - 1)

    level = G if H is None else H.mean(1)
    both = jnp.concatenate([upper(level), found["controls"]], axis=1)
    centre = both.mean(0)
    result = {"first": centre, "second": (both - centre).T @ (both - centre) / (count - 1)}
    if H is None:
        return result | {"V": covariance(G, G)}
    pairs = [(i, k) for i in range(OUTPUTS) for k in range(OUTPUTS) if i != k]
    return result | {
        "D": covariance(G, level),
        "A": sum(covariance(H[:, i], H[:, k]) for i, k in pairs) / len(pairs),
        "F": found["F"].mean(0),
        "B": found["B"].mean(0),
    }


def summarize(blocks, name):
    """(mean, standard error) of every tensor; the mean of G or H has its controls regressed out."""
    result = {
        k: (v.mean(0), v.std(0, ddof=1) / np.sqrt(len(v))) for k, v in blocks.items() if k not in ("first", "second")
    }
    first, second = blocks["first"], blocks["second"].mean(0)
    level, error = first[:, 3:].mean(0), first[:, 3:].std(0, ddof=1) / np.sqrt(len(first))
    assert np.all(np.abs(level) < 5.5 * error), f"a control's mean is not zero: {level / error}"
    slope, *_ = np.linalg.lstsq(second[3:, 3:], second[3:, :3], rcond=1e-9)
    controlled = first[:, :3] - first[:, 3:] @ slope
    full = np.empty((len(first), 2, 2))
    i, j = np.triu_indices(2)
    full[:, i, j] = full[:, j, i] = controlled
    result[name] = full.mean(0), full.std(0, ddof=1) / np.sqrt(len(full))
    return result


def fit(points, degree):
    """Weighted least squares of a polynomial in 1/n: (value at 1/n = 0, its standard error)."""
    n = np.array([p[0] for p in points], float)
    y, s = np.stack([p[1] for p in points]), np.stack([p[2] for p in points])
    value, error = np.empty(y.shape[1:]), np.empty(y.shape[1:])
    for index in np.ndindex(*y.shape[1:]):
        target, scatter = y[(slice(None), *index)], s[(slice(None), *index)]
        basis = np.stack([n**-k for k in range(degree + 1)], axis=1) / scatter[:, None]
        inverse = np.linalg.inv(basis.T @ basis)
        value[index], error[index] = (inverse @ basis.T @ (target / scatter))[0], np.sqrt(inverse[0, 0])
    return value, error


def make(setup, scale):
    name, xi, L, seed = SETUPS[setup]
    kernels, thetas, values, slopes = limits(name, xi, L)
    h = hyperparameters(L, name)
    increments = [kernels[0]] + [h["C_b"][layer] + h["C_W"][layer] * values[layer - 1] for layer in range(1, L - 1)]
    single = partial(jnp.asarray, dtype=jnp.float32)
    known = {
        "first": single(kernels[0]),
        "roots": single(np.linalg.cholesky(np.stack(increments))),
        "values": single(np.stack(values)),
        "slopes": single(np.stack(slopes)),
    }
    found = {}
    started = time.time()
    for n, networks in WIDTHS.items():
        found[n] = {}
        for statistics, target, factor, block in ((kernel_statistics, "G", 10, 5000), (ntk_statistics, "H", 1, 500)):
            run = jax.jit(
                lambda k, st=statistics, n=n, block=block: block_estimates(
                    jax.vmap(lambda s: st(s, name, xi, L, n, known))(jax.random.split(k, block))
                )
            )
            key = jax.random.fold_in(jax.random.key(seed), 2 * n + (target == "H"))
            collected = []
            for number in range(max(int(networks * factor * scale) // block, 8)):
                estimates = run(jax.random.fold_in(key, number))
                collected.append({k: np.asarray(v, float) for k, v in estimates.items()})
            found[n] |= summarize({k: np.stack([c[k] for c in collected]) for k in collected[0]}, target)
            print(f"{setup} n={n} {target}: {time.time() - started:.0f} s", flush=True)
    tensors = {}
    for tensor in ("V", "G1", "D", "F", "H1", "A", "B"):
        key = {"G1": "G", "H1": "H"}.get(tensor, tensor)
        points = []
        for n, own in found.items():
            value, error = own[key]
            if tensor in ("G1", "H1"):
                value = value - (kernels if tensor == "G1" else thetas)[-1]
            points.append((n, n * value, n * error))
        (value, error), (line, line_error) = fit(points, 2), fit(points[1:], 1)
        tensors[tensor] = {
            "value": value.tolist(),
            "standard_error": error.tolist(),
            "linear": line.tolist(),
            "linear_error": line_error.tolist(),
            "by_width": {str(n): {"value": v.tolist(), "standard_error": e.tolist()} for n, v, e in points},
        }
        size = abs(value).max()
        print(f"  {tensor:3s} size {size:9.4f}  worst error {error.max() / size:.4f}", flush=True)
    record = {
        "activation": name,
        "skip": xi,
        "depth": L,
        "seed": seed,
        "X": X.tolist(),
        "hyperparameters": h,
        "K": kernels[-1].tolist(),
        "Theta": thetas[-1].tolist(),
        "tensors": tensors,
    }
    path = HERE / f"residual-{setup}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record) + "\n")
    temporary.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="*", default=list(SETUPS), metavar="SETUP")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many networks")
    arguments = parser.parse_args()
    for name in arguments.setups:
        make(name, arguments.scale)
