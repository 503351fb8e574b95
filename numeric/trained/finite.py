"""Finite width: the mean prediction (infinity.160)-(infinity.165) and the covariance (infinity.166) at order 1/n.

A trained network is its infinite-width limit plus contributions that are linear in the NTK's differentials and
quadratic in its fluctuation: the generated tables FIRST, MEAN, CROSS, SQUARE. Each is a force on the outputs with a
weight in time; training answers the force on its own samples, (infinity.121)-(infinity.124), and at the end has undone
all of it there (infinity.130). The covariance follows from the mean by Stein's lemma, E[z f(z)] = K E[f'(z)], and from
the correlations of z with ΔH (D, F) and dH (P, Q).

At the end of training nothing larger than the flow's own tensors is stored: projectors live in the eigenbasis of the
training NTK and their products with the data are turned back to sample space. At a time the tensors' training blocks
are turned to the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numeric.contributions import Contribution
from numeric.generated.training import CROSS, FIRST, MEAN, MOMENTS, NTK, SLOPES, SQUARE
from numeric.trained.infinite import KernelPrediction
from numeric.trained.projectors import Projectors
from numeric.trained.statistics import contract_answers, contract_one, contract_two

CHUNK = 15_000_000
"""How many numbers of moments are held at a time when the covariance goes through the test inputs."""


@dataclass(frozen=True)
class FiniteWidth:
    """The O(1/n) corrections on all inputs, times n (the width n_{L-1} of the last hidden layer).

    `flow` has the output layer's tensors G1, H1, A, B, D, F, P, Q, R, S, T, U; `kernel` holds y and the training set;
    `projectors` hold the time: None for the end of training, a number, or (for means) an array of them.
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

    @property
    def _many(self) -> bool:
        return isinstance(self.projectors.t, np.ndarray) and self.projectors.t.ndim > 0

    @property
    def ended(self) -> bool:
        return self.projectors.t is None

    @cached_property
    def mean_parts(self) -> dict[str, np.ndarray]:
        """n × (mean - infinite-width mean) by origin: arrays (n_L, N), or (times, n_L, N) for an array of times."""
        y, (moment,) = self.y, MOMENTS[FIRST.kinds]
        parts = {FIRST.part: self.first(moment(y, *self._constants))}
        for c in MEAN:
            moments = [moment(y, *self._constants) for moment in MOMENTS[c.kinds]]
            parts[c.part] = parts.get(c.part, 0.0) + self._placed(c, moments)
        return {name: value if self._many else value[0] for name, value in parts.items()}

    @property
    def _constants(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the generated moments take besides the targets: K, δ of modes, δ of components."""
        return self.K, np.eye(len(self.K)), np.eye(self.outputs)

    def first(self, moment: np.ndarray) -> np.ndarray:
        """H1's share for rows of moments over modes: (times, rows, N)."""
        H1 = np.asarray(self.flow.H1)
        force = _lead(self.projectors.force, 1)[:, None, :] * moment
        moved = np.einsum("trm,dm->trd", force, H1 @ self.U)
        if self.ended:
            return self._residual(moved)
        answers = _lead(self.projectors.answer(FIRST.weight), 2)
        inner = np.einsum("mn,tmn,rn->trm", self.U.T @ H1 @ self.U, answers, moment, optimize=True)
        return moved - inner @ self._response.T

    def _placed(self, c: Contribution, moments: Sequence[np.ndarray]) -> np.ndarray:
        """One contribution for moments[k] (rows, M, M, M), training's answer included: (times, rows, N)."""
        axes = tuple(k + 1 for k in range(3) if k not in c.modes)
        weight = np.expand_dims(_lead(self.projectors.weight(c.weight), len(c.modes)), axes)
        force = []
        for now in weight:
            force.append(contract_one(self._read, c, [self._to_samples(now * moment) for moment in moments]))
        if self.ended:
            return self._residual(np.stack(force))
        inner = []
        for mode, h in enumerate(self.projectors.h):
            answer = _lead(self.projectors.answer(c.weight, np.array([h])), len(c.modes) + 1)[:, 0]
            inner.append(contract_answers(self._read, c, moments, np.expand_dims(answer, axes), mode))
        return np.stack(force) - np.stack(inner, axis=-1) @ self._response.T

    @cached_property
    def _response(self) -> np.ndarray:
        """Θ of all inputs with the training modes: (N, M)."""
        return self.kernel.theta @ self.U

    @cached_property
    def _read(self) -> Callable[[str, str], np.ndarray]:
        """The flow's tensors, in the modes along some axes; small ones are kept."""
        kept: dict[tuple[str, str], np.ndarray] = {}

        def read(name: str, bases: str) -> np.ndarray:
            if (name, bases) not in kept:
                array = np.asarray(getattr(self.flow, name))
                for axis, basis in enumerate(bases):
                    if basis == "m":
                        array = np.moveaxis(np.tensordot(array, self.U, axes=(axis, 0)), -1, axis)
                if bases == "xxxx" or array.size > CHUNK:
                    return array
                kept[name, bases] = array
            return kept[name, bases]

        return read

    def _to_samples(self, tensor: np.ndarray) -> np.ndarray:
        for axis in range(1, tensor.ndim):
            tensor = np.moveaxis(np.tensordot(tensor, self.U, axes=(axis, 1)), -1, axis)
        return tensor

    def _residual(self, x: np.ndarray) -> np.ndarray:
        """[X] along the last axis."""
        return x - x[..., list(self.kernel.train)] @ self.kernel.leap.T

    @cached_property
    def evolution(self) -> np.ndarray:
        """How the initial outputs on all inputs move at infinite width, (N, N): 1 - Θ p."""
        moved = np.eye(len(self.kernel.theta))
        moved[:, self.kernel.train] -= self.kernel.response(self.projectors.p)
        return moved

    def covariance(self) -> np.ndarray:
        """n × (covariance - infinite-width covariance) on all inputs, at one time: (n_L, n_L, N, N)."""
        size = len(self.kernel.theta)
        cross = np.zeros((self.outputs, self.outputs, size, size))
        toward = self.evolution @ self.kernel.K @ self.U
        inputs = np.arange(size) if not self.ended else np.setdiff1d(np.arange(size), self.kernel.train)
        rows = max(1, CHUNK // (self.outputs**2 * size**3))
        for betas in (inputs[start : start + rows] for start in range(0, len(inputs), rows)):
            moved = np.einsum("oi,bm->boim", np.eye(self.outputs), toward[betas]).reshape(-1, *self.y.shape)
            slope = self._slope(moved)[0].reshape(len(betas), self.outputs, self.outputs, size)
            cross[:, :, betas] -= slope.transpose(1, 2, 0, 3)
        for c in CROSS:
            cross += np.einsum("xd,ijde->ijxe", self.evolution, self._crossed(c))
        own = self.evolution @ np.asarray(self.flow.G1) @ self.evolution.T
        return cross + cross.transpose(1, 0, 3, 2) + self._square() + np.eye(self.outputs)[:, :, None, None] * own

    def _slope(self, v: np.ndarray) -> np.ndarray:
        """The derivative of the mean when the targets move along v (rows, n_L, M): (1, rows × n_L, N)."""
        total = -self.first(v.reshape(-1, v.shape[-1]))
        for c in MEAN:
            slopes = [slope(v, self.y, *self._constants) for slope in SLOPES[c.kinds]]
            total = total + self._placed(c, [slope.reshape(-1, *slope.shape[2:]) for slope in slopes])
        return total

    def _crossed(self, c: Contribution) -> np.ndarray:
        """A contribution that takes a z from outside (d), training's answer on its own input (e): (n, n, N, N)."""
        (make,) = MOMENTS[c.kinds]
        moment, letters = make(self.y, *self._constants), "".join("ab"[k] for k in c.modes)
        weight = self.projectors.weight(c.weight)
        if self.ended:
            weighted = np.einsum(f"{letters},ijab->ijab", weight, moment)
            return self._residual(contract_two(self._read, c, self._to_samples_pair(weighted)))
        force = contract_two(self._read, c, moment, "xxmm", [(letters, weight)])
        answers = self.projectors.answer(c.weight)
        inner = contract_two(self._read, c, moment, "xmmm", [(f"e{letters}", answers)])
        return force - inner @ self._response.T

    def _square(self) -> np.ndarray:
        """The NTK's fluctuation with itself: (n, n, N, N)."""
        c, force = SQUARE, self.projectors.force
        moment = MOMENTS[c.kinds][0](self.y, *self._constants)
        if self.ended:
            weighted = np.einsum("a,b,ijab->ijab", force, force, moment)
            both = self._residual(contract_two(self._read, c, self._to_samples_pair(weighted)))
            return np.swapaxes(self._residual(np.swapaxes(both, -1, -2)), -1, -2)
        answers, R = self.projectors.answer(c.weight), self._response
        f, g = [("a", force), ("b", force)], [("da", answers), ("eb", answers)]
        plain = contract_two(self._read, c, moment, "xxmm", f)
        left = np.einsum("xd,ijde->ijxe", R, contract_two(self._read, c, moment, "mxmm", [g[0], f[1]]))
        right = contract_two(self._read, c, moment, "xmmm", [f[0], g[1]]) @ R.T
        both = np.einsum("xd,ijde->ijxe", R, contract_two(self._read, c, moment, "mmmm", g)) @ R.T
        return plain - left - right + both

    def _to_samples_pair(self, tensor: np.ndarray) -> np.ndarray:
        return np.einsum("am,ijmn,bn->ijab", self.U, tensor, self.U, optimize=True)

    def ntk_change(self) -> dict[str, np.ndarray]:
        """n × (E[H(t)] - E[H(0)]) by origin, at one time (or the end): arrays (n_L, n_L, N, N)."""
        Z = self.projectors
        parts: dict[str, np.ndarray] = {}
        weights = {"p": Z.p, "pp": np.multiply.outer(Z.p, Z.p), "q": Z.q}
        for c in NTK:
            (make,) = MOMENTS[c.kinds]
            letters = "".join("ab"[k] for k in c.modes)
            weighted = np.einsum(f"{letters},ijab->ijab", weights[c.weight], make(self.y, *self._constants))
            value = c.coefficient * contract_two(self._read, c, self._to_samples_pair(weighted))
            parts[c.part] = parts.get(c.part, 0.0) + value
        return parts


def _lead(x: np.ndarray, rank: int) -> np.ndarray:
    """With one axis of times in front of `rank` axes."""
    return x.reshape(-1, *x.shape[x.ndim - rank :])
