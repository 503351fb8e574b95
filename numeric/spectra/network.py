"""K and Theta of an infinitely wide network as functions of the angle between two inputs of equal norm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numeric.activations import Definition
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.evaluation.inputs import Values

Array = np.ndarray

CHUNK = 16
"""Cosines that are sent through the flow together: it works on all pairs, of which one row is needed."""


def network_kernel(
    activation: Definition,
    depth: int,
    kernel: str = "Theta",
    *,
    C_b: Values | str | None = None,
    C_W: Values | str | None = None,
    lambda_b: Values | str | None = None,
    lambda_W: Values | str | None = None,
) -> Callable[[Array], Array]:
    """The function cosine -> K or Theta of the output layer, for inputs with |x|^2 = n_0 (corners of the hypercube).

    The values come from `numeric.flow` (pairs of inputs: about 1e-13 relative), the defaults too.

    >>> Theta = network_kernel("linear", 2, lambda_b=1, lambda_W=1)  # 1 + c + (1 + c)
    >>> [round(float(t), 12) for t in Theta(np.array([1.0, 0.0]))]
    [4.0, 2.0]
    """
    if kernel not in ("K", "Theta"):
        raise NumericError(f"the kernel of a network is 'K' or 'Theta', not {kernel!r}")

    def values(cosines: Array) -> Array:
        wanted, where = np.unique(np.asarray(cosines, float), return_inverse=True)
        if wanted.size and (wanted[0] < -1 - 1e-12 or wanted[-1] > 1 + 1e-12):
            raise NumericError("a cosine lies between -1 and 1")
        wanted = np.clip(wanted, -1, 1)
        padded = np.concatenate([wanted, np.ones(-len(wanted) % CHUNK)])
        found = []
        for start in range(0, len(padded), CHUNK):
            c = np.concatenate([[1.0], padded[start : start + CHUNK]])
            X = np.sqrt(2) * np.stack([c, np.sqrt(1 - c**2)], axis=1)
            f = flow(
                activation, X, depth, C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W,
                tensors=kernel, layers="last", progress=False,
            )  # fmt: skip
            found.append(np.asarray(getattr(f, kernel))[0, 1:])
        return np.concatenate(found)[: len(wanted)][where].reshape(np.shape(cosines))

    return values
