r"""What the theory recommends for a network of given depth: critical initialization, learning rates by the equivalence
principle, and the size of the 1/n corrections, (infinity.169)-(infinity.170), which says how wide it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import criticality
from derive.depth import exponents
from derive.errors import DeriveError
from derive.symbols import K as kernel_symbol
from derive.symbols import L, ell, lambda_b, lambda_W


@dataclass(frozen=True)
class Hyperparameters:
    """Per-layer values, layer 1 first, as `numeric.evaluation.flow` takes them."""

    C_b: float
    C_W: float
    lambda_b: tuple[float, ...]
    lambda_W: tuple[float, ...]


def hyperparameters(
    activation: Activation | str,
    depth: int,
    bias_rate: float = 1.0,
    weight_rate: float = 1.0,
    learning_rates: str = "equivalence",
    point: int = 0,
) -> Hyperparameters:
    """Critical C_b and C_W, and the learning-rate factors of each layer of a network of that depth.

    >>> hyperparameters("tanh", 4).lambda_b
    (1.0, 0.5, 0.3333333333333333, 0.25)
    """
    if not isinstance(depth, int) or depth < 1:
        raise DeriveError("the depth is the number of weight layers, a whole number from 1 on")
    sigma = make_activation(activation)
    found = criticality(sigma)
    if not found.points:
        raise DeriveError(f"{sigma.name} has no critical initialization: {found.reason}")
    table = exponents(sigma, learning_rates, point)
    numbers = {lambda_b: bias_rate, lambda_W: weight_rate, L: depth, sp.Symbol("p_perp", real=True): table.p_perp}
    rates = [
        [float(e.subs(numbers).subs(ell, layer)) for layer in range(1, depth + 1)] for e in table.rates.expressions
    ]
    chosen = found.points[point]
    return Hyperparameters(float(chosen.C_b), float(chosen.C_W), tuple(rates[0]), tuple(rates[1]))


@dataclass(frozen=True)
class Corrections:
    """n times each dimensionless ratio of (infinity.169) at the output of a network of `depth` layers."""

    activation: str
    depth: int
    times_width: dict[str, float]

    @property
    def largest(self) -> tuple[str, float]:
        return max(self.times_width.items(), key=lambda item: abs(item[1]))

    def width_for(self, size: float = 0.1) -> int:
        """The width at which no ratio exceeds `size`: first order in 1/n is then to be trusted."""
        if not size > 0:
            raise DeriveError("the size of a correction is a positive number")
        return int(sp.ceiling(abs(self.largest[1]) / size))

    def to_json(self) -> dict[str, Any]:
        return {"depth": self.depth, "times_width": self.times_width, "largest": list(self.largest)}


def corrections(
    activation: Activation | str,
    depth: int,
    bias_rate: float = 1.0,
    weight_rate: float = 1.0,
    learning_rates: str = "equivalence",
    point: int = 0,
    kernel: float = 1.0,
) -> Corrections:
    """The leading large-depth values of the ratios; `kernel` is K of a scale-invariant activation.

    >>> corrections("tanh", 10).largest[0]
    'V/(n K^2)'
    """
    table = exponents(activation, learning_rates, point)
    numbers = {lambda_b: bias_rate, lambda_W: weight_rate, L: depth, kernel_symbol: kernel}
    found = {}
    for ratio in table.ratios.values():
        if ratio.exponent is None:
            found[ratio.name] = 0.0
            continue
        size = ratio.coefficient * sp.Integer(depth) ** -ratio.exponent * sp.log(depth) ** ratio.log_power
        value = size.subs(numbers)
        if not value.free_symbols:
            found[ratio.name] = float(value)
    if not found:
        raise DeriveError(f"no finite-width ratio of {table.activation} is known at this point")
    return Corrections(table.activation, depth, found)
