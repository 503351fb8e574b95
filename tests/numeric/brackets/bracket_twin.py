"""The slow, obviously right twin: a trapezoidal rule over all directions of the quadruple's covariance, in NumPy."""

import importlib

import jax.numpy as jnp
import numpy as np

NODES = {0: 1, 1: 400, 2: 150, 3: 104, 4: 76}  # along the widest direction
FEWEST = 32
REACH = 8.4


def functions(name):
    return importlib.import_module(f"numeric.generated.{name}").FUNCTIONS


def twin(activation, K, labels, patterns):
    """<product of sigma^(p_i)(z_i)> for each pattern, on the support of the covariance of these labels."""
    block = np.asarray(K)[np.ix_(labels, labels)]
    size, vectors = np.linalg.eigh(block)
    keep = size > 1e-13 * max(size.max(), 1e-300)
    loading = vectors[:, keep] * np.sqrt(size[keep])
    rank = int(keep.sum())
    counts = [max(int(NODES[rank] * np.sqrt(v / size.max())), FEWEST) for v in size[keep]]
    lines = [(np.arange(n) - n / 2 + 0.5) * (2 * REACH / n) for n in counts]
    x = np.stack([v.ravel() for v in np.meshgrid(*lines, indexing="ij")]) if rank else np.zeros((0, 1))
    x = x[:, (x**2).sum(axis=0) <= REACH**2]
    weight = np.prod([2 * REACH / n / np.sqrt(2 * np.pi) for n in counts]) * np.exp(-(x**2).sum(axis=0) / 2)
    z = jnp.asarray(loading @ x)
    sigma = {(k, i): np.asarray(activation.derivatives(z[i], k)) for i in range(len(labels)) for k in _orders(patterns)}
    return [float(weight @ np.prod([sigma[k, i] for i, k in enumerate(p)], axis=0)) for p in patterns]


def _orders(patterns):
    return sorted({k for p in patterns for k in p})


def awkward_inputs(scale, seed=3):
    """Kernel of five inputs in three dimensions: a near-duplicate (angle 1e-8), an opposite and a vanishing input."""
    x = np.random.default_rng(seed).normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    across = x[1] - (x[1] @ x[0]) * x[0]
    x[2] = np.cos(1e-8) * x[0] + np.sin(1e-8) * across / np.linalg.norm(across)
    x[3] = -x[0]
    x[4] = 0
    x[1] *= 1.1
    return scale * x @ x.T
