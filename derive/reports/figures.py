"""The report's pictures, the same SVG and PDF at every build: the activation, the phase picture, the flow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas

from derive.activations import Activation
from derive.activations.sampled import draw_activation, sampled
from derive.critical import Criticality
from derive.critical.phase_diagram import phase_diagram
from derive.critical.phase_picture import draw_phases
from derive.depth.exponent_picture import ratio_label
from derive.errors import DeriveError
from derive.notation import CHI_PARALLEL, CHI_PERP, K_STAR, WIDTH, tensor_latex
from derive.reports.document import Figure, Gallery
from derive.reports.flow_check import FlowCheck
from derive.steps import relation, said
from derive.symbols import ell

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
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 2.8))
        draw_activation(sigma, canvas.subplots())
        return _svg("activation", canvas, f"{sigma.name} and its first two derivatives (regular parts).")


def overlay_figure(sigmas: Sequence[Activation]) -> Figure:
    """Several activations in one picture."""
    points = np.linspace(-4, 4, 401)
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 4.2))
        axes = canvas.subplots()
        for place, sigma in enumerate(sigmas):
            style = ("-", "--", ":")[place // 10 % 3]
            axes.plot(points, np.clip(sampled(sigma, 0, points), -3, 4), style, label=sigma.name, linewidth=1.2)
        axes.set_xlabel("$z$")
        axes.set_ylabel("$\\sigma(z)$")
        axes.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
        return _svg("activations", canvas, "The activations.")


def phase_figure(found: Criticality) -> Figure | None:
    """The plane of C_W and C_b; None for an activation that jumps."""
    try:
        diagram = phase_diagram(found)
    except DeriveError:
        return None
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 3.8), layout="constrained")
        draw_phases(diagram, canvas.subplots())
        caption = said(
            "The phase diagram: at the fixed point that a kernel of size 1 flows to, nearby inputs grow alike where {} "
            "(ordered) and apart where {} (chaotic). Lines are initializations with a fixed point {} between 0.001 and "
            "60 at which {} or {} is 1; stars are critical points.",
            relation("<", CHI_PERP, 1),
            relation(">", CHI_PERP, 1),
            K_STAR,
            CHI_PERP,
            CHI_PARALLEL,
        )
        return _svg("phase", canvas, caption)


def ratio_figure(layers: Sequence[int], ratios: Mapping[str, Sequence[float]], name: str) -> Figure:
    """n times every dimensionless ratio of the exact recursions, against depth."""
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 3.8), layout="constrained")
        axes = canvas.subplots()
        for place, (tensor, values) in enumerate(ratios.items()):
            style = ("-", "--", ":")[place // 5 % 3]
            axes.loglog(
                layers,
                np.where(np.abs(values) > 0, np.abs(values), np.nan),
                style,
                label=ratio_label(tensor),
                linewidth=1.2,
            )
        axes.loglog(layers, np.asarray(layers, dtype=float), color="gray", linewidth=0.7, label=r"$\ell$")
        axes.set_xlabel(r"layer $\ell$")
        axes.set_ylabel("absolute value")
        axes.legend(fontsize=8, ncols=2, loc="upper left", bbox_to_anchor=(1.01, 1))
        told = (
            "Dimensionless ratios, times the width {} (absolute values), of the exact recursions against depth; the "
            "gray line is {}."
        )
        return _svg(f"ratios_{name}", canvas, said(told, WIDTH, ell))


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
            upper.set_title(f"${tensor_latex(name)}$", pad=3)
            upper.set_ylabel("absolute value")
            upper.legend(fontsize=6, frameon=False)
            lower.set_xlabel(r"layer $\ell$")
            lower.set_ylabel("exact / term")
            panels.append(_svg(f"flow_{name}", canvas, f"The flow of {name} against its asymptotics"))
    caption = (
        "Absolute values of the exact single-input recursions, iterated layer by layer (dots), the leading term "
        "(dashed) and the series (solid); below each, exact / leading term (dashed) and exact / series (solid)."
    )
    return Gallery(tuple(panels), caption)


def _flow_panel(
    upper: Any, lower: Any, layers: np.ndarray, exact: np.ndarray, leading: np.ndarray, series: np.ndarray
) -> None:
    upper.loglog(layers, np.abs(leading), "--", color="tab:blue", linewidth=1, label="leading term")
    upper.loglog(layers, np.abs(series), "-", color="tab:blue", linewidth=1, label="series")
    upper.loglog(layers, np.abs(exact), "o", color="tab:orange", markersize=2.4, label="exact")
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
