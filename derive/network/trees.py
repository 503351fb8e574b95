r"""NTK, dNTK and ddNTKs as trees, and the O(1/n) tensors as what their symmetries leave, (infinity.5), (infinity.7).

A vertex of degree k is a k-th parameter derivative of z, an edge is a contraction with the learning-rate tensor: z is
a point, H an edge, dH and ddII are paths, ddI is a star. The joint cumulants of order 1/n are the forests on four
vertices, their means at order 1 (with corrections of order 1/n) those on two. Neurons are exchangeable, so a cumulant
is a sum over the pairings of its vertices, and the automorphisms of the forest say which of them share a tensor.

>>> [sorted(orbit) for orbit in orbits(parse("dH.z"))]
[[((0, 1), (2, 3)), ((0, 2), (1, 3))], [((0, 3), (1, 2))]]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

from derive.errors import DeriveError

Pairing = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Forest:
    """A graph without loops on sample-labelled vertices."""

    vertices: tuple[int, ...]
    edges: tuple[tuple[int, int], ...] = ()

    def relabel(self, names: Sequence[int]) -> Forest:
        table = dict(zip(self.vertices, names))
        return Forest(tuple(names), tuple((table[u], table[v]) for u, v in self.edges))

    def trees(self) -> tuple[Forest, ...]:
        """The connected components, in the order of their first vertex."""
        group = {v: {v} for v in self.vertices}
        for u, v in self.edges:
            merged = group[u] | group[v]
            for w in merged:
                group[w] = merged
        components = dict.fromkeys(frozenset(group[v]) for v in self.vertices)
        return tuple(
            Forest(tuple(v for v in self.vertices if v in part), tuple(e for e in self.edges if e[0] in part))
            for part in components
        )

    def isomorphisms(self, other: Forest) -> Iterator[dict[int, int]]:
        """All maps of the vertices onto those of `other` that carry edges to edges."""
        if len(self.vertices) != len(other.vertices) or len(self.edges) != len(other.edges):
            return
        edges = {frozenset(e) for e in other.edges}
        for image in permutations(other.vertices):
            table = dict(zip(self.vertices, image))
            if all(frozenset((table[u], table[v])) in edges for u, v in self.edges):
                yield table


OBJECTS = {
    "z": Forest((0,)),
    "H": Forest((1, 2), ((1, 2),)),
    "dH": Forest((0, 1, 2), ((0, 1), (0, 2))),
    "ddI": Forest((0, 1, 2, 3), ((0, 1), (0, 2), (0, 3))),
    "ddII": Forest((1, 2, 3, 4), ((1, 2), (1, 3), (2, 4))),
}
"""The random objects of one layer; the vertex names are the sample labels of their definitions."""

OBJECT_LATEX = {
    "z": r"z",
    "H": r"\widehat{H}",
    "dH": r"\widehat{\mathrm{d}H}",
    "ddI": r"\widehat{\mathrm{dd_{I}}H}",
    "ddII": r"\widehat{\mathrm{dd_{II}}H}",
}


@cache
def recognize(tree: Forest) -> tuple[str, tuple[int, ...]]:
    """Which object a tree is, and its vertices in the order of that object's definition."""
    for name, template in OBJECTS.items():
        for table in template.isomorphisms(tree):
            return name, tuple(table[v] for v in template.vertices)
    raise DeriveError(f"a tree of {len(tree.vertices)} vertices is beyond the second differentials of the NTK")


@cache
def parse(product: str) -> Forest:
    """The forest of a product of objects, e.g. "z.z.H"; vertices are counted from 1, or from 0 after a dH or ddI."""
    kinds = product.split(".")
    start = 0 if kinds[0] in ("dH", "ddI") else 1
    vertices: list[int] = []
    edges: list[tuple[int, int]] = []
    for kind in kinds:
        size = len(OBJECTS[kind].vertices)
        tree = OBJECTS[kind].relabel(range(start, start + size))
        vertices += tree.vertices
        edges += tree.edges
        start += size
    return Forest(tuple(vertices), tuple(edges))


def pairings(items: Sequence[int]) -> Iterator[Pairing]:
    """All perfect matchings of an even number of items, each written once."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for k, partner in enumerate(rest):
        for tail in pairings((*rest[:k], *rest[k + 1 :])):
            yield ((first, partner), *tail)


def sorted_pairing(pairs: Iterable[Iterable[int]]) -> Pairing:
    """One spelling for a matching: pairs sorted inside and among themselves."""
    return tuple(sorted((min(p), max(p)) for p in map(tuple, pairs)))


def orbits(forest: Forest) -> list[set[Pairing]]:
    """The pairings of the vertices, grouped by the forest's automorphisms: one independent tensor each."""
    found: list[set[Pairing]] = []
    for pairing in pairings(forest.vertices):
        if not any(sorted_pairing(pairing) in orbit for orbit in found):
            found.append({sorted_pairing((t[a], t[b]) for a, b in pairing) for t in forest.isomorphisms(forest)})
    return found


@dataclass(frozen=True)
class Tensor:
    """A name for one orbit: the coefficient of the Kronecker deltas of `pairing` in the cumulant of `product`.

    `order` is the power of 1/n that it multiplies in the cumulant and `subleading` marks the 1/n part of a mean of
    order 1; `subscripts` is the order in which the tensor's sample labels are written.
    """

    name: str
    product: str
    subscripts: tuple[int, ...]
    pairing: Pairing
    subleading: bool = False

    @property
    def order(self) -> int:
        return 1 if self.subleading or len(self.subscripts) == 4 else 0

    @property
    def forest(self) -> Forest:
        return parse(self.product)

    @property
    def symmetries(self) -> tuple[tuple[int, ...], ...]:
        """Permutations of the subscripts (as positions) that leave the tensor as it is, the identity first."""
        found = set()
        for table in self.forest.isomorphisms(self.forest):
            if sorted_pairing((table[a], table[b]) for a, b in self.pairing) == sorted_pairing(self.pairing):
                found.add(tuple(self.subscripts.index(table[s]) for s in self.subscripts))
        return tuple(sorted(found))


TENSORS = {
    tensor.name: tensor
    for tensor in (
        Tensor("K", "z.z", (1, 2), ((1, 2),)),
        Tensor("Theta", "H", (1, 2), ((1, 2),)),
        Tensor("V", "z.z.z.z", (1, 2, 3, 4), ((1, 2), (3, 4))),
        Tensor("G1", "z.z", (1, 2), ((1, 2),), subleading=True),
        Tensor("D", "z.z.H", (1, 2, 3, 4), ((1, 2), (3, 4))),
        Tensor("F", "z.z.H", (1, 3, 2, 4), ((1, 3), (2, 4))),
        Tensor("H1", "H", (1, 2), ((1, 2),), subleading=True),
        Tensor("A", "H.H", (1, 2, 3, 4), ((1, 2), (3, 4))),
        Tensor("B", "H.H", (1, 3, 2, 4), ((1, 3), (2, 4))),
        Tensor("P", "dH.z", (0, 1, 2, 3), ((0, 3), (1, 2))),
        Tensor("Q", "dH.z", (0, 1, 2, 3), ((0, 1), (2, 3))),
        Tensor("R", "ddI", (0, 1, 2, 3), ((0, 1), (2, 3))),
        Tensor("S", "ddII", (1, 2, 3, 4), ((1, 2), (3, 4))),
        Tensor("T", "ddII", (1, 3, 4, 2), ((1, 3), (4, 2))),
        Tensor("U", "ddII", (1, 4, 2, 3), ((1, 4), (2, 3))),
    )
}
"""The fifteen names and their subscript orders: a convention, (infinity.11) and (infinity.12). What there is to name,
and every symmetry, follows from the forests."""


@dataclass(frozen=True)
class Insertion:
    """One Kronecker structure of one O(1/n) cumulant: a tensor, its subscripts and which vertices share a neuron."""

    tensor: str
    subscripts: tuple[int, ...]
    pairing: Pairing


@cache
def insertions(product: str) -> tuple[Insertion, ...]:
    """The cumulant of a product at order 1/n, spelled out: every pairing with the tensor that the symmetry gives it."""
    forest = parse(product)
    found = []
    for pairing in map(sorted_pairing, pairings(forest.vertices)):
        for tensor in TENSORS.values():
            if tensor.product != product or tensor.order != 1:
                continue
            for table in forest.isomorphisms(forest):
                if sorted_pairing((table[a], table[b]) for a, b in tensor.pairing) == pairing:
                    found.append(Insertion(tensor.name, tuple(table[s] for s in tensor.subscripts), pairing))
                    break
    return tuple(found)


CUMULANTS = tuple(dict.fromkeys(tensor.product for tensor in TENSORS.values()))
"""The products whose joint cumulants carry the statistics at first order."""
