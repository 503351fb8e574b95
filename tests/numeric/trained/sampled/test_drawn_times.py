"""Weights of trees from drawn times against the projectors' linear algebra, for every algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from numeric.generated.training import WEIGHTS
from numeric.trained import (
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Preconditioned,
    Projectors,
    Schedule,
)
from numeric.trained.sampled.times import Evolution, Moment, Nodes, letters, mixture

H = np.array([0.05, 0.4, 1.3, 3.0])
DRAWS = 8000
ALGORITHMS = [
    GradientDescent(0.3),
    GradientDescent(0.55),
    GradientFlow(),
    Momentum(0.1, 0.8),
    Momentum(0.1, 0.8, nesterov=True),
    Schedule([0.2, 0.5, 0.1, 0.3]),
    Newton(),
    Preconditioned(0.2, lambda h: 1 / np.sqrt(h)),
]


def drawn(weight, rank):
    """Mean over draws and its standard error, arrays over modes."""
    operands = [weight.factors[label] for label in letters(rank)]
    subscripts = ",".join(["s", *("s" + label for label in letters(rank))]) + "->" + "".join(letters(rank))
    first = np.einsum(subscripts, weight.number, *operands) / DRAWS
    second = np.einsum(subscripts, weight.number**2, *(x**2 for x in operands)) / DRAWS
    return first, np.sqrt(np.maximum(second - first**2, 0.0) / DRAWS)


@pytest.mark.parametrize("t", [None, 2, 40])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
def test_weights(algorithm, t):
    evolution = Evolution(algorithm, H)
    exact = Projectors(algorithm, H, None if t is None else float(t))
    now = Moment(evolution, mixture(evolution), np.full(DRAWS, np.inf if t is None else t), np.random.default_rng(3))
    pulls = []
    for name, make in WEIGHTS.items():
        rank = make.__code__.co_argcount - 1
        mean, error = drawn(make(Nodes(), *letters(rank)).at(now), rank)
        reference = exact.weight(name)
        pulls.append((mean - reference).ravel() / np.hypot(error, 1e-6 * np.abs(reference).max() + 1e-12).ravel())
    pulls = np.concatenate(pulls)
    assert np.abs(pulls).max() < 5  # entries share their draws, so that their mean square may be far from one


def test_a_ridge_comes_to_rest():
    """With a ridge, long training ends where all weights are products of 1/(h + ridge): flow, descent, momentum."""
    ridge = 0.2
    for algorithm in (GradientFlow(), GradientDescent(0.1), Momentum(0.05, 0.5)):
        evolution = Evolution(algorithm, H + ridge, ridge)
        random = np.random.default_rng(1)
        late = Moment(evolution, mixture(evolution), np.full(DRAWS, 400.0), random)
        end = Moment(evolution, mixture(evolution), np.full(DRAWS, np.inf), random)
        for name, make in WEIGHTS.items():
            rank = make.__code__.co_argcount - 1
            mean, error = drawn(make(Nodes(), *letters(rank)).at(end), rank)
            assert np.all(error <= 1e-7 * np.abs(mean)), name
            lately, noise = drawn(make(Nodes(), *letters(rank)).at(late), rank)
            assert np.all(np.abs(lately - mean) < 6 * noise + 1e-3 * np.abs(mean)), (algorithm, name)
