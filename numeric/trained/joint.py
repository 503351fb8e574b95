"""Joint statistics at initialization with all output components written out, for what is not a polynomial in them.

Given the initial outputs z, which are Gaussian at infinite width, the rest has means of order 1/n, E[ΔH|z] and
E[dH|z], and z's own covariance fluctuates. Arrays carry components first, then samples; all are coefficients of 1/n, n
the width of the last hidden layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numeric.errors import NumericError
from numeric.generated.training import CUMULANTS

LARGEST = 2_000_000
"""How many numbers a cumulant with all its indices may have."""
ROUNDING = 1e-7
"""Negative eigenvalues of a covariance beyond this share of the largest are not rounding."""


@dataclass(frozen=True)
class JointStatistics:
    """The output layer's cumulants for `outputs` components; `flow` has all tensors."""

    flow: Any
    outputs: int

    def __post_init__(self) -> None:
        size = (self.outputs * len(self.flow.K)) ** 4
        if size > LARGEST:
            raise NumericError(
                f"With {self.outputs} outputs and {len(self.flow.K)} inputs the joint statistics have {size} entries; "
                f"for losses other than MSE they may have {LARGEST}: take fewer test inputs at a time."
            )

    def cumulant(self, product: str) -> np.ndarray:
        """A joint cumulant of four slots, [i, j, k, l, a, b, c, d]."""
        total, same = np.zeros((1,) * 8), np.eye(self.outputs)
        for tensor, pairs, order in CUMULANTS[product]:
            deltas = ",".join("".join("ijkl"[slot] for slot in pair) for pair in pairs)
            samples = "".join("abcd"[slot] for slot in order)
            array = np.asarray(getattr(self.flow, tensor), dtype=float)
            total = total + np.einsum(f"{deltas},{samples}->ijklabcd", same, same, array)
        return total

    @cached_property
    def K(self) -> np.ndarray:
        return np.asarray(self.flow.K, dtype=float)

    @cached_property
    def root(self) -> np.ndarray:
        """R with K = R Rᵀ."""
        try:
            return np.linalg.cholesky(self.K)
        except np.linalg.LinAlgError:
            raise NumericError(
                "The kernel of all inputs is singular: leave out inputs that repeat others, or that a linear network "
                "cannot tell apart."
            ) from None

    @cached_property
    def inverse(self) -> np.ndarray:
        back = np.linalg.inv(self.root)
        return back.T @ back

    @cached_property
    def metric_directions(self) -> np.ndarray:
        """Square roots of the covariance V of the stochastic metric, [k, a, b]: given the hidden layers, outputs are
        Gaussian with the covariance K + G1/n + ΔG, the same for every component, and E[ΔG ΔG] = V/n."""
        size = len(self.K)
        return _roots(np.asarray(self.flow.V, dtype=float).reshape(size**2, size**2), "V").reshape(-1, size, size)

    def ntk_mean(self, z: np.ndarray) -> np.ndarray:
        """E[H - Θ | z] for rows of z: H1 and what E[z z ΔH] adds, [row, i, j, a, b]."""
        s, same = z @ self.inverse, np.eye(self.outputs)
        zzH = self.cumulant("z.z.H")
        flat = np.einsum("iiklabcd,ab->klcd", zzH, self.inverse)
        own = np.einsum("ijklabcd,ria,rjb->rklcd", zzH, s, s, optimize=True)
        return same[:, :, None, None] * np.asarray(self.flow.H1, dtype=float) + (own - flat) / 2

    def dntk_mean(self, z: np.ndarray) -> np.ndarray:
        """E[dH | z] for rows of z, [row, i, j, k, a, b, c]."""
        return np.einsum("ijklabcd,rld->rijkabc", self.cumulant("dH.z"), z @ self.inverse, optimize=True)

    @cached_property
    def ntk_directions(self) -> np.ndarray:
        """Square roots of the covariance of ΔH: Σ_k v_k v_k is E[ΔH ΔH]; [k, i, j, a, b]."""
        size = (self.outputs * len(self.K)) ** 2
        covariance = self.cumulant("H.H").transpose(0, 1, 4, 5, 2, 3, 6, 7).reshape(size, size)
        shape = (self.outputs, self.outputs, len(self.K), len(self.K))
        return _roots(covariance, "A and B").reshape(-1, *shape)


def _roots(covariance: np.ndarray, names: str) -> np.ndarray:
    """Rows r_k with Σ_k r_k r_k the covariance."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    if values[0] < -ROUNDING * max(values[-1], 1e-300):
        raise NumericError(
            f"A covariance has the eigenvalue {values[0]:.2g} beside {values[-1]:.2g}: the flow's {names} are not "
            "accurate enough."
        )
    kept = values > 1e-14 * max(values[-1], 0.0)
    return (vectors[:, kept] * np.sqrt(values[kept])).T
