"""The learning transfer matrix against kernel regression written out, the sum rule (11), and Lemma 1."""

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.spectra.eigensystem import circle, data_set, hypercube
from numeric.spectra.transfer import competition, data_learnability, mode_learnabilities
from numeric.spectra.transfer import transfer_matrix as transfer


def arccos_ntk(cosine):
    """The relu NTK of two layers, with biases, by the arc-cosine formulas."""
    rho = (0.2 + cosine) / 1.2
    angle = np.arccos(np.clip(rho, -1, 1))
    slope, value = (np.pi - angle) / (2 * np.pi), (np.sin(angle) + (np.pi - angle) * rho) / (2 * np.pi)
    return 0.3 + value + 2 * slope * (0.3 + cosine)


def every_space():
    X = np.random.default_rng(5).normal(size=(20, 3))
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)) + 0.1 * X @ X.T
    return [hypercube(arccos_ntk, 6), circle(arccos_ntk, 30), circle(arccos_ntk, 31), data_set(gram, X)]


@pytest.mark.equation("review.11")
@pytest.mark.parametrize("index", range(4))
def test_no_free_lunch(index):
    """sum_i L^(D)(phi_i) = n for every training set, to 1e-10."""
    space = every_space()[index]
    rng = np.random.default_rng(index)
    for n in (1, space.size // 3, space.size - 1, space.size):
        train = rng.choice(space.size, n, replace=False)
        assert abs(mode_learnabilities(space, train).sum() - n) < 1e-10
        assert abs(np.trace(transfer(space, train)) - n) < 1e-10


@pytest.mark.equation("review.5")
@pytest.mark.equation("review.33")
@pytest.mark.equation("review.34")
@pytest.mark.equation("review.35")
@pytest.mark.equation("review.36")
@pytest.mark.equation("review.37")
@pytest.mark.equation("review.140")
@pytest.mark.equation("review.141")
@pytest.mark.equation("review.148")
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_against_kernel_regression_written_out(ridge):
    space = every_space()[0]
    rng = np.random.default_rng(1)
    train = rng.choice(64, 17, replace=False)
    f = rng.normal(size=64)
    K = arccos_ntk(space.points @ space.points.T / 6)
    fit = K[:, train] @ np.linalg.solve(K[np.ix_(train, train)] + ridge * np.eye(17), f[train])
    T = transfer(space, train, ridge)
    assert np.allclose(T @ space.coefficients(f), space.coefficients(fit), atol=1e-11)
    assert np.allclose(np.diag(T), mode_learnabilities(space, train, ridge), atol=1e-12)
    assert data_learnability(space, train, f, ridge) == pytest.approx(f @ fit / (f @ f), abs=1e-11)


@pytest.mark.equation("review.8")
@pytest.mark.equation("review.150")
def test_all_points_learn_everything_and_one_more_point_never_hurts_a_mode():
    """(8), and property (e) of Lemma 1 for eigenmodes."""
    space = every_space()[1]
    assert np.allclose(transfer(space, np.arange(30)), np.eye(30), atol=1e-9)
    order = np.random.default_rng(2).permutation(30)
    grown = np.array([mode_learnabilities(space, order[:n]) for n in range(1, 30)])
    assert np.all(np.diff(grown, axis=0) > -1e-11)
    assert grown.min() > -1e-12
    assert grown.max() < 1 + 1e-11


def test_one_more_point_can_hurt_a_mixture_of_modes():
    """Property (e) as printed, for any target f, is wrong: docs/errata/simon-lemma-1e.md.

    Two points, kernel [[a, b], [b, c]], target f = (1, s): the fit to the first point alone is (1, b/a), so that
    L = (1 + s b/a)/(1 + s^2), which exceeds 1, the value with both points, when b/a > s > 0.
    """
    a, b, c, s = 1.0, 0.9, 1.0, 0.5
    space = data_set(np.array([[a, b], [b, c]]))
    target = np.array([1.0, s])
    one = data_learnability(space, np.array([0]), target)
    assert one == pytest.approx((1 + s * b / a) / (1 + s**2), abs=1e-13)
    assert one > 1.1 > data_learnability(space, np.array([0, 1]), target)


@pytest.mark.equation("review.9")
@pytest.mark.equation("review.10")
@pytest.mark.equation("review.38")
@pytest.mark.equation("review.39")
@pytest.mark.equation("review.40")
def test_competition_by_finite_differences():
    """(39), (40): what a mode gains by a larger eigenvalue all others lose."""
    space = every_space()[3]
    train = np.array([0, 4, 7, 11, 13])
    slope = competition(space, train)
    assert np.all(np.diag(slope) >= 0)
    assert np.all(slope - np.diag(np.diag(slope)) <= 0)
    assert np.allclose(slope @ np.ones(20), 0, atol=1e-9)  # the sum rule does not move
    for i in (0, 3, 9):
        step = 1e-6 * space.eigenvalues[i]
        moved = []
        for sign in (1, -1):
            lam = space.eigenvalues.copy()
            lam[i] += sign * step
            shifted = type(space)(space.points, lam, space.eigenfunctions, space.levels, space.space)
            moved.append(mode_learnabilities(shifted, train))
        assert np.allclose((moved[0] - moved[1]) / (2 * step), slope[i], rtol=1e-5, atol=1e-6 * np.abs(slope[i]).max())


def test_refusals():
    space = hypercube(lambda c: 1 + c, 4)
    with pytest.raises(NumericError, match="singular"):
        transfer(space, np.arange(6))
    with pytest.raises(NumericError, match="distinct"):
        transfer(space, np.array([1, 1]))
    with pytest.raises(NumericError, match="zero function"):
        data_learnability(space, np.array([1]), np.zeros(16))
