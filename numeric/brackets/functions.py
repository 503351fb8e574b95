"""What the bracket engine must know of an activation: its derivatives as stable JAX code, and which calculus fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jax import Array

from numeric.errors import NumericError

FAMILIES = ("mehler", "gaussian-erf", "piecewise-linear", "exponential", "polynomial", "piecewise-smooth")


@dataclass(frozen=True, eq=False)
class Functions:
    """An activation as the engine sees it. Compared by identity, so that it can be a static argument of `jax.jit`.

    `derivatives(z, order)` returns sigma^(order)(z) elementwise (piecewise: the one-sided formula, without deltas).
    `family` selects the calculus; the data that it needs is in one of the fields below it:

    - "mehler": generic, analytic on the real line; nothing else is needed;
    - "gaussian-erf": sigma(z) = p(z) + q(z) Phi(scale z), `erf_form = (p, q, scale)` with polynomials as tuples of
      coefficients, constant first (gelu: `((), (0, 1), 1.0)`; erf: `((-1,), (2,), sqrt(2))`);
    - "piecewise-linear": sigma(z) = slopes[0] z for z > 0 and slopes[1] z for z < 0;
    - "exponential": sigma(z) = sum of c exp(r z), `exponentials = ((c, r), ...)`, complex numbers allowed as long as
      the sum is real (sin: `((-0.5j, 1j), (0.5j, -1j))`);
    - "polynomial": `polynomial`, coefficients, constant first;
    - "piecewise-smooth": analytic on both sides of the single kink at zero (elu, selu, softsign);
      `jump_order` is the lowest derivative that jumps there (1: selu; 2: elu, softsign).

    `parity` is +1 (even), -1 (odd) or 0; `strip` the distance of the nearest complex singularity from the real line
    (informative: the plan measures convergence itself). `features` lists (place, rate) where sigma varies on the short
    scale 1/rate, read off the formula: a rule whose points are farther apart does not see what happens there.
    """

    name: str
    derivatives: Callable[[Array, int], Array]
    family: str = "mehler"
    parity: int = 0
    strip: float = float("inf")
    erf_form: tuple[tuple[float, ...], tuple[float, ...], float] | None = None
    slopes: tuple[float, float] | None = None
    exponentials: tuple[tuple[complex, complex], ...] | None = None
    polynomial: tuple[float, ...] | None = None
    jump_order: int | None = None
    features: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        needed = {
            "gaussian-erf": self.erf_form,
            "piecewise-linear": self.slopes,
            "exponential": self.exponentials,
            "polynomial": self.polynomial,
            "piecewise-smooth": self.jump_order,
        }
        if self.family not in FAMILIES:
            raise NumericError(f"{self.name}: unknown family {self.family!r}; it is one of {', '.join(FAMILIES)}.")
        if self.family in needed and needed[self.family] is None:
            raise NumericError(f"{self.name}: the family {self.family!r} needs its data, see Functions.")
        if self.parity not in (-1, 0, 1):
            raise NumericError(f"{self.name}: parity is +1, -1 or 0, not {self.parity}.")

    @property
    def kinked(self) -> bool:
        """Whether some derivative jumps at zero."""
        return self.family in ("piecewise-linear", "piecewise-smooth")

    def kinks_at(self, order: int) -> bool:
        """Whether sigma^(order) jumps at zero."""
        if self.family == "piecewise-linear":
            return order >= 1
        return self.family == "piecewise-smooth" and self.jump_order is not None and order >= self.jump_order

    def has_delta(self, order: int) -> bool:
        """Whether sigma^(order) contains a delta function at zero."""
        return order >= 1 and self.kinks_at(order - 1)
