"""The report's pictures, as SVG source that is the same at every build: the activation, the phase picture, the flow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import sympy as sp
from matplotlib.figure import Figure as Canvas

from derive.activations import Activation
from derive.asymptotics.iterate import Brackets
from derive.criticality import Criticality
from derive.gaussian import Sigma, expect
from derive.report.document import Figure
from derive.symbols import z

_STYLE = {"svg.hashsalt": "report", "svg.fonttype": "path", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}


def _svg(name: str, canvas: Canvas, caption: str) -> Figure:
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return Figure(name, buffer.getvalue(), caption)


def activation_figure(sigma: Activation) -> Figure:
    """sigma and its first two derivatives (their regular parts)."""
    points = np.linspace(-5, 5, 801)
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 2.8))
        axes = canvas.subplots()
        for order, label in enumerate(("σ", "σ′", "σ″")):
            function = sp.lambdify(z, sigma.derivative(order), modules=[{"erf": np.vectorize(_erf)}, "numpy"])
            values = np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)
            axes.plot(points, np.clip(values, -6, 6), label=label)
        axes.set_xlabel("z")
        axes.legend()
        return _svg("activation", canvas, f"{sigma.name} and its first two derivatives (regular parts).")


def _erf(x: float) -> float:
    import math

    return math.erf(x)


def phase_figure(sigma: Activation, found: Criticality) -> Figure | None:
    """The lines chi_perp = 1 and chi_parallel = 1 in the plane of C_W and C_b, traced by the fixed point K."""
    if any(kink != 0 for kink in sigma.kinks):
        return None
    s, s1, s2 = Sigma(0), Sigma(0, 1), Sigma(0, 2)
    wanted = [expect(s * s), expect(s1 * s1), expect(s * s2)]
    kernels = np.geomspace(1e-3, 60, 160)
    evaluate = Brackets(sigma, wanted)
    rows = np.array([[float(x) for x in evaluate(np.longdouble(K))] for K in kernels])
    second, slope, curve = rows.T
    with matplotlib.rc_context(_STYLE), np.errstate(divide="ignore", invalid="ignore"):
        canvas = Canvas(figsize=(6.4, 3.4))
        axes = canvas.subplots()
        for label, strength, style in (
            ("$\\chi_\\perp = 1$", slope, "-"),
            ("$\\chi_\\parallel = 1$", slope + curve, "--"),
        ):
            weight = np.where(strength > 0, 1 / strength, np.nan)
            bias = kernels - weight * second
            shown = (bias >= -1e-9) & (weight < 20)
            axes.plot(np.where(shown, weight, np.nan), np.where(shown, bias, np.nan), style, label=label)
        for point in found.points:
            axes.plot(float(point.C_W), float(point.C_b), "k*", markersize=10)
        axes.set_xlabel("$C_W$")
        axes.set_ylabel("$C_b$")
        axes.legend()
        caption = (
            "Initializations whose kernel has a fixed point $K^\\star$ with $\\chi_\\perp = 1$ or "
            "$\\chi_\\parallel = 1$, traced by $K^\\star$ from 0.001 to 60; stars are critical points."
        )
        return _svg("phase", canvas, caption)


def flow_figure(layers: Sequence[int], panels: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Every tensor's exact flow (dots) on its asymptotic series (line), and below their ratio tending to one."""
    columns = 3
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context({**_STYLE, "font.size": 7}):
        canvas = Canvas(figsize=(9, 2.6 * rows))
        outer = canvas.add_gridspec(rows, columns, hspace=0.35, wspace=0.38)
        for place, (name, (exact, series)) in enumerate(panels.items()):
            inner = outer[place].subgridspec(2, 1, height_ratios=[2, 1], hspace=0.08)
            upper, lower = canvas.add_subplot(inner[0]), canvas.add_subplot(inner[1])
            _flow_panel(upper, lower, name, np.asarray(layers, dtype=float), np.array(exact), np.array(series))
        caption = (
            "Absolute values of the exact single-input recursions iterated layer by layer (dots) and the asymptotic "
            "series (lines); below each, their ratio."
        )
        return _svg("flow", canvas, caption)


def _flow_panel(upper: Any, lower: Any, name: str, layers: np.ndarray, exact: np.ndarray, series: np.ndarray) -> None:
    upper.loglog(layers, np.abs(series), "-", color="tab:blue", linewidth=1)
    upper.loglog(layers, np.abs(exact), "o", color="tab:orange", markersize=2.2)
    upper.set_title(name, fontsize=8, pad=3)
    upper.tick_params(labelbottom=False)
    upper.minorticks_off()
    largest = np.max(np.abs(np.concatenate([exact, series])))
    if largest > 0:
        least = np.min(np.abs(series[series != 0]), initial=largest)
        upper.set_ylim(min(least / 3, largest / 30), largest * 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(series != 0, exact / series, np.nan)
    lower.semilogx(layers, ratio, ".-", color="tab:green", markersize=3, linewidth=0.8)
    lower.axhline(1, color="gray", linewidth=0.8)
    last = ratio[-1] if np.isfinite(ratio[-1]) else 1.0
    spread = max(0.05, min(0.5, 3 * abs(last - 1)))
    lower.set_ylim(1 - spread, 1 + spread)
