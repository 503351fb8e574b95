"""Which modes carry a correction, and which ridge would make it small: the same draws with other modes.

Long training amplifies small eigenvalues h of the training NTK, up to 1/h³. A ridge shifts them; stopping at the time
1/ridge leaves modes below it untrained likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from numeric.trained.modes import TrainingModes
from numeric.trained.sampled.estimate import TOTAL, Sums

if TYPE_CHECKING:
    from numeric.trained.sampled.prediction import SampledPrediction

FEW = 2
"""Batches for each trial: an estimate of size, no more."""
SMALL = 0.1
"""A correction of this share of the prediction is small."""
TRIALS = 5


@dataclass(frozen=True)
class Advice:
    """In words: who carries the correction, and what would make it small."""

    sentences: tuple[str, ...]
    remedy: str


def advice(p: SampledPrediction) -> Advice:
    """Trials with ridges between the smallest eigenvalues and the largest on top of p's own, same neurons in all."""
    h, own = p.kernel.modes.h, p.kernel.ridge
    sizes = {ridge: _size(p, ridge) for ridge in np.geomspace(max(h[0], 1e-12 * h[-1]), h[-1], TRIALS)}
    now = _size(p, 0.0)
    small = next((ridge for ridge, size in sizes.items() if size < SMALL), None)
    half = next((ridge for ridge, size in sizes.items() if size < now / 2), None)
    sentences = []
    if half is not None:
        below = int(np.sum(h - own < half))
        sentences.append(
            f"modes of the training NTK below {half:.2g} ({below} of {len(h)}) carry more "
            f"than half of it: a ridge of {half + own:.2g} halves it"
        )
    if small is None:
        remedy = f"a width of about {p.width * max(now / SMALL, 1):.2g} would make it small"
    else:
        small += own
        eta = p.algorithm.rule(p.algorithm.stages).direct
        stop = (
            f"stopping at time {1 / small:.2g}"
            if p.algorithm.continuous
            else f"stopping after {1 / (small * eta):.2g} steps"
        )
        remedy = f"a ridge of about {small:.2g} (or {stop}) would bring it below a tenth of the prediction"
    return Advice((*sentences, remedy), remedy)


def _size(p: SampledPrediction, ridge: float) -> float:
    """The sampled correction's size, root mean square over the test outputs, in units of the prediction's."""
    modes = p.kernel.modes
    shifted = replace(
        p.kernel, modes=TrainingModes(modes.h + ridge, modes.U, modes.dropped), ridge=p.kernel.ridge + ridge
    )
    sampler = p.sampler(None, shifted, controlled=False)
    sums = Sums(sampler.program.count)
    for number in range(FEW):
        sums.add(number, tuple(np.asarray(x) for x in sampler.launch(number)))  # type: ignore[arg-type]
    estimate, error = sums.estimate()
    square = np.mean(estimate[TOTAL] ** 2) - np.mean(error[TOTAL] ** 2)
    mean = shifted.mean(p.algorithm, None, inputs=p.test)
    spread = np.diagonal(shifted.covariance(p.algorithm, None, inputs=p.test))
    size = np.mean(mean**2) + np.mean(np.maximum(spread, 0.0))
    return float(np.sqrt(max(square, 0.0) / size) / p.width)
