"""Figures of the studies, drawn without a display and written atomically as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from effective_theory.files import write_file
from numeric.spectra.sampled import MeasuredLearnability
from numeric.spectra.selfconsistent import LearnabilityPrediction
from numeric.studies.data_kernel import DataFit
from numeric.studies.linearization import Summary
from numeric.studies.scale import ScaleSummary
from numeric.trained.algorithms import Algorithm
from numeric.trained.picture import draw_ntk_change, draw_prediction
from numeric.trained.prediction import Prediction
from numeric.trained.projectors import Projectors
from numeric.trained.signals import Times

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


def scale_figure(summaries: list[ScaleSummary], powers: tuple[int, ...], title: str, path: Path) -> None:
    """Mean loss against learning rate for each width, one panel a parametrization, and a coordinate check beside."""
    schemes = list(dict.fromkeys(s.scheme for s in summaries))
    figure = Figure(figsize=(4 * (len(schemes) + 1), 4), layout="constrained")
    panels = figure.subplots(1, len(schemes) + 1)
    widths = sorted({s.width for s in summaries})
    for axes, scheme in zip(panels, schemes):
        for s in (x for x in summaries if x.scheme == scheme):
            losses = [loss if np.isfinite(loss) else np.nan for loss in s.losses]
            axes.plot(powers, losses, "o-", color=f"C{widths.index(s.width)}", ms=3, label=f"n = {s.width}")
        axes.set(yscale="log", xlabel=r"$\log_2(\eta/\eta_0)$", ylabel="loss", title=_scheme_title(scheme))
        axes.legend(fontsize=7)
    for k, scheme in enumerate(schemes):
        own = [x for x in summaries if x.scheme == scheme]
        place = [x.width for x in own]
        panels[-1].plot(
            place, [x.hidden_change for x in own], f"C{k}o-", ms=3, label=f"hidden, {_scheme_title(scheme)}"
        )
        panels[-1].plot(place, [x.ntk_change for x in own], f"C{k}s--", ms=3, label=f"NTK, {_scheme_title(scheme)}")
    panels[-1].set(xscale="log", yscale="log", xlabel="width n", title=f"{title}: change in training")
    panels[-1].legend(fontsize=7)
    _save(figure, path)


def _scheme_title(scheme: str) -> str:
    return scheme if scheme == "standard" else f"s = {float(scheme):g}"


def learnability_figure(
    levels: np.ndarray,
    curves: list[LearnabilityPrediction],
    measured: list[MeasuredLearnability] | None,
    title: str,
    path: Path,
) -> None:
    """Learnability and test error of a mode of each level against the number of samples: theory as lines, measured sets
    as points. The error of a mode rises with n before it falls where others are learned first.

    `levels` gives the level of every entry of the predictions; the measurements are averaged over levels.
    """
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    panels = figure.subplots(1, 2)
    n = [p.samples for p in curves]
    every = np.unique(levels)
    for k, level in enumerate(every):
        first = int(np.argmax(levels == level))
        unit = np.eye(len(levels))[first]
        colour = colormaps["turbo"](0.05 + 0.9 * k / max(1, len(every) - 1))
        panels[0].plot(n, [p.learnabilities[first] for p in curves], color=colour, label=f"degree {level}")
        panels[1].plot(n, [p.mse(unit) for p in curves], color=colour)
        for m in measured or []:
            for axes, name in zip(panels, ("learnabilities", "mode_mse")):
                value, error = getattr(m, name)[k], getattr(m, f"{name}_error")[k]
                axes.errorbar([m.samples], [value], [error], fmt="o", color=colour, ms=4)
    panels[0].set(xlabel="samples", ylabel="learnability of a mode", ylim=(-0.02, 1.02), xscale="log")
    panels[1].set(xlabel="samples", ylabel="test error of a mode", xscale="log", yscale="log")
    panels[0].legend(fontsize=7, ncols=1 + len(every) // 10)
    figure.suptitle(title)
    _save(figure, path)


def prediction_figure(
    p: Prediction, targets: Sequence[str], finite: bool, title: str, path: Path, ntk: bool = False
) -> None:
    """Means of trained networks with the ensemble's spread, one panel a target; with `ntk` also the NTK's change."""
    panels = len(targets) + ntk
    figure = Figure(figsize=(4.5 * panels, 4), layout="constrained")
    places = np.ravel(figure.subplots(1, panels))
    for k, (axes, name) in enumerate(zip(places, targets)):
        draw_prediction(p, axes, k, finite).set_ylabel(name)
    if ntk:
        draw_ntk_change(p, places[-1])
    figure.suptitle(title)
    _save(figure, path)


def class_figure(
    probabilities: Sequence[Sequence[float]],
    infinite: Sequence[Sequence[float]],
    classes: Sequence[str],
    title: str,
    path: Path,
) -> None:
    """Class probabilities on the test inputs: infinite width as outlines, to order 1/n as bars."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes, rows, wide = figure.add_subplot(), np.arange(len(probabilities)), 0.8 / len(classes)
    for k, name in enumerate(classes):
        at = rows + (k - (len(classes) - 1) / 2) * wide
        axes.bar(at, [row[k] for row in probabilities], wide, color=f"C{k}", alpha=0.7, label=name)
        axes.bar(at, [row[k] for row in infinite], wide, fill=False, edgecolor="k", lw=0.8)
    axes.set(xlabel="test input", ylabel="mean probability (outline: n = ∞)", ylim=(0, 1), xticks=rows)
    axes.legend(fontsize=8)
    axes.set_title(title)
    _save(figure, path)


def interpolation_figure(
    curve: Sequence[tuple[float, float, float, float]], y: tuple[float, float], title: str, path: Path
) -> None:
    """Mean with one standard deviation over s, the mean to second order in the angle, and the two training targets."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    s, mean, deviation, second = np.array(curve).T
    axes.fill_between(s, mean - deviation, mean + deviation, alpha=0.2, lw=0)
    axes.plot(s, mean, label="mean of trained networks")
    axes.plot(s, second, "--", label="to second order in the angle")
    axes.plot([1, 0], y, "ko", label="training targets")
    axes.set(xlabel="s", ylabel="output", title=title)
    axes.legend(fontsize=8)
    _save(figure, path)


def kernel_figure(found: DataFit, y: np.ndarray, title: str, path: Path) -> None:
    """The kernel's spectrum with the target's power above each eigenvalue, and leave-one-out predictions."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    spectrum, risk = figure.subplots(1, 2)
    modes = np.arange(1, len(found.eigenvalues) + 1)
    shown = found.eigenvalues > 0
    spectrum.plot(modes[shown], found.eigenvalues[shown], "C0.", ms=4, label="eigenvalue")
    spectrum.plot(modes, 1 - np.cumsum(found.target_share), "C1-", label="power of the target not yet seen")
    spectrum.set(xscale="log", yscale="log", xlabel="mode", ylim=(1e-8 * max(found.eigenvalues[0], 1e-300), None))
    spectrum.legend(fontsize=8)
    if found.leave_one_out is not None:
        risk.plot(y, y - found.leave_one_out, ".", ms=3)
        ends = [float(y.min()), float(y.max())]
        risk.plot(ends, ends, "k-", lw=0.8)
        risk.set(xlabel="target", ylabel="prediction without this input", title=f"mean square {found.loo_mse:.3g}")
    else:
        risk.text(0.5, 0.5, f"cross-validation {found.gcv:.3g} ± {found.gcv_error:.1g}", ha="center")
        risk.set_axis_off()
    figure.suptitle(title)
    _save(figure, path)


def projector_figure(algorithm: Algorithm, h: np.ndarray, time: Times | None, path: Path) -> None:
    """h² or h³ times the six projectors at equal modes, against the mode's eigenvalue; points at the given ones."""
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.add_subplot()
    smooth = np.geomspace(h.min() / 4, h.max() * (1 if time is None else 2), 120)
    for k, (name, power) in enumerate((("Z_A", 2), ("Z_B", 2), ("Z_IA", 3), ("Z_IB", 3), ("Z_IIA", 3), ("Z_IIB", 3))):
        for values, style in ((smooth, "-"), (h, "o")):
            one = [getattr(Projectors(algorithm, np.array([x]), time), name).ravel()[0] * x**power for x in values]
            label = rf"$h^{power} Z_{{\mathrm{{{name[2:]}}}}}$" if style == "-" else None
            axes.plot(values, one, style, color=f"C{k}", ms=4, label=label)
    axes.axhline(0, color="gray", lw=0.5)
    axes.set(xscale="log", xlabel="eigenvalue h of the training NTK", title=str(algorithm))
    axes.legend(fontsize=8, ncols=2)
    _save(figure, path)


def depth_figure(studies: Mapping[str, Sequence[Mapping[str, Any]]], width: int | None, path: Path) -> None:
    """Bias, variance and total against depth, at infinite width; beside it the coefficient of L/n of each algorithm."""
    finite = any("times_n" in row for rows in studies.values() for row in rows)
    figure = Figure(figsize=(10 if finite else 5.5, 4.2), layout="constrained")
    left, *right = list(figure.subplots(1, 2 if finite else 1, squeeze=False)[0])
    for k, (name, rows) in enumerate(studies.items()):
        depths = [row["depth"] for row in rows]
        for part, style in (("bias", "--"), ("variance", ":"), ("total", "-")):
            left.plot(depths, [row[part] for row in rows], style, color=f"C{k}", label=f"{name}, {part}")
        for axes in right:
            for mark, algorithm in zip("os^", rows[0].get("times_n", {})):
                found = [row["times_n"][algorithm] for row in rows]
                label = f"{name}, {algorithm}"
                values = [x["coefficient_of_L_over_n"] for x in found]
                axes.plot(depths, values, mark + "-", color=f"C{k}", mfc="none", label=label)
                if width is not None:
                    at = [row["total"] + x["total"] / width for row, x in zip(rows, found)]
                    left.plot(depths, at, mark, color=f"C{k}", mfc="none", label=f"{label}, n = {width}")
    left.set(xlabel="depth L", ylabel="mean test loss")
    left.legend(fontsize=7)
    for axes in right:
        axes.axhline(0, color="gray", lw=0.5)
        axes.set(xlabel="depth L", ylabel="coefficient of L/n in the test loss")
        axes.legend(fontsize=7)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    buffer = BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    write_file(path, buffer.getvalue())
