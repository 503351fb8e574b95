"""One functional at layer l+1 from the tables of layer l: the derived terms with their sums over labels carried out.

Arrays have one axis for each function's own layer m (at least l+1; of length one where there is none), then one for
each letter. A function of layer m, seen from below, has derivatives that carry the product of the skips in between.
Everything works with NumPy, inside JAX transformations with jax.numpy, and, to find out what is needed, on arrays of
zeros (`Source.record`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Protocol

from numeric.functionals.instances import Factors, Key, Z, canonical, derivatives
from numeric.functionals.rules import At, Function, Rule, Term

Array = Any
AXES = "XY"
CONSTANTS_DROP = ("V", "G1", "D")
"""Functionals that a constant function makes vanish."""


class Source(Protocol):
    """What an expansion reads: arrays with the axes of its layers in front (nothing for layer l itself)."""

    def table(self, key: Key, own: tuple[bool, ...]) -> Array:
        """A functional of layer l; a function that is `own` is of layer l."""

    def pair(self, first: int, second: int, own: bool) -> Array:
        """<s^(first)_a s^(second)_b> of the layers m, or of layer l."""

    def four(self, upper: tuple[int, int], lower: tuple[int, int], own: bool) -> Array:
        """<two activations of layer m (or l), two of layer l>."""

    def kernel(self, own: bool) -> Array:
        """K of the layers m, or of layer l."""

    def crossed(self) -> Array:
        """The covariance of z at layers m and l."""

    def theta(self) -> Array:
        """Theta of layer l."""

    def carry(self) -> Array:
        """The product of the skips from layer l+1 to the layers m."""

    def values(self) -> Mapping[str, Any]:
        """C_W, ..., r, xi of layer l+1."""

    @property
    def xp(self) -> Any:
        """NumPy or jax.numpy."""


class Expansion:
    """All terms of one instance."""

    def __init__(self, source: Source, rules: Mapping[str, Rule], key: Key) -> None:
        self.source, self.rules, self.key, self.xp = source, rules, key, source.xp
        rule = rules[key.name]
        self.rule = rule
        self.letters = key.letters
        self.label = dict(zip(rule.labels, key.labels))
        self.argument = dict(zip(("f", "h"), range(len(key.functions))))

    def total(self) -> Array:
        """The functional at layer l+1."""
        return sum(self.term(term) for term in self.rule.terms)

    def term(self, term: Term) -> Array:
        home = {g: self.argument[f.carried] for f in term.functions for g in f.derivatives}
        ranges = [tuple(dict.fromkeys(x for x, _ in self.key.functions[k])) for k in home.values()]
        value: Array = 0.0
        for choice in product(*ranges):
            names = self.label | dict(zip(home, choice))
            value = value + self.summand(term, names)
        return value * term.coefficient(self.source.values())

    def summand(self, term: Term, names: Mapping[str, str]) -> Array:
        value: Array = 1.0
        for mean in term.means:
            value = value * self.mean(mean, names)
            if isinstance(value, float) and value == 0.0:
                return 0.0
        if term.functional is not None:
            value = value * self.functional(term.functional, names)
        for pair in term.thetas:
            value = value * self.lay(self.source.theta(), "", "".join(names[x] for x in pair))
        return value

    # functions of a neuron

    def products(self, function: Function, names: Mapping[str, str]) -> Iterator[tuple[Factors, Factors, int, int]]:
        """(factors of layer m, factors of layer l, derivatives taken, multiplicity)."""
        lower = tuple((names[x], order) for x, order in function.atoms)
        if not function.carried:
            yield (), lower, 0, 1
            return
        own = self.key.functions[self.argument[function.carried]]
        for upper, number in derivatives(own, tuple(names[g] for g in function.derivatives)).items():
            yield upper, lower, len(function.derivatives), number

    def axis(self, function: Function) -> str:
        return AXES[self.argument[function.carried]] if function.carried else ""

    def carried(self, axis: str, power: int) -> Array:
        """The skips' product that derivatives of a carried function bring."""
        return self.lay(self.source.carry(), axis, "") ** power if power else 1.0

    def mean(self, function: Function, names: Mapping[str, str]) -> Array:
        axis = self.axis(function)
        value: Array = 0.0
        for upper, lower, power, number in self.products(function, names):
            value = value + number * self.carried(axis, power) * self.bracket(upper, lower, axis)
        return value

    def bracket(self, upper: Factors, lower: Factors, axis: str) -> Array:
        """<factors of layer m times factors of layer l>; preactivations are integrated by parts."""
        for k, (letter, order) in enumerate(upper):
            if order != Z:
                continue
            rest = (*upper[:k], *upper[k + 1 :])
            value: Array = 0.0
            for x in dict.fromkeys(x for x, _ in rest):
                for new, number in derivatives(rest, (x,)).items():
                    K = self.lay(self.source.kernel(own=False), axis, letter + x)
                    value = value + number * K * self.bracket(new, lower, axis)
            for x in dict.fromkeys(x for x, _ in lower):
                for new, number in derivatives(lower, (x,)).items():
                    K = self.lay(self.source.crossed(), axis, letter + x)
                    value = value + number * K * self.bracket(rest, new, axis)
            return value
        if not upper and not lower:
            return 1.0
        if len(upper) + len(lower) == 1:
            raise NotImplementedError("means of a single activation")
        if len(upper) == 2 and not lower:
            (a, j), (b, k) = upper
            return self.lay(self.source.pair(j, k, own=False), axis, a + b)
        if len(lower) == 2 and not upper:
            (a, j), (b, k) = lower
            return self.lay(self.source.pair(j, k, own=True), "", a + b)
        both = (upper, lower) if upper else (lower[:2], lower[2:])
        letters = "".join(x for f in both for x, _ in f)
        (j, k), (p, q) = ([order for _, order in f] for f in both)
        return self.lay(self.source.four((j, k), (p, q), own=not upper), axis if upper else "", letters)

    # functionals

    def functional(self, at: At, names: Mapping[str, str]) -> Array:
        value: Array = 0.0
        axes = [self.axis(f) for f in at.functions]
        for parts in product(*(self.products(f, names) for f in at.functions)):
            weight: Array = 1.0
            for axis, (_, _, power, number) in zip(axes, parts):
                weight = weight * number * self.carried(axis, power)
            arguments = [upper if f.carried else lower for f, (upper, lower, _, _) in zip(at.functions, parts)]
            value = value + weight * self.one(at, names, arguments, axes)
        return value

    def one(self, at: At, names: Mapping[str, str], arguments: list[Factors], axes: list[str]) -> Array:
        """The functional at definite products."""
        if at.name in CONSTANTS_DROP and not all(arguments):
            return 0.0
        value = self.look_up(at, names, arguments, axes)
        if not at.hat:
            return value
        upper: Factors = ()
        lower: Factors = ()
        axis = ""
        for function, own, its in zip(at.functions, arguments, axes):
            if function.carried:
                upper, axis = own, its
            else:
                lower = lower + own
        together = self.bracket(upper, lower, axis)
        rule = self.rules[at.name]
        where = {own: names[x] for own, x in zip(rule.labels, at.labels)}
        for pair in rule.ntks:
            together = together * self.lay(self.source.theta(), "", "".join(where[x] for x in pair))
        if not rule.labels:  # a covariance
            apart: Array = 1.0
            for function, own, its in zip(at.functions, arguments, axes):
                apart = apart * (self.bracket(own, (), its) if function.carried else self.bracket((), own, ""))
            together = together - apart
        return together + self.source.values()["r"] * value

    def look_up(self, at: At, names: Mapping[str, str], arguments: list[Factors], axes: list[str]) -> Array:
        """The table's entry. Labels that meet by chance are diagonals of one general table."""
        rule = self.rules[at.name]
        inner = {x for f in at.functions if not f.carried for x, _ in f.atoms}
        letter: dict[str, str] = {}  # names for the table's labels -> letters here
        labels, functions = [], []
        for place, (own, x) in enumerate(zip(rule.labels, at.labels)):
            new = f"free {place}" if own in rule.free else f"tied {x}" if x in inner else names[x]
            letter[new] = names[x]
            labels.append(new)
        for number, (function, factors) in enumerate(zip(at.functions, arguments)):
            if function.carried:
                functions.append(factors)
                letter |= {x: x for x, _ in factors}
                continue
            fresh = []
            for place, (x, order) in enumerate(function.atoms):
                new = f"tied {x}" if f"tied {x}" in labels else f"own {number} {place}"
                letter[new] = names[x]
                fresh.append((new, order))
            functions.append(tuple(fresh))
        key, used, which = canonical(rule.symmetries, at.name, tuple(labels), tuple(functions))
        here = tuple(not (at.functions[k].carried and arguments[k]) for k in which)
        front = "".join(axes[k] for k, own in zip(which, here) if not own)
        return self.lay(self.source.table(key, here), front, "".join(letter[x] for x in used))

    def lay(self, array: Array, front: str, letters: str) -> Array:
        """An array with axes `front` + `letters`, laid out along X, Y and this functional's letters."""
        unique = "".join(dict.fromkeys(letters))
        if len(unique) < len(letters):
            array = self.xp.einsum(f"{front}{letters}->{front}{unique}", array)
        ordered = sorted(front) + sorted(unique, key=self.letters.index)
        have = front + unique
        array = self.xp.transpose(array, [have.index(x) for x in ordered])
        target = AXES[: len(self.key.functions)] + self.letters
        shape = iter(array.shape)
        return array.reshape([next(shape) if x in have else 1 for x in target])
