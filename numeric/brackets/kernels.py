"""Covariances that a plan is made for, looked at on the host: checks, the largest variance, correlations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from numeric.errors import NumericError

SMALL = 4096  # entries up to which NumPy is asked: nothing is compiled


@dataclass(frozen=True)
class Kernels:
    """A stack of covariances between rows and columns: `a` (S, R), `b` (S, C), `c` (S, R, C), `same` (R, C)."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    same: np.ndarray
    symmetric: bool
    largest: float | None = None  # |correlation| of different inputs, where it is known

    @classmethod
    def square(cls, K: np.ndarray) -> Kernels:
        """Of one kernel (N, N) or a stack (layers, N, N), checked."""
        K, rho = _checked(K)
        diagonal = np.diagonal(K, axis1=1, axis2=2)
        return cls(diagonal, diagonal, K, np.eye(K.shape[-1], dtype=bool), True, rho)

    @classmethod
    def alone(cls, variances: np.ndarray) -> Kernels:
        """Of single inputs, each by itself."""
        count = len(variances)
        none = np.zeros((count, 1), dtype=bool)
        return cls(variances[None], variances[None, :1], np.zeros((1, count, 1)), none, False)

    @property
    def variance(self) -> float:
        """The largest."""
        return float(max(self.a.max(), self.b.max()))

    @cached_property
    def rho(self) -> float:
        """The largest |correlation| of different inputs."""
        if self.largest is not None:
            return self.largest
        if self.c.size <= SMALL:
            return float(self.correlations.max())
        return float(_largest_correlation(*(jnp.asarray(x) for x in (self.a, self.b, self.c, self.same))))

    @cached_property
    def correlations(self) -> np.ndarray:
        """The largest |K_ab| / sqrt(K_aa K_bb) in the stack, (R, C); zero where both are one input."""
        product = np.sqrt(self.a)[:, :, None] * np.sqrt(self.b)[:, None, :]
        rho = np.abs(np.divide(self.c, product, out=np.zeros_like(product), where=product > 0))
        return np.where(self.same, 0.0, np.minimum(rho.max(axis=0), 1.0))

    def pairs(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the chosen pairs; each once, where rows and columns are the same inputs."""
        rows, columns = np.nonzero(np.triu(which) if self.symmetric else which)
        return rows, columns


def correlations(K: np.ndarray) -> np.ndarray:
    """The largest |K_ab| / sqrt(K_aa K_bb) in a stack of kernels, (N, N); zero on the diagonal."""
    return Kernels.square(K).correlations


def check_kernel(K: np.ndarray) -> np.ndarray:
    """A stack (layers, N, N) of finite symmetric kernels with a non-negative diagonal, or one clear sentence."""
    return _checked(K)[0]


def _checked(K: np.ndarray) -> tuple[np.ndarray, float]:
    """The stack, and the largest |correlation| of different inputs in it."""
    K = np.asarray(K, dtype=float)
    if K.ndim not in (2, 3) or K.shape[-1] != K.shape[-2] or K.shape[-1] == 0:
        raise NumericError(f"A kernel has shape (N, N), or (layers, N, N) for several at once, not {K.shape}.")
    K = K.reshape(-1, *K.shape[-2:])
    if K.size <= SMALL:
        with np.errstate(all="ignore"):  # what is not finite is said below
            size, least, asymmetry, excess, rho = (float(x) for x in _summary(np, K))
    else:
        size, least, asymmetry, excess, rho = (float(x) for x in _compiled_summary(jnp.asarray(K)))
    if not np.isfinite(size):
        raise NumericError("The kernel holds NaN or infinity.")
    if asymmetry > 1e-8 * size:
        raise NumericError("The kernel is not symmetric.")
    if least < 0:
        raise NumericError("The kernel's diagonal holds a negative variance.")
    if excess > 1e-6 * size:
        raise NumericError("The kernel holds a covariance larger than the variances allow: it is no covariance matrix.")
    return K, rho


def _summary(xp, K):
    """Of a stack of kernels: largest entry, smallest variance, asymmetry, largest violation of
    |K_ab| <= sqrt(K_aa K_bb), largest |correlation| of different inputs. One pass, since plans are made at every layer.
    """
    diagonal = xp.diagonal(K, axis1=1, axis2=2)
    scale = xp.sqrt(xp.maximum(diagonal, 0))
    size = xp.abs(K)
    asymmetry = xp.max(xp.abs(K - xp.swapaxes(K, 1, 2)))
    excess = xp.max(size - scale[:, :, None] * scale[:, None, :])
    inverse = xp.where(scale > 0, 1 / xp.where(scale > 0, scale, 1), 0)
    rho = xp.where(xp.eye(K.shape[-1], dtype=bool)[None], 0, size * inverse[:, :, None] * inverse[:, None, :])
    return xp.max(size), xp.min(diagonal), asymmetry, excess, xp.minimum(xp.max(rho), 1.0)


@jax.jit
def _compiled_summary(K: jax.Array) -> tuple[jax.Array, ...]:
    return _summary(jnp, K)


@jax.jit
def _largest_correlation(a: jax.Array, b: jax.Array, c: jax.Array, same: jax.Array) -> jax.Array:
    inverse = [jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0) for x in (a, b)]
    rho = jnp.abs(c) * (inverse[0][:, :, None] * inverse[1][:, None, :])
    return jnp.minimum(jnp.max(jnp.where(same[None], 0, rho)), 1.0)
