r"""Terms of a recursion: a coefficient, components and brackets, some under sums over sample labels.

A term is kept as derived, sum_g X_g <d_g f>, which is how it prints, and is expanded by carrying out the sums: only
the labels that occur in f survive a derivative of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations, product

import sympy as sp

from derive.gaussian.bracket import Bracket, Sigma
from derive.network.component import Component, canonical, label_key
from derive.network.definition import IDENTITY

Label = int | str
"""A sample label: a number, or the name of a summed one ("g1", "g2", ...)."""

Atom = tuple[Label, int, str]
"""(label, order of the derivative, function)."""


@dataclass(frozen=True)
class Average:
    """<d_g1 d_g2 ... f> with f a product of activations of one neuron: `derivatives` are the summed labels."""

    atoms: tuple[Atom, ...]
    derivatives: tuple[str, ...] = ()

    def rename(self, table: Mapping[Label, Label]) -> Average:
        atoms = sorted(((table.get(a, a), k, f) for a, k, f in self.atoms), key=_atom_key)
        return Average(tuple(atoms), tuple(sorted(str(table.get(g, g)) for g in self.derivatives)))

    @property
    def labels(self) -> tuple[Label, ...]:
        return tuple(dict.fromkeys(label for label, _, _ in self.atoms))

    @property
    def sort_key(self) -> tuple:
        return tuple(map(_atom_key, self.atoms)), self.derivatives

    def expand(self, values: Mapping[str, Label]) -> sp.Expr:
        """The brackets, for given values of the summed labels."""
        polynomial: dict[tuple[Atom, ...], int] = {self.atoms: 1}
        for g in self.derivatives:
            polynomial = differentiate(polynomial, values[g])
        return sp.Add(*(c * _bracket(atoms) for atoms, c in polynomial.items()))


def _atom_key(atom: Atom) -> tuple:
    return label_key(atom[0]), atom[1], atom[2]


def differentiate(polynomial: dict[tuple[Atom, ...], int], label: Label) -> dict[tuple[Atom, ...], int]:
    result: dict[tuple[Atom, ...], int] = {}
    for atoms, coefficient in polynomial.items():
        for k, (a, order, function) in enumerate(atoms):
            if a != label:
                continue
            inner = () if function == IDENTITY else ((a, order + 1, function),)  # dz/dz = 1
            new = tuple(sorted((*atoms[:k], *inner, *atoms[k + 1 :]), key=_atom_key))
            result[new] = result.get(new, 0) + coefficient
    return result


def _bracket(atoms: Iterable[Atom]) -> sp.Expr:
    """The bracket of a product; a factor z is integrated by parts, <z_a f> = sum_g K_ag <d_g f>."""
    atoms = tuple(atoms)
    for k, (label, _, function) in enumerate(atoms):
        if function == IDENTITY:
            rest = (*atoms[:k], *atoms[k + 1 :])
            total = sp.S.Zero
            for g in dict.fromkeys(a for a, _, _ in rest):
                for new, coefficient in differentiate({rest: 1}, g).items():
                    total += coefficient * Component("K", label, g) * _bracket(new)
            return total
    return Bracket(*(Sigma(label, order, function) for label, order, function in atoms))


@dataclass(frozen=True)
class Term:
    """coefficient * components * averages, summed over the labels named g1, g2, ... ."""

    coefficient: sp.Expr
    components: tuple[tuple[str, tuple[Label, ...]], ...]
    averages: tuple[Average, ...]

    @property
    def summed(self) -> tuple[str, ...]:
        return tuple(sorted({g for average in self.averages for g in average.derivatives}))

    @property
    def expression(self) -> sp.Expr:
        """The term with its sums carried out."""
        support = {g: average.labels for average in self.averages for g in average.derivatives}
        total = sp.S.Zero
        for choice in product(*(support[g] for g in self.summed)):
            values = dict(zip(self.summed, choice))
            factors = [Component(name, *(values.get(str(x), x) for x in labels)) for name, labels in self.components]
            total += sp.Mul(*factors, *(average.expand(values) for average in self.averages))
        return sp.expand(self.coefficient * total)

    def relabel(self, mapping: Mapping[Label, Label]) -> Term:
        """The term with sample labels replaced; coinciding labels are allowed."""
        components = [(name, tuple(mapping.get(x, x) for x in labels)) for name, labels in self.components]
        return Term(self.coefficient, *canonical_key(components, [a.rename(mapping) for a in self.averages]))


def read_terms(expression: sp.Expr) -> tuple[Term, ...]:
    """The terms of an expanded expression: the inverse of `Term.expression` where nothing is summed."""
    found = []
    for part in sp.Add.make_args(sp.expand(expression)):
        coefficient = sp.S.One
        components: list[tuple[str, tuple[Label, ...]]] = []
        averages: list[Average] = []
        for factor in sp.Mul.make_args(part):
            base, power = factor.as_base_exp()
            if isinstance(base, Component):
                components += [(base.name, tuple(int(x) for x in base.labels))] * int(power)
            elif isinstance(base, Bracket):
                averages += [Average(tuple((int(a.label), a.order, a.function) for a in base.args))] * int(power)
            else:
                coefficient *= factor
        if coefficient != 0:
            found.append(Term(coefficient, *canonical_key(components, averages)))
    return tuple(found)


Key = tuple[tuple[tuple[str, tuple[Label, ...]], ...], tuple[Average, ...]]


def canonical_key(components: Iterable[tuple[str, tuple[Label, ...]]], averages: Iterable[Average]) -> Key:
    """One spelling for terms that differ by symmetries, order of factors or the names of summed labels."""
    components, averages = list(components), [a for a in averages if a.atoms]
    names = sorted({g for average in averages for g in average.derivatives})
    best: tuple | None = None
    for image in permutations([f"g{k + 1}" for k in range(len(names))]):
        table: dict[Label, Label] = dict(zip(names, image))
        parts = sorted(
            ((n, canonical(n, tuple(table.get(x, x) for x in labels))) for n, labels in components),
            key=lambda c: (c[0], [label_key(x) for x in c[1]]),
        )
        means = sorted((average.rename(table) for average in averages), key=lambda a: a.sort_key)
        rank = ([a.sort_key for a in means], [(n, [label_key(x) for x in labels]) for n, labels in parts])
        if best is None or rank < best[0]:
            best = (rank, (tuple(parts), tuple(means)))
    assert best is not None
    return best[1]


class Terms:
    """A sum of terms in which equal ones meet: cumulants cancel what factorizes here."""

    def __init__(self) -> None:
        self._coefficients: dict[Key, sp.Expr] = {}

    def add(
        self, coefficient: sp.Expr, components: Iterable[tuple[str, tuple[Label, ...]]], averages: Iterable[Average]
    ) -> None:
        averages = list(averages)
        if any(a.derivatives and not a.atoms for a in averages):  # a derivative of a constant
            return
        key = canonical_key(components, averages)
        self._coefficients[key] = self._coefficients.get(key, sp.S.Zero) + coefficient

    def __iadd__(self, other: Terms) -> Terms:
        for key, coefficient in other._coefficients.items():
            self._coefficients[key] = self._coefficients.get(key, sp.S.Zero) + coefficient
        return self

    def times(self, other: Terms, factor: sp.Expr = sp.S.One) -> Terms:
        """The product; summed labels of the two are kept apart."""
        result = Terms()
        for (components, averages), c in self._coefficients.items():
            for (components2, averages2), c2 in other._coefficients.items():
                shift: dict[Label, Label] = {f"g{k}": f"g{k + 10}" for k in range(1, 5)}
                moved = [(n, tuple(shift.get(x, x) for x in labels)) for n, labels in components2]
                result.add(factor * c * c2, [*components, *moved], [*averages, *(a.rename(shift) for a in averages2)])
        return result

    def collect(self) -> tuple[Term, ...]:
        """The terms that remain, split so that each coefficient is one product."""
        found = []
        for (components, averages), coefficient in self._coefficients.items():
            for part in sp.Add.make_args(sp.expand(coefficient)):
                if part != 0:
                    found.append(Term(part, components, averages))
        return tuple(found)
