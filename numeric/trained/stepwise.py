"""Training whose steps do not share the modes of the NTK, such as a schedule of batches: the theory step by step.

The same generated weights as for other algorithms, in another calculus: a weight is a linear map from initial errors to
displacements, on samples instead of modes, and all of them advance together. A weight of three samples holds
N_train^6 numbers, so that this is for small training sets. The mean and the NTK's change are to order 1/n; the
covariance is that of infinite width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from numeric.contributions import Contribution
from numeric.errors import NumericError
from numeric.generated.training import FIRST, MEAN, MOMENTS, NTK, WEIGHTS, weight_p, weight_q
from numeric.trained.algorithms import Algorithm, DivergentTraining
from numeric.trained.infinite import KernelPrediction
from numeric.trained.statistics import contract_one, contract_two

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

    def __init__(self, H: np.ndarray, algorithm: Algorithm):
        if algorithm.memory_size or algorithm.continuous:
            raise NumericError("Step by step there is descent without memory only.")
        self.H, self.algorithm, self.now = H, algorithm, 0
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
            moved.append(move)
        for node, move in zip(self.nodes, moved):
            node.value = node.value + move
        self.now += 1


@dataclass(frozen=True)
class StepwiseFinite:
    """The O(1/n) corrections on all inputs, times n, as `numeric.trained.finite.FiniteWidth` has them."""

    flow: Any
    kernel: KernelPrediction
    algorithm: Algorithm
    time: float | None

    @cached_property
    def _run(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Mean parts (n_L, N) and the NTK's change by origin, at the time."""
        train, H = list(self.kernel.train), self.kernel.theta[np.ix_(self.kernel.train, self.kernel.train)]
        if len(train) > LARGEST:
            raise NumericError(
                f"At finite width a schedule of batches is for {LARGEST} training inputs at most, not {len(train)}."
            )
        steps = Steps(H, self.algorithm)
        placed = [(c, WEIGHTS[c.weight](steps, *"abc"[: len(c.modes)])) for c in (FIRST, *MEAN)]
        q = weight_q(steps, "a", "b")
        moments = {c: [moment(self.y, *self._constants) for moment in MOMENTS[c.kinds]] for c, _ in placed}
        answered = {c.part: np.zeros((self.outputs, len(train))) for c, _ in placed}
        for _ in range(self._length(H)):
            force: dict[str, np.ndarray] = {}
            for c, weight in placed:
                force[c.part] = force.get(c.part, 0.0) + self._force(c, weight, moments[c])[:, train]
            for part, value in force.items():
                answered[part] = answered[part] + (value - answered[part] @ H) @ steps.rates
            steps.advance()
        parts: dict[str, np.ndarray] = {}
        for c, weight in placed:
            parts[c.part] = parts.get(c.part, 0.0) + self._force(c, weight, moments[c])
        parts = {name: value - answered[name] @ self.kernel.theta[:, train].T for name, value in parts.items()}
        p = steps.position.value
        weights = {"p": p, "pp": np.einsum("aA,bB->abAB", p, p), "q": q.value}
        return parts, self._ntk(weights)

    def _length(self, H: np.ndarray) -> int:
        """How many steps to take: those asked for, or half as many again as the errors need to vanish."""
        if self.time is not None:
            return int(self.time)
        steps, left = Steps(H, self.algorithm), 1.0
        while left > ENDED:
            steps.advance()
            left = float(np.abs(steps.errors).max())
            if not left < 1e8 or steps.now > LONGEST:
                raise DivergentTraining(
                    f"{self.algorithm} has not converged after {steps.now} steps: take a smaller eta or a time."
                )
        return steps.now + steps.now // 2

    @property
    def mean_parts(self) -> dict[str, np.ndarray]:
        """n × (mean - infinite-width mean) by origin: arrays (n_L, N)."""
        return self._run[0]

    def ntk_change(self) -> dict[str, np.ndarray]:
        """n × (E[H(t)] - E[H(0)]) by origin: arrays (n_L, n_L, N, N)."""
        return self._run[1]

    def covariance(self) -> np.ndarray:
        raise NumericError("The 1/n part of the covariance is not known for a schedule of batches.")

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
        """One contribution's push on all inputs, (n_L, N)."""
        count = moments[0].ndim - 1
        inside = [("abc"[c.modes.index(k)].upper() if k in c.modes else "uvw"[k]) for k in range(count)]
        outside = [("abc"[c.modes.index(k)] if k in c.modes else "uvw"[k]) for k in range(count)]
        letters = weight.labels + weight.labels.upper()
        spec = f"{letters},i{''.join(inside)}->i{''.join(outside)}"
        value = weight.value()
        turned = [self._spread(np.einsum(spec, value, moment, optimize=True), 1) for moment in moments]
        if c is FIRST:
            return turned[0] @ np.asarray(self.flow.H1)
        return contract_one(self._read, c, turned)

    def _ntk(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        parts: dict[str, np.ndarray] = {}
        for c in NTK:
            (make,) = MOMENTS[c.kinds]
            letters = "".join("ab"[k] for k in c.modes)
            inside = "".join("AB"[k] if k in c.modes else "ab"[k] for k in range(2))
            moment = make(self.y, *self._constants)
            value = np.einsum(f"{letters}{letters.upper()},ij{inside}->ijab", weights[c.weight], moment, optimize=True)
            parts[c.part] = parts.get(c.part, 0.0) + c.coefficient * contract_two(self._read, c, self._spread(value, 2))
        return parts
