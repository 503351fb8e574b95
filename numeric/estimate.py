"""How far off a flow's numbers are: some inputs again, by other routes and with finer rules.

The recursions close on any subset of the inputs, so a flow of a few of them costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan
from numeric.core import Tensors
from numeric.errors import NumericError
from numeric.inputs import HYPERPARAMETERS, Parameters
from numeric.run import Run


def estimate(run: Run, X: jax.Array, output: Tensors, plans: Sequence[Plan]) -> dict[str, float]:
    """Compare with a finer, separately planned evaluation on a few inputs: the recursions close on any subset.

    The inputs are the one of largest and the one of smallest norm, and the two that are most alike, in reversed order,
    so that other pairs are conditioned on. Smooth activations with closed forms are compared with the generic engine.
    An estimate that cannot be made is infinite.
    """
    gram = np.asarray(X @ X.T, dtype=float)
    norm = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    rho = np.abs(gram) / np.outer(norm, norm) - 2 * np.eye(len(norm))
    alike = np.unravel_index(np.argmax(rho), rho.shape)
    chosen = sorted({int(np.argmax(norm)), int(np.argmin(norm)), *(int(i) for i in alike)}, reverse=True)
    own = Parameters(**{name: getattr(run.parameters, name).astype(jnp.float64) for name in HYPERPARAMETERS})
    finer = max(run.tolerance * 1e-2, 1e-14)
    other = Run(_by_quadrature(run.functions), run.steps, run.names, run.widths, own, finer)
    try:
        reference, _ = other.concrete(X[np.asarray(chosen)].astype(jnp.float64), {run.depth})
    except NumericError:
        return {name: float("inf") for name in run.names}
    errors = {}
    for name in run.names:
        full = np.asarray(output[name], dtype=float)
        part = full[np.ix_(*[chosen] * full.ndim)]
        largest = max(float(np.max(np.abs(full))), 1e-300)
        errors[name] = float(np.max(np.abs(part - np.asarray(reference[run.depth][name])))) / largest
    rounding = float(jnp.finfo(X.dtype).eps) * 2 * run.depth
    return {name: 3 * error + rounding for name, error in errors.items()}


@lru_cache(maxsize=64)
def _by_quadrature(functions: Functions) -> Functions:
    """The same activation without its closed forms, where it has some."""
    if functions.family in ("gaussian-erf", "exponential", "polynomial"):
        return replace(functions, family="mehler")
    return functions
