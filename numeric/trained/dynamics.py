"""One network in the course of training: the solution (infinity.79), (infinity.141), (infinity.154), at any time.

Given a network's outputs, NTK, dNTK and ddNTKs at initialization (measured by `numeric.empirical`, or drawn at
random), its outputs (infinity.91), (infinity.121)-(infinity.124), its NTK (infinity.117) and dNTK (infinity.102) after
any number of steps, and the trained NTK (infinity.155), all to first order in the differentials. The equations are
generated (`numeric.generated.training`). Arrays carry output components first, then samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from numeric.errors import NumericError
from numeric.generated.training import WEIGHTS, dntk_change, ntk_change, output_change, stripped_change
from numeric.trained.algorithms import Algorithm
from numeric.trained.batched import BatchedNetwork
from numeric.trained.modes import TrainingModes, modes_of, training_modes
from numeric.trained.projectors import Projectors
from numeric.trained.signals import Signal


@dataclass(frozen=True)
class NetworkTensors:
    """z[i,δ], H[i1,i2,δ1,δ2], dH[i0..i2,δ0..δ2], ddI[i0..i3,δ0..δ3], ddII[i1..i4,δ1..δ4] of one network."""

    z: np.ndarray
    H: np.ndarray
    dH: np.ndarray
    ddI: np.ndarray
    ddII: np.ndarray


@dataclass(frozen=True)
class InModes:
    """A network's tensors with training samples turned to modes, all but the external slots: `dH(1)`."""

    network: NetworkTensors
    U: np.ndarray
    """Modes as columns over all inputs."""
    kept: dict[tuple[str, frozenset[int]], np.ndarray] = field(default_factory=dict)

    def _turned(self, name: str, external: tuple[int, ...]) -> np.ndarray:
        key = name, frozenset(external)
        if key not in self.kept:
            array = getattr(self.network, name)
            first = array.ndim // 2
            for slot in range(first):
                if slot not in external:
                    array = np.moveaxis(np.tensordot(array, self.U, axes=(first + slot, 0)), -1, first + slot)
            self.kept[key] = array
        return self.kept[key]

    def H(self, *external: int) -> np.ndarray:
        return self._turned("H", external)

    def dH(self, *external: int) -> np.ndarray:
        return self._turned("dH", external)

    def ddI(self, *external: int) -> np.ndarray:
        return self._turned("ddI", external)

    def ddII(self, *external: int) -> np.ndarray:
        return self._turned("ddII", external)


@dataclass(frozen=True)
class TrainingDynamics:
    """What training on (train, y) does to one network. `mean_ntk` (N, N) sets the eigenbasis; y is (N_train, n_L).

    Times are numbers of steps (times of a flow); None is the end of training.
    """

    network: NetworkTensors
    mean_ntk: np.ndarray
    y: np.ndarray
    train: Sequence[int]
    algorithm: Algorithm

    @cached_property
    def _modes(self) -> TrainingModes:
        modes = training_modes(self.mean_ntk, self.train)
        if self._batches is None:
            self.algorithm.check(modes.h)
        return modes

    @cached_property
    def _tensors(self) -> InModes:
        U = np.zeros((len(self.mean_ntk), len(self._modes.h)))
        U[list(self.train)] = self._modes.U
        return InModes(self.network, U)

    @cached_property
    def errors(self) -> np.ndarray:
        """The initial training errors z - y in the modes: (n_L, M)."""
        return (self.network.z[:, list(self.train)] - np.asarray(self.y).T) @ self._modes.U

    @cached_property
    def _batches(self) -> BatchedNetwork | None:
        """The network step by step, where the steps see batches."""
        if self.algorithm.masks(len(self.train)) is None:
            return None
        return BatchedNetwork(self.network, self.mean_ntk, np.asarray(self.y), tuple(self.train), self.algorithm)

    def projectors(self, t: float | None = None) -> Projectors:
        """Those of the algorithm in the modes of the mean NTK; a schedule of batches mixes modes and has none."""
        if self._batches is not None:
            raise NumericError("A schedule of batches mixes the modes of the NTK: it has no projectors of them.")
        return Projectors(self.algorithm, self._modes.h, t)

    def free(self, t: float | None = None) -> np.ndarray:
        """(infinity.91), (infinity.93): the outputs with the differentials switched off and this network's own NTK."""
        train = list(self.train)
        H = self.network.H.transpose(0, 2, 1, 3)[:, :, :, train]
        errors = (self.network.z[:, train] - np.asarray(self.y).T).ravel()
        block = H[:, train].reshape(len(errors), len(errors))
        if self._batches is not None:
            return np.asarray(self._batches.frozen(t, self.network.H))
        ridge = self.algorithm.ridge * np.eye(len(block))
        piled = np.linalg.solve(block + ridge, errors) if t is None else self._piled_up(block, errors).at(t)
        return self.network.z - H.reshape(*H.shape[:2], len(errors)) @ piled

    def _piled_up(self, block: np.ndarray, errors: np.ndarray) -> Signal:
        """The displacement of every training sample and component with the NTK `block`: a signal of vectors."""
        algorithm, size, memory = self.algorithm, len(errors), self.algorithm.memory_size
        outputs = len(self.network.z)
        if algorithm.own_ntk:
            own = modes_of(block)
            newton = algorithm.newton(own)
        else:
            newton = np.kron(np.eye(outputs), algorithm.newton(self._modes))

        def generator(step: int) -> np.ndarray:
            rule, one = algorithm.rule(step), np.eye(size)
            moves = np.concatenate([rule.direct * newton, *(rate * one for rate in rule.output)], axis=1)
            inner = np.kron(rule.decay, one) if memory else np.zeros((0, 0))
            fed = np.concatenate([-np.kron(rule.input[:, None], newton), inner], axis=1)
            n = np.zeros(((memory + 2) * size,) * 2)
            n[:size, : (memory + 1) * size] = block @ moves
            n[size : (memory + 1) * size, : (memory + 1) * size] = fed
            n[(memory + 1) * size :, : (memory + 1) * size] = -moves
            return n

        initial = np.concatenate([errors, np.zeros((memory + 1) * size)])
        readout = np.eye((memory + 2) * size)[:, (memory + 1) * size :]
        return Signal(algorithm, initial, readout, generator)

    def expanded_free(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`free` at the end to orders 0, 1 and 2 in ΔH = H - mean: the first lines of (infinity.154), signs right."""
        Z, U = self.projectors(), self._tensors.U
        mean = np.eye(len(self.network.z))[:, :, None, None] * self.mean_ntk
        kicks = (self.network.H - mean) @ U
        zeroth = self.network.z + self.errors * Z.force @ (self.mean_ntk @ U).T
        first = np.einsum("ijda,a,ja->id", kicks, Z.force, self.errors)
        inner = np.einsum("da,jkdb,ab,kb->ja", U, kicks, Z.response, self.errors, optimize=True)
        return zeroth, self._residual(first), self._residual(np.einsum("ijda,ja->id", kicks, inner))

    def force(self, t: float | None = None) -> np.ndarray:
        """The summed damping force η Σ F (infinity.131): what the differentials add to every input, (n_L, N)."""
        return np.sum(list(self.force_parts(t).values()), axis=0)

    def force_parts(self, t: float | None = None) -> dict[str, np.ndarray]:
        """`force` by projector."""
        return output_change(self._tensors, self.projectors(t), self.errors)

    def interacting(self, t: float | None = None) -> np.ndarray:
        """(infinity.130), (infinity.124): the differentials' share of the outputs, training's answer included."""
        if self._batches is not None:
            return np.asarray(self._batches.first_order(t).z)
        if t is None:
            return self._residual(self.force())
        Z, at_training = self.projectors(t), self._on_modes
        answered = np.zeros_like(self.errors)
        for m, h in enumerate(self._modes.h):
            named = {name: Z.answer(name, np.array([h]))[0] for name in WEIGHTS if name.startswith("Z_")}
            answers = SimpleNamespace(**named)  # under the projectors' names
            forces = output_change(at_training, answers, self.errors)
            answered[:, m] = np.sum(list(forces.values()), axis=0)[:, m]
        return self.force(t) - answered @ (self.mean_ntk @ self._tensors.U).T

    @cached_property
    def _on_modes(self) -> InModes:
        """The tensors with every slot in the modes, external ones too."""
        turned = {}
        for name in ("H", "dH", "ddI", "ddII"):
            turned[name] = self._tensors._turned(name, ())
        return InModes(NetworkTensors(self.errors, **turned), np.eye(len(self._modes.h)))

    def output(self, t: float | None = None) -> np.ndarray:
        """(infinity.141), (infinity.79), (infinity.154): the outputs, (n_L, N)."""
        return self.free(t) + self.interacting(t)

    def ntk_change(self, t: float | None = None) -> np.ndarray:
        """The interaction NTK (infinity.117), [i1,i2,δ1,δ2]."""
        if self._batches is not None:
            return np.asarray(self._batches.first_order(t).H)
        return ntk_change(self._tensors, self.projectors(t), self.errors)

    def ntk(self, t: float | None = None) -> np.ndarray:
        """H(t), [i1,i2,δ1,δ2]."""
        return self.network.H + self.ntk_change(t)

    def dntk(self, t: float | None = None) -> np.ndarray:
        """The dynamical dNTK (infinity.102)."""
        if self._batches is not None:
            return np.asarray(self._batches.first_order(t).dH)
        return self.network.dH + dntk_change(self._tensors, self.projectors(t), self.errors)

    def trained_ntk(self) -> np.ndarray:
        """H♯ of (infinity.155)-(infinity.159): the kernel whose kernel prediction is this trained network.

        It is unique only up to terms that do not see the errors; here the last error of each term is stripped.
        """
        if self.algorithm.ridge:
            raise NumericError("With a ridge a network does not end on its targets, and has no trained NTK.")
        change = stripped_change(self._tensors, self.projectors(), self.errors)
        return self.network.H[..., list(self.train)] - change * self._modes.h @ self._modes.U.T

    def _residual(self, x: np.ndarray) -> np.ndarray:
        train = list(self.train)
        answers = self._modes.function(1 / (self._modes.h + self.algorithm.ridge))
        return x - x[:, train] @ (self.mean_ntk[:, train] @ answers).T
