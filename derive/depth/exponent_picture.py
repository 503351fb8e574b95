"""The dimensionless ratios of a table of exponents against depth: leading terms as lines, exact recursions as dots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from derive.depth.exact_flow import ONES, ExactFlow
from derive.depth.ratios import Ratio
from derive.notation import WIDTH, latex
from derive.symbols import K
from effective_theory.drawing import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from derive.depth.exponent_table import ExponentTable

DEEPEST = 256


def draw_exponents(table: ExponentTable, axes: Axes | None = None) -> Axes:
    """n times the absolute value of each ratio, for lambda_b = lambda_W = 1 (and K = 1 where the kernel is free).

    A half-stable table shows its plateau as lines, and the exact recursions, whose depths are listed, as dots.
    """
    drawn = axes_or_new(axes, 7.2, 4.2)
    lines = table if table.plateau is None else table.plateau
    layers = np.geomspace(2, DEEPEST, 80)
    for place, (name, ratio) in enumerate(lines.ratios.items()):
        color = f"C{place % 10}"
        style = ("-", "--", ":")[place // 10 % 3]
        coefficient = _number(ratio.coefficient)
        if ratio.exponent is not None and coefficient:
            law = abs(coefficient) * layers ** -float(ratio.exponent) * np.log(layers) ** ratio.log_power
            drawn.loglog(layers, law, style, color=color, linewidth=1.3, label=ratio_label(name))
        if table.finite is not None and name in table.finite.ratios:
            _dots(drawn, table.finite, name, color)
    drawn.set(xlabel=r"layer $\ell$", ylabel=r"$n$ times the absolute value")
    drawn.set_title(f"{table.activation}: 1/n corrections{' on the plateau' if table.plateau is not None else ''}")
    drawn.legend(fontsize=8, ncols=2, loc="upper left", bbox_to_anchor=(1.01, 1))
    return drawn


def ratio_label(tensor: str) -> str:
    """A ratio times the width, as mathtext."""
    return f"${latex(Ratio(tensor, None, 0, sp.S.One).formula.sides[0] * WIDTH)}$"


def _dots(axes: Axes, flow: ExactFlow, name: str, color: str) -> None:
    values = np.abs(flow.ratios[name])
    axes.loglog(flow.layers, np.where(values > 0, values, np.nan), "o", color=color, markersize=3)


def _number(coefficient: sp.Expr) -> float:
    """With rates 1, the kernel 1, and free constants, which only the next orders hold, absent."""
    value = coefficient.subs({**ONES, K: 1})
    return float(value) if not value.free_symbols else 0.0
