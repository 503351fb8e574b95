"""Where the random-rotation assumption fails, it is seen; where it holds, nothing is said."""

import numpy as np
import pytest

from numeric.spectra.eigensystem import circle, hypercube
from numeric.spectra.judged import disagreements
from numeric.spectra.network import network_kernel
from numeric.spectra.sampled import measure_learnability
from numeric.spectra.selfconsistent import learnability


def judged(space, samples, trials=100):
    levels, first, counts = np.unique(space.levels, return_index=True, return_counts=True)
    prediction = learnability(space.eigenvalues[first], samples, multiplicities=counts.astype(float))
    measured = measure_learnability(space, samples, trials, seed=3, average_levels=True)
    return disagreements(levels.tolist(), [prediction], [measured])


def test_grid_on_the_circle_breaks_the_assumption():
    """tanh, depth 4, 32 points, 16 samples: the test error of mode 4 is 40 times the predicted one."""
    kernel = network_kernel("tanh", 4, "Theta", C_b=0.1, C_W=1.0, lambda_b=1.0, lambda_W=1.0)
    found = {(d.quantity, d.degree): d for d in judged(circle(kernel, 32), 16)}
    worst = found["test error", 4]
    assert worst.theory == pytest.approx(0.0022, abs=2e-4)
    assert worst.measured > 20 * worst.theory
    assert "theory 0.00" in str(worst)


def test_hypercube_confirms_it():
    kernel = network_kernel("relu", 3, "Theta", C_b=0.1, C_W=2.0, lambda_b=1.0, lambda_W=1.0)
    assert [d for d in judged(hypercube(kernel, 7), 64) if d.degree <= 2] == []
