"""Axes to draw on: the user's own, or new ones. Matplotlib is imported when the first picture is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(axes: Axes | None, width: float = 6.4, height: float = 3.8) -> Axes:
    """The axes that were given; without any, those of a new figure of this size in inches."""
    if axes is not None:
        return axes
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    made.grid(alpha=0.3)
    return made
