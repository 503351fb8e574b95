"""Estimate every tensor of the theory from sampled networks, with standard errors.

With two outputs, choosing output components 0 and 1 for the four slots of a joint cumulant leaves one of the three
pairings of section 3, so each tensor is the mean (or covariance) of one product. Outputs, NTKs and their differentials
come from `numeric.empirical`; averages run over networks and over the exchange of the two outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.empirical import empirical_ddntk, empirical_dntk
from numeric.ensemble.networks import Networks
from numeric.errors import NumericError
from numeric.given import a_seed

NAMES = ("K", "Theta", "V", "D", "F", "A", "B", "P", "Q", "R", "S", "T", "U")
DIFFERENTIALS = {"P", "Q", "R", "S", "T", "U"}


@dataclass(frozen=True)
class TensorEstimate:
    """A tensor at the output layer (times n_{L-1}, except K and Theta) and its standard error, axes as in the flow."""

    value: np.ndarray
    error: np.ndarray


def _samples(name: str, q: dict[str, Any], a: int, b: int) -> tuple[Any, Any]:
    """The two factors whose covariance is the tensor, for one network; the second is None for a plain mean."""
    z, H = q["z"], q["H"]
    outer = jnp.multiply.outer
    if name == "K":
        return outer(z[a], z[a]), None
    if name == "Theta":
        return H[a, a], None
    if name in ("V", "D", "A"):
        first = outer(z[a], z[a]) if name in ("V", "D") else H[a, a]
        return first, outer(z[b], z[b]) if name == "V" else H[b, b]
    if name == "F":
        return jnp.einsum("a,b,cd->acbd", z[a], z[b], H[a, b]), None
    if name == "B":
        return jnp.einsum("ab,cd->acbd", H[a, b], H[a, b]), None
    if name == "P":
        return outer(q["dH"][a, b, b], z[a]), None
    if name == "Q":
        return outer(q["dH"][a, a, b], z[b]), None
    if name == "R":
        return q["ddI"][a, a, b, b], None
    second = q["ddII"]
    if name == "S":
        return second[a, a, b, b], None
    if name == "T":
        return second[a, b, a, b].transpose(0, 2, 3, 1), None
    return second[a, b, b, a].transpose(0, 3, 1, 2), None


def estimate_tensors(
    networks: Networks, X: Any, count: int, names: tuple[str, ...] = NAMES, seed: int = 0, batch: int = 64
) -> dict[str, TensorEstimate]:
    """Sample `count` networks with two outputs and estimate the named tensors on the inputs X (N, n_0).

    V, D and A are covariances: their standard error treats the sample means as exact, good for many networks.
    """
    if networks.widths[-1] != 2:
        raise NumericError("Tensors are estimated from networks with two outputs.")
    unknown = set(names) - set(NAMES)
    if unknown:
        raise NumericError(f"No estimator for {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}.")
    X = jnp.asarray(X, dtype=float)
    rates = [tuple(pair) for pair in networks.rates()]

    def apply(params: Any, inputs: jax.Array) -> jax.Array:
        return networks.output_one(params, inputs).T

    def quantities(params: Any) -> dict[str, jax.Array]:
        found = {"z": networks.output_one(params, X), "H": networks.ntk_one(params, X)}
        if {"P", "Q"} & set(names):
            found["dH"] = empirical_dntk(apply, params, X, rates)
        if {"R", "S", "T", "U"} & set(names):
            found["ddI"], found["ddII"] = empirical_ddntk(apply, params, X, rates)
        return found

    @jax.jit
    def measure(key: jax.Array) -> Any:
        params = networks.sample(key, batch)

        def both(one: Any) -> dict[str, list]:
            q = quantities(one)
            return {name: [_samples(name, q, a, b) for a, b in ((0, 1), (1, 0))] for name in names}

        return jax.vmap(both)(params) if not DIFFERENTIALS & set(names) else jax.lax.map(both, params)

    root = jax.random.key(a_seed(seed))
    rounds = -(-count // batch)
    runs = [jax.device_get(measure(jax.random.fold_in(root, k))) for k in range(rounds)]
    width = networks.widths[-2]
    return {name: _combine([run[name] for run in runs], 1.0 if name in ("K", "Theta") else width) for name in names}


def _combine(runs: list[list[tuple[np.ndarray, np.ndarray | None]]], scale: float) -> TensorEstimate:
    values = []
    for order in range(2):
        kept = [k for k in range(2) if runs[0][order][k] is not None]
        factors = [np.concatenate([run[order][k] for run in runs]) for k in kept]
        if len(factors) == 1:
            values.append(factors[0])
        else:
            first, second = (x - x.mean(axis=0) for x in factors)
            values.append(np.einsum("sab,scd->sabcd", first, second) * len(first) / (len(first) - 1))
    samples = (values[0] + values[1]) / 2
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return TensorEstimate(scale * samples.mean(axis=0), scale * error)
