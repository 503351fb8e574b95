"""Finite width: the mean prediction (infinity.160)-(infinity.165) and the covariance (infinity.166) at order 1/n.

The end of training (infinity.154) is linear in the NTK's differentials and quadratic in its fluctuation. Its mean over
initializations needs only the flow's tensors; the covariance follows from it by Stein's lemma, E[z f(z)] = K E[f'(z)],
and the correlations of z with ΔH (D, F) and dH (P, Q). Nothing larger than the flow's own tensors is ever stored: the
projectors live in the eigenbasis of the training NTK, and products with the data are turned back to sample space.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numeric.trained.infinite import KernelPrediction
from numeric.trained.projectors import Projectors
from numeric.trained.statistics import contract_one, contract_two

DNTK_PLACEMENTS = (("Z_A", 1, (0, 2, 3)), ("Z_B", 0, (1, 2, 3)))
DDNTK_PLACEMENTS = (
    ("ddNTK-I", "ddI", "Z_IA", 1, (0, 2, 3)),
    ("ddNTK-I", "ddI", "Z_IB", 0, (1, 2, 3)),
    ("ddNTK-II", "ddII", "Z_IIA", 2, (0, 1, 3)),
    ("ddNTK-II", "ddII", "Z_IIB", 0, (1, 2, 3)),
)
"""Which slot of the differential is the input δ, and which slots belong to the projector's modes a, b(, c)."""
CHUNK = 15_000_000
"""How many numbers of moments are held at a time when the covariance goes through the test inputs."""


@dataclass(frozen=True)
class FiniteWidth:
    """The O(1/n) corrections on all inputs, times n (the width n_{L-1} of the last hidden layer).

    `flow` has the output layer's tensors G1, H1, A, B, D, F, P, Q, R, S, T, U; `kernel` holds y and the training set.
    """

    flow: Any
    kernel: KernelPrediction
    projectors: Projectors

    @cached_property
    def y(self) -> np.ndarray:
        """Targets in the modes, one row for each output."""
        return self.kernel.y.reshape(len(self.kernel.train), -1).T @ self.kernel.modes.U

    @cached_property
    def K(self) -> np.ndarray:
        """The kernel of the training outputs in the modes."""
        train, U = list(self.kernel.train), self.kernel.modes.U
        return U.T @ self.kernel.K[np.ix_(train, train)] @ U

    @cached_property
    def U(self) -> np.ndarray:
        """Modes as columns over all inputs (zero on test inputs), so that contractions need no copies of tensors."""
        U = np.zeros((len(self.kernel.theta), len(self.kernel.modes.h)))
        U[list(self.kernel.train)] = self.kernel.modes.U
        return U

    @property
    def outputs(self) -> int:
        return len(self.y)

    @cached_property
    def mean_parts(self) -> dict[str, np.ndarray]:
        """n × (mean - infinite-width mean) by origin: arrays (n_L, N)."""
        linear, cubic = self._linear(self.y), self._cubic([self._moment(k) for k in range(3)])
        return {name: self._residual(part) for name, part in (linear | cubic).items()}

    def _linear(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """The parts that are linear in the targets y (rows; in the modes), before taking the residual."""
        h, U = self.projectors.h, self.U
        hinv_y = y / h
        H1 = hinv_y @ (np.asarray(self.flow.H1) @ U).T
        fluctuation = np.einsum("am,bm,ic->iabc", U / h, U, hinv_y @ U.T, optimize=True)
        variance = -contract_one(
            self.flow, "ΔH ΔH", 0, (1, 2, 3), [self._weighted({2: fluctuation}, k) for k in range(3)]
        )
        dNTK = np.zeros_like(H1)
        for name, external, internal in DNTK_PLACEMENTS:
            Z = getattr(self.projectors, name)
            first = np.einsum(
                "am,cm,ibm->iabc", U, U, np.einsum("mn,in,bn->ibm", Z, y, U, optimize=True), optimize=True
            )
            second = np.einsum(
                "bn,cn,ian->iabc", U, U, np.einsum("mn,im,am->ian", Z, y, U, optimize=True), optimize=True
            )
            moments = [self._weighted({1: first, 0: second}, k) for k in range(3)]
            dNTK = dNTK - contract_one(self.flow, "dH z", external, internal, moments)
        return {"H1": H1, "NTK variance": variance, "dNTK": dNTK}

    def _weighted(self, terms: dict[int, np.ndarray], carrier: int) -> np.ndarray:
        """Sum of terms whose slot `single` holds y and whose other two slots are joined by a δ of components."""
        return sum((self.outputs if single == carrier else 1) * term for single, term in terms.items())  # type: ignore[return-value]

    def _cubic(self, moments: list[np.ndarray]) -> dict[str, np.ndarray]:
        """The ddNTK parts for given moments[k][i, a, b, c] of three errors, slot k carrying the component i."""
        parts: dict[str, np.ndarray] = {}
        for part, cumulant, name, external, internal in DDNTK_PLACEMENTS:
            Z = getattr(self.projectors, name)
            in_samples = [self._to_samples(Z * moment) for moment in moments]
            value = contract_one(self.flow, cumulant, external, internal, in_samples)
            parts[part] = parts.get(part, 0.0) + value
        return parts

    def _moment(self, carrier: int) -> np.ndarray:
        """Σ_j E[ε_i ε_j ε_j] over the errors of three modes, ε = z - y, with i in slot `carrier`: (n, M, M, M)."""
        y, K = self.y, self.K
        pair = np.einsum("jb,jc->bc", y, y) + self.outputs * K
        moment = np.einsum("ia,bc->iabc", y, pair)
        moment += np.einsum("ic,ab->iabc", y, K) + np.einsum("ib,ac->iabc", y, K)
        return -_carrier_first(moment, carrier)

    def _moment_derivative(self, carrier: int, output: int, v: np.ndarray) -> np.ndarray:
        """Derivatives of `_moment` when the targets of one output move along the rows of v: (rows × n, M, M, M)."""
        y, K, own = self.y, self.K, np.eye(self.outputs)[output]
        pair = np.einsum("jb,jc->bc", y, y) + self.outputs * K
        mixed = np.einsum("rb,c->rbc", v, y[output])
        moment = np.einsum("i,ra,bc->riabc", own, v, pair)
        moment += np.einsum("ia,rbc->riabc", y, mixed + mixed.transpose(0, 2, 1))
        moment += np.einsum("i,rc,ab->riabc", own, v, K) + np.einsum("i,rb,ac->riabc", own, v, K)
        return -_carrier_first(moment.reshape(-1, *moment.shape[2:]), carrier)

    def _to_samples(self, tensor: np.ndarray) -> np.ndarray:
        for axis in range(1, tensor.ndim):
            tensor = np.moveaxis(np.tensordot(tensor, self.U, axes=(axis, 1)), -1, axis)
        return tensor

    def _residual(self, part: np.ndarray) -> np.ndarray:
        return self.kernel.residual(part.T).T

    def covariance(self) -> np.ndarray:
        """n × (covariance - infinite-width covariance) on all inputs: (n_L, n_L, N, N)."""
        flow, U, size = self.flow, self.U, len(self.kernel.theta)
        cross = np.zeros((self.outputs, self.outputs, size, size))
        toward = self.kernel.residual(self.kernel.K) @ U
        test = [beta for beta in range(size) if beta not in set(self.kernel.train)]
        rows = max(1, CHUNK // (self.outputs * size**3))
        for betas in (test[start : start + rows] for start in range(0, len(test), rows)):
            linear = np.sum(list(self._linear(toward[betas]).values()), axis=0)
            for output in range(self.outputs):
                moments = [self._moment_derivative(k, output, toward[betas]) for k in range(3)]
                cubic = np.sum(list(self._cubic(moments).values()), axis=0)
                cross[output, output, betas] -= linear
                cross[output][:, betas] -= cubic.reshape(len(betas), self.outputs, size).transpose(1, 0, 2)
        inverse = np.einsum("am,bm->ab", U / self.projectors.h, U)
        cross -= self._left_residual(
            contract_two(flow, "z z ΔH", (0, 2), (1, 3), np.eye(self.outputs)[:, :, None, None] * inverse)
        )
        for name, external, internal in DNTK_PLACEMENTS:
            moment = self._to_samples_pair(getattr(self.projectors, name) * self._second_moment(1.0))
            both = contract_two(flow, "dH z", (3, external), internal[:2], moment)
            cross += self._left_residual(both)
        cross = self._right_residual(cross)
        squares = self._to_samples_pair(self._second_moment(1 / self.projectors.h))
        both = self._left_residual(contract_two(flow, "ΔH ΔH", (0, 2), (1, 3), squares))
        own = self.kernel.residual(self.kernel.residual(np.asarray(flow.G1)).T)
        return (
            cross
            + cross.transpose(1, 0, 3, 2)
            + self._right_residual(both)
            + np.eye(self.outputs)[:, :, None, None] * own
        )

    def _second_moment(self, scale: np.ndarray | float) -> np.ndarray:
        """E[ε_j ε_k] of two modes, each scaled: (n, n, M, M)."""
        moment = np.einsum("ja,kb->jkab", self.y, self.y) + np.eye(self.outputs)[:, :, None, None] * self.K
        weight = np.broadcast_to(scale, self.projectors.h.shape)
        return moment * weight[:, None] * weight[None, :]

    def _to_samples_pair(self, tensor: np.ndarray) -> np.ndarray:
        return np.einsum("am,ijmn,bn->ijab", self.U, tensor, self.U, optimize=True)

    def _left_residual(self, x: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.kernel.residual(np.moveaxis(x, 2, 0)), 0, 2)

    def _right_residual(self, x: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.kernel.residual(np.moveaxis(x, 3, 0)), 0, 3)


def _carrier_first(moment: np.ndarray, carrier: int) -> np.ndarray:
    """Axes so that the slot that holds the component i comes at position `carrier`, the other two in order."""
    return np.moveaxis(moment, 1, carrier + 1)
