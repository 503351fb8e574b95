r"""The 1/n expectation engine: from a forward equation to the coefficient of a Kronecker structure in a cumulant.

1. Average over layer l+1's parameters (Wick): with the contractions of the learning-rate tensor the pairs tie the
   outer neurons in twos, and each pair that goes through the layer below becomes an average over its n_l neurons.
2. Expand the averages: neurons of different pairs are distinct, up to a fraction 1/n_l of coincidences.
3. Expand each expectation over layer l in its joint cumulants: E[f] = exp(sum of cumulants times derivatives) f. The
   means give Gaussian brackets and Theta; one insertion of a cumulant of order 1/n_{l-1} is the first correction.
   A cumulant of z's acts as derivatives on the bracket; one with H, dH, ... takes the place of those factors.

The small parameter is 1/n_l, so an insertion carries r = n_l / n_{l-1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import factorial

import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.network.component import GRAM
from derive.network.definition import InputWeights, Layer, Skip
from derive.network.forward import ForwardTerm, Tree, forward, set_partitions
from derive.network.terms import Atom, Average, Label, Terms
from derive.network.trees import CUMULANTS, Forest, Pairing, insertions, parse, recognize, sorted_pairing


class OpenHierarchy(DeriveError):
    """The layer's tensors do not close among themselves."""


@dataclass(frozen=True)
class Averaged:
    """A product of functions of inner neurons, averaged over each neuron: what is left of a term after Wick."""

    coefficient: sp.Expr
    components: tuple[tuple[str, tuple[Label, ...]], ...]
    functions: tuple[tuple[Atom, ...], ...]
    trees: tuple[Tree, ...]
    """Their slots' neurons count the functions."""
    pinned: bool = False
    """Whether a neuron is an outer one, which a skip connection carries over, instead of being averaged over."""


@dataclass
class Moment:
    """The coefficient of one Kronecker structure in a moment, up to first order in 1/n_l."""

    leading: Terms
    first: Terms


def wick(term: ForwardTerm, pairing: Pairing) -> Averaged | None:
    """The average over layer l+1's parameters, as far as it gives the outer Kronecker structure (None: it does not)."""
    tied = {sorted_pairing([c.vertices])[0] for c in term.contractions}
    if not tied <= set(pairing):
        return None
    legs = {leg.vertex: leg.term for leg in term.legs}
    pairs = [pair for pair in pairing if pair not in tied]
    if any(u not in legs or v not in legs or legs[u] != legs[v] for u, v in pairs):
        return None
    coefficient = term.coefficient
    components: list[tuple[str, tuple[Label, ...]]] = []
    home = {max(c.vertices): min(c.vertices) for c in term.contractions}
    pinned = False
    for (u, v), source in [*((c.vertices, c.term) for c in term.contractions), *((p, legs[p[0]]) for p in pairs)]:
        if isinstance(source, InputWeights):
            components.append((GRAM, (u, v)))
    for u, v in pairs:
        source = legs[u]
        pinned |= isinstance(source, Skip)
        coefficient *= source.strength**2 if isinstance(source, Skip) else source.variance
        home[max(u, v)] = min(u, v)
    names = sorted({home.get(j, j) for j in term.neurons})
    number = {j: names.index(home.get(j, j)) for j in term.neurons}
    functions = tuple(
        tuple((f.label, f.order, f.function) for f in term.factors if number[f.neuron] == k) for k in range(len(names))
    )
    trees = tuple(Tree(t.kind, tuple((number[j], label) for j, label in t.slots)) for t in term.trees)
    return Averaged(coefficient, tuple(components), functions, trees, pinned)


def expand_neurons(state: Averaged) -> Iterator[tuple[int, sp.Expr, Averaged]]:
    """(power of 1/n_l, weight, the product with distinct neurons), up to the first power.

    n (n-1) ... (n-q+1) terms of n^p have q distinct neurons: for q = p this is 1 - p (p-1) / 2n.
    """
    p = len(state.functions)
    for partition in set_partitions(tuple(range(p))):
        lost = p - len(partition)
        if lost > 1:
            continue
        block = {k: b for b, members in enumerate(partition) for k in members}
        functions = tuple(tuple(a for k in members for a in state.functions[k]) for members in partition)
        trees = tuple(Tree(t.kind, tuple((block[j], label) for j, label in t.slots)) for t in state.trees)
        merged = Averaged(state.coefficient, state.components, functions, trees)
        yield lost, sp.S.One, merged
        if lost == 0 and p > 1:
            yield 1, -sp.Rational(p * (p - 1), 2), merged


def _means(trees: tuple[Tree, ...]) -> list[tuple[str, tuple[Label, ...]]] | None:
    """The objects' means at order one: Theta for an NTK of one neuron, nothing else."""
    found: list[tuple[str, tuple[Label, ...]]] = []
    for tree in trees:
        if tree.kind != "H" or tree.slots[0][0] != tree.slots[1][0]:
            return None
        found.append(("Theta", (tree.slots[0][1], tree.slots[1][1])))
    return found


def add_leading(total: Terms, state: Averaged, weight: sp.Expr = sp.S.One) -> None:
    """Gaussian neurons, objects at their means."""
    means = _means(state.trees)
    if means is not None:
        total.add(weight * state.coefficient, [*state.components, *means], [Average(f) for f in state.functions])


def add_insertions(total: Terms, state: Averaged) -> None:
    """One cumulant of order 1/n_{l-1}, each that can act, in every way."""
    for cumulant in CUMULANTS:
        forest = parse(cumulant)
        shapes = [recognize(tree) for tree in forest.trees()]
        legs = [slots[0] for kind, slots in shapes if kind == "z"]
        bodies = [(kind, slots) for kind, slots in shapes if kind != "z"]
        symmetry = sp.Rational(1, factorial(len(legs)))
        for chosen in combinations(range(len(state.trees)), len(bodies)):
            picked = [state.trees[k] for k in chosen]
            if sorted(t.kind for t in picked) != sorted(kind for kind, _ in bodies):
                continue
            means = _means(tuple(t for k, t in enumerate(state.trees) if k not in chosen))
            if means is None:
                continue
            place: dict[int, tuple[int, Label]] = {}
            for (_, slots), tree in zip(bodies, picked):
                place.update(zip(slots, tree.slots))
            for neurons in product(range(len(state.functions)), repeat=len(legs)):
                acts: list[list[str]] = [[] for _ in state.functions]
                for k, (vertex, neuron) in enumerate(zip(legs, neurons), start=1):
                    place[vertex] = (neuron, f"g{k}")
                    acts[neuron].append(f"g{k}")
                averages = [Average(f, tuple(g)) for f, g in zip(state.functions, acts)]
                for insertion in insertions(cumulant):
                    if all(place[a][0] == place[b][0] for a, b in insertion.pairing):
                        component = (insertion.tensor, tuple(place[s][1] for s in insertion.subscripts))
                        weight = symbols.r * symmetry * state.coefficient
                        total.add(weight, [*state.components, *means, component], averages)


@cache
def moment(forest: Forest, pairing: Pairing, layer: Layer, first_order: bool = True) -> Moment:
    """The coefficient of the pairing's Kronecker deltas in the mean of a product of objects at layer l+1."""
    result = Moment(Terms(), Terms())
    for term in forward(forest, layer):
        averaged = wick(term, pairing)
        if averaged is None:
            continue
        if averaged.pinned and first_order:
            raise OpenHierarchy(_reason(layer))
        for power, weight, state in expand_neurons(averaged):
            add_leading(result.leading if power == 0 else result.first, state, weight)
            if power == 0 and first_order:
                add_insertions(result.first, state)
    return result


def cumulant(forest: Forest, pairing: Pairing, layer: Layer, order: int) -> Terms:
    """The coefficient of the pairing in the joint cumulant of the forest's trees, at the given order in 1/n_l."""
    trees = forest.trees()
    target = sorted_pairing(pairing)
    total = Terms()
    for partition in set_partitions(tuple(range(len(trees)))):
        sign = sp.Integer((-1) ** (len(partition) - 1) * factorial(len(partition) - 1))
        blocks = []
        for members in partition:
            vertices = tuple(v for k in members for v in trees[k].vertices)
            part = tuple(pair for pair in target if pair[0] in vertices and pair[1] in vertices)
            if 2 * len(part) != len(vertices):
                break
            blocks.append((Forest(vertices, tuple(e for k in members for e in trees[k].edges)), part))
        else:
            moments = [moment(f, p, layer, first_order=order > 0) for f, p in blocks]
            total += _product(moments, sign, order)
    return total


def _product(moments: list[Moment], sign: sp.Expr, order: int) -> Terms:
    """The part of the given order in a product of moments."""
    unit = Terms()
    unit.add(sign, [], [])
    result = Terms()
    for corrected in range(len(moments)) if order else [None]:
        part = unit
        for k, m in enumerate(moments):
            part = part.times(m.first if k == corrected else m.leading)
        result += part
    return result


def _reason(layer: Layer) -> str:
    skip = next(str(t) for t in layer.terms if t.persistent)
    return (
        f"in {layer} the term {skip} carries a neuron's own z into its z' at order one, so the neuron persists from "
        "layer to layer, joint cumulants of all orders of two neurons become O(1/n), and the tensors V, D, ..., U do "
        "not close among themselves; what closes are their functionals (derive.network.persistent_recursion)"
    )
