"""The exact single-input recursions at a critical point, layer by layer: numbers at finite depth, and how far a leading
term is from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.critical import CriticalPoint
from derive.depth.critical_solution import first_layer, network_equations
from derive.depth.iterate import iterate
from derive.depth.learning_rates import CONSTANT, LearningRates
from derive.depth.ratios import CONTENT, kernel_powers, ratio_name
from derive.depth.result import Asymptotics
from derive.errors import DeriveError
from derive.network.component import Component
from derive.notation import TensorSymbol
from derive.steps import Words, equal, listed, said, small
from derive.symbols import C_W, C_b, L, ell, lambda_b, lambda_W

ONES = {lambda_b: sp.S.One, lambda_W: sp.S.One, L: sp.S.One}
SHOWN_LAYERS = (2, 4, 8, 16, 32, 64)
"""Layers at which exact numbers are listed."""
MEASURED_LAYER = 256
"""The layer at which leading terms are compared with the exact recursions."""
NEAR = 0.1
"""What counts as being there."""


@dataclass(frozen=True)
class ExactFlow:
    """Tensors at `layers` for an input of x.x/n_0 = `gram`, by iteration with lambda_b = lambda_W = L = 1."""

    gram: float
    layers: tuple[int, ...]
    tensors: Mapping[str, tuple[float, ...]]
    rates: LearningRates

    @property
    def ratios(self) -> dict[str, tuple[float, ...]]:
        """n times each dimensionless ratio, against the layers."""
        kernel, ntk = (np.array(self.tensors[name]) for name in ("K", "Theta"))
        found = {}
        for name in (n for n in CONTENT if n in self.tensors):
            k, t = kernel_powers(name)
            found[name] = tuple(float(x) for x in np.array(self.tensors[name]) / kernel**k / ntk**t)
        return found

    def to_json(self) -> dict[str, Any]:
        rows = {name: {"ratio": ratio_name(name), "n_times": list(v)} for name, v in self.ratios.items()}
        return {
            "input_norm": self.gram,
            "learning_rates": self.rates.rule,
            "layers": list(self.layers),
            "tensors": {name: list(values) for name, values in self.tensors.items()},
            "ratios": rows,
        }


def can_iterate(sigma: Activation) -> bool:
    """Kinks away from the origin are beyond the iteration's quadrature."""
    return all(kink == 0 for kink in sigma.kinks)


def exact_flow(
    sigma: Activation,
    point: CriticalPoint,
    layers: Iterable[int] = SHOWN_LAYERS,
    rates: LearningRates = CONSTANT,
    gram: sp.Expr = sp.S.One,
    names: Iterable[str] | None = None,
) -> ExactFlow:
    """Iterate at a critical point; `names` are the tensors that exist (and what they need), all if not given."""
    wanted = tuple(sorted(set(layers)))
    equations = {n: e for n, e in network_equations().items() if names is None or n in set(names)}
    found = iterated(sigma, point, wanted, rates, gram, equations)
    values = {name: tuple(float(found[layer][name]) for layer in wanted) for name in equations}
    return ExactFlow(float(gram), wanted, values, rates)


def iterated(
    sigma: Activation,
    point: CriticalPoint,
    layers: Iterable[int],
    rates: LearningRates,
    gram: sp.Expr,
    equations: Mapping[str, sp.Expr],
) -> dict[int, dict[str, Any]]:
    """The tensors of these equations at the layers, in extended precision."""
    numbers = {"C_b": sp.N(point.C_b, 25), "C_W": sp.N(point.C_W, 25)}
    start = first_values(equations, numbers, rates, gram)
    functions = tuple(layer_function(e.subs(ONES)) for e in rates.expressions)
    return iterate(sigma, equations, start, numbers, (functions[0], functions[1]), layers)


def first_values(
    names: Iterable[str], numbers: Mapping[str, sp.Expr], rates: LearningRates, gram: sp.Expr
) -> dict[str, sp.Expr]:
    """Every tensor at the first layer, where x.x/n_0 is `gram`."""
    bias, weight = (e.subs(ell, 1).subs(ONES) for e in rates.expressions)
    table = {lambda_b: bias, lambda_W: weight, C_b: numbers["C_b"], C_W: numbers["C_W"]}
    start = {}
    for name in names:
        expression = first_layer()[name]
        inputs = {c: gram for c in expression.atoms(Component)}
        start[name] = sp.N(expression.xreplace(inputs).subs(table), 25)
    return start


def layer_function(expression: sp.Expr) -> Callable[[int], np.longdouble]:
    """An expression in ell as a function in extended precision."""
    compiled = sp.lambdify(ell, sp.N(expression, 25), modules="numpy")
    return lambda layer: np.longdouble(compiled(np.longdouble(layer)))


def approaching(point: CriticalPoint) -> sp.Expr:
    """x.x/n_0 of an input whose kernel starts on the side from which the fixed point attracts, well away from it."""
    if point.K_star == 0 or point.approach is None:
        return sp.S.One
    start = 2 * point.K_star if point.approach[1] < 0 else (point.K_star + point.C_b) / 2
    return sp.N((start - point.C_b) / point.C_W, 25)


def regime_note(
    sigma: Activation, point: CriticalPoint, tensors: Mapping[str, Asymptotics], rates: LearningRates
) -> Words:
    """How far the leading terms are from the exact recursions at one layer: measured, or said not to be."""
    unknown = said(
        "Where the regime of the leading terms begins was not measured: they are statements about {} to infinity.", ell
    )
    if not can_iterate(sigma) or point.K_star.free_symbols:
        return unknown
    existing = [name for name, tensor in tensors.items() if tensor.exists]
    gram = approaching(point)
    try:
        equations = {name: e for name, e in network_equations().items() if name in existing}
        exact = iterated(sigma, point, [MEASURED_LAYER], rates, gram, equations)[MEASURED_LAYER]
    except DeriveError:
        return unknown
    factors: dict[str, sp.Float] = {}
    for name in existing:
        term = tensors[name].leading.subs(ONES)
        if term != 0 and not term.free_symbols - {ell}:
            value = sp.N(term.subs(ell, MEASURED_LAYER), 20)
            factors[name] = sp.Float(str(exact[name]), 20) / value
    far = {n: f for n, f in factors.items() if not abs(f - 1) < NEAR}
    head = said(
        "Measured: the exact recursions, iterated to {} from {}",
        equal(ell, MEASURED_LAYER),
        equal(TensorSymbol("K", "1"), sp.Float(float(point.C_b + point.C_W * gram), 6), digits=4),
    )
    if not far:
        return said("{}, are within 10 % of these leading terms for every tensor.", head)
    close = [n for n in factors if n not in far]
    furthest = max(far, key=lambda n: abs(sp.log(abs(far[n]))) if far[n] != 0 else sp.oo)
    named = [n for n in far if n in ("K", "Theta", "V") or n == furthest]
    ratios = listed(said("{} for {}", small(far[n]), TensorSymbol(n)) for n in named)
    told = said("{}, are within 10 % of these leading terms for {}", head, listed(TensorSymbol(n) for n in close))
    if not close:
        told = said("{}, are not within 10 % of these leading terms for any tensor", head)
    return said("{}; exact/leading there is {}. The regime of these terms lies deeper.", told, ratios)
