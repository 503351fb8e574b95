"""The report's own check: iterate the exact recursions of an activation and lay the asymptotics beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.critical import criticality
from derive.depth import asymptotics, exponents, fit_constants
from derive.depth.critical_solution import network_equations
from derive.depth.exact_flow import ONES, ExactFlow, first_values, iterated, layer_function
from derive.depth.learning_rates import CONSTANT
from derive.errors import DeriveError
from derive.symbols import ell

DEPTH = 3000
"""Layers iterated for a report: enough for ratios to settle, few enough for a report within a minute."""
ORDER = 2
"""Powers of 1/l in the series that is compared."""


@dataclass(frozen=True)
class FlowCheck:
    """Exact values, leading terms and series at `layers`, with lambda_b = lambda_W = 1 and L = 1.

    The free constants of the series are fitted to the last layer, so its deviation is taken a decade above, at
    `compared`; the leading term's, which has no constants, at the last layer. `plateau`: the kernel starts at K*.
    `gram` is the input's x.x/n_0.
    """

    layers: tuple[int, ...]
    exact: Mapping[str, list[float]]
    leading: Mapping[str, list[float]]
    series: Mapping[str, list[float]]
    constants: Mapping[str, float]
    plateau: bool
    gram: float

    @property
    def compared(self) -> int:
        """The layer at which the series is compared."""
        return min(self.layers, key=lambda layer: abs(np.log(layer * 10 / self.layers[-1])))

    @property
    def ratios(self) -> dict[str, tuple[float, ...]]:
        """n times each dimensionless ratio of the exact flow, against the layers."""
        return ExactFlow(self.gram, self.layers, {n: tuple(v) for n, v in self.exact.items()}, CONSTANT).ratios

    @property
    def leading_deviation(self) -> dict[str, float]:
        """|exact/leading term - 1| at the last layer."""
        return {name: abs(self.exact[name][-1] / self.leading[name][-1] - 1) for name in self.exact}

    @property
    def series_deviation(self) -> dict[str, float]:
        """|exact/series - 1| at the layer `compared`."""
        place = self.layers.index(self.compared)
        return {name: abs(self.exact[name][place] / curve[place] - 1) for name, curve in self.series.items()}


def flow_check(sigma: Activation, point: int = 0, depth: int = DEPTH) -> FlowCheck | None:
    """Iterate through `depth` layers; None where kinks away from the origin leave the iteration undefined."""
    if any(kink != 0 for kink in sigma.kinks):
        return None
    critical = criticality(sigma).points[point]
    plateau = critical.universality_class == "half-stable"
    table = exponents(sigma, point=point, lambda_b=1, lambda_W=1, plateau=plateau)
    existing = {name for name, tensor in table.tensors.items() if tensor.exists}
    equations = {name: e for name, e in network_equations().items() if name in existing}
    layers = tuple(sorted({int(x) for x in np.geomspace(2, depth, 28)}))
    gram = (critical.K_star - critical.C_b) / critical.C_W if plateau else sp.S.One
    rates = table.rates.with_exponent(table.p_perp)
    parameters = {"C_b": sp.N(critical.C_b, 25), "C_W": sp.N(critical.C_W, 25)}
    start = first_values(["K"], parameters, rates, gram)
    found = iterated(sigma, critical, layers, rates, gram, equations)
    names = [name for name in equations if table.tensors[name].exponent is not None]
    constants = _constants(sigma, point, layers[-1], found[layers[-1]], plateau)
    values = {"L": 1, "K": sp.Float(str(start["K"]), 20), **constants}
    leading = {name: _curve(table.tensors[name].leading, layers, values) for name in names}
    series = {
        name: _curve(
            asymptotics(sigma, name, ORDER, point=point, lambda_b=1, lambda_W=1, plateau=plateau).series, layers, values
        )
        for name in names
    }
    return FlowCheck(
        layers,
        {name: [float(found[layer][name]) for layer in layers] for name in names},
        {name: curve for name, curve in leading.items() if curve is not None},
        {name: curve for name, curve in series.items() if curve is not None},
        {name: float(value) for name, value in constants.items()},
        plateau,
        float(gram),
    )


def _constants(sigma: Activation, point: int, layer: int, values: Mapping[str, Any], plateau: bool) -> dict[str, Any]:
    """The free constants that the last layer fixes; none where the series has none or cannot be matched."""
    if plateau:
        return {}
    try:
        return fit_constants(
            sigma, layer, {name: str(v) for name, v in values.items()}, 1, 1, point=point, corrections=ORDER
        )
    except DeriveError:
        return {}


def _curve(expression: sp.Expr | None, layers: tuple[int, ...], values: Mapping[str, Any]) -> list[float] | None:
    """The expression along the layers; None where it holds a constant that has no value."""
    if expression is None:
        return None
    known = {s: sp.Float(str(values[s.name])) for s in expression.free_symbols if s.name in values}
    numbers = expression.subs(known).subs(ONES)
    if numbers.free_symbols - {ell}:
        return None
    function = layer_function(numbers)
    return [float(function(layer)) for layer in layers]
