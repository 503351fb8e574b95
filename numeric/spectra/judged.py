"""Does the theory of learnability hold here? Its prediction beside regression on sampled training sets.

The prediction (Simon et al. 2021) rests on one assumption: the kernel's eigenfunctions, at the training points, act
like a random rotation. Where eigenfunctions are tied to each other by the geometry (Fourier modes on a regular grid of
few points alias one another) it fails, by factors. It costs little to find out: draw training sets, and compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numeric.spectra.sampled import MeasuredLearnability
from numeric.spectra.selfconsistent import LearnabilityPrediction

ASSUMPTION = (
    "The prediction assumes that the kernel's eigenfunctions at the training points act like a random rotation."
)
LARGEST_SPACE, TRIALS = 512, 40
"""Points up to which a measurement takes seconds, and is made unasked, with this many training sets."""
STANDARD_ERRORS, SHARE = 3.0, 0.1
"""A difference counts when it exceeds both this many standard errors and this share of the measured value."""


@dataclass(frozen=True)
class Disagreement:
    """One number of the theory that sampled training sets do not confirm."""

    quantity: str
    degree: int
    samples: int
    theory: float
    measured: float
    error: float

    def __str__(self) -> str:
        return (
            f"{self.quantity} of degree {self.degree} with {self.samples} samples: theory {self.theory:.3g}, "
            f"measured {self.measured:.3g} ± {self.error:.1g}"
        )


def disagreements(
    levels: Sequence[int], predictions: Sequence[LearnabilityPrediction], measured: Sequence[MeasuredLearnability]
) -> list[Disagreement]:
    """Learnabilities and test errors, level by level, that theory and measurement do not share.

    The measurements are averaged over the modes of a level, the predictions have one entry a level. What is too small
    to matter (a thousandth of the largest value that either quantity can take, which is one) does not count.
    """
    found = []
    for theory, seen in zip(predictions, measured):
        errors = [theory.mse(row) for row in np.eye(len(levels))]
        for quantity, expected, values, spread in (
            ("learnability", theory.learnabilities, seen.learnabilities, seen.learnabilities_error),
            ("test error", errors, seen.mode_mse, seen.mode_mse_error),
        ):
            for k, degree in enumerate(levels):
                gap = abs(float(expected[k]) - float(values[k]))
                if gap > max(STANDARD_ERRORS * float(spread[k]), SHARE * abs(float(values[k])), 1e-3):
                    numbers = float(expected[k]), float(values[k]), float(spread[k])
                    found.append(Disagreement(quantity, int(degree), theory.samples, *numbers))
    return found
