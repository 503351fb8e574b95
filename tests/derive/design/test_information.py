"""The mutual information of outputs, against direct integration of Gaussian scale mixtures."""

import math

import numpy as np
import pytest

from derive.design.information import best_aspect_ratio, m_1, m_2, mutual_information, v


def variances(kind, size, count=40):
    """Nodes and weights of a law of mean 1 and variance `size`; their third cumulants differ, 2 v^2 and 3 v^2."""
    if kind == "gamma":
        u, w = np.polynomial.legendre.leggauss(2 * count)
        high = 1 + 10 * math.sqrt(size)
        nodes = high * (u + 1) / 2
        weights = w * np.exp((1 / size - 1) * np.log(nodes) - (nodes - 1) / size)
        return nodes, weights / weights.sum()
    spread = math.sqrt(math.log1p(size))
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return np.exp(nodes * spread - spread**2 / 2), weights / weights.sum()


def log_density(square, m, law):
    G, w = law
    return np.log(np.sum(w * np.exp(-square[..., None] / (2 * G)) * (2 * np.pi * G) ** (-m / 2), axis=-1))


def integrated(m1, m2, law):
    """E[log p(x, y)/(p(x) p(y))] over the radii of x and y."""
    top, nodes = 9.0, 160
    r, w = np.polynomial.legendre.leggauss(nodes)
    r, w = top * (r + 1) / 2, w * top / 2
    area = [2 * np.pi ** (m / 2) / math.gamma(m / 2) * r ** (m - 1) for m in (m1, m2)]
    square = r[:, None] ** 2 + r[None, :] ** 2
    both = log_density(square, m1 + m2, law)
    ratio = both - log_density(r**2, m1, law)[:, None] - log_density(r**2, m2, law)[None, :]
    measure = (w * area[0])[:, None] * (w * area[1])[None, :]
    assert abs(np.sum(measure * np.exp(both)) - 1) < 1e-9
    return float(np.sum(measure * np.exp(both) * ratio))


def deviation(m1, m2, kind, size):
    """The series over the integral, minus one."""
    law = variances(kind, size)
    G, w = law
    assert abs(np.sum(w * G) - 1) < 1e-9 and abs(np.sum(w * (G - 1) ** 2) / size - 1) < 1e-9
    exact = integrated(m1, m2, law)
    assert abs(m1 * m2 * size**2 / 8 / exact - 1) > 3 * size  # the second term is needed
    return float(mutual_information().subs({v: size, m_1: m1, m_2: m2})) / exact - 1


def test_within_a_percent_at_two_hundredths():
    """One output and one output, log-normal scales as a deep relu network has them."""
    assert abs(deviation(1, 1, "lognormal", 0.02)) < 0.01


@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
@pytest.mark.parametrize(("m1", "m2"), [(1, 3), (2, 2)])
def test_what_is_left_is_of_the_next_order(kind, m1, m2):
    """Whatever the law of the scale: its third cumulant does not enter at this order."""
    coarse, fine = (deviation(m1, m2, kind, size) for size in (0.02, 0.01))
    assert abs(coarse) < 0.02 and 3 < coarse / fine < 5


def test_best_ratio_is_where_the_integral_is_largest():
    """The truncated series has its maximum at 4/(20 + 3 n_L); the slope of the series vanishes there."""
    nu, outputs = 2 / 3, 4
    best = best_aspect_ratio(nu, outputs) * nu
    information = lambda x: float(mutual_information().subs({v: x, m_1: 1, m_2: 3}))  # noqa: E731
    assert information(best) > max(information(best * 0.98), information(best * 1.02))
    assert math.isclose(best, 4 / 32, rel_tol=1e-12)
