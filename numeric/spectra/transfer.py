"""Kernel regression in the kernel's eigenbasis, for one training set (Simon et al. 2021, Lemma 1).

The learning transfer matrix T = Lambda Phi (Phi^T Lambda Phi + ridge)^{-1} Phi^T takes the target's coefficients to
the fit's. Its diagonal holds the D-learnabilities of the eigenmodes; its trace is the number of samples when there is
no ridge, whatever the kernel (the no-free-lunch theorem (review.11)).
"""

from __future__ import annotations

import numpy as np

from numeric.errors import NumericError
from numeric.spectra.eigensystem import Array, Eigensystem
from numeric.trained.modes import modes_of


def transfer_matrix(space: Eigensystem, train: Array, ridge: float = 0.0) -> Array:
    """T of (review.33), (review.148), shape (M, M): the fit of the function with coefficients v has coefficients T v.

    `train` lists the indices of the training points in `space.points`, without repetition.
    """
    Phi = space.eigenfunctions[:, _indices(space, train)]
    weighted = space.eigenvalues[:, None] * Phi
    return weighted @ _inverse(space, Phi, ridge) @ Phi.T


def mode_learnabilities(space: Eigensystem, train: Array, ridge: float = 0.0) -> Array:
    """L^(D)(phi_i) = T_ii of (review.35)-(review.37) for every mode, without the rest of the matrix."""
    Phi = space.eigenfunctions[:, _indices(space, train)]
    return space.eigenvalues * np.einsum("ia,ia->i", Phi, Phi @ _inverse(space, Phi, ridge))


def data_learnability(space: Eigensystem, train: Array, target: Array, ridge: float = 0.0) -> float:
    """L^(D)(f) = <f, f_hat> / <f, f> of (review.34), for a target given by its values on the M points."""
    v = space.coefficients(target)
    if not np.any(v):
        raise NumericError("the learnability of the zero function is not defined")
    return float(v @ transfer_matrix(space, train, ridge) @ v / (v @ v))


def competition(space: Eigensystem, train: Array, ridge: float = 0.0) -> Array:
    """dL^(D)(phi_j)/d lambda_i as a matrix [i, j], (review.39) and (review.40).

    The diagonal is not negative and the rest not positive: what one mode gains by a larger eigenvalue, all others
    lose.
    """
    Phi = space.eigenfunctions[:, _indices(space, train)]
    overlap = Phi @ _inverse(space, Phi, ridge) @ Phi.T
    return np.diag(np.diag(overlap)) - space.eigenvalues * overlap**2


def _indices(space: Eigensystem, train: Array) -> Array:
    indices = np.asarray(train, int)
    if indices.ndim != 1 or len(indices) == 0:
        raise NumericError("a training set is a list of at least one index")
    if len(np.unique(indices)) != len(indices) or indices.min() < 0 or indices.max() >= space.size:
        raise NumericError(f"training indices must be distinct and from 0 to {space.size - 1}")
    return indices


def _inverse(space: Eigensystem, Phi: Array, ridge: float) -> Array:
    """(Phi^T Lambda Phi + ridge)^{-1}, or a refusal that names what to do."""
    advice = (
        f"the kernel has {space.rank} nonzero modes for {Phi.shape[1]} training points, so use a ridge, or give the "
        "network biases so that it sees even and odd functions"
    )
    return modes_of((Phi.T * space.eigenvalues) @ Phi, ridge=ridge, advice=advice).inverse
