"""How trainable a depth is: the condition number of the NTK on a data set, layer by layer.

Gradient descent at its largest stable rate takes a number of steps that grows as kappa = h_max / h_min: where kappa is
too large for the steps one has, the network does not train (Xiao, Pennington, Schoenholz 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numeric.activations import Definition
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.evaluation.inputs import Values

Array = np.ndarray


@dataclass(frozen=True)
class Conditioning:
    """For networks that end after each of `depths` layers: h_max, h_min, kappa and the steps to train.

    `steps[k]` is how many steps of gradient descent at half the largest stable rate, eta = 1/h_max, bring the slowest
    mode down to 1/e of its error: kappa. Where the smallest eigenvalue is rounding, both are infinite.
    """

    depths: tuple[int, ...]
    largest: Array
    smallest: Array

    @property
    def kappa(self) -> Array:
        """The condition number."""
        floor = 1e-14 * self.largest
        safe = np.where(self.smallest > floor, self.smallest, 1.0)
        return np.where(self.smallest > floor, self.largest / safe, np.inf)

    @property
    def steps(self) -> Array:
        """Steps until the slowest mode has lost 1 - 1/e of its error."""
        with np.errstate(divide="ignore"):
            return np.where(self.kappa > 1, -1 / np.log1p(-1 / np.maximum(self.kappa, 1 + 1e-12)), 1.0)


def conditioning(
    activation: Definition,
    X: Any,
    depths: Sequence[int],
    *,
    C_b: Values | None = None,
    C_W: Values | None = None,
    lambda_b: float = 1.0,
    lambda_W: float = 1.0,
) -> Conditioning:
    """The NTK's conditioning on the inputs X at each depth, from one flow to the deepest of them.

    >>> found = conditioning("erf", [[1.0, 0.0], [0.6, 0.8]], [2, 20], C_b=0.5, C_W=0.5)  # far from criticality
    >>> bool(found.kappa[1] > 1000 * found.kappa[0])
    True
    """
    wanted = tuple(int(depth) for depth in depths)
    if not wanted or min(wanted) < 1:
        raise NumericError("depths are whole numbers from 1 on")
    f = flow(
        activation, X, max(wanted), None, C_b, C_W, lambda_b, lambda_W, tensors="Theta", layers=wanted, progress=False
    )
    spectra = [np.linalg.eigvalsh(np.asarray(f.layer(depth).Theta)) for depth in wanted]
    return Conditioning(wanted, np.array([h[-1] for h in spectra]), np.array([h[0] for h in spectra]))
