"""The structured empirical NTK against the best plain Jacobian contraction we can write, on a 100-950-950-10 network.

    python bench/empirical.py                 # 200 inputs, one core (OPENBLAS_NUM_THREADS=1 for the plain route)
    python bench/empirical.py --inputs 40
    python bench/empirical.py --every 10      # the plain route on a tenth of its parts only, its time times ten
    python bench/empirical.py --peer          # neural-tangents' implementations on the same network, CPU seconds

The plain route knows nothing of layers: gradients of every output on every input, some rows of every parameter array
at a time, H += J J^T by BLAS, half of it by symmetry (dsyrk), so that nothing is computed twice. CPU seconds,
compilation apart (a second call); prints JSON. Where parts are left out the two are compared at eight inputs.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import peer_environment
from scipy.linalg.blas import dsyrk

from numeric.empirical import empirical_ntk, pseudo_ntk

WIDTHS = (100, 950, 950, 10)
IMPLEMENTATIONS = {"NTK_VECTOR_PRODUCTS": 40, "STRUCTURED_DERIVATIVES": 200}
"""Of the peer, with the number of inputs up to which each is run: at 200 vector products took 18 GB here and were
stopped after six minutes; its plain Jacobian contraction would hold the whole Jacobian (16 GB)."""
PART = 4e8
"""Bytes of the plain route's gradients that are held at once."""


def apply(params: list[tuple[jax.Array, jax.Array]], X: jax.Array) -> jax.Array:
    z = X
    for k, (W, b) in enumerate(params):
        z = z @ W / np.sqrt(W.shape[0]) + b
        if k < len(params) - 1:
            z = jnp.tanh(z)
    return z


def network(seed: int = 0) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(jax.random.key(seed), len(WIDTHS) - 1)
    shapes = pairwise(WIDTHS)
    return [(jax.random.normal(key, shape), jnp.zeros(shape[1])) for key, shape in zip(keys, shapes)]


def plain(params: Any, X: jax.Array, every: int = 1) -> tuple[np.ndarray, float]:
    """H as (N O, N O), rows (input, output), and the share of it that was computed (with every n-th part only).

    For each part of the parameters the gradients of all outputs, and their products by BLAS.
    """
    leaves, tree = jax.tree.flatten(params)
    size = len(X) * WIDTHS[-1]
    H = np.zeros((size, size), order="F")
    number, done = 0, 0
    for k, leaf in enumerate(leaves):
        length = leaf.shape[0]
        rows = max(1, min(length, int(PART / (8 * size * max(1, leaf.size // length)))))
        for start in range(0, length, rows):
            number += 1
            if (number - 1) % every:
                continue
            own = slice(start, min(start + rows, length))
            done += (own.stop - own.start) * leaf.size // length
            J = np.asarray(_gradients(tree, k)(leaves, leaf[own], start, X)).reshape(size, -1)
            dsyrk(1.0, J.T, 1.0, H, trans=1, overwrite_c=1)
    return np.triu(H) + np.triu(H, 1).T, done / sum(leaf.size for leaf in leaves)


_COMPILED: dict[Any, Callable[..., jax.Array]] = {}


def _gradients(tree: Any, k: int) -> Callable[..., jax.Array]:
    """Gradients with respect to some rows of one parameter array, compiled once a shape."""
    if (tree, k) not in _COMPILED:

        def gradients(leaves: Any, part: jax.Array, start: jax.Array, X: jax.Array) -> jax.Array:
            def one(part: jax.Array, x: jax.Array) -> jax.Array:
                every = list(leaves)
                every[k] = jax.lax.dynamic_update_slice_in_dim(leaves[k], part, start, 0)
                return apply(jax.tree.unflatten(tree, every), x[None])[0]

            return jax.vmap(jax.jacrev(one), (None, 0))(part, X)

        _COMPILED[tree, k] = jax.jit(gradients)
    return _COMPILED[tree, k]


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = jax.block_until_ready(function())
    return time.process_time() - start, found


def by_peer(params: Any, X: jax.Array, H: np.ndarray) -> dict[str, Any]:
    """CPU seconds of neural-tangents' implementations, and how far its last one is from ours."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = {f"{name}{k}": np.asarray(x) for k, pair in enumerate(params) for name, x in zip("Wb", pair)}
        np.savez(f"{folder}/network.npz", X=np.asarray(X), **arrays)
        names = [name for name, most in IMPLEMENTATIONS.items() if len(X) <= most]
        job = {"empirical": f"{folder}/network.npz", "output": f"{folder}/H.npy", "implementations": names}
        found = peer_environment.run(job)
        if found is None or not found["results"]:
            return {}
        theirs = np.load(f"{folder}/H.npy").transpose(2, 3, 0, 1)
    seconds = {row["name"]: round(row["seconds"], 3) for row in found["results"]}
    return {"peer_seconds": seconds, "peer_difference": float(np.abs(theirs - H).max() / np.abs(H).max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="also run neural-tangents in its own environment")
    asked = parser.parse_args()
    count = asked.inputs
    params, X = network(), jax.random.normal(jax.random.key(1), (count, WIDTHS[0]))
    first, _ = cpu(lambda: empirical_ntk(apply, params, X))
    seconds, H = cpu(lambda: empirical_ntk(apply, params, X))
    again, _ = cpu(lambda: pseudo_ntk(apply, params, X))
    pseudo, P = cpu(lambda: pseudo_ntk(apply, params, X))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    peer = by_peer(params, X, np.asarray(H)) if asked.peer else {}
    cpu(lambda: plain(params, X[:2]))  # compiles most of it
    slow, (J, share) = cpu(lambda: plain(params, X, asked.every))
    if share < 1:
        H, (J, _) = empirical_ntk(apply, params, X[:8]), plain(params, X[:8])
        P = pseudo_ntk(apply, params, X[:8])
    flat = np.asarray(H).transpose(2, 0, 3, 1).reshape(J.shape)
    print(
        json.dumps(
            {
                "network": WIDTHS,
                "inputs": count,
                "structured_seconds": round(seconds, 3),
                "structured_first_call": round(first, 3),
                "structured_peak_GB": round(memory, 3),
                "plain_share": round(share, 4),
                "plain_seconds": round(slow / share, 1),
                "ratio": round(slow / share / seconds, 1),
                "difference": float(np.abs(flat - J).max() / np.abs(J).max()),
                **peer,
                "pseudo_first_call": round(again, 3),
                "pseudo_seconds": round(pseudo, 3),
                "pseudo_difference": float(np.abs(np.asarray(P) - np.asarray(H).sum(axis=(0, 1)) / WIDTHS[-1]).max()),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
