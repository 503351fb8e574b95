"""All tensors with differentials of sampled residual networks: writes residual-differentials-*.json.

    python tests/data/sampled/make_residual_differentials.py [SETUP ...] [--networks N]

The networks of make_residual.py. Nothing here knows the theory at order 1/n; two exact statements make it cheap:

- Let t1, t2, t3 be independent Gaussian directions in the space of parameters with the learning rates as variances.
  The mean over them of (t1 . grad z)(t1 . grad z) is the NTK, of D2z[t1, t2] (t1 . grad z)(t2 . grad z) its
  differential, and so on: all tensors are moments of z and its derivatives along the three.
- Given the layer below, a layer's neurons, each with its eight derivatives, are independent Gaussians (every one is
  linear in this layer's W and dW). So no network has a weight matrix here, and the moments of two output neurons are
  products of two entries of the output's covariance given the hidden layers.

Widths 32, 64 and 128 are extrapolated to infinite width by a polynomial in 1/n of degree two.
"""

import argparse
import json
import time
from itertools import chain, combinations, permutations
from pathlib import Path

import numpy as np
from make_residual import fit
from residual_networks import SETUPS, X
from residual_networks import hyperparameters as seven_hyperparameters
from scipy.special import ndtr

from effective_theory.files import write_file

HERE = Path(__file__).parent
WIDTHS = (32, 64, 128)
NEURONS = 16_000
"""In a block of networks."""


def hyperparameters(L):
    """Those of the seven tensors' samples, but for the learning rates."""
    rates = {"lambda_b": [0.3] + [0.1] * (L - 2) + [0.2], "lambda_W": [0.5] + [0.4] * (L - 2) + [0.7]}
    return seven_hyperparameters(L) | rates


def _tanh(z):
    s = np.tanh(z)
    d = 1 - s**2
    return s, d, -2 * s * d, (6 * s**2 - 2) * d


def _gelu(z):
    c, p = ndtr(z), np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return z * c, c + z * p, (2 - z**2) * p, (z**3 - 4 * z) * p


ACTIVATIONS = {"tanh": _tanh, "gelu": _gelu}
"""The activation and its first three derivatives."""
SUBSETS = [frozenset(c) for c in chain.from_iterable(combinations((1, 2, 3), k) for k in range(4))]
"""The directions along which z is differentiated: none, 1, 2, 3, 12, ..."""
NUMBER = {A: k for k, A in enumerate(SUBSETS)}


def derivatives(name, z):
    """sigma(z) differentiated along each subset of directions; z has axes (network, subset, sample, neuron)."""
    s, d, dd, ddd = ACTIVATIONS[name](z[:, 0])
    at = {A: z[:, k] for k, A in enumerate(SUBSETS)}

    def one(A):
        if not A:
            return s
        if len(A) == 1:
            return d * at[A]
        if len(A) == 2:
            i, j = (frozenset([k]) for k in A)
            return d * at[A] + dd * at[i] * at[j]
        pairs = sum(at[frozenset([k])] * at[A - {k}] for k in A)
        return d * at[A] + dd * pairs + ddd * at[frozenset([1])] * at[frozenset([2])] * at[frozenset([3])]

    return np.stack([one(A) for A in SUBSETS], axis=1)


def covariance(gram, layer, h):
    """Of a layer's branch and its derivatives, given the averages of products below: axes (subset, sample) twice."""
    value = h["C_W"][layer] * gram
    for A in SUBSETS:
        for B in SUBSETS:
            place = np.s_[:, NUMBER[A], :, NUMBER[B], :]
            for k in A & B:  # the derivative of W along direction k is a Gaussian matrix of its own
                value[place] += h["lambda_W"][layer] * gram[:, NUMBER[A - {k}], :, NUMBER[B - {k}], :]
            if A == B and len(A) < 2:
                value[place] += h["lambda_b" if A else "C_b"][layer]
    return value


def sample(rng, name, xi, L, n, count):
    """The outputs' covariance given the hidden layers, of `count` networks."""
    h = hyperparameters(L)
    size = 2 * len(SUBSETS)

    def below(z):
        S = derivatives(name, z).reshape(count, size, n)
        return (S @ S.transpose(0, 2, 1) / n).reshape(count, len(SUBSETS), 2, len(SUBSETS), 2)

    gram = X @ X.T / X.shape[1]
    starts = np.stack([h["C_b"][0] + h["C_W"][0] * gram, *[h["lambda_b"][0] + h["lambda_W"][0] * gram] * 3])
    z = np.zeros((count, len(SUBSETS), 2, n))  # the first layer is linear in its parameters: no second derivatives
    z[:, :4] = np.linalg.cholesky(starts) @ rng.standard_normal((count, 4, 2, n))
    for layer in range(1, L - 1):
        root = np.linalg.cholesky(covariance(below(z), layer, h).reshape(count, size, size))
        z = xi * z + (root @ rng.standard_normal((count, size, n))).reshape(z.shape)
    return covariance(below(z), L - 1, h)


def block_estimates(found):
    """Unbiased estimates from one block of independent networks; axes in the order of a tensor's subscripts."""
    count = len(found)

    def entry(first, second):
        """Covariance of two derivatives of one output neuron, for each network and two samples."""
        return found[:, NUMBER[frozenset(first)], :, NUMBER[frozenset(second)], :]

    def covariance_of(a, b):
        return np.einsum("nab,ncd->abcd", a - a.mean(0), b - b.mean(0)) / (count - 1)

    def product(first, second, to):
        """The mean over networks and over the six ways to name the directions."""
        total = 0.0
        for way in permutations((1, 2, 3)):
            a, b = (entry(*(tuple(way[int(c) - 1] for c in own) for own in pair)) for pair in (first, second))
            total = total + np.einsum(f"nab,ncd->{to}", a, b)
        return total / (6 * count)

    G, H = entry((), ()), {k: entry((k,), (k,)) for k in (1, 2, 3)}
    return {
        "V": covariance_of(G, G),
        "D": covariance_of(G, sum(H.values()) / 3),
        "A": sum(covariance_of(H[j], H[k]) for j in H for k in H if j != k) / 6,
        "F": product(("", "1"), ("", "1"), "abcd"),
        "B": product(("1", "2"), ("1", "2"), "abcd"),
        "P": product(("12", ""), ("1", "2"), "acdb"),
        "Q": product(("12", "1"), ("2", ""), "abcd"),
        "R": product(("123", "1"), ("2", "3"), "abcd"),
        "S": product(("12", "13"), ("2", "3"), "abcd"),
        "T": product(("12", "2"), ("3", "13"), "abcd"),
        "U": product(("12", "3"), ("13", "2"), "abcd"),
    }


def make(setup, networks):
    name, xi, L, seed = SETUPS[setup]
    found, started = {}, time.process_time()
    for n in WIDTHS:
        rng, block = np.random.default_rng([seed, n]), NEURONS // n
        blocks = [block_estimates(sample(rng, name, xi, L, n, block)) for _ in range(networks // block)]
        stacked = {k: np.stack([b[k] for b in blocks]) for k in blocks[0]}
        found[n] = {k: (v.mean(0), v.std(0, ddof=1) / np.sqrt(len(v))) for k, v in stacked.items()}
        print(f"{setup} n={n}: {time.process_time() - started:.0f} CPU s", flush=True)
    tensors = {}
    for tensor in found[WIDTHS[0]]:
        points = [(n, n * own[tensor][0], n * own[tensor][1]) for n, own in found.items()]
        value, error = fit(points, 2)
        tensors[tensor] = {"value": value.tolist(), "standard_error": error.tolist()}
        print(f"  {tensor} size {abs(value).max():9.4f}  worst error {error.max() / abs(value).max():.4f}", flush=True)
    record = {"activation": name, "skip": xi, "depth": L, "seed": seed, "networks": networks, "X": X.tolist()}
    record |= {"hyperparameters": hyperparameters(L), "tensors": tensors}
    write_file(HERE / f"residual-differentials-{setup}.json", json.dumps(record) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="*", default=["gelu-0.8-4", "tanh-1.0-8"], metavar="SETUP")
    parser.add_argument("--networks", type=int, default=12_000, help="of each width")
    arguments = parser.parse_args()
    for own in arguments.setups:
        make(own, arguments.networks)
