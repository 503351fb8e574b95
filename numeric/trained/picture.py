"""A prediction drawn: means of trained networks with the ensemble's spread, over the test inputs or against time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from effective_theory.drawing import axes_or_new
from numeric.errors import NumericError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from numeric.trained.prediction import Prediction


def draw_prediction(p: Prediction, axes: Axes | None = None, output: int = 0, finite: bool | None = None) -> Axes:
    """One output. Dashed or circles: infinite width with one standard deviation; solid or crosses: with the order 1/n.

    `finite` says whether the order 1/n is drawn (unless given: where the flow holds what it needs).
    """
    outputs = _outputs(p, output)
    corrected = p.has_finite_width if finite is None else finite
    drawn = axes_or_new(axes, 5.2, 4.0)
    shape = (-1, len(p.test), outputs)
    infinite = p.mean_infinite.reshape(shape)[..., output]
    variance = np.diagonal(p.covariance_infinite, axis1=-2, axis2=-1)
    spread = np.sqrt(np.maximum(variance, 0)).reshape(shape[:2])
    mean = p.mean.reshape(shape)[..., output] if corrected else None
    if isinstance(p.time, np.ndarray):
        _against_time(drawn, p.time, infinite, spread, mean)
        drawn.set_xlabel("time" if p.algorithm.continuous else "steps")
    else:
        places = np.arange(len(p.test))
        drawn.errorbar(places, infinite[0], spread[0], fmt="o", mfc="none", capsize=3, label="infinite width")
        if mean is not None:
            drawn.plot(places, mean[0], "x", label="with the order 1/n")
        drawn.set_xlabel("test input")
        drawn.legend()
    drawn.set_ylabel(f"output {output}")
    return drawn


def _outputs(p: Prediction, output: int) -> int:
    """How many outputs there are; `output` must be one of them."""
    outputs = 1 if p.kernel.y.ndim == 1 else p.kernel.y.shape[1]
    if not 0 <= output < outputs:
        raise NumericError(f"There are outputs 0 to {outputs - 1}; {output} is not one of them.")
    return outputs


def _against_time(
    axes: Axes, times: np.ndarray, infinite: np.ndarray, spread: np.ndarray, mean: np.ndarray | None
) -> None:
    order = np.argsort(times)
    for row in range(infinite.shape[1]):
        centre, size = infinite[order, row], spread[order, row]
        (line,) = axes.plot(times[order], centre, "--", lw=1)
        axes.fill_between(times[order], centre - size, centre + size, color=line.get_color(), alpha=0.12)
        if mean is not None:
            axes.plot(times[order], mean[order, row], color=line.get_color())


def draw_ntk_change(p: Prediction, axes: Axes | None = None, output: int = 0) -> Axes:
    """Representation learning: E[H(t)] - E[H(0)] of one output on all inputs, or its diagonal against time."""
    _outputs(p, output)
    drawn = axes_or_new(axes, 5.2, 4.0)
    change = p.ntk_change if p.kernel.y.ndim == 1 else p.ntk_change[..., output, output, :, :]
    if isinstance(p.time, np.ndarray):
        order = np.argsort(p.time)
        for row, values in enumerate(np.diagonal(change, axis1=-2, axis2=-1)[order].T):
            drawn.plot(p.time[order], values, "-" if row in p.kernel.train else "--", label=f"input {row}")
        drawn.set_xlabel("time" if p.algorithm.continuous else "steps")
        drawn.set_ylabel("change of the mean NTK")
        drawn.legend(fontsize=8)
        return drawn
    largest = float(np.max(np.abs(change)))
    image = drawn.imshow(change, cmap="RdBu", vmin=-largest, vmax=largest)
    drawn.figure.colorbar(image, ax=drawn, label="change of the mean NTK")
    drawn.set_xlabel("input")
    drawn.set_ylabel("input")
    return drawn
