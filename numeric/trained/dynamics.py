"""One network in the course of training: the finite-width solution (infinity.79), (infinity.141), (infinity.154).

Given a network's outputs, NTK, dNTK and ddNTKs at initialization (measured by `numeric.empirical`, or drawn at
random), its output at the end of training, its NTK (infinity.117) and dNTK (infinity.102) in time, and the trained
NTK (infinity.155), all to first order in the differentials. Arrays carry output components first, then samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numeric.trained.algorithms import Algorithm
from numeric.trained.infinite import TrainingModes, training_modes
from numeric.trained.projectors import Projectors


@dataclass(frozen=True)
class NetworkTensors:
    """z[i,δ], H[i1,i2,δ1,δ2], dH[i0..i2,δ0..δ2], ddI[i0..i3,δ0..δ3], ddII[i1..i4,δ1..δ4] of one network."""

    z: np.ndarray
    H: np.ndarray
    dH: np.ndarray
    ddI: np.ndarray
    ddII: np.ndarray


@dataclass(frozen=True)
class TrainingDynamics:
    """What training on (train, y) does to one network. `mean_ntk` (N, N) sets the eigenbasis; y is (N_train, n_L)."""

    network: NetworkTensors
    mean_ntk: np.ndarray
    y: np.ndarray
    train: Sequence[int]
    algorithm: Algorithm

    @cached_property
    def _modes(self) -> TrainingModes:
        modes = training_modes(self.mean_ntk, self.train)
        self.algorithm.check(modes.h)
        return modes

    @cached_property
    def errors(self) -> np.ndarray:
        """The initial training errors z - y in the modes: (n_L, M)."""
        return (self.network.z[:, list(self.train)] - np.asarray(self.y).T) @ self._modes.U

    def projectors(self, t: float | None = None) -> Projectors:
        return Projectors(self.algorithm, self._modes.h, t)

    def free(self) -> np.ndarray:
        """(infinity.93): the end of training with the differentials switched off and this network's own NTK."""
        train, (outputs, _) = list(self.train), self.network.z.shape
        H = self.network.H.transpose(0, 2, 1, 3)[:, :, :, train]
        block = H[:, train].reshape(outputs * len(train), -1)
        weights = np.linalg.solve(block, (self.network.z[:, train] - np.asarray(self.y).T).reshape(-1))
        return self.network.z - H.reshape(*H.shape[:2], -1) @ weights

    def expanded_free(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`free` to orders 0, 1 and 2 in ΔH = H - mean: the first lines of (infinity.154), with the right signs."""
        train, U, h = list(self.train), self._modes.U, self._modes.h
        fluctuation = self.network.H - np.eye(len(self.network.z))[:, :, None, None] * self.mean_ntk
        leap = (self.mean_ntk[:, train] @ U / h) @ U.T
        weights = self.errors / h @ U.T
        zeroth = self.network.z - weights @ self.mean_ntk[:, train].T
        first = self._residual(np.einsum("ijda,ja->id", fluctuation[..., train], weights), leap)
        again = np.einsum("ijda,ja->id", fluctuation[..., train], weights)[:, train] @ U / h @ U.T
        second = self._residual(np.einsum("ijda,ja->id", fluctuation[..., train], again), leap)
        return zeroth, -first, second

    def force(self, t: float | None = None) -> np.ndarray:
        """The summed damping force η Σ F (infinity.131): what the differentials add to every input, (n_L, N)."""
        return sum(self.force_parts(t).values())  # type: ignore[return-value]

    def force_parts(self, t: float | None = None) -> dict[str, np.ndarray]:
        """`force` by projector."""
        Z, e = self.projectors(t), self.errors
        dH = self._in_modes(self.network.dH, 3)
        ddI = self._in_modes(self.network.ddI, 4)
        ddII = self._in_modes(self.network.ddII, 4)
        two = np.einsum("ja,kb->jkab", e, e)
        three = np.einsum("ja,kb,lc->jklabc", e, e, e)
        return {
            "Z_A": np.einsum("jikadb,ab,jkab->id", dH(1), Z.Z_A, two),
            "Z_B": np.einsum("ijkdab,ab,jkab->id", dH(0), Z.Z_B, two),
            "Z_IA": np.einsum("jikladbc,abc,jklabc->id", ddI(1), Z.Z_IA, three),
            "Z_IB": np.einsum("ijkldabc,abc,jklabc->id", ddI(0), Z.Z_IB, three),
            "Z_IIA": np.einsum("jkilabdc,abc,jklabc->id", ddII(2), Z.Z_IIA, three),
            "Z_IIB": np.einsum("ijkldabc,abc,jklabc->id", ddII(0), Z.Z_IIB, three),
        }

    def interacting(self) -> np.ndarray:
        """(infinity.130): the differentials' share of the output at the end of training."""
        return self._residual(self.force())

    def output(self) -> np.ndarray:
        """(infinity.141), (infinity.79), (infinity.154): the output at the end of training, (n_L, N)."""
        return self.free() + self.interacting()

    def ntk_change(self, t: float | None = None) -> np.ndarray:
        """The interaction NTK (infinity.117) after t steps (None: at the end), [i1,i2,δ1,δ2]."""
        Z, e = self.projectors(t), self.errors
        p, q = Z.p * e, np.einsum("ab,ja,kb->jkab", Z.q, e, e)
        U, net, train = self._modes.U, self.network, list(self.train)
        dH = net.dH[..., train] @ U
        ddI = np.einsum("...ab,am,bn->...mn", net.ddI[..., train, :][..., train], U, U, optimize=True)
        last = np.einsum("...ab,am,bn->...mn", net.ddII[..., train, :][..., train], U, U, optimize=True)
        mixed = np.einsum("...adb,am,bn->...mdn", net.ddII[..., train, :, :][..., train], U, U, optimize=True)
        change = -np.einsum("ijkdeb,kb->ijde", dH, p) + np.einsum("ijkldeab,ka,lb->ijde", ddI, p, p) / 2
        change = change + np.einsum("ikjldaeb,klab->ijde", mixed, q)
        change = change + change.transpose(1, 0, 3, 2)
        return change + np.einsum("ijkldeab,ka,lb->ijde", last, p, p)

    def dntk(self, t: float | None = None) -> np.ndarray:
        """The dynamical dNTK (infinity.102) after t steps (None: at the end)."""
        U, net, train = self._modes.U, self.network, list(self.train)
        p = self.projectors(t).p * self.errors
        first = np.einsum("ijklabcm,lm->ijkabc", net.ddI[..., train] @ U, p)
        second = np.einsum("ijklabcm,lm->ijkabc", net.ddII[..., train] @ U, p)
        return net.dH - first - second - second.transpose(0, 2, 1, 3, 5, 4)

    def trained_ntk(self) -> np.ndarray:
        """H♯ of (infinity.155)-(infinity.159): the kernel whose kernel prediction is this trained network.

        It is unique only up to terms that do not see the errors; here the last error of each term is stripped.
        """
        Z, e = self.projectors(), self.errors
        h, U, train = self._modes.h, self._modes.U, list(self.train)
        dH = self._in_modes(self.network.dH, 3)
        ddI = self._in_modes(self.network.ddI, 4)
        ddII = self._in_modes(self.network.ddII, 4)
        change = (
            np.einsum("jikadb,ab,ja->ikdb", dH(1), Z.Z_A, e)
            + np.einsum("ijkdab,ab,ja->ikdb", dH(0), Z.Z_B, e)
            + np.einsum("jikladbc,abc,ja,kb->ildc", ddI(1), Z.Z_IA, e, e, optimize=True)
            + np.einsum("ijkldabc,abc,ja,kb->ildc", ddI(0), Z.Z_IB, e, e, optimize=True)
            + np.einsum("jkilabdc,abc,ja,kb->ildc", ddII(2), Z.Z_IIA, e, e, optimize=True)
            + np.einsum("ijkldabc,abc,ja,kb->ildc", ddII(0), Z.Z_IIB, e, e, optimize=True)
        )
        return self.network.H[..., train] - change * h @ U.T

    def _residual(self, x: np.ndarray, leap: np.ndarray | None = None) -> np.ndarray:
        train, U, h = list(self.train), self._modes.U, self._modes.h
        leap = (self.mean_ntk[:, train] @ U / h) @ U.T if leap is None else leap
        return x - x[:, train] @ leap.T

    def _in_modes(self, array: np.ndarray, samples: int):
        """A function of the external slot: the array with its other sample axes in the modes."""

        def transformed(external: int) -> np.ndarray:
            result, first = array, array.ndim - samples
            for slot in range(samples):
                if slot != external:
                    picked = np.take(result, self.train, axis=first + slot)
                    result = np.moveaxis(np.tensordot(picked, self._modes.U, axes=(first + slot, 0)), -1, first + slot)
            return result

        return transformed
