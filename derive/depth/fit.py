"""Free constants from numbers: the series of each tensor is matched, one after the other, to its value at one layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath

from derive.depth.critical_solution import FlowSolution
from derive.depth.exponent_table import problem, solution
from derive.depth.tensor_recursions import System, constant_name
from derive.errors import DeriveError


def match_constants(system: System, layer: int, values: Mapping[str, Any], digits: int = 25) -> dict[str, Any]:
    """{constant: number}, for every tensor in `values` whose series is known far enough to hold its constant."""
    fitted: dict[str, Any] = {}
    with mpmath.workdps(digits + 10):
        for name in (n for n in system.equations if n in values):
            series = system.solve(name)
            constant = constant_name(name)
            if constant not in series.used_names():
                continue
            target = mpmath.mpf(str(values[name]))

            def defect(c: Any, series: Any = series, constant: str = constant, target: Any = target) -> Any:
                return series.evaluate(layer, {**fitted, constant: c}, digits + 10) / target - 1

            fitted[constant] = _root(defect, constant)
    return fitted


def _root(defect: Any, name: str) -> Any:
    """Newton's method with the exact derivative of a polynomial that is nearly linear (quadratic interpolation)."""
    c = mpmath.mpf(0)
    for _ in range(60):
        step = mpmath.mpf(1) + abs(c) / 4
        low, here, high = defect(c - step), defect(c), defect(c + step)
        slope = (high - low) / (2 * step)
        if slope == 0:
            break
        change = here / slope
        c -= change
        if abs(change) < mpmath.mpf(10) ** (-mpmath.mp.dps + 8) * (1 + abs(c)):
            return c
    raise DeriveError(f"{name} could not be fitted: the layer is not deep enough for the series to hold")


def fit_constants(
    activation: Any,
    layer: int,
    values: Mapping[str, Any],
    lambda_b: Any,
    lambda_W: Any,
    learning_rates: Any = "equivalence",
    point: int = 0,
    corrections: int = 4,
) -> dict[str, Any]:
    """The free constants of a network whose tensors at a (deep) layer are known, e.g. from `iterate` or numeric.flow.

    Learning rates are numbers; the powers of L of the equivalence principle are one here (L = 1).

    >>> found = fit_constants("tanh", 10000, {"K": "0.00005"}, 0, 1)
    >>> sorted(found)
    ['c_K']
    """
    solved = solution(problem(activation, learning_rates, point, lambda_b, lambda_W))
    if not isinstance(solved, FlowSolution):
        raise DeriveError("a scale-invariant activation's tensors are exact in l: there is no constant to fit")
    return match_constants(solved.system(corrections), layer, values)
