r"""Every O(1/n) recursion as a product of two maps on pairs, so that a contraction can be handed down to a neuron.

A four-point tensor ties its labels in two pairs (the Kronecker deltas of its cumulant). One neuron of the layer below
makes a pair's object out of activations, and each layer above carries it on by averages over another neuron; the two
pairs know of each other only by the NTKs that link them, the edges of the cumulant's forest that lead from one pair to
the other. So X' = <S1 S2> Theta...Theta + r (M1 x M2) X with pair sources S and pair maps M that depend on the *kind*
of a pair alone: whether an edge joins its two labels, and how many edges leave it at each. What follows reads S and M
off the derived recursions and proves the product by multiplying out. Transposed, M takes a matrix that multiplies the
pair at layer l+1 to those that multiply pairs at layer l.

>>> [str(kind) for kind in kinds("R")]
['H20', '11']
>>> [str(step) for step in pair_maps()[kinds("P")[0]].steps]
["C_W <s1'' s2> 11 at 11", "C_W <s1'' s2> 20 at 11", "C_W <s1' s2'> 20 at 12"]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.network.definition import MLP, Layer
from derive.network.tensor_recursion import recursion
from derive.network.terms import Term, read_terms
from derive.network.trees import TENSORS

FOUR = tuple(name for name, tensor in TENSORS.items() if len(tensor.subscripts) == 4)


class NotAProduct(DeriveError):
    """A recursion that is no product of maps on its two pairs."""


@dataclass(frozen=True, order=True)
class Kind:
    """A pair of labels: whether an edge of the forest joins them, and how many edges leave each (more at the first)."""

    joined: bool
    legs: tuple[int, int]

    def __str__(self) -> str:
        return ("H" if self.joined else "") + f"{self.legs[0]}{self.legs[1]}"

    @property
    def symmetric(self) -> bool:
        return self.legs[0] == self.legs[1]


@dataclass(frozen=True, order=True)
class Piece:
    """[Theta_12] <s1^(j) s2^(k)>, and with `kind` the object of that kind of the layer below at the labels `at`."""

    theta: bool
    orders: tuple[int, int]
    kind: Kind | None = None
    at: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Weighed:
    """A piece with its coefficient."""

    coefficient: sp.Expr
    piece: Piece

    def __str__(self) -> str:
        p = self.piece
        bracket = " ".join(f"s{k + 1}" + "'" * order for k, order in enumerate(p.orders))
        tail = "" if p.kind is None else f" {p.kind} at {p.at[0] + 1}{p.at[1] + 1}"
        return f"{self.coefficient} {'Theta_12 ' * p.theta}<{bracket}>{tail}"


@dataclass(frozen=True)
class PairMap:
    """What a neuron makes of a pair, and how a layer carries it on."""

    sources: tuple[Weighed, ...]
    steps: tuple[Weighed, ...]


@dataclass(frozen=True)
class Pairs:
    """A tensor's two pairs as axes (the label with more legs first) and its links, each from one pair to the other.

    `centered`: the pairs' sources enter by their covariance instead of the mean of their product.
    """

    kinds: tuple[Kind, Kind]
    axes: tuple[tuple[int, int], tuple[int, int]]
    links: tuple[tuple[int, int], ...]
    centered: bool = False


@cache
def pairs(name: str) -> Pairs:
    """A tensor's pairs and links, from its forest and pairing."""
    tensor = TENSORS[name]
    place = {label: axis for axis, label in enumerate(tensor.subscripts)}
    inside = [set(pair) for pair in tensor.pairing]
    edges = [tuple(edge) for edge in tensor.forest.edges]
    joined = [edge for edge in edges if set(edge) in inside]
    links = [edge for edge in edges if set(edge) not in inside]
    legs = Counter(label for edge in links for label in edge)
    found = []
    for pair in sorted(tensor.pairing, key=lambda pair: min(place[label] for label in pair)):
        first, second = sorted(pair, key=lambda label: (-legs[label], place[label]))
        kind = Kind(any(set(pair) == set(edge) for edge in joined), (legs[first], legs[second]))
        found.append((kind, (place[first], place[second])))
    ends = tuple(sorted((min(place[u], place[v]), max(place[u], place[v])) for u, v in links))
    (kind, axes), (kind2, axes2) = found
    return Pairs((kind, kind2), (axes, axes2), ends, centered=not links)


def kinds(name: str) -> tuple[Kind, Kind]:
    """The kinds of a tensor's pairs."""
    return pairs(name).kinds


Table = dict[tuple[Piece, Piece], sp.Expr]


def _tables(name: str, layer: Layer) -> dict[str, Table]:
    """Coefficients of the recursion's terms by what they do to the two pairs: sources, steps, products of averages."""
    rule = recursion(name, layer)
    axis = {label: k for k, label in enumerate(rule.labels)}
    found: dict[str, Table] = {"source": {}, "step": {}, "apart": {}}
    for term in read_terms(rule.expression):
        which, pieces = _read(name, term, axis)
        coefficient = term.coefficient / (symbols.r if which == "step" else 1)
        if coefficient.has(symbols.r):
            raise NotAProduct(f"{name} has a source that knows the ratio of widths.")
        found[which][pieces] = found[which].get(pieces, sp.S.Zero) + coefficient
    return found


def _read(name: str, term: Term, axis: dict[int, int]) -> tuple[str, tuple[Piece, Piece]]:
    own = pairs(name)
    order = {axis[int(label)]: k for average in term.averages for label, k, _ in average.atoms}
    links, theta, lower = [], [False, False], None
    for component, labels in term.components:
        ends = tuple(axis[int(x)] for x in labels)
        if component != "Theta":
            lower = (component, ends)
            continue
        inside = [k for k, pair in enumerate(own.axes) if set(ends) <= set(pair)]
        if inside:
            theta[inside[0]] = True
        else:
            links.append((min(ends), max(ends)))
    below: list[tuple[Kind | None, tuple[int, int]]] = [(None, (0, 1))] * 2
    if lower is not None:
        other = pairs(lower[0])
        if links or Counter(_moved(other.links, lower[1])) != Counter(own.links):
            raise NotAProduct(f"{name} hands up {lower[0]} with other links than its own.")
        for kind, axes in zip(other.kinds, other.axes):
            at = tuple(lower[1][k] for k in axes)
            (which,) = [k for k, pair in enumerate(own.axes) if set(at) <= set(pair)]
            where = (own.axes[which].index(at[0]), own.axes[which].index(at[1]))
            below[which] = (kind, (min(where), max(where)) if kind.symmetric else where)
    elif Counter(links) != Counter(own.links):
        raise NotAProduct(f"{name} has a source whose NTKs do not link its pairs as its forest does.")
    made = tuple(Piece(theta[k], (order[own.axes[k][0]], order[own.axes[k][1]]), *below[k]) for k in range(2))
    which_table = "step" if lower is not None else "source" if len(term.averages) == 1 else "apart"
    return which_table, (made[0], made[1])


def _moved(links: tuple[tuple[int, int], ...], ends: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    for u, v in links:
        yield min(ends[u], ends[v]), max(ends[u], ends[v])


@cache
def pair_maps(layer: Layer = MLP) -> dict[Kind, PairMap]:
    """Sources and maps of every kind of pair, found from the recursions and checked against all of them."""
    weights: dict[Kind, dict[str, dict[Piece, sp.Expr]]] = {}
    tables = {name: _tables(name, layer) for name in FOUR}
    for name in sorted(FOUR, key=lambda name: len(set(kinds(name)))):  # two alike first: coefficients are squares
        first, second = kinds(name)
        if first == second:
            weights[first] = {
                which: {p: sp.sqrt(c) for (p, q), c in tables[name][which].items() if p == q}
                for which in ("source", "step")
            }
        elif (first in weights) != (second in weights):
            known = first if first in weights else second
            weights[second if known is first else first] = {
                which: _divided(tables[name][which], weights[known][which], known is first)
                for which in ("source", "step")
            }
    for name in FOUR:
        _prove(name, tables[name], weights)
    return {
        kind: PairMap(*(tuple(Weighed(c, p) for p, c in sorted(own[w].items(), key=_key)) for w in ("source", "step")))
        for kind, own in sorted(weights.items())
    }


def _key(item: tuple[Piece, sp.Expr]) -> tuple:
    piece, coefficient = item
    lower = (piece.kind.joined, piece.kind.legs) if piece.kind is not None else (False, (0, 0))
    return lower, piece.at, piece.theta, piece.orders, str(coefficient)


def _divided(table: Table, known: dict[Piece, sp.Expr], first: bool) -> dict[Piece, sp.Expr]:
    found: dict[Piece, sp.Expr] = {}
    for (p, q), coefficient in table.items():
        own, other = (q, p) if first else (p, q)
        found.setdefault(own, coefficient / known[other])
    return found


def _prove(name: str, tables: dict[str, Table], weights: dict[Kind, dict[str, dict[Piece, sp.Expr]]]) -> None:
    """The recursion is the product of its pairs' maps, term by term, and a covariance exactly where it has to be."""
    first, second = (weights[kind] for kind in kinds(name))
    for which in ("source", "step"):
        product = {(p, q): c * d for p, c in first[which].items() for q, d in second[which].items()}
        if set(product) != set(tables[which]) or any(sp.expand(product[k] - c) != 0 for k, c in tables[which].items()):
            raise NotAProduct(f"The recursion of {name} is no product of maps on its pairs.")
    apart = {key: -c for key, c in tables["source"].items()} if pairs(name).centered else {}
    if set(apart) != set(tables["apart"]) or any(sp.expand(apart[k] - c) != 0 for k, c in tables["apart"].items()):
        raise NotAProduct(f"The sources of {name} are neither a product's mean nor a covariance.")
