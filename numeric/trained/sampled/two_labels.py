"""H1 and G1 of many inputs without four-point tensors: their recursions read V, D, F on two labels at a time only.

Components with two different labels close among themselves, and the brackets that they need, <s_a s_a s_b' s_b'> and
so on, are pair averages of products of activations: Mehler series with the products' Hermite coefficients. The layer
step is the generated one, its subscripts read on two labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from numeric.brackets import Functions, make_pair_plan
from numeric.brackets.products import product_pairs
from numeric.evaluation.host import square_pairs
from numeric.evaluation.layer import layer_values, needed
from numeric.subscripts import AXES, Step, Steps

FOUR, TWO = ("V", "D", "F"), ("G1", "H1")
PATTERNS = tuple("".join(p) for p in product("ab", repeat=4) if p[0] == "a")
Array = np.ndarray


def _swapped(pattern: str) -> str:
    return pattern.translate(str.maketrans("ab", "ba"))


@dataclass
class TwoLabels:
    """Components of tensors at labels a, b: (N, N) arrays by tensor and pattern, which starts with a."""

    size: int
    arrays: dict[tuple[str, str], Array] = field(default_factory=dict)

    def read(self, name: str, labels: str) -> Array:
        if len(set(labels)) == 1:
            own = np.diagonal(self.arrays[name, "a" * len(labels) if len(labels) == 4 else "ab"])
            return own[:, None] if labels[0] == "a" else own[None, :]
        if labels[0] == "a":
            return self.arrays[name, labels]
        return self.arrays[name, _swapped(labels)].T


@dataclass(frozen=True)
class _Lettered:
    """A tensor or a bracket, indexed by the letters of a generated step, which stand for the labels of a pattern."""

    read: Any
    pattern: str

    def __getitem__(self, letters: str) -> Array:
        return self.read("".join(self.pattern[AXES.index(letter)] for letter in letters))


def _two_point(brackets: Mapping[tuple[int, int], Array], orders: tuple[int, ...], labels: str) -> Array:
    array = brackets[orders[0], orders[1]]
    if labels[0] == labels[1]:
        own = np.diagonal(array)
        return own[:, None] if labels[0] == "a" else own[None, :]
    return array if labels == "ab" else array.T


def _grouped(orders: tuple[int, ...], labels: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The orders at a and those at b."""
    first, second = (tuple(sorted(k for k, x in zip(orders, labels) if x == label)) for label in "ab")
    return first, second


@dataclass(frozen=True)
class _Tables:
    """What a layer step reads: pair averages, averages of products, components of the layer below."""

    two: Mapping[tuple[int, int], Array]
    many: Mapping[tuple[tuple[int, ...], tuple[int, ...]], Array]
    below: TwoLabels

    def on(self, pattern: str, step: Step) -> tuple[Any, Any, Any]:
        """Brackets of pairs, brackets of four and tensors, on the labels of a pattern."""
        return (
            {p: _Lettered(partial(_two_point, self.two, p), pattern) for p in step.pairs},
            {q: _Lettered(partial(self._four, q), pattern) for q in step.quads},
            {name: _Lettered(partial(self.below.read, name), pattern) for name in step.tensors},
        )

    def _four(self, orders: tuple[int, ...], labels: str) -> Array:
        return self.many[_grouped(orders, labels)]


def first_order_kernels(flow: Any) -> dict[str, np.ndarray]:
    """{"G1": ..., "H1": ...} at the output layer of a flow that keeps K and Theta of all layers, each (N, N)."""
    functions: Functions = flow.activation.FUNCTIONS
    steps: Steps = flow.activation.STEPS
    names = ("V", "G1", "D", "F", "H1")
    pairs, quads = needed(steps, names)
    size = len(flow.layer(1).K)
    now = TwoLabels(size, {(name, "ab"): np.zeros((size, size)) for name in TWO})
    now.arrays |= {(name, pattern): np.zeros((size, size)) for name in FOUR for pattern in PATTERNS}
    groups = {_grouped(quad, "".join(labels)) for quad in quads for labels in product("ab", repeat=4)}
    for layer in range(2, flow.depth + 1):
        values: Any = {k: float(v) for k, v in layer_values(flow.parameters, flow.widths, layer).items()}
        below = flow.layer(layer - 1)
        K = np.asarray(below.K)
        plan = make_pair_plan(functions, K, max(max(pair) for pair in pairs))
        two = square_pairs(functions, plan, K, pairs)
        many = product_pairs(functions, K, groups)
        now.arrays |= {("Theta", "ab"): np.asarray(below.Theta)}
        tables = _Tables(two, many, now)
        after = TwoLabels(size)
        for name in names:
            for pattern in PATTERNS if name in FOUR else ("ab",):
                value = steps[name].advance(values, *tables.on(pattern, steps[name]))
                after.arrays[name, pattern] = np.broadcast_to(value, (size, size))
        now = after
    return {name: now.arrays[name, "ab"] for name in TWO}
