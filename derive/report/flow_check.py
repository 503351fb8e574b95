"""The report's own check: iterate the exact recursions of an activation and lay the asymptotics beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.asymptotics import ExponentTable
from derive.asymptotics.iterate import iterate
from derive.asymptotics.solve import first_layer, network_equations
from derive.criticality import CriticalPoint
from derive.network.component import Component
from derive.symbols import C_W, C_b, L, ell, lambda_b, lambda_W

DEPTH = 3000
"""Layers iterated for a report: enough for ratios to settle, few enough for a report within a minute."""
GRAM = 1
"""The input's x.x/n_0."""


@dataclass(frozen=True)
class FlowCheck:
    """Exact values and leading asymptotics at `layers`, with lambda_b = lambda_W = 1 and x.x/n_0 = 1.

    `deviation` is |exact/asymptotic - 1| at the last layer.
    """

    layers: tuple[int, ...]
    exact: dict[str, list[float]]
    leading: dict[str, list[float]]
    deviation: dict[str, float]


def flow_check(sigma: Activation, point: CriticalPoint, table: ExponentTable, depth: int = DEPTH) -> FlowCheck | None:
    """Iterate through `depth` layers; None where kinks away from the origin leave the iteration undefined."""
    if any(kink != 0 for kink in sigma.kinks):
        return None
    existing = {name for name, tensor in table.tensors.items() if tensor.exists}
    equations = {name: e for name, e in network_equations().items() if name in existing}
    layers = tuple(sorted({int(x) for x in np.geomspace(2, depth, 28)}))
    numbers = {lambda_b: sp.S.One, lambda_W: sp.S.One, L: sp.Integer(depth)}
    start = _first_layer(existing, {**numbers, C_b: point.C_b, C_W: point.C_W}, table)
    rates = tuple(_function(e.subs(numbers)) for e in table.rates.expressions)
    parameters = {"C_b": sp.N(point.C_b, 25), "C_W": sp.N(point.C_W, 25)}
    found = iterate(sigma, equations, start, parameters, (rates[0], rates[1]), layers)
    constants = {**numbers, sp.Symbol("K", positive=True): sp.Float(str(start["K"]), 20)}
    exact, leading, deviation = {}, {}, {}
    for name in equations:
        tensor = table.tensors[name]
        if tensor.exponent is None:
            continue
        curve = _function(tensor.leading.subs(constants))
        exact[name] = [float(found[layer][name]) for layer in layers]
        leading[name] = [float(curve(layer)) for layer in layers]
        deviation[name] = abs(exact[name][-1] / leading[name][-1] - 1)
    return FlowCheck(layers, exact, leading, deviation)


def _first_layer(names: set[str], numbers: dict[sp.Symbol, sp.Expr], table: ExponentTable) -> dict[str, sp.Expr]:
    bias, weight = (e.subs(ell, 1).subs(numbers) for e in table.rates.expressions)
    values = {**numbers, lambda_b: bias, lambda_W: weight}
    start = {}
    for name, expression in first_layer().items():
        if name in names:
            gram = {c: sp.Integer(GRAM) for c in expression.atoms(Component)}
            start[name] = sp.N(expression.xreplace(gram).subs(values), 25)
    return start


def _function(expression: sp.Expr) -> Callable[[int], np.longdouble]:
    compiled = sp.lambdify(ell, sp.N(expression, 25), modules="numpy")
    return lambda layer: np.longdouble(compiled(np.longdouble(layer)))
