"""The arcsine of our own against 40-digit arithmetic, at ordinary arguments and where its square roots are."""

import mpmath
import numpy as np
import pytest

from numeric.brackets.orthant import arcsine

RANDOM = np.random.default_rng(0)
POINTS = np.concatenate(
    [RANDOM.uniform(-1, 1, 400), 1 - 10.0 ** RANDOM.uniform(-16, -1, 200), 10.0 ** RANDOM.uniform(-12, 0, 200)]
)


@pytest.mark.parametrize("known", [False, True])
def test_to_a_few_units_in_the_last_place(known):
    with mpmath.workdps(40):
        exact = np.array([float(mpmath.asin(mpmath.mpf(float(x)))) for x in POINTS])
        rest = [float(mpmath.sqrt((1 - mpmath.mpf(float(x))) * (1 + mpmath.mpf(float(x))))) for x in POINTS]
    np.testing.assert_allclose(arcsine(POINTS, np.array(rest) if known else None), exact, rtol=1e-15)
    assert np.array_equal(arcsine(np.array([-1.0, 0.0, 1.0])), [-np.pi / 2, 0, np.pi / 2])


def test_the_complement_is_believed_near_one():
    """1 - x^2 = 1e-20 is lost in x = 1, and the angle to pi/2 is its root."""
    assert np.pi / 2 - arcsine(np.ones(1), np.array([1e-6]))[0] == pytest.approx(1e-6, rel=1e-9)
