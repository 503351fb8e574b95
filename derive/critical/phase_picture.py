"""The phase diagram drawn: phases shaded, the lines chi = 1 on top, critical points as stars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from derive.critical.phase_diagram import PHASES, PhaseDiagram
from effective_theory.drawing import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#9ecae1", "#fdae6b", "#d9d9d9")
"""Of the phases."""


def draw_phases(diagram: PhaseDiagram, axes: Axes | None = None) -> Axes:
    """On the given axes or new ones."""
    from matplotlib.patches import Patch

    drawn = axes_or_new(axes)
    levels = [k - 0.5 for k in range(len(PHASES) + 1)]
    drawn.contourf(diagram.weights, diagram.biases, diagram.phase, levels=levels, colors=COLORS, alpha=0.5)
    drawn.plot(*diagram.perpendicular, "k-", label=r"critical line, $\chi_\perp = 1$")
    drawn.plot(*diagram.parallel, "k--", label=r"$\chi_\parallel = 1$")
    if diagram.points:
        weights, biases = zip(*diagram.points)
        drawn.plot(weights, biases, "k*", markersize=11, label="critical point", clip_on=False, linestyle="none")
    present = [k for k in range(len(PHASES)) if (diagram.phase == k).any()]
    patches = [Patch(facecolor=COLORS[k], alpha=0.5, label=PHASES[k]) for k in present]
    drawn.set(xlabel="weight variance $C_W$", ylabel="bias variance $C_b$")
    drawn.set(xlim=(0, diagram.right), ylim=(0, diagram.top))
    lines, _ = drawn.get_legend_handles_labels()
    drawn.legend(handles=[*lines, *patches], fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    return drawn
