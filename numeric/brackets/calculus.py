"""What a calculus is: a class that plans brackets on the host, and plans that evaluate them in JAX.

A calculus holds what is known of an activation (nothing, for the generic ones). Asked about concrete kernels it gives a
plan or says that it does not suit them; `numeric.brackets.choose` then asks the next one. A plan is a pytree: it goes
into compiled functions as an ordinary argument, and its class is what the program is compiled for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.kernels import Kernels
from numeric.brackets.patterns import Pattern

if TYPE_CHECKING:
    from numeric.brackets.functions import Functions

Order = tuple[int, int]


class Rectangle(NamedTuple):
    """Pairs of inputs: variances (R,) of the rows and (C,) of the columns, covariances (R, C), which pairs are one
    input (R, C).
    """

    a: Array
    b: Array
    c: Array
    same: Array


class PairPlan:
    """How pair brackets are computed. `tail` estimates the relative error."""

    tail: Array
    on_host: ClassVar[bool] = False  # whether `rectangle` takes NumPy arrays as well
    most_on_host: ClassVar[int] = 256  # inputs up to which that is faster than compiling a program

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        """{(j, k): (R, C)} of <sigma^(j)(z_a) sigma^(k)(z_b)>; `symmetric`: rows and columns are the same inputs."""
        raise NotImplementedError

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        """{(j, k): (N,)} of <sigma^(j) sigma^(k)> at single inputs."""

        def one(variance: Array) -> dict[Order, Array]:
            own, same = variance[None], jnp.ones((1, 1), dtype=bool)
            found = self.rectangle(functions, orders, Rectangle(own, own, own[None], same), True)
            return {order: value[0, 0] for order, value in found.items()}

        return jax.vmap(one)(variances)

    def refined(self) -> PairPlan:
        """The same with finer rules, where there are rules: what the error estimate uses."""
        return self


class QuadruplePlan:
    """How four-point brackets of `size` inputs are computed.

    `error` is the aim, relative to the largest entry of each tensor, or what was measured while planning. What was
    reached, `f.error` measures.
    """

    size: int
    error: Array
    only_route: ClassVar[bool] = False  # no other calculus could do it at these kernels
    on_host: ClassVar[bool] = False  # whether `unique` takes NumPy arrays as well
    faster_on_host: ClassVar[bool] = False  # for however many inputs: a compiled program would gain less than it takes

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        """The stored form: (sorted quadruples, components)."""
        raise NotImplementedError

    def conditioned_on(self) -> np.ndarray | None:
        """Which pair each sorted quadruple is conditioned on (an index into POSITIONS); None: on none at all."""
        return None

    def at(self, functions: Functions, patterns: tuple[Pattern, ...], variance: float) -> QuadruplePlan:
        """The same sizes with a coarser rule, where kernels of this largest variance allow for one."""
        return self

    def between_layers(
        self,
        functions: Functions,
        fours: tuple[tuple[Order, Order], ...],
        K: np.ndarray,
        products: np.ndarray,
        tick: Callable[[float], None],
    ) -> dict[tuple[Order, Order], np.ndarray] | None:
        """Brackets of two activations at one layer and two at a later one by a way of their own, on the host.

        As in `numeric.brackets.series.persistent`; None where there is none.
        """
        return None

    def measured(self) -> bool:
        """Whether `error` holds what quadruples still moved when their rules were refined."""
        return False

    def rounding(self, variance: float) -> float:
        """By how much rounding exceeds a few units in the last place at this largest variance."""
        return 1.0


@dataclass(frozen=True)
class PairQuestion:
    """Pair brackets with derivatives up to `highest_order` to a relative `tolerance`, at these kernels or smaller."""

    kernels: Kernels
    highest_order: int
    tolerance: float
    variance: float  # the largest, with a margin

    @property
    def orders(self) -> range:
        return range(self.highest_order + 1)


@dataclass(frozen=True)
class QuadrupleQuestion:
    """Four-point brackets of these patterns for a stack of kernels (layers, N, N), to a tolerance.

    `avoid` asks for another route than that of `QuadruplePlan.conditioned_on`, where there is one; `finer` for smaller
    steps than the tolerance needs, so that a second evaluation never has the steps of the first. Where not all of the
    sorted quadruples are `wanted` (a mask), the others may be left zero.
    """

    K: np.ndarray
    patterns: tuple[Pattern, ...]
    tolerance: float
    variance: float
    avoid: np.ndarray | None = None
    finer: bool = False
    wanted: np.ndarray | None = None

    @property
    def size(self) -> int:
        return self.K.shape[-1]


class Calculus:
    """What is known of an activation, and how its brackets follow. The base class knows nothing and suits nothing."""

    def jumps(self) -> int | None:
        """The lowest derivative of sigma that jumps at zero; None if sigma is analytic on the real line."""
        return None

    def length(self) -> float:
        """The length on which sigma changes, as far as the calculus knows."""
        return 1.0

    def unplanned(self) -> float:
        """The variance up to which one pair plan serves all kernels; zero: there is none."""
        return 0.0

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan | None:
        """A plan, or None where this calculus does not suit."""
        return None

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan | None:
        """A plan, or None where this calculus does not suit."""
        return None

    def better_alone(self, functions: Functions, question: QuadrupleQuestion) -> bool:
        """Whether a plan for each kernel of the stack would be cheaper than one for all of them."""
        return False

    def second(self) -> Calculus:
        """By which calculus the error estimate computes everything again: the generic ones, unless there is a kink."""
        return UNKNOWN if self.jumps() is None else self


UNKNOWN = Calculus()
"""Nothing is known: the generic calculi serve."""
