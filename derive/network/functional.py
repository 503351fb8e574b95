r"""Functionals of one-neuron functions: the statistics at order 1/n of a layer whose neurons may persist.

Where a skip connection carries a neuron over, z_i stays what it was, and n Cov(f(z_i), h(z_k)) is of order one for
every pair of functions f and h, not for z z and z z alone. So each tensor becomes a functional: its z's give way to one
function for each neuron that they sit on. V_(12)(34) = V[z_1 z_2, z_3 z_4], F_1324 = F[z_1, z_2]_34, B_1324 =
B[1, 1]_1234, G1_12 = G1[z_1 z_2] = n (E z_1 z_2 - K_12), H1_12 = H1[1]_12. A neuron that holds nothing but an NTK of
its own has no function: D[f]_34 = n Cov(f(z_i), H_kk;34).

>>> SHAPES["F"].vertices, SHAPES["F"].neurons, SHAPES["F"].carries
((3, 4), ((3,), (4,)), (True, True))
>>> SHAPES["D"].neurons, SHAPES["D"].carries
(((), (3, 4)), (True, False))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from derive.network.component import label_key
from derive.network.terms import Atom, Label
from derive.network.trees import TENSORS, Forest, Tensor, recognize


@dataclass(frozen=True)
class Function:
    """A function of one neuron at layer l: P d_g ... f of a neuron that is carried over, times activations.

    `carried` names the function f of layer l+1 (or is empty), `derivatives` are labels; (P f)(z) is f's mean at layer
    l+1 given the neuron's z at layer l. No activations and nothing carried is the constant 1.
    """

    carried: str = ""
    derivatives: tuple[Label, ...] = ()
    atoms: tuple[Atom, ...] = ()

    @property
    def is_constant(self) -> bool:
        return not self.carried and not self.atoms

    @property
    def sort_key(self) -> tuple:
        return (
            self.carried,
            tuple(map(label_key, self.derivatives)),
            tuple((label_key(a), k, f) for a, k, f in self.atoms),
        )

    def rename(self, table: Mapping[Label, Label]) -> Function:
        derivatives = sorted((table.get(g, g) for g in self.derivatives), key=label_key)
        atoms = sorted(((table.get(a, a), k, f) for a, k, f in self.atoms), key=lambda x: (label_key(x[0]), x[1], x[2]))
        return Function(self.carried, tuple(derivatives), tuple(atoms))

    def __mul__(self, other: Function) -> Function:
        if self.carried and other.carried:
            raise ValueError("two neurons that are carried over never coincide")
        return Function(
            self.carried or other.carried, self.derivatives + other.derivatives, self.atoms + other.atoms
        ).rename({})


@dataclass(frozen=True)
class Shape:
    """What a functional is made of: the trees, which neuron each vertex sits on, which neurons have a function."""

    tensor: Tensor

    @cached_property
    def points(self) -> tuple[int, ...]:
        """The vertices that are z's: they make room for functions."""
        return tuple(t.vertices[0] for t in self.tensor.forest.trees() if len(t.vertices) == 1)

    @cached_property
    def forest(self) -> Forest:
        """The trees with an NTK or one of its differentials."""
        whole = self.tensor.forest
        return Forest(tuple(v for v in whole.vertices if v not in self.points), whole.edges)

    @property
    def vertices(self) -> tuple[int, ...]:
        """In the order in which the functional's labels are written: neuron by neuron, as the tensor's subscripts."""
        return tuple(v for v in self.forest.vertices)

    @cached_property
    def neurons(self) -> tuple[tuple[int, ...], ...]:
        """The vertices on each neuron."""
        return tuple(tuple(v for v in pair if v not in self.points) for pair in self.tensor.pairing)

    @cached_property
    def carries(self) -> tuple[bool, ...]:
        """Whether a neuron has a function: not, if an NTK of its own is all that it has beside another neuron."""
        alone = len(self.neurons) == 1
        edges = {frozenset(t.vertices) for t in self.tensor.forest.trees() if len(t.vertices) == 2}
        return tuple(alone or frozenset(own) not in edges for own in self.neurons)

    @cached_property
    def connected(self) -> bool:
        """Whether it is a covariance of what sits on one neuron and what sits on the other: no tree joins the two."""
        return len(self.neurons) > 1 and not any(self.straddles(t) for t in self.forest.trees())

    def straddles(self, tree: Forest) -> bool:
        return sum(any(v in own for v in tree.vertices) for own in self.neurons) > 1

    @cached_property
    def only_ntks(self) -> bool:
        """Whether the trees have a mean of order one where the neurons coincide: Theta for each NTK."""
        return all(recognize(t)[0] == "H" for t in self.forest.trees())

    @cached_property
    def symmetries(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """(positions of the labels, positions of the functions) that leave the functional as it is."""
        found = []
        places = [k for k, c in enumerate(self.carries) if c]
        for table in self.forest.isomorphisms(self.forest):
            for image in _neuron_images(self.neurons, table):
                if all(self.carries[k] == self.carries[image[k]] for k in range(len(image))):
                    labels = tuple(self.vertices.index(table[v]) for v in self.vertices)
                    found.append((labels, tuple(places.index(image[k]) for k in places)))
        return tuple(sorted(set(found)))

    @property
    def ntk_pairs(self) -> tuple[tuple[int, int], ...]:
        """The sample labels of the NTKs."""
        return tuple((t.vertices[0], t.vertices[1]) for t in self.forest.trees())


def _neuron_images(neurons: tuple[tuple[int, ...], ...], table: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """The permutations of the neurons that go along with a map of the vertices."""
    orders = [(0,)] if len(neurons) == 1 else [(0, 1), (1, 0)]
    for image in orders:
        if all({table[v] for v in own} == set(neurons[image[k]]) for k, own in enumerate(neurons)):
            yield image


SHAPES = {name: Shape(tensor) for name, tensor in TENSORS.items() if tensor.order == 1}
"""The functional of each tensor of order 1/n."""


@dataclass(frozen=True)
class Functional:
    """A functional of layer l at given labels and functions. `hat` adds the neuron where the two coincide:

    r X[u, v] + <u v> Theta ..., for V the covariance r V[u, v] + <u v> - <u><v>.
    """

    name: str
    labels: tuple[Label, ...]
    functions: tuple[Function, ...]
    hat: bool = False

    @property
    def shape(self) -> Shape:
        return SHAPES[self.name]

    @property
    def vanishes(self) -> bool:
        """A constant does not fluctuate."""
        return self.name in ("V", "G1", "D") and any(f.is_constant for f in self.functions)

    def rename(self, table: Mapping[Label, Label]) -> Functional:
        labels = tuple(table.get(x, x) for x in self.labels)
        return Functional(self.name, labels, tuple(f.rename(table) for f in self.functions), self.hat).canonical()

    def canonical(self) -> Functional:
        """The first of the equal ways to write it."""
        ways = [
            Functional(
                self.name,
                tuple(self.labels[k] for k in labels),
                tuple(self.functions[k] for k in functions),
                self.hat,
            )
            for labels, functions in self.shape.symmetries
        ]
        return min(ways, key=lambda way: way.sort_key)

    @property
    def sort_key(self) -> tuple:
        return (
            self.name,
            self.hat,
            tuple(f.sort_key for f in self.functions),
            tuple(map(label_key, self.labels)),
        )


@cache
def tensor_functions(name: str) -> tuple[Function, ...]:
    """The functions that make the functional the tensor: the z's on each neuron."""
    shape = SHAPES[name]
    return tuple(
        Function(atoms=tuple((v, 0, "identity") for v in pair if v in shape.points))
        for pair, carries in zip(shape.tensor.pairing, shape.carries)
        if carries
    )
