"""Predicted learnability and test error against kernel regression on sampled training sets."""

import numpy as np
import pytest

from numeric import flow
from numeric.errors import NumericError
from numeric.spectra.eigensystem import Eigensystem, hypercube
from numeric.spectra.sampled import measure_learnability
from numeric.spectra.selfconsistent import learnability
from numeric.spectra.sphere import sphere_eigenvalues
from numeric.spectra.transfer import transfer_matrix

DIMENSION = 8
C_W = {"relu": 2.0, "tanh": 1.5}


def network_ntk(activation, depth):
    """Theta between a corner of the hypercube and the corners with 0 ... d flipped signs, from the flow."""
    corners = np.ones((DIMENSION + 1, DIMENSION))
    for m in range(DIMENSION + 1):
        corners[m, :m] = -1
    f = flow(activation, corners, depth, C_b=0.1, C_W=C_W[activation], tensors="Theta", layers="last")
    return dict(zip(1 - 2 * np.arange(DIMENSION + 1) / DIMENSION, np.asarray(f.Theta)[0]))


@pytest.mark.parametrize("depth", [pytest.param(2, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("activation", [pytest.param("relu", marks=pytest.mark.slow), "tanh"])
def test_network_kernels_on_the_hypercube(activation, depth):
    """Mean learnability of each mode and the test error of a target, with and without ridge and noise.

    The error bar of a learnability is its spread over training sets, as in Simon et al.; the prediction is the limit
    of a large system, and the standard errors of 40 training sets begin to see what M = 256 points add to it: nine
    modes in ten must agree within three of them. The target's test error must, and does, in all cases.
    """
    table = network_ntk(activation, depth)
    space = hypercube(lambda cosine: np.array([table[c] for c in cosine]), DIMENSION)
    assert space.rank == 256
    x = space.points
    target = x[:, 0] + x[:, 1] * x[:, 2]
    v = space.coefficients(target)
    for n, ridge, noise in ((32, 0.0, 0.0), (128, 0.0, 0.1), (96, 0.05, 0.1)):
        measured = measure_learnability(space, n, trials=40, ridge=ridge, target=target, noise=noise, seed=n)
        predicted = learnability(space.eigenvalues, n, ridge)
        if ridge == 0:
            assert measured.sum_rule_error < 1e-10
            assert abs(predicted.learnabilities.sum() - n) < 1e-10
        gap = np.abs(measured.learnabilities - predicted.learnabilities)
        assert np.all(gap < np.sqrt(40) * measured.learnabilities_error)
        assert np.mean(gap < 3 * measured.learnabilities_error) > 0.9
        assert gap.max() < 0.025
        assert abs(measured.mse - predicted.mse(v, noise)) < 3 * measured.mse_error


@pytest.mark.equation("review.155")
@pytest.mark.parametrize(("n", "ridge"), [(16, 0.0), (48, 0.0), (48, 0.05), (16, 0.5)])
def test_random_eigenbasis(n, ridge):
    """Where the theory's assumption holds, a rotation drawn at random, its equations hold with ridge and noise too.

    At n/M = 3/4 the limit of infinitely many points, sum L + ridge/kappa = n, would be off by many standard errors.
    """
    M, trials = 64, 120
    rng = np.random.default_rng(n)
    lam = np.arange(1, M + 1.0) ** -1.5
    learned, noise_error, high = [], [], []
    for _ in range(trials):
        Q, _ = np.linalg.qr(rng.normal(size=(M, M)))
        T = transfer_matrix(
            Eigensystem(np.arange(M)[:, None], lam, np.sqrt(M) * Q, np.arange(M), "data set"), np.arange(n), ridge
        )
        learned.append(np.diag(T))
        noise_error.append(np.sum(T**2) / M)
        high.append(np.sum((T[:, 24:] - np.eye(M)[:, 24:]) ** 2))
    predicted = learnability(lam, n, ridge)
    weights = np.where(np.arange(M) >= 24, 1.0, 0.0)
    rows = [
        (np.array(learned)[:, :24].sum(axis=1), predicted.learnabilities[:24].sum()),
        (np.array(learned)[:, 24:].sum(axis=1), predicted.learnabilities[24:].sum()),
        (np.array(noise_error), predicted.mse(np.zeros(M), noise=1.0)),
        (np.array(high), predicted.mse(weights)),
    ]
    for values, theory in rows:
        assert abs(values.mean() - theory) < 4 * values.std() / np.sqrt(trials) + 0.5 / n * theory


def test_sphere_against_sampled_points():
    """Theory with the modes beyond the cut as a ridge, against regression on random points of the sphere."""
    d, n, trials, ridge = 8, 80, 60, 0.1
    spectrum = sphere_eigenvalues(np.exp, d, 8)
    predicted = learnability(
        spectrum.eigenvalues, n, ridge=ridge, multiplicities=spectrum.multiplicities, tail=spectrum.tail
    )
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(trials):
        X = rng.normal(size=(n + 400, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        f = d * X[:, 0] * X[:, 1] + X[:, 2]
        K = np.exp(X @ X[:n].T)
        fit = K[n:] @ np.linalg.solve(K[:n] + ridge * np.eye(n), f[:n])
        errors.append(np.mean((fit - f[n:]) ** 2))
    v = np.zeros(9)
    v[1], v[2] = np.sqrt(1 / d), np.sqrt(d / (d + 2))  # E[x^2] = 1/d, E[(d x x')^2] = d/(d + 2)
    # 10 % for the finite number of samples: it is 8 % at n = 80
    assert abs(np.mean(errors) - predicted.mse(v)) < 3 * np.std(errors) / np.sqrt(trials) + 0.1 * predicted.mse(v)


def test_limits_and_monotony():
    lam = np.array([1.0, 0.3, 0.1, 0.03, 0.01])
    assert np.all(learnability(lam, 0).learnabilities == 0)
    assert np.allclose(learnability(lam, 5).learnabilities, 1)
    curve = np.array([learnability(lam, n).learnabilities for n in range(6)])
    assert np.all(np.diff(curve, axis=0) > 0)
    flat = learnability(np.full(10, 0.7), 4)
    assert np.allclose(flat.learnabilities, 0.4, atol=1e-13)
    # a flat kernel knows nothing of the other points: the error is the share of points not seen
    assert flat.mse(np.eye(10)[3]) == pytest.approx(0.6, abs=1e-12)


def test_ridge_against_an_exact_case():
    """The identity kernel on M points with ridge: the fit is f/(1 + ridge/K) on training points, 0 elsewhere."""
    M, n, ridge = 50, 20, 0.8
    p = learnability(np.full(M, 1 / M), n, ridge)  # K(x, x) = M * (1/M) = 1
    shrink = 1 / (1 + ridge)
    assert np.allclose(p.learnabilities, n / M * shrink, atol=1e-12)
    expected = n / M * (1 - shrink) ** 2 + (1 - n / M)
    assert p.mse(np.eye(M)[0]) == pytest.approx(expected, abs=1e-12)
    assert p.mse(np.zeros(M), noise=1.0) == pytest.approx(n / M * shrink**2, abs=1e-12)


def test_refusals():
    with pytest.raises(NumericError, match="cannot be interpolated"):
        learnability([1.0, 0.0, 0.0], 2)
    with pytest.raises(NumericError, match="not negative"):
        learnability([1.0, -1.0], 1)
    with pytest.raises(NumericError, match="two trials"):
        measure_learnability(hypercube(np.exp, 3), 2, trials=1)


@pytest.mark.parametrize("ridge", [1e-6, 1.0, 100.0])
def test_all_points_sampled_leaves_nothing_to_chance(ridge):
    """Ridge regression on the whole space is exact: each mode is damped by lambda/(lambda + ridge/M)."""
    eigenvalues = np.array([1e9, 3.0, 1.0, 1.0, 0.2, 1e-9, 0.0, 0.0])
    found = learnability(eigenvalues, len(eigenvalues), ridge)
    assert np.allclose(found.learnabilities, eigenvalues / (eigenvalues + ridge / 8), rtol=1e-12, atol=0)
    assert found.overfitting == 1
