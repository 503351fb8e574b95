"""What the generated training theory is written in: einsum, the calculus of weights, rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
"""A NumPy or a JAX array, or one of symbols."""
Brackets = Mapping[tuple[int, int], Array]
"""<σ^(j)_a σ^(k)_b> of all pairs of inputs, by (j, k)."""
Label = Any
"""A mode as the calculus knows it: eigenvalues along an axis, or a symbol."""
Signal = TypeVar("Signal")
Product = TypeVar("Product", covariant=True)


def einsum(subscripts: str, *operands: Array) -> Array:
    """np.einsum, pairwise when there are three operands or more; arrays of symbols and JAX arrays work as well."""
    if any(isinstance(x, jax.Array) for x in operands):
        return jnp.einsum(subscripts, *operands)
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


class Pairing(NamedTuple):
    """δ δ of the two pairs of slots, times the tensor with its axes in the slots' `order`."""

    tensor: str
    pairs: tuple[tuple[int, int], tuple[int, int]]
    order: tuple[int, int, int, int]


class Contribution(NamedTuple):
    """One cumulant in a mean: its external slots, its internal slots with their kinds (e, l), the weight and its modes.

    The axes of the weight are the internal slots at the positions `modes`.
    """

    part: str
    product: str
    external: tuple[int, ...]
    internal: tuple[int, ...]
    kinds: str
    weight: str
    modes: tuple[int, ...]
    coefficient: float = 1.0


Coefficient = tuple[float, tuple[tuple[str, int], ...]]
"""A number and powers of a layer's numbers."""


class PairSource(NamedTuple):
    """coefficient × [Θ_12] × σ^(j)_1 σ^(k)_2 of one neuron."""

    coefficient: Coefficient
    theta: bool
    orders: tuple[int, int]


class PairStep(NamedTuple):
    """coefficient × [Θ_12] × <σ^(j)_1 σ^(k)_2> × the object of a kind of the layer below, at two of the labels."""

    coefficient: Coefficient
    theta: bool
    orders: tuple[int, int]
    kind: str
    at: tuple[int, int]


class PairMap(NamedTuple):
    """What one neuron makes of a pair of labels, and how a layer carries it on."""

    sources: tuple[PairSource, ...]
    steps: tuple[PairStep, ...]


class Contraction(NamedTuple):
    """A tensor as two pairs: kinds, axes, the axes that NTKs link, whether the pairs enter by their covariance."""

    kinds: tuple[str, str]
    axes: tuple[tuple[int, int], tuple[int, int]]
    links: tuple[tuple[int, int], ...]
    centered: bool


class MomentTerm(NamedTuple):
    """sign × n^loops × Π y of slots (their component: "i" is the external one) × Π K of slots × Π δ of slots."""

    sign: float
    loops: int
    targets: tuple[tuple[int, str], ...]
    kernels: tuple[tuple[int, int], ...]
    deltas: tuple[tuple[int, int], ...]


Weigh = Callable[..., Any]
"""A generated weight: a calculus and the labels of its modes to a product."""


class Calculus(Protocol[Signal, Product]):
    """How weights of trees are computed: numbers at a time, signals in time, or symbols."""

    def accumulate(self, root: Label, *branches: Signal) -> Signal:
        """The displacement that mode `root` makes when its error times the branches is the gradient."""

    def respond(self, mode: Label, force: Signal) -> Signal:
        """The displacement that a mode makes when a force moves its output."""

    def product(self, coefficient: float, *factors: Signal) -> Product:
        """coefficient × Π factors."""


class Tensors(Protocol):
    """One network's tensors: `dH(1)` has inputs in slot 1 and training samples (or modes) in the others."""

    def H(self, *external: int) -> Array: ...
    def dH(self, *external: int) -> Array: ...
    def ddI(self, *external: int) -> Array: ...
    def ddII(self, *external: int) -> Array: ...


class Weighted(Protocol):
    """Weights of trees as arrays over modes."""

    @property
    def p(self) -> Array: ...
    @property
    def q(self) -> Array: ...


class Projected(Protocol):
    """The six projectors as arrays over modes."""

    @property
    def Z_A(self) -> Array: ...
    @property
    def Z_B(self) -> Array: ...
    @property
    def Z_IA(self) -> Array: ...
    @property
    def Z_IB(self) -> Array: ...
    @property
    def Z_IIA(self) -> Array: ...
    @property
    def Z_IIB(self) -> Array: ...
