"""A flow drawn: a tensor of each input against the layers; for K also where sampled networks of this width lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from effective_theory.drawing import axes_or_new
from numeric.errors import NumericError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from numeric.evaluation.results import Flow

MOST = 10
"""Inputs that a picture shows."""


def draw_flow(flow: Flow, tensor: str = "K", axes: Axes | None = None) -> Axes:
    """The component of `tensor` whose inputs are all the same, for each input (the first ten) against the layer.

    Around K stands the band K + G1/n +- sqrt((V + 2 K^2)/n): mean and standard deviation over networks of the mean
    square of a layer's n preactivations. It is drawn where the flow holds G1 and V and one width for all hidden layers.
    """
    layers = sorted(flow.kept)
    if len(layers) < 2:
        raise NumericError("A picture against depth needs several layers: ask for them with layers='all'.")
    values = np.array([_diagonal(np.asarray(flow.layer(l)[tensor])) for l in layers])
    drawn = axes_or_new(axes)
    hidden = set(flow.widths[1:])
    width = hidden.pop() if len(hidden) == 1 else None
    banded = tensor == "K" and width is not None and {"G1", "V"} <= set(flow.names)
    for place, own in enumerate(values.T[:MOST]):
        drawn.plot(layers, own, color=f"C{place}", label=f"input {place}")
        if banded and width is not None:
            mean, spread = _band(flow, layers, own, place, width)
            drawn.plot(layers, mean, "--", color=f"C{place}", linewidth=1)
            drawn.fill_between(layers, mean - spread, mean + spread, color=f"C{place}", alpha=0.12)
    drawn.set(xlabel=r"layer $\ell$", ylabel=tensor, title=f"{flow.activation.FUNCTIONS.name}, depth {flow.depth}")
    if banded:
        drawn.plot([], [], "k--", linewidth=1, label=f"mean at n = {width}")
        drawn.fill_between([], [], [], color="k", alpha=0.12, label="one s.d. over networks")
    drawn.legend(fontsize=8)
    return drawn


def _band(flow: Flow, layers: list[int], kernel: np.ndarray, place: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    first, vertex = (
        np.array([_diagonal(np.asarray(flow.layer(l)[name]))[place] for l in layers]) for name in ("G1", "V")
    )
    return kernel + first / width, np.sqrt(np.maximum((vertex + 2 * kernel**2) / width, 0))


def _diagonal(array: np.ndarray) -> np.ndarray:
    """Entries with equal subscripts."""
    places = np.arange(array.shape[0])
    return array[(places,) * array.ndim]
