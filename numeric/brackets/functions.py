"""What the bracket engine must know of an activation: its derivatives as stable JAX code, and a calculus that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jax import Array

from numeric.brackets.calculus import UNKNOWN, Calculus
from numeric.errors import NumericError


@dataclass(frozen=True, eq=False)
class Functions:
    """An activation as the engine sees it. Compared by identity, so that it can be a static argument of `jax.jit`.

    `derivatives(z, order)` returns sigma^(order)(z) elementwise (piecewise: the one-sided formula, without deltas).
    `calculus` is what is known of sigma in closed form, and how brackets follow from it: `Erf`, `PiecewiseLinear`,
    `Exponentials`, `Polynomial`, `Kinked`, or one of your own; without one the generic series serve, for which sigma
    must be analytic on the real line.

    `parity` is +1 (even), -1 (odd) or 0; `strip` the distance of the nearest complex singularity from the real line
    (informative: the plan measures convergence itself). `features` lists (place, rate) where sigma varies on the short
    scale 1/rate, read off the formula: a rule whose points are farther apart does not see what happens there.
    """

    name: str
    derivatives: Callable[[Array, int], Array]
    calculus: Calculus = UNKNOWN
    parity: int = 0
    strip: float = float("inf")
    features: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.calculus, Calculus):
            raise NumericError(f"{self.name}: calculus is a numeric.brackets.Calculus, not {self.calculus!r}.")
        if self.parity not in (-1, 0, 1):
            raise NumericError(f"{self.name}: parity is +1, -1 or 0, not {self.parity}.")

    @property
    def kinked(self) -> bool:
        """Whether some derivative jumps at zero."""
        return self.calculus.jumps() is not None

    def kinks_at(self, order: int) -> bool:
        """Whether sigma^(order) jumps at zero."""
        lowest = self.calculus.jumps()
        return lowest is not None and order >= lowest

    def has_delta(self, order: int) -> bool:
        """Whether sigma^(order) contains a delta function at zero."""
        return order >= 1 and self.kinks_at(order - 1)
