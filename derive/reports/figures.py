"""The report's pictures, the same SVG and PDF at every build: the activation, the phase picture, the flow."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import sympy as sp
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from derive.activations import Activation
from derive.critical import Criticality
from derive.depth import Ratio
from derive.depth.iterate import Brackets
from derive.gaussian import Sigma, expect
from derive.notation import CHI_PARALLEL, CHI_PERP, K_STAR, WIDTH, latex, tensor_latex
from derive.reports.document import Figure, Gallery
from derive.reports.flow_check import FlowCheck
from derive.steps import relation, said
from derive.symbols import ell, z

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
        axes.set_xlabel("$z$")
        axes.set_ylabel("value")
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
        axes.set_xlabel("$z$")
        axes.set_ylabel("$\\sigma(z)$")
        axes.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
        return _svg("activations", canvas, "The activations.")


def _values(sigma: Activation, order: int, points: np.ndarray) -> np.ndarray:
    function = sp.lambdify(z, sigma.derivative(order), modules=[{"erf": np.vectorize(math.erf)}, "numpy"])
    with np.errstate(all="ignore"):  # both branches of a piecewise formula are evaluated everywhere
        return np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)


def phase_figure(sigma: Activation, found: Criticality) -> Figure | None:
    """The plane of C_W and C_b: ordered and chaotic phases shaded by chi_perp at the kernel's fixed point, the lines
    chi_perp = 1 and chi_parallel = 1 on top, critical points as stars."""
    if any(kink != 0 for kink in sigma.kinks):
        return None
    s, s1, s2 = Sigma(0), Sigma(0, 1), Sigma(0, 2)
    wanted = [expect(s * s), expect(s1 * s1), expect(s * s2)]
    kernels = np.geomspace(1e-3, 60, 160)
    evaluate = Brackets(sigma, wanted)
    rows = np.array([[float(x) for x in evaluate(np.longdouble(K))] for K in kernels])
    second, slope, curve = rows.T
    points = [(float(p.C_W), float(p.C_b)) for p in found.points if not p.C_b.free_symbols]
    right = 2.5 * max((w for w, _ in points), default=1.6)
    with matplotlib.rc_context(_STYLE), np.errstate(divide="ignore", invalid="ignore"):
        line = (kernels - second / slope)[(slope > 0) & (1 / slope < right)]
        top = 1.6 * max([*line[line > 0], *(b for _, b in points), 0.1])
        canvas = Canvas(figsize=(6.4, 3.8), layout="constrained")
        axes = canvas.subplots()
        weights, biases = np.linspace(right / 300, right, 150), np.linspace(0, top, 100)
        phase = _phases(kernels, second, slope, weights, biases)
        axes.contourf(weights, biases, phase, levels=[-0.5, 0.5, 1.5, 2.5], colors=[c for c, _ in _PHASES], alpha=0.5)
        for label, strength, style in (
            ("critical line, $\\chi_\\perp = 1$", slope, "-"),
            ("$\\chi_\\parallel = 1$", slope + curve, "--"),
        ):
            weight = np.where(strength > 0, 1 / strength, np.nan)
            bias = kernels - weight * second
            shown = (bias >= -1e-9) & (weight < right) & (bias < top)
            if shown.any():
                axes.plot(np.where(shown, weight, np.nan), np.where(shown, bias, np.nan), "k" + style, label=label)
        if points:
            axes.plot(*zip(*points), "k*", markersize=11, label="critical point", clip_on=False, linestyle="none")
        present = [(c, name) for k, (c, name) in enumerate(_PHASES) if (phase == k).any()]
        patches = [Patch(facecolor=color, alpha=0.5, label=name) for color, name in present]
        axes.set_xlabel("weight variance $C_W$")
        axes.set_ylabel("bias variance $C_b$")
        axes.set_xlim(0, right)
        axes.set_ylim(0, top)
        handles, _ = axes.get_legend_handles_labels()
        axes.legend(handles=[*handles, *patches], fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
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


_PHASES = (("#9ecae1", "ordered"), ("#fdae6b", "chaotic"), ("#d9d9d9", "kernel grows without bound"))


def _phases(
    kernels: np.ndarray, second: np.ndarray, slope: np.ndarray, weights: np.ndarray, biases: np.ndarray
) -> np.ndarray:
    """0, 1 or 2 (the place in _PHASES) for each bias (row) and weight (column)."""
    start = int(np.searchsorted(kernels, 1.0))
    phase = np.zeros((len(biases), len(weights)))
    for column, weight in enumerate(weights):
        step = biases[:, None] + weight * second[None, :] - kernels[None, :]
        for row, change in enumerate(step):
            if change[start] > 0:
                stops = np.nonzero(change[start:] <= 0)[0]
                place = start + int(stops[0]) if len(stops) else None
            else:
                stops = np.nonzero(change[:start] >= 0)[0]
                place = int(stops[-1]) if len(stops) else 0
            phase[row, column] = 2 if place is None else float(weight * slope[place] > 1)
    return phase


def ratio_figure(layers: Sequence[int], ratios: Mapping[str, Sequence[float]], name: str) -> Figure:
    """n times every dimensionless ratio of the exact recursions, against depth."""
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(6.4, 3.8), layout="constrained")
        axes = canvas.subplots()
        for place, (tensor, values) in enumerate(ratios.items()):
            label = latex(Ratio(tensor, None, 0, sp.S.One).formula.sides[0] * WIDTH)
            style = ("-", "--", ":")[place // 5 % 3]
            axes.loglog(
                layers, np.where(np.abs(values) > 0, np.abs(values), np.nan), style, label=f"${label}$", linewidth=1.2
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
