"""Training time drawn at random: the weights of trees as means of products, one factor for each mode.

A projector is no product over modes, but it is a sum over training time of products: X2(a, b) = Σ_t η u_a^t u_b^t. Here
each such sum is one time drawn by importance, so that nothing is discretized: the mean over draws is the projector.
The generated weights (`numeric.generated.training`) are evaluated in this calculus; nested sums nest the draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from numeric.errors import NumericError
from numeric.trained.algorithms import Algorithm

RATES = 16
"""How many decay rates the distribution of times is a mixture of."""
WORST = 1e9
"""Up to this condition number of a mode's eigenvectors its evolution is taken from them."""


class Evolution:
    """How modes of eigenvalues h learn at infinite width: errors, positions and responses at any times (S,) -> (S, M).

    Steps that precede the lasting rule (`stages`) are tabulated; the lasting rule is diagonalized mode by mode. With a
    `ridge`, h holds it already: positions and responses are those of h, and the error is what the NTK alone leaves.
    """

    def __init__(self, algorithm: Algorithm, h: np.ndarray, ridge: float = 0.0):
        if algorithm.stages and algorithm.memory_size:
            raise NumericError(f"{algorithm} has both stages and a memory: sampled predictions know one or the other.")
        self.algorithm, self.h, self.ridge = algorithm, np.asarray(h, dtype=float), float(ridge)
        self.leak = Evolution(algorithm, np.asarray([self.ridge])) if self.ridge else None
        self.gain = algorithm.precondition(self.h)
        n = algorithm.generator(self.h, algorithm.stages)
        if n.shape[-1] == 1:
            self.loss, self.weight = n[..., 0], np.ones_like(n[..., 0])
        else:
            values, vectors = np.linalg.eig(n)
            if float(np.max(np.linalg.cond(vectors))) > WORST:
                raise NumericError(
                    f"{algorithm} damps a mode critically: change its learning rate by one in a million."
                )
            unit = np.eye(n.shape[-1])[0]
            inverse = np.linalg.inv(vectors) @ unit
            self.loss, self.weight = values, vectors[..., 0, :] * inverse
        self.rule = algorithm.rule(algorithm.stages)
        self.early = np.array([algorithm.rule(step).direct for step in range(algorithm.stages)])
        factors = 1 - self.early[:, None] * self.gain * self.h
        self.prefix = np.concatenate([np.ones((1, len(self.h))), np.cumprod(factors, axis=0)])

    @property
    def continuous(self) -> bool:
        return self.algorithm.continuous

    @cached_property
    def rates(self) -> np.ndarray:
        """Decay rates of the slowest part of each mode."""
        if self.continuous:
            return np.maximum(np.min(self.loss.real, axis=-1), 1e-300)
        size = np.max(np.abs(1 - self.loss), axis=-1)
        return -np.log(np.clip(size, np.exp(-8.0), 1 - 1e-15))

    def _powers(self, t: np.ndarray) -> np.ndarray:
        """(S, M, d): what is left of each part after t (steps, or time) of the lasting rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.continuous:
                return np.exp(-t[:, None, None] * self.loss)
            logs = np.log1p(-self.loss.astype(complex)) if self._turning else np.log1p(-self.loss)
            found = np.exp(t[:, None, None] * logs)
        return np.where((t == 0)[:, None, None], 1.0, found)

    @property
    def _turning(self) -> bool:
        """Whether some part changes sign or rotates from step to step."""
        return bool(np.iscomplexobj(self.loss) or np.any(self.loss >= 1))

    def error(self, t: np.ndarray) -> np.ndarray:
        """What is left of a unit error."""
        if self.ridge:
            return 1 - (self.h - self.ridge) * self.position(t)
        return self._decayed(t)

    def _decayed(self, t: np.ndarray) -> np.ndarray:
        """What is left of a mode with eigenvalue h."""
        stages = self.algorithm.stages
        late = np.maximum(t - stages, 0)
        lasting = np.sum(self.weight * self._powers(late), axis=-1).real
        return lasting * self.prefix[np.minimum(t, stages).astype(int)] if stages else lasting

    def position(self, t: np.ndarray) -> np.ndarray:
        """What has piled up of a unit error: (1 - error) / h, without cancellation where a mode learns slowly."""
        if self.algorithm.stages or self.loss.shape[-1] > 1 or self._turning:
            return (1 - self._decayed(t)) / self.h
        loss = self.loss[:, 0] if self.continuous else -np.log1p(-self.loss[:, 0])
        return -np.expm1(-t[:, None] * loss) / self.h

    def response(self, t: np.ndarray, s: np.ndarray) -> np.ndarray:
        """What a unit force at s on a mode's output has made its training pile up at t > s (a rate for a flow)."""
        if self.algorithm.stages:
            stages = self.algorithm.stages
            direct = np.where(
                s < stages, np.append(self.early, 0.0)[np.minimum(s, stages).astype(int)], self.rule.direct
            )
            after = self._decayed(s + 1)
            after = np.where(np.abs(after) < 1e-280, 1e-280, after)
            return direct[:, None] * self.gain * self._decayed(t) / after
        lag = t - s
        if self.continuous:
            return np.sum(self.weight * self.loss * self._powers(lag), axis=-1).real / self.h
        return np.sum(self.weight * self.loss * self._powers(lag - 1), axis=-1).real / self.h

    def kernel(self, t: np.ndarray, s: np.ndarray) -> np.ndarray:
        """What a unit gradient at s has displaced at t > s (without feedback, without gain): (S,)."""
        if self.leak is not None:
            return self.leak.response(t, s)[:, 0]
        rule, stages = self.rule, self.algorithm.stages
        if not self.algorithm.memory_size:
            if not stages:
                return np.full(len(s), rule.direct)
            return np.where(s < stages, np.append(self.early, 0.0)[np.minimum(s, stages).astype(int)], rule.direct)
        lag = t - s if self.continuous else t - s - 1
        values, vectors = np.linalg.eig(rule.decay)
        left, right = rule.output @ vectors, np.linalg.solve(vectors, rule.input.astype(vectors.dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            logs = -values if self.continuous else np.log1p(-values.astype(complex))
            gone = np.where(np.isinf(lag)[:, None], 1.0, -np.expm1(lag[:, None] * logs))
        return rule.direct + np.sum(left * gone / values * right, axis=-1).real


@dataclass(frozen=True)
class Mixture:
    """A distribution of times before a time t: decays with several rates, each with its share."""

    rates: np.ndarray
    shares: np.ndarray
    continuous: bool

    def draw(self, before: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(times s < before, their probabilities or densities) from uniform numbers u of shape (2, S)."""
        which = np.minimum(np.searchsorted(np.cumsum(self.shares), u[0] * self.shares.sum()), len(self.rates) - 1)
        rate = self.rates[which]
        s = -np.log1p(u[1] * np.expm1(-rate * before)) / rate
        if not self.continuous:
            s = np.minimum(np.floor(s), before - 1)
        s = np.where(np.isinf(before), s, np.minimum(s, before))
        return s, self.density(s, before)

    def density(self, s: np.ndarray, before: np.ndarray) -> np.ndarray:
        rate = self.rates[:, None]
        scale = rate if self.continuous else -np.expm1(-rate)
        with np.errstate(over="ignore"):
            own = scale * np.exp(-rate * s) / -np.expm1(-rate * before)
        return (self.shares / self.shares.sum()) @ own


def mixture(evolution: Evolution) -> Mixture:
    """Rates on a logarithmic grid over those of the modes, in equal shares."""
    low, high = float(np.min(evolution.rates)), float(np.max(evolution.rates))
    rates = np.geomspace(max(low, 1e-12 * high), high, RATES)
    return Mixture(rates, np.ones(RATES), evolution.continuous)


@dataclass
class Moment:
    """A time (S,) on each sample's clock; what hangs on it is drawn once and shared by all weights."""

    evolution: Evolution
    mixture: Mixture
    t: np.ndarray
    random: np.random.Generator
    _drawn: dict[bool, tuple[Moment, np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def ended(self) -> bool:
        return bool(np.isinf(self.t).all())

    @cached_property
    def error(self) -> np.ndarray:
        return self.evolution.error(self.t)

    @cached_property
    def position(self) -> np.ndarray:
        if self.ended:
            return np.broadcast_to(1 / self.evolution.h, (len(self.t), len(self.evolution.h)))
        return self.evolution.position(self.t)

    def earlier(self, recent: bool = False) -> tuple[Moment, np.ndarray]:
        """An earlier time and one over its probability, 0 where there is none; `recent` prefers short lags."""
        if recent not in self._drawn:
            live = self.t > 0
            before = np.where(live, self.t, 1.0)
            s, density = self.mixture.draw(before, self.random.random((2, len(self.t))))
            if recent:
                s = before - s - (0 if self.evolution.continuous else 1)
            other = Moment(self.evolution, self.mixture, np.where(live, s, 0.0), self.random)
            self._drawn[recent] = other, np.where(live, 1 / density, 0.0)
        return self._drawn[recent]


Factors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Weight:
    """A number for each sample and a factor on each mode's label: (S,) and {label: (S, M)}."""

    number: np.ndarray
    factors: Factors


@dataclass(frozen=True)
class Node:
    """A signal of the calculus; evaluated at a moment it becomes a weight."""

    root: str
    branches: tuple[Node, ...]
    responds: bool

    def at(self, now: Moment) -> Weight:
        evolution = now.evolution
        if not self.branches and not self.responds:
            return Weight(np.ones(len(now.t)), {self.root: now.position})
        if now.ended and (
            self.responds or evolution.ridge
        ):  # a force that lasts; with a ridge everything comes to rest
            parts = [branch.at(now) for branch in self.branches]
            found = Weight(np.ones(len(now.t)), {self.root: now.position})
            for part in parts:
                found = Weight(found.number * part.number, found.factors | part.factors)
            return found
        then, over = now.earlier(self.responds or evolution.ridge > 0)
        parts = [branch.at(then) for branch in self.branches]
        if self.responds:
            later = now.t if evolution.continuous else np.maximum(now.t, then.t + 1)
            number, own = over, evolution.response(later, then.t)
        else:
            number = over * evolution.kernel(now.t, then.t)
            own = evolution.gain * then.error
        factors = {self.root: own}
        for part in parts:
            number = number * part.number
            factors |= part.factors
        return Weight(number, factors)


@dataclass(frozen=True)
class Product:
    """coefficient × Π nodes."""

    coefficient: float
    nodes: tuple[Node, ...]

    def at(self, now: Moment) -> Weight:
        number = np.full(len(now.t), self.coefficient)
        factors: Factors = {}
        for node in self.nodes:
            part = node.at(now)
            number, factors = number * part.number, factors | part.factors
        return Weight(number, factors)


class Nodes:
    """The calculus of weights with drawn times; labels are letters."""

    def accumulate(self, root: str, *branches: Node) -> Node:
        return Node(root, branches, False)

    def respond(self, mode: str, force: Node) -> Node:
        return Node(mode, (force,), True)

    def product(self, coefficient: float, *factors: Node) -> Product:
        return Product(coefficient, tuple(factors))


def letters(count: int) -> Sequence[str]:
    return "abc"[:count]
