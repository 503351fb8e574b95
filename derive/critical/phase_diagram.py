r"""The plane of weight and bias variance: where nearby inputs grow alike or apart, and the lines between.

At each (C_W, C_b) the kernel of one input flows from K = 1 to a fixed point of K' = C_b + C_W <ss>; chi_perp there
decides: below 1 the phase is ordered, above 1 chaotic. The lines chi_perp = 1 and chi_parallel = 1 are drawn from
fixed points K* between `KERNELS`: a K* fixes C_W by chi = 1, and C_b by being a fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from derive.activations import Activation
from derive.critical.points import Criticality
from derive.critical.susceptibility import chi_parallel, chi_perp, kernel_step
from derive.errors import DeriveError
from derive.gaussian import Bracket
from derive.gaussian.one_input import OneInputBrackets
from derive.symbols import C_W, C_b

KERNELS = (1e-3, 60.0, 160)
"""The fixed points that are looked at: from, to, how many."""
PHASES = ("ordered", "chaotic", "kernel grows without bound")
ORDERED, CHAOTIC, UNBOUNDED = range(3)


@dataclass(frozen=True)
class PhaseDiagram:
    """`phase[i, j]` is the place in PHASES of (C_b, C_W) = (biases[i], weights[j]); lines are arrays of (C_W, C_b)
    with gaps of NaN; `points` are the critical points that lie at one place."""

    activation: str
    weights: np.ndarray
    biases: np.ndarray
    phase: np.ndarray
    perpendicular: np.ndarray
    parallel: np.ndarray
    points: tuple[tuple[float, float], ...]

    @property
    def right(self) -> float:
        return float(self.weights[-1])

    @property
    def top(self) -> float:
        return float(self.biases[-1])


def phase_diagram(found: Criticality, columns: int = 150, rows: int = 100) -> PhaseDiagram:
    """The diagram at the scale of the activation's critical points.

    >>> from derive.critical import criticality
    >>> seen = phase_diagram(criticality("tanh"))
    >>> [PHASES[int(seen.phase[0, j])] for j in (0, -1)]  # without biases, at small and at large C_W
    ['ordered', 'chaotic']
    """
    if found.activation.first_delta_order == 1:
        raise DeriveError(f"{found.activation.name} jumps, so that chi_perp diverges: there is no phase diagram")
    kernels, second, across, along = _on_grid(found.activation)
    points = tuple((float(p.C_W), float(p.C_b)) for p in found.points if not p.C_b.free_symbols)
    right = max(2.5 * (points[0][0] if points else 1.6), *(1.25 * weight for weight, _ in points), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        line = (kernels - second / across)[(across > 0) & (1 / across < right)]
        top = 1.6 * max([*line[line > 0], *(bias for _, bias in points), 0.1])
        weights, biases = np.linspace(right / 300, right, columns), np.linspace(0, top, rows)
        lines = [_line(kernels, second, chi, right, top) for chi in (across, along)]
    phase = _phases(kernels, second, across, weights, biases)
    return PhaseDiagram(found.activation.name, weights, biases, phase, lines[0], lines[1], points)


@lru_cache(maxsize=32)
def _on_grid(sigma: Activation) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """K, <ss>, and both susceptibilities over C_W, on the grid of kernels."""
    wanted = [(kernel_step() - C_b) / C_W, chi_perp() / C_W, (chi_parallel() / C_W).expand()]
    brackets = sorted({b for e in wanted for b in e.atoms(Bracket)}, key=str)
    evaluate = OneInputBrackets(sigma, brackets)
    kernels = np.geomspace(*KERNELS)
    rows = np.array([[float(x) for x in evaluate(kernel)] for kernel in kernels])
    columns = [sum(float(e.coeff(b)) * rows[:, i] for i, b in enumerate(brackets)) for e in wanted]
    return kernels, np.asarray(columns[0]), np.asarray(columns[1]), np.asarray(columns[2])


def _line(kernels: np.ndarray, second: np.ndarray, chi: np.ndarray, right: float, top: float) -> np.ndarray:
    weight = np.where(chi > 0, 1 / chi, np.nan)
    bias = kernels - weight * second
    inside = (bias >= -1e-9) & (weight < right) & (bias < top)
    return np.where(inside, np.array([weight, bias]), np.nan)


def _phases(
    kernels: np.ndarray, second: np.ndarray, across: np.ndarray, weights: np.ndarray, biases: np.ndarray
) -> np.ndarray:
    """The kernel goes from K = 1 in the direction of its first change, to the next place where it stops."""
    start = int(np.searchsorted(kernels, 1.0))
    phase = np.zeros((len(biases), len(weights)), dtype=int)
    columns = np.arange(len(weights))
    for row, bias in enumerate(biases):
        change = bias + weights[:, None] * second - kernels
        up, down = change[:, start:] <= 0, change[:, :start][:, ::-1] >= 0
        above = start + up.argmax(axis=1)
        below = np.where(down.any(axis=1), start - 1 - down.argmax(axis=1), 0)
        grows = change[:, start] > 0
        left = np.where(grows, np.maximum(above - 1, 0), below)
        here, there = change[columns, left], change[columns, left + 1]
        share = np.clip(here / np.where(here == there, 1.0, here - there), 0, 1)  # where it vanishes between
        slope = across[left] + share * (across[left + 1] - across[left])
        phase[row] = np.where(weights * slope > 1, CHAOTIC, ORDERED)
        phase[row][grows & ~up.any(axis=1)] = UNBOUNDED
    return phase
