"""An activation and its derivatives as arrays of numbers, for pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from derive.activations.definition import Activation
from derive.symbols import z
from effective_theory.drawing import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = (r"$\sigma$", r"$\sigma'$", r"$\sigma''$")
HIGHEST = 6.0
"""Beyond this a picture is cut."""


def sampled(sigma: Activation, order: int, points: np.ndarray) -> np.ndarray:
    """The derivative's regular part at the points, in double precision.

    >>> from derive.activations import activation
    >>> sampled(activation("relu"), 1, np.array([-1.0, 2.0])).tolist()
    [0.0, 1.0]
    """
    erf = np.vectorize(math.erf, otypes=[float])
    function = sp.lambdify(z, sigma.derivative(order), modules=[{"erf": erf}, "numpy"])
    with np.errstate(all="ignore"):  # both branches of a piecewise formula are evaluated everywhere
        return np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)


def draw_activation(sigma: Activation, axes: Axes | None = None) -> Axes:
    """sigma and its first two derivatives (their regular parts)."""
    drawn = axes_or_new(axes, 6.4, 2.8)
    points = np.linspace(-5, 5, 801)
    for order, label in enumerate(LABELS):
        drawn.plot(points, np.clip(sampled(sigma, order, points), -HIGHEST, HIGHEST), label=label)
    drawn.set(xlabel="$z$", ylabel="value")
    drawn.legend()
    return drawn
