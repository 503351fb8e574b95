"""Training whose steps do not share the modes of the NTK, such as a schedule of batches: the theory step by step.

The same generated weights as for other algorithms, in another calculus: a weight is a linear map from initial errors to
displacements, on samples instead of modes, and all of them advance together. A weight of three samples holds
N_train^6 numbers, so that this is for small training sets. A ridge takes back a share of every displacement in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from numeric.contributions import Contribution
from numeric.errors import NumericError
from numeric.generated.training import (
    CROSS,
    CUMULANTS,
    FIRST,
    MEAN,
    MOMENTS,
    NTK,
    SLOPES,
    SQUARE,
    WEIGHTS,
    weight_p,
    weight_q,
)
from numeric.trained.algorithms import Algorithm, DivergentTraining
from numeric.trained.infinite import KernelPrediction
from numeric.trained.signals import Times
from numeric.trained.statistics import contract_one, contract_two

Forces: TypeAlias = dict[str, np.ndarray]
"""What moves outputs, by name; the last axis is the input."""
Asked = TypeVar("Asked")

LARGEST = 8
"""How many training inputs a finite-width prediction may have here."""
ENDED, LONGEST = 1e-12, 20_000
"""Training has ended when no error is larger than this share of what it was; after so many steps it is given up."""


@dataclass
class Node:
    """A weight at the present step: out-samples by the letters of `labels`, then in-samples."""

    labels: str
    value: np.ndarray
    root: str
    branches: tuple[Node, ...]
    responds: bool

    def letters(self) -> str:
        return self.labels + self.labels.upper()


@dataclass(frozen=True)
class Product:
    """coefficient × Π nodes."""

    coefficient: float
    factors: tuple[Node, ...]

    @property
    def labels(self) -> str:
        return "".join(sorted("".join(node.labels for node in self.factors)))

    def value(self) -> np.ndarray:
        inputs = ",".join(node.letters() for node in self.factors)
        result = self.labels + self.labels.upper()
        return self.coefficient * np.einsum(f"{inputs}->{result}", *(node.value for node in self.factors))


class Steps:
    """The calculus of weights as maps that advance step by step; labels are the letters a, b, c."""

    def __init__(self, H: np.ndarray, algorithm: Algorithm, ridge: float = 0.0):
        if algorithm.memory_size or algorithm.continuous:
            raise NumericError("Step by step there is descent without memory only.")
        self.H, self.algorithm, self.ridge, self.now = H, algorithm, ridge, 0
        self.masks = algorithm.masks(len(H))
        self.nodes: list[Node] = []
        self.position = weight_p(self, "a")

    def accumulate(self, root: str, *branches: Node) -> Node:
        return self._node(root, branches, False)

    def respond(self, mode: str, force: Node) -> Node:
        return self._node(mode, (force,), True)

    def product(self, coefficient: float, *factors: Node) -> Product:
        return Product(coefficient, factors)

    def _node(self, root: str, branches: tuple[Node, ...], responds: bool) -> Node:
        labels = root + "".join(branch.labels for branch in branches)
        self.nodes.append(Node(labels, np.zeros((len(self.H),) * (2 * len(labels))), root, branches, responds))
        return self.nodes[-1]

    @property
    def rates(self) -> np.ndarray:
        """What the gradients of the samples are multiplied with in the present step."""
        seen = np.ones(len(self.H)) if self.masks is None else self.masks[self.now % len(self.masks)]
        return np.diag(self.algorithm.rule(self.now).direct * seen)

    @property
    def decay(self) -> float:
        """The share of a displacement that the penalty takes back in the present step."""
        return self.algorithm.rule(self.now).direct * self.ridge

    @property
    def errors(self) -> np.ndarray:
        """The training errors as a map of the initial ones."""
        return np.eye(len(self.H)) - self.H @ self.position.value

    def advance(self) -> None:
        """One step of all weights."""
        rates, errors = self.rates, self.errors
        moved = []
        for node in self.nodes:
            inputs = ",".join([node.root + node.root.upper(), *(branch.letters() for branch in node.branches)])
            first = rates if node.responds else rates @ errors
            move = np.einsum(f"{inputs}->{node.letters()}", first, *(branch.value for branch in node.branches))
            if node.responds:
                move = move - np.tensordot(rates @ self.H, node.value, axes=(1, 0))
            moved.append(move - self.decay * node.value)
        for node, move in zip(self.nodes, moved):
            node.value = node.value + move
        self.now += 1


@dataclass(frozen=True)
class StepwiseFinite:
    """The O(1/n) corrections on all inputs, times n, as `numeric.trained.finite.FiniteWidth` has them.

    `time` is a number of steps, an array of them (one run serves all, answers have a leading axis), or None: the end.
    """

    flow: Any
    kernel: KernelPrediction
    algorithm: Algorithm
    time: Times | None

    @cached_property
    def _train(self) -> list[int]:
        if len(self.kernel.train) > LARGEST:
            raise NumericError(
                f"At finite width a schedule of batches is for {LARGEST} training inputs at most, "
                f"not {len(self.kernel.train)}."
            )
        return list(self.kernel.train)

    @cached_property
    def _times(self) -> list[int]:
        if self.time is None:
            return [self._length(self._block)]
        return [int(t) for t in np.atleast_1d(self.time)]

    @property
    def _block(self) -> np.ndarray:
        return self.kernel.theta[np.ix_(self._train, self._train)]

    def _steps(self) -> tuple[Steps, list[tuple[Contribution, Product]]]:
        """The weights of the mean before the first step."""
        steps = Steps(self._block, self.algorithm, self.kernel.ridge)
        return steps, [(c, WEIGHTS[c.weight](steps, *"abc"[: len(c.modes)])) for c in (FIRST, *MEAN)]

    def _along(self, steps: Steps, forces: Callable[[], Forces], look: Callable[[Forces], Asked]) -> list[Asked]:
        """What `look` makes at each of the times of the forces on all inputs (the last axis) with training's answers.

        A force on the training samples is undone by training, (infinity.121)-(infinity.124): the displacements that it
        makes for this are followed beside the weights.
        """
        train, response = self._train, self.kernel.theta[:, self._train].T
        answered: Forces = {}
        found: dict[int, Asked] = {}
        while True:
            force = forces()
            if steps.now in self._times:
                total = {name: f - answered[name] @ response if answered else f for name, f in force.items()}
                found[steps.now] = look(total)
            if steps.now >= max(self._times):
                return [found[t] for t in self._times]
            for name, f in force.items():
                before = answered.get(name, np.zeros_like(f[..., train]))
                answer = (f[..., train] - before @ steps.H) @ steps.rates
                answered[name] = before + answer - steps.decay * before
            steps.advance()

    @cached_property
    def _run(self) -> list[tuple[Forces, Forces]]:
        """Mean parts (n_L, N) and the NTK's change by origin, at the times."""
        steps, placed = self._steps()
        q = weight_q(steps, "a", "b")
        moments = {c: [moment(self.y, *self._constants) for moment in MOMENTS[c.kinds]] for c, _ in placed}

        def forces() -> Forces:
            force: Forces = {}
            for c, weight in placed:
                force[c.part] = force.get(c.part, 0.0) + self._force(c, weight, moments[c])
            return force

        def look(parts: Forces) -> tuple[Forces, Forces]:
            p = steps.position.value
            return parts, self._ntk({"p": p, "pp": np.einsum("aA,bB->abAB", p, p), "q": q.value})

        return self._along(steps, forces, look)

    def _at_times(self, values: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(values) if isinstance(self.time, np.ndarray) else values[0]

    def _length(self, H: np.ndarray) -> int:
        """How many steps the end takes: half as many again as the errors need to vanish."""
        steps = Steps(H, self.algorithm)
        while not (left := float(np.abs(steps.errors).max())) <= ENDED:
            if not left < 1e8 or steps.now > LONGEST:
                raise DivergentTraining(
                    f"{self.algorithm} has not converged after {steps.now} steps: take a smaller eta or a time."
                )
            steps.advance()
        return steps.now + steps.now // 2

    @property
    def mean_parts(self) -> dict[str, np.ndarray]:
        """n × (mean - infinite-width mean) by origin: arrays (n_L, N)."""
        return {name: self._at_times([parts[name] for parts, _ in self._run]) for name in self._run[0][0]}

    def ntk_change(self) -> dict[str, np.ndarray]:
        """n × (E[H(t)] - E[H(0)]) by origin: arrays (n_L, n_L, N, N)."""
        return {name: self._at_times([change[name] for _, change in self._run]) for name in self._run[0][1]}

    def covariance(self) -> np.ndarray:
        """n × (covariance - infinite-width covariance) on all inputs: (n_L, n_L, N, N).

        As in `FiniteWidth.covariance`: the mean's derivative along the targets (Stein's lemma), the correlations of z
        with ΔH and dH, the NTK's fluctuation with itself, and G1. What a unit of ΔH does is followed as a force too.
        """
        steps, placed = self._steps()
        size, count, outputs = len(self.kernel.theta), len(self._train), self.outputs
        unit = np.einsum("ma,oi->moia", np.eye(count), np.eye(outputs)).reshape(-1, outputs, count)
        slopes = {FIRST: [-unit.reshape(-1, count)]}
        for c in MEAN:
            made = [slope(unit, self.y, *self._constants) for slope in SLOPES[c.kinds]]
            slopes[c] = [slope.reshape(-1, *slope.shape[2:]) for slope in made]
        crossed = {f"cross {k}": (c, WEIGHTS[c.weight](steps, *"ab"[: len(c.modes)])) for k, c in enumerate(CROSS)}
        kick = WEIGHTS[SQUARE.weight](steps, "a")

        def forces() -> Forces:
            found = {name: self._crossed(c, weight) for name, (c, weight) in crossed.items()}
            found["slope"] = np.sum([self._force(c, weight, slopes[c]) for c, weight in placed], axis=0)
            found["kick"] = np.einsum("aA,dx->daAx", kick.value(), np.eye(size))
            return found

        def look(found: Forces) -> np.ndarray:
            moved = np.eye(size)
            moved[:, self._train] -= self.kernel.theta[:, self._train] @ steps.position.value
            toward = moved @ self.kernel.K[:, self._train]
            cross = -np.einsum("bm,mijx->ijbx", toward, found["slope"].reshape(count, outputs, outputs, size))
            for name in crossed:
                cross += np.einsum("xd,ijde->ijxe", moved, found[name])
            own = np.eye(outputs)[:, :, None, None] * (moved @ np.asarray(self.flow.G1) @ moved.T)
            return cross + cross.transpose(1, 0, 3, 2) + self._square(found["kick"]) + own

        return self._at_times(self._along(steps, forces, look))

    def _crossed(self, c: Contribution, weight: Product) -> np.ndarray:
        """A contribution that takes a z from outside, (n_L, n_L, N, N)."""
        (make,) = MOMENTS[c.kinds]
        return contract_two(self._read, c, self._spread(_turned(c, weight.value(), make(self.y, *self._constants)), 2))

    def _square(self, kick: np.ndarray) -> np.ndarray:
        """The NTK's fluctuation with itself; `kick` is what a unit of ΔH_da does to x, by the initial error A."""
        moment = MOMENTS[SQUARE.kinds][0](self.y, *self._constants)
        slots, total = (*SQUARE.external, *SQUARE.internal), np.zeros(())
        for tensor, pairs, order in CUMULANTS[SQUARE.product]:
            array = self._read(tensor, "xxxx")
            for axis, slot in enumerate(order):
                array = np.take(array, self._train, axis) if slot in SQUARE.internal else array
            samples = "".join("deab"[slots.index(slot)] for slot in order)
            deltas = ["".join("ijkl"[slots.index(slot)] for slot in pair) for pair in pairs]
            spec = f"{','.join(deltas)},{samples},daAx,ebBy,klAB->ijxy"
            same = np.eye(self.outputs)
            total = total + np.einsum(spec, same, same, array, kick, kick, moment, optimize=True)
        return total

    @property
    def outputs(self) -> int:
        return len(self.y)

    @cached_property
    def y(self) -> np.ndarray:
        return self.kernel.y.reshape(len(self.kernel.train), -1).T

    @cached_property
    def _constants(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        K = self.kernel.K[np.ix_(self.kernel.train, self.kernel.train)]
        return K, np.eye(len(K)), np.eye(self.outputs)

    def _read(self, name: str, bases: str) -> np.ndarray:
        return np.asarray(getattr(self.flow, name))

    def _spread(self, samples: np.ndarray, first: int) -> np.ndarray:
        """Training samples placed among all inputs, zeros elsewhere."""
        full = np.zeros((*samples.shape[:first], *[len(self.kernel.theta)] * (samples.ndim - first)))
        places = [list(range(size)) for size in samples.shape[:first]]
        full[np.ix_(*places, *[list(self.kernel.train)] * (samples.ndim - first))] = samples
        return full

    def _force(self, c: Contribution, weight: Product, moments: list[np.ndarray]) -> np.ndarray:
        """One contribution's push on all inputs, (rows, N)."""
        value = weight.value()
        turned = [self._spread(_turned(c, value, moment), 1) for moment in moments]
        if c is FIRST:
            return turned[0] @ np.asarray(self.flow.H1)
        return contract_one(self._read, c, turned)

    def _ntk(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts: dict[str, np.ndarray] = {}
        for c in NTK:
            (make,) = MOMENTS[c.kinds]
            value = self._spread(_turned(c, weights[c.weight], make(self.y, *self._constants)), 2)
            parts[c.part] = parts.get(c.part, 0.0) + c.coefficient * contract_two(self._read, c, value)
        return parts


def _turned(c: Contribution, weight: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """A moment of initial errors after the weight, a map of the samples at the contribution's modes."""
    count = len(c.internal)
    letters = "abc"[: len(c.modes)]
    inside = "".join(letters[c.modes.index(k)].upper() if k in c.modes else "uvw"[k] for k in range(count))
    outside = "".join(letters[c.modes.index(k)] if k in c.modes else "uvw"[k] for k in range(count))
    return np.einsum(f"{letters}{letters.upper()},...{inside}->...{outside}", weight, moment, optimize=True)
