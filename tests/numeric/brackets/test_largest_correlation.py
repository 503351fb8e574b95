"""The largest correlation that plans are made for: against the angle between inputs, at every size of number."""

import numpy as np
import pytest

from numeric.brackets.kernels import Kernels


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("copies", [1, 40])
def test_it_is_the_cosine_of_the_smallest_angle(size, copies):
    """Inputs on a circle; with many of them the compiled pass is asked, with few NumPy."""
    angles = np.linspace(0.1, 1.4, 3 * copies)
    X = size * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    kernels = Kernels.square(X @ X.T)
    assert kernels.rho == pytest.approx(np.cos(angles[1] - angles[0]), rel=1e-10)
    assert kernels.rho == pytest.approx(kernels.correlations.max(), rel=1e-10)
