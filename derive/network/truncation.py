r"""What a recursion of the tensors alone would say of a layer whose neurons persist: functionals cut down to tensors.

In a plain layer a functional is its tensors times derivatives of its functions, V[f, h] = (1/4) V <d d f> <d d h>: the
expansion of two neurons in their joint cumulants. Where neurons persist, cumulants of all orders are of order 1/n, and
this drops all but the lowest. It is exact for linear activations, hence at leading order where K flows to zero; else it
serves to say how far off such a theory is.

>>> truncated("B", RESIDUAL).expression.subs(xi, 0) == recursion("B").expression
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

import sympy as sp

from derive import symbols
from derive.errors import DeriveError
from derive.network.component import Component
from derive.network.definition import RESIDUAL, Layer, Skip, xi
from derive.network.expectation import Averaged, add_insertions, add_leading
from derive.network.forward import Tree
from derive.network.functional import SHAPES, Function, Functional, tensor_functions
from derive.network.persistence import NAMES, FunctionalTerm
from derive.network.persistent_recursion import functional_recursion
from derive.network.tensor_recursion import Recursion, recursion
from derive.network.terms import Atom, Average, Label, Terms, differentiate, read_terms
from derive.network.trees import TENSORS, recognize

__all__ = ["RESIDUAL", "truncated", "truncated_recursions", "xi"]


@cache
def truncated_recursions(layer: Layer = RESIDUAL) -> Mapping[str, sp.Expr]:
    """All fifteen for one input and equal widths: K and Theta as they are, the others truncated."""
    found = {name: recursion(name, layer).single_input() for name in ("K", "Theta")}
    found |= {name: truncated(name, layer, single_input=True) for name in SHAPES}
    return {name: found[name].equal_widths().expression for name in TENSORS}


@cache
def truncated(name: str, layer: Layer, single_input: bool = False) -> Recursion:
    """The tensor at layer l+1 in brackets and tensors of layer l, the functionals of layer l cut down to tensors."""
    if name not in SHAPES:
        raise DeriveError(f"there is no functional of {name!r}; choose one of {' '.join(SHAPES)}")
    strength = next((t.strength for t in layer.terms if isinstance(t, Skip)), sp.S.Zero)
    derived, outer = functional_recursion(name, layer), tensor_functions(name)
    subscripts = TENSORS[name].subscripts
    if single_input:
        derived, subscripts = derived.single_input(), (0,) * len(subscripts)
        outer = tuple(f.rename({label: 0 for label, _, _ in f.atoms}) for f in outer)
    held = dict(zip((f for f, c in zip(NAMES, SHAPES[name].carries) if c), outer))
    total = sp.Add(*(_term(term, held, strength) for term in derived.terms))
    return Recursion(name, subscripts, read_terms(sp.expand(total)), layer)


def _term(term: FunctionalTerm, held: Mapping[str, Function], strength: sp.Expr) -> sp.Expr:
    """One term with f and h replaced by the z's of the tensor, its sums carried out."""
    everything = [*term.means, *(term.functional.functions if term.functional else ())]
    home = {g: f.carried for f in everything for g in f.derivatives}
    total = sp.S.Zero
    labels = [tuple(dict.fromkeys(x for x, _, _ in held[f].atoms)) for f in home.values()]
    for choice in product(*labels):
        names: dict[Label, Label] = dict(zip(home, choice))
        value = sp.Mul(*(Component(tensor, *own) for tensor, own in term.components))
        for mean in term.means:
            value *= sp.Add(*(c * _mean(f, bool(mean.carried)) for c, f in _seen(mean, names, held, strength)))
        if term.functional is not None:
            value *= _functional(term.functional, names, held, strength)
        total += value
    return sp.expand(term.coefficient * total)


def _seen(
    function: Function, names: Mapping[Label, Label], held: Mapping[str, Function], strength: sp.Expr
) -> Iterator[tuple[sp.Expr, Function]]:
    """A function as a sum of products: P takes z to strength * z, and a constant that no functional notices."""
    atoms = function.rename(names).atoms
    if not function.carried:
        yield sp.S.One, Function(atoms=atoms)
        return
    polynomial: dict[tuple[Atom, ...], int] = {held[function.carried].atoms: 1}
    for g in function.derivatives:
        polynomial = differentiate(polynomial, names[g])
    for left, number in polynomial.items():
        yield number * strength ** len(left), Function(atoms=(*left, *atoms)).rename({})


def _mean(function: Function, carried: bool) -> sp.Expr:
    if carried and function.atoms:
        raise DeriveError("the mean of a carried z z does not occur in the tensors' recursions")
    return Average(function.atoms).expand({}) if function.atoms else sp.S.One


def _functional(
    functional: Functional, names: Mapping[Label, Label], held: Mapping[str, Function], strength: sp.Expr
) -> sp.Expr:
    """A functional of layer l at products: with the share of the coinciding neuron, where it has a hat."""
    total = sp.S.Zero
    for parts in product(*(list(_seen(f, names, held, strength)) for f in functional.functions)):
        weight = sp.Mul(*(c for c, _ in parts))
        at = Functional(functional.name, functional.labels, tuple(f for _, f in parts))
        if at.vanishes:
            continue
        value = symbols.r * cut(at)
        if functional.hat:
            u, v = at.functions
            together = _mean(u * v, False)
            for x, y in at.shape.ntk_pairs:
                together *= Component("Theta", *(at.labels[at.shape.vertices.index(k)] for k in (x, y)))
            value += together - (_mean(u, False) * _mean(v, False) if at.name == "V" else 0)
        else:
            value /= symbols.r
        total += weight * value
    return total


def cut(functional: Functional) -> sp.Expr:
    """A functional in tensors: one joint cumulant of order 1/n acts on the two neurons, in every way.

    Of a covariance what acts on one neuron alone is taken off, and of n E[f (H - Theta)] what acts on f alone.
    """
    shape = functional.shape
    own = iter(functional.functions)
    functions = tuple(next(own).atoms if c else () for c in shape.carries)
    label = dict(zip(shape.vertices, functional.labels))
    neuron = {v: k for k, vertices in enumerate(shape.neurons) for v in vertices}
    trees = []
    for tree in shape.forest.trees() if shape.vertices else ():
        kind, slots = recognize(tree)
        trees.append(Tree(kind, tuple((neuron[v], int(label[v])) for v in slots)))
    first = _first(functions, tuple(trees))
    if shape.connected or functional.name == "H1":
        for k in range(len(functions)):
            alone = tuple(t for t in trees if all(j == k for j, _ in t.slots)) if shape.connected else ()
            rest = tuple(t for t in trees if t not in alone)
            part = _first((functions[k],), tuple(_moved(t) for t in alone))
            others = [f for j, f in enumerate(functions) if j != k]
            first -= part * _leading(others, rest)
    return sp.expand(first / symbols.r)


def _moved(tree: Tree) -> Tree:
    return Tree(tree.kind, tuple((0, label) for _, label in tree.slots))


def _first(functions: tuple[tuple[Atom, ...], ...], trees: tuple[Tree, ...]) -> sp.Expr:
    found = Terms()
    add_insertions(found, Averaged(sp.S.One, (), functions, trees))
    return sp.Add(*(t.expression for t in found.collect()))


def _leading(functions: list[tuple[Atom, ...]], trees: tuple[Tree, ...]) -> sp.Expr:
    found = Terms()
    add_leading(found, Averaged(sp.S.One, (), tuple(functions), trees))
    return sp.Add(*(t.expression for t in found.collect()))
