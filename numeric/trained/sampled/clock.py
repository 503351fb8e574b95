"""Times of a batch of draws: the time asked for, earlier ones that training answers to, and weights at either."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numeric.generated.training import WEIGHTS
from numeric.trained.sampled.times import Evolution, Mixture, Moment, Nodes, Weight, letters

INSTANT = ("response",)
"""Weights of the NTK's fluctuations that an algorithm with the network's own NTK has met with after one step."""


@dataclass(frozen=True)
class Clock:
    """One time of training (None: its end) for all draws of a batch."""

    evolution: Evolution
    mixture: Mixture
    time: float | None

    def now(self, count: int, random: np.random.Generator) -> Moment:
        t = np.inf if self.time is None else self.time
        return Moment(self.evolution, self.mixture, np.full(count, t), random)

    def late(self, now: Moment, random: np.random.Generator) -> tuple[Moment, np.ndarray]:
        """An earlier time, drawn anew (the mean of a product), and what a force there has moved since: (S, M)."""
        then, over = Moment(self.evolution, self.mixture, now.t, random).earlier(recent=True)
        later = now.t if self.evolution.continuous else np.maximum(now.t, then.t + 1)
        return then, over[:, None] * self.evolution.response(later, then.t)

    def weight(self, name: str, now: Moment) -> Weight:
        """A generated weight, factors in the order of its modes."""
        instant = self.evolution.algorithm.own_ntk and self.time is not None and self.time >= 1
        if instant and name in INSTANT:
            now = Moment(self.evolution, self.mixture, np.full(len(now.t), np.inf), now.random)
        make = WEIGHTS[name]
        labels = letters(make.__code__.co_argcount - 1)
        found = make(Nodes(), *labels).at(now)
        return Weight(found.number, {label: found.factors[label] for label in labels})
