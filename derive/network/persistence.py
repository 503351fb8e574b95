r"""From a layer's definition to the recursions of functionals: the 1/n expansion with neurons that persist.

For functions f and h of two neurons of layer l+1 and the trees on them:

1. Average over layer l+1's parameters given layer l. A neuron's z' is Gaussian about its carried-over part, so a leg
   W_ij of a tree meets another leg of its neuron, or f, which it differentiates. What is left is (P d ... f)(z_i); the
   variance in P fluctuates with the averages (1/n) sum_j sigma sigma of layer l: d d f times their deviations.
2. Expand in 1/n: every average runs over the layer's neurons, the carried-over ones among them, so two neurons coincide
   once in n times. To first order one functional of layer l acts, in every way that its trees permit; a pair of neurons
   that may coincide has the coinciding neuron's share in its functional (a hat).
3. Take the cumulant.

Without a skip connection P f is a number, and every functional becomes a tensor times derivatives of the functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product
from math import factorial

import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.network.component import GRAM, canonical, label_key
from derive.network.definition import InputWeights, Layer, Skip, Weights
from derive.network.forward import ForwardTerm, Tree, forward
from derive.network.functional import SHAPES, Function, Functional, Shape
from derive.network.terms import Label
from derive.network.trees import OBJECTS, Forest, recognize

Components = tuple[tuple[str, tuple[Label, ...]], ...]
NAMES = ("f", "h")
"""Of the functions of the first and the second neuron."""


@dataclass(frozen=True)
class Neuron:
    """A neuron of layer l in a product: its function; whether it is an outer one that was carried over (`pinned`), and
    whether its mean is subtracted (`centred`)."""

    function: Function
    pinned: bool = False
    centred: bool = False
    side: int = 0
    """The outer neuron that it belongs to."""


@dataclass(frozen=True)
class Product:
    """Functions of neurons of layer l and trees on them; each neuron that is not pinned is averaged over."""

    coefficient: sp.Expr
    components: Components
    neurons: tuple[Neuron, ...]
    trees: tuple[Tree, ...]


@dataclass(frozen=True)
class FunctionalTerm:
    """coefficient * components * means * functional; labels g1, g2, ... are summed over the labels of f or h.

    A mean of a carried function alone is its mean at layer l+1; all else is of layer l.
    """

    coefficient: sp.Expr
    components: Components
    means: tuple[Function, ...]
    functional: Functional | None

    @property
    def sort_key(self) -> tuple:
        return (
            self.functional.sort_key if self.functional else ("",),
            tuple(m.sort_key for m in self.means),
            tuple((name, tuple(map(label_key, x))) for name, x in self.components),
        )

    @property
    def summed(self) -> tuple[Label, ...]:
        functions = [*self.means, *(self.functional.functions if self.functional else ())]
        return tuple(sorted({g for f in functions for g in f.derivatives}, key=label_key))


Sum = dict[tuple, tuple[sp.Expr, FunctionalTerm]]


def add(total: Sum, term: FunctionalTerm) -> None:
    """Terms that differ by symmetries or the names of summed labels meet."""
    if term.functional is not None and term.functional.vanishes:
        return
    term = _canonical(term)
    old = total[term.sort_key][0] if term.sort_key in total else sp.S.Zero
    total[term.sort_key] = (old + term.coefficient, term)


def _canonical(term: FunctionalTerm) -> FunctionalTerm:
    means = tuple(m for m in term.means if not m.is_constant)
    names = term.summed
    best: FunctionalTerm | None = None
    for image in permutations([f"g{k + 1}" for k in range(len(names))]):
        table: dict[Label, Label] = dict(zip(names, image))
        components = sorted(
            ((n, canonical(n, x)) for n, x in term.components), key=lambda c: (c[0], [label_key(x) for x in c[1]])
        )
        way = FunctionalTerm(
            term.coefficient,
            tuple(components),
            tuple(sorted((m.rename(table) for m in means), key=lambda m: m.sort_key)),
            term.functional.rename(table) if term.functional else None,
        )
        if best is None or way.sort_key < best.sort_key:
            best = way
    assert best is not None
    return best


def wick(term: ForwardTerm, shape: Shape, layer: Layer) -> Iterator[Product]:
    """The average over layer l+1's parameters, given layer l, of a forward term times the neurons' functions."""
    home = {v: k for k, own in enumerate(shape.neurons) for v in own}
    if any(home[u] != home[v] for u, v in (c.vertices for c in term.contractions)):
        return
    components = tuple((GRAM, c.vertices) for c in term.contractions if isinstance(c.term, InputWeights))
    options = []
    for k, carries in enumerate(shape.carries):
        legs = [leg for leg in term.legs if home[leg.vertex] == k]
        options.append([x for x in _pairings(legs) if carries or not x[1]])
    for choice in product(*options):
        coefficient = term.coefficient
        place: dict[int, tuple[str, int]] = {}
        derivatives: list[list[Label]] = [[] for _ in shape.neurons]
        extra: dict[tuple[str, int], Function] = {}
        count = 0
        for k, (pairs, single) in enumerate(choice):
            for leg in term.legs:
                if home[leg.vertex] == k and isinstance(leg.term, Skip):
                    coefficient *= leg.term.strength
                    place[leg.vertex] = ("pinned", k)
            for u, v in pairs:
                coefficient *= u.term.variance
                place[max(u.vertex, v.vertex)] = ("inner", min(u.vertex, v.vertex))
            for leg in single:
                count += 1
                coefficient *= leg.term.variance
                derivatives[k].append(f"g{count}")
                extra["inner", leg.vertex] = Function(atoms=((f"g{count}", 0, leg.term.activation),))
        yield from _with_fluctuations(term, shape, layer, coefficient, components, place, derivatives, extra, count)


def _pairings(legs: list) -> list[tuple[list, list]]:
    """(pairs of legs of one weight matrix, legs that meet the neuron's function); skips are neither."""
    weights = [leg for leg in legs if not isinstance(leg.term, Skip)]
    if any(not isinstance(leg.term, Weights) for leg in weights):
        return []  # a bias or input weight has no factor to meet but its like, which no tree has

    def split(rest: list) -> Iterator[tuple[list, list]]:
        if not rest:
            yield [], []
            return
        first, others = rest[0], rest[1:]
        for pairs, single in split(others):
            yield pairs, [first, *single]
        for k, other in enumerate(others):
            if other.term == first.term:
                for pairs, single in split([*others[:k], *others[k + 1 :]]):
                    yield [(first, other), *pairs], single

    return list(split(weights))


def _with_fluctuations(
    term: ForwardTerm,
    shape: Shape,
    layer: Layer,
    coefficient: sp.Expr,
    components: Components,
    place: Mapping[int, tuple[str, int]],
    derivatives: list[list[Label]],
    extra: Mapping[tuple[str, int], Function],
    count: int,
) -> Iterator[Product]:
    """Put the neurons together; then 0, 1 or 2 deviations of the averages in the carried functions' variances."""

    def where(vertex: int) -> tuple[str, int]:
        return place.get(vertex, ("inner", vertex))

    functions: dict[tuple[str, int], Function] = dict(extra)
    for factor in term.factors:
        if where(factor.neuron)[0] == "inner":
            at = where(factor.neuron)
            new = Function(atoms=((factor.label, factor.order, factor.function),))
            functions[at] = functions.get(at, Function()) * new
    trees = [(t.kind, tuple((where(j), label) for j, label in t.slots)) for t in term.trees]
    for _, slots in trees:
        for at, _ in slots:
            functions.setdefault(at, Function())
    sources = [t for t in layer.terms if isinstance(t, Weights)]
    for numbers in product(range(3), repeat=len(shape.neurons)):
        if sum(numbers) > 2 or any(m and not shape.carries[k] for k, m in enumerate(numbers)):
            continue
        for choice in product(sources, repeat=sum(numbers)):
            factor, used, own = coefficient, count, [list(d) for d in derivatives]
            neurons = {at: Neuron(f, at[0] == "pinned", side=_side(at, shape)) for at, f in functions.items()}
            picks = iter(choice)
            for k, number in enumerate(numbers):
                factor = factor / factorial(number)
                for _ in range(number):
                    source = next(picks)
                    g, g2 = f"g{used + 1}", f"g{used + 2}"
                    used += 2
                    own[k] += [g, g2]
                    factor = factor * source.variance / 2
                    square = Function(atoms=((g, 0, source.activation), (g2, 0, source.activation)))
                    neurons["deviation", used] = Neuron(square, centred=True, side=k)
            for k, carries in enumerate(shape.carries):
                if carries:
                    neurons["pinned", k] = Neuron(Function(NAMES[k], tuple(own[k])), pinned=True, side=k)
            index = {at: number for number, at in enumerate(neurons)}
            placed = tuple(Tree(kind, tuple((index[at], label) for at, label in slots)) for kind, slots in trees)
            yield Product(factor, components, tuple(neurons.values()), placed)


def _side(at: tuple[str, int], shape: Shape) -> int:
    kind, number = at
    return number if kind == "pinned" else next(k for k, own in enumerate(shape.neurons) if number in own)


def _means(trees: tuple[Tree, ...]) -> Components | None:
    """Theta for each NTK of one neuron; None if anything else is there."""
    if any(t.kind != "H" or t.slots[0][0] != t.slots[1][0] for t in trees):
        return None
    return tuple(("Theta", (t.slots[0][1], t.slots[1][1])) for t in trees)


def add_leading(total: Sum, state: Product, sign: sp.Expr = sp.S.One) -> None:
    """Infinite width: independent Gaussian neurons, NTKs at their means."""
    means = _means(state.trees)
    if means is not None and not any(n.centred for n in state.neurons):
        functions = tuple(n.function for n in state.neurons)
        add(total, FunctionalTerm(sign * state.coefficient, state.components + means, functions, None))


def add_first(total: Sum, state: Product, connected: bool) -> None:
    """One functional of layer l; `connected` asks that it joins the two outer neurons."""
    everything = range(len(state.trees))
    for size in range(min(len(everything), 2) + 1):
        for chosen in combinations(everything, size):
            means = _means(tuple(t for k, t in enumerate(state.trees) if k not in chosen))
            if means is not None:
                _add_functionals(total, state, tuple(state.trees[k] for k in chosen), means, connected)
    straddling = [t for t in state.trees if t.kind == "H" and t.slots[0][0] != t.slots[1][0]]
    if len(straddling) > 2:
        _add_coincidence(total, state, straddling)


def _add_coincidence(total: Sum, state: Product, straddling: list[Tree]) -> None:
    """More NTKs between two neurons than a functional has: only where the two coincide is it of first order."""
    joined = {neuron for t in straddling for neuron, _ in t.slots}
    rest = _means(tuple(t for t in state.trees if t not in straddling))
    if len(joined) > 2 or rest is None or any(n.centred for n in state.neurons):
        return
    x, y = sorted(joined)
    if state.neurons[x].pinned and state.neurons[y].pinned:
        return
    both = state.neurons[x].function * state.neurons[y].function
    others = tuple(n.function for k, n in enumerate(state.neurons) if k not in joined)
    thetas = tuple(("Theta", (t.slots[0][1], t.slots[1][1])) for t in straddling)
    add(total, FunctionalTerm(state.coefficient, state.components + rest + thetas, (both, *others), None))


def _add_functionals(total: Sum, state: Product, trees: tuple[Tree, ...], means: Components, connected: bool) -> None:
    """Every functional whose trees are these."""
    on = sorted({neuron for t in trees for neuron, _ in t.slots})
    if len(on) > 2:
        return
    if len(on) == 1 and (len(trees) > 1 or trees[0].kind != "H"):
        raise DeriveError(f"the mean of {trees[0].kind} on one neuron times its functions is no functional known here")
    needed = {k for k, n in enumerate(state.neurons) if n.centred}
    seen = set()
    for name, shape in SHAPES.items():
        for table, neurons in _matches(shape, trees):
            free = [k for k, own in enumerate(shape.neurons) if not own]
            others = [k for k in range(len(state.neurons)) if k not in neurons.values()]
            for extra in product(others, repeat=len(free)):
                full = neurons | dict(zip(free, extra))
                key = (name, frozenset(full.values()))
                if len(set(full.values())) < len(full) or key in seen or not needed <= set(full.values()):
                    continue
                seen.add(key)
                if connected and len({state.neurons[k].side for k in full.values()}) < 2:
                    continue
                carried = [full[k] for k, c in enumerate(shape.carries) if c]
                functions = tuple(state.neurons[k].function for k in carried)
                rest = tuple(n.function for k, n in enumerate(state.neurons) if k not in carried)
                joined = len(shape.neurons) == 2 and all(shape.carries)
                hat = joined and shape.only_ntks and not all(state.neurons[k].pinned for k in carried)
                functional = Functional(name, tuple(table[v] for v in shape.vertices), functions, hat)
                coefficient = state.coefficient * (1 if hat else symbols.r)
                add(total, FunctionalTerm(coefficient, state.components + means, rest, functional))


def _matches(shape: Shape, trees: tuple[Tree, ...]) -> Iterator[tuple[dict[int, Label], dict[int, int]]]:
    """(label of each vertex, neuron of each of the shape's neurons) for the ways to see the trees as the shape's."""
    parts = shape.forest.trees() if shape.vertices else ()
    if sorted(recognize(t)[0] for t in parts) != sorted(t.kind for t in trees):
        return
    vertices = [(k, s) for k, t in enumerate(trees) for s in range(len(t.slots))]
    number = {v: i for i, v in enumerate(vertices)}
    edges = []
    for k, t in enumerate(trees):
        slot_of = {v: s for s, v in enumerate(OBJECTS[t.kind].vertices)}
        edges += [(number[k, slot_of[u]], number[k, slot_of[v]]) for u, v in OBJECTS[t.kind].edges]
    actual = Forest(tuple(range(len(vertices))), tuple(edges))
    for map_ in shape.forest.isomorphisms(actual) if vertices else [{}]:
        slot = {v: trees[vertices[i][0]].slots[vertices[i][1]] for v, i in map_.items()}
        neurons: dict[int, int] = {}
        for k, own in enumerate(shape.neurons):
            found = {slot[v][0] for v in own}
            if len(found) > 1:
                break
            if found:
                neurons[k] = found.pop()
        else:
            if len(set(neurons.values())) == len(neurons):
                yield {v: s[1] for v, s in slot.items()}, neurons


@cache
def _sums(name: str, layer: Layer) -> tuple[Sum, Sum]:
    """(leading, first order) of the mean of all that the functional holds; of a covariance only what joins the two."""
    shape = SHAPES[name]
    leading: Sum = {}
    first: Sum = {}
    for term in forward(shape.forest, layer):
        for state in wick(term, shape, layer):
            add_leading(leading, state)
            add_first(first, state, shape.connected)
    return leading, first


@cache
def functional_terms(name: str, layer: Layer) -> tuple[FunctionalTerm, ...]:
    """The functional `name`[f, h] of layer l+1 in functionals of layer l."""
    if name not in SHAPES:
        raise DeriveError(f"{name} has no functional: it is of order one, or there is no such tensor")
    total = dict(_sums(name, layer)[1])
    if name == "H1":  # n E[f (H - Theta)]: the mean Theta times the correction to f's mean is not in it
        for _, (mean, theta) in _sums(name, layer)[0].items():
            for _, (coefficient, term) in _sums("G1", layer)[1].items():
                means = tuple(m for m in theta.means if m.carried != NAMES[0]) + term.means
                both = replace(term, coefficient=-mean * coefficient, means=means)
                add(total, replace(both, components=theta.components + term.components))
    found = []
    for coefficient, term in total.values():
        for part in sp.Add.make_args(sp.expand(coefficient)):
            if part != 0:
                found.append(replace(term, coefficient=part))
    return tuple(sorted(found, key=_print_order))


def _print_order(term: FunctionalTerm) -> tuple:
    """Terms that carry most over first."""
    functions = term.functional.functions if term.functional else term.means
    kind = list(SHAPES).index(term.functional.name) if term.functional else len(SHAPES)
    return -sum(1 for f in functions if f.carried), kind, len(term.means), str(term.coefficient), term.sort_key
