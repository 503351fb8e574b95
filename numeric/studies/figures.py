"""Figures of the studies, drawn without a display and written atomically as PNG."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from effective_theory.files import write_file
from numeric.spectra.sampled import MeasuredLearnability
from numeric.spectra.selfconsistent import LearnabilityPrediction
from numeric.studies.linearization import Summary

LABELS = {
    "f_gap": r"$\sup_t |f_t - f_t^{\mathrm{lin}}|$",
    "ntk_gap": r"$\sup_t |H_t - H_0| / |H_0|$",
    "parameter_change": r"$\sup_t |\theta_t - \theta_0|_{\lambda^{-1}}$",
    "trace_change": r"$|\langle \mathrm{tr} H_T / \mathrm{tr} H_0 - 1\rangle|$",
}


def study_figure(summaries: dict[str, Summary], title: str, path: Path) -> None:
    """Means with error bars against the width, both axes logarithmic, and the fitted powers."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    for k, (name, s) in enumerate(summaries.items()):
        label = LABELS[name]
        if s.fit is not None:
            label += rf": $n^{{{s.fit.power:.2f} \pm {s.fit.power_error:.2f}}}$"
            axes.plot(s.widths, s.fit(s.widths), f"C{k}", lw=1)
        axes.errorbar(s.widths, np.abs(s.means), s.errors, fmt="o", color=f"C{k}", ms=4, label=label)
    axes.set(xscale="log", yscale="log", xlabel="width n", title=title)
    axes.legend(fontsize=8)
    _save(figure, path)


def learnability_figure(
    levels: np.ndarray,
    predictions: list[LearnabilityPrediction],
    measured: list[MeasuredLearnability] | None,
    title: str,
    path: Path,
) -> None:
    """Mean learnability of each level against the number of samples: theory as lines, sampled sets as points.

    `levels` gives the level of every entry of the predictions; the measurements are averaged over levels.
    """
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    n = [p.samples for p in predictions]
    for k, level in enumerate(np.unique(levels)):
        first = int(np.argmax(levels == level))
        axes.plot(n, [p.learnabilities[first] for p in predictions], f"C{k % 10}", label=f"degree {level}")
        if measured:
            values = [m.learnabilities[k] for m in measured]
            errors = [m.learnabilities_error[k] for m in measured]
            axes.errorbar([m.samples for m in measured], values, errors, fmt="o", color=f"C{k % 10}", ms=4)
    axes.set(xlabel="samples", ylabel="learnability", title=title, ylim=(-0.02, 1.02))
    axes.set_xscale("log")
    axes.legend(fontsize=8)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    buffer = BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    write_file(path, buffer.getvalue())
