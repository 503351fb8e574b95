"""Functionals at definite functions: keys of tables, one for all ways to write a functional.

An instance is a functional with products of activations (or preactivations) for its functions, e.g. F[s_a s_b', s_c
s_d']_bd: the letters are axes of its table. `canonical` finds the key and which letters stand for the key's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product

from numeric.functionals.rules import Rule

Z = -1
"""The order that marks a preactivation z among activations."""

Factors = tuple[tuple[str, int], ...]
"""A function of one neuron: (letter, order of the activation's derivative, or Z)."""

LETTERS = "abcdefgh"

THREE_LEGS = {"V3": ("V", ("1", "23"), "123"), "D3": ("D", ("1",), "134")}
"""Tensors with three legs, of activations that are not odd: n Cov(z_1, z_2 z_3) and n Cov(z_1, H_34) of two neurons at
a layer with a skip, as (functional, labels of the z's on each neuron, subscripts). At a plain layer they vanish."""


@dataclass(frozen=True)
class Key:
    """A functional's name, the letters of its trees' labels, and its functions."""

    name: str
    labels: str
    functions: tuple[Factors, ...]

    @property
    def letters(self) -> str:
        """The axes of the table, after those of the layers."""
        found = dict.fromkeys([letter for f in self.functions for letter, _ in f] + list(self.labels))
        return "".join(found)


@lru_cache(maxsize=100_000)
def canonical(
    symmetries: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
    name: str,
    labels: tuple[str, ...],
    functions: tuple[Factors, ...],
) -> tuple[Key, tuple[str, ...], tuple[int, ...]]:
    """(key, the letters in use in the order of the key's axes, which of the functions is which of the key's)."""
    best: tuple | None = None
    for label_order, function_order in symmetries:
        moved = [functions[k] for k in function_order]
        for ways in product(*(permutations(f) for f in moved)):
            names: dict[str, str] = {}
            for letter in [x for f in ways for x, _ in f] + [labels[k] for k in label_order]:
                names.setdefault(letter, LETTERS[len(names)])
            key = Key(
                name,
                "".join(names[labels[k]] for k in label_order),
                tuple(tuple((names[x], order) for x, order in f) for f in ways),
            )
            rank = ([[order for _, order in f] for f in key.functions], key.functions, key.labels)
            if best is None or rank < best[0]:
                best = (rank, key, tuple(names), function_order)
    assert best is not None
    return best[1], best[2], best[3]


def derivatives(factors: Factors, letters: tuple[str, ...]) -> dict[Factors, int]:
    """The function differentiated with respect to the preactivations of these letters: {product: multiplicity}."""
    total: dict[Factors, int] = {factors: 1}
    for letter in letters:
        new: dict[Factors, int] = {}
        for own, number in total.items():
            for k, (x, order) in enumerate(own):
                if x == letter:
                    inner = () if order == Z else ((x, order + 1),)
                    raised = (*own[:k], *inner, *own[k + 1 :])
                    new[raised] = new.get(raised, 0) + number
        total = new
    return total


def tensor_key(name: str, rules: Mapping[str, Rule]) -> tuple[Key, str]:
    """The key of a tensor and its axes in the tensor's subscript order, as letters of the key."""
    if name in THREE_LEGS:
        name, legs, subscripts = THREE_LEGS[name]
        rule = replace(rules[name], preactivations=legs, subscripts=subscripts)
    else:
        rule = rules[name]
    functions = tuple(tuple((label, Z) for label in own) for own in rule.preactivations)
    key, used, _ = canonical(rule.symmetries, name, rule.labels, functions)
    own = dict(zip(used, key.letters))
    return key, "".join(own[label] for label in rule.subscripts)
