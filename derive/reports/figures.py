"""The report's pictures, the same SVG and PDF at every build: the activation, the phase picture, the flow."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import sympy as sp
from matplotlib.figure import Figure as Canvas

from derive.activations import Activation
from derive.critical import Criticality
from derive.depth.iterate import Brackets
from derive.gaussian import Sigma, expect
from derive.reports.document import Figure, Gallery
from derive.reports.flow_check import FlowCheck
from derive.reports.tex import symbol
from derive.symbols import z

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "report",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


def _svg(name: str, canvas: Canvas, caption: str) -> Figure:
    svg, pdf = io.StringIO(), io.BytesIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None}, bbox_inches="tight", transparent=True)
    canvas.savefig(pdf, format="pdf", metadata={"CreationDate": None}, bbox_inches="tight", transparent=True)
    return Figure(name, svg.getvalue(), caption, pdf.getvalue())


def activation_figure(sigma: Activation) -> Figure:
    """sigma and its first two derivatives (their regular parts)."""
    points = np.linspace(-5, 5, 801)
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 2.8))
        axes = canvas.subplots()
        for order, label in enumerate(("$\\sigma$", "$\\sigma'$", "$\\sigma''$")):
            axes.plot(points, np.clip(_values(sigma, order, points), -6, 6), label=label)
        axes.set_xlabel("z")
        axes.legend()
        return _svg("activation", canvas, f"{sigma.name} and its first two derivatives (regular parts).")


def overlay_figure(sigmas: Sequence[Activation]) -> Figure:
    """Several activations in one picture."""
    points = np.linspace(-4, 4, 401)
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 4.2))
        axes = canvas.subplots()
        for place, sigma in enumerate(sigmas):
            style = ("-", "--", ":")[place // 10 % 3]
            axes.plot(points, np.clip(_values(sigma, 0, points), -3, 4), style, label=sigma.name, linewidth=1.2)
        axes.set_xlabel("z")
        axes.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
        return _svg("activations", canvas, "The activations.")


def _values(sigma: Activation, order: int, points: np.ndarray) -> np.ndarray:
    function = sp.lambdify(z, sigma.derivative(order), modules=[{"erf": np.vectorize(math.erf)}, "numpy"])
    with np.errstate(all="ignore"):  # both branches of a piecewise formula are evaluated everywhere
        return np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)


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
            if shown.any():
                axes.plot(np.where(shown, weight, np.nan), np.where(shown, bias, np.nan), style, label=label)
        for point in found.points:
            axes.plot(float(point.C_W), float(point.C_b), "k*", markersize=10)
        axes.set_xlabel("$C_W$")
        axes.set_ylabel("$C_b$")
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        caption = (
            "Initializations whose kernel has a fixed point $K^\\star$ with $\\chi_\\perp = 1$ or "
            "$\\chi_\\parallel = 1$, traced by $K^\\star$ from 0.001 to 60; stars are critical points."
        )
        return _svg("phase", canvas, caption)


def flow_gallery(check: FlowCheck) -> Gallery:
    """Every tensor's exact flow (dots) on its asymptotics (lines), and below their ratio tending to one."""
    layers = np.asarray(check.layers, dtype=float)
    panels = []
    with matplotlib.rc_context({**_STYLE, "font.size": 8}):
        for name, values in check.exact.items():
            canvas = Canvas(figsize=(3.3, 2.9), layout="constrained")
            upper, lower = canvas.subplots(2, 1, sharex=True, height_ratios=[2, 1.2])
            leading = np.array(check.leading[name])
            series = np.array(check.series.get(name, np.full_like(leading, np.nan)))
            _flow_panel(upper, lower, layers, np.array(values), leading, series)
            upper.set_title(f"${symbol(name)}$", pad=3)
            lower.set_xlabel("layer")
            panels.append(_svg(f"flow_{name}", canvas, f"The flow of {name} against its asymptotics"))
    caption = (
        "Absolute values of the exact single-input recursions, iterated layer by layer (dots), the leading term "
        "(dashed) and the series (solid); below each, exact / leading term (dashed) and exact / series (solid)."
    )
    return Gallery(tuple(panels), caption)


def _flow_panel(
    upper: Any, lower: Any, layers: np.ndarray, exact: np.ndarray, leading: np.ndarray, series: np.ndarray
) -> None:
    upper.loglog(layers, np.abs(leading), "--", color="tab:blue", linewidth=1)
    upper.loglog(layers, np.abs(series), "-", color="tab:blue", linewidth=1)
    upper.loglog(layers, np.abs(exact), "o", color="tab:orange", markersize=2.4)
    upper.minorticks_off()
    sizes = np.abs(np.concatenate([exact, leading]))
    largest = sizes.max()
    least = np.abs(leading[leading != 0]).min(initial=largest)
    upper.set_ylim(min(least / 3, largest / 30), largest * 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        for curve, style, color in ((leading, "--", "gray"), (series, "-", "tab:green")):
            lower.semilogx(layers, exact / curve, style, color=color, linewidth=1)
    lower.axhline(1, color="black", linewidth=0.6)
    spread = min(0.6, max(0.05, 4 * abs(exact[-1] / leading[-1] - 1)))
    lower.set_ylim(1 - spread, 1 + spread)
