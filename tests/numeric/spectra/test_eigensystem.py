"""Eigensystems against the definition (31), brute-force diagonalization and known spectra."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.spectra.eigensystem import circle, data_set, hypercube, hypercube_eigenvalues, hypercube_levels


def kernel(cosine):
    return np.exp(cosine) + 0.3 * cosine**3


def spaces():
    points = np.random.default_rng(3).normal(size=(12, 4))
    gram = np.exp(-0.5 * ((points[:, None] - points[None]) ** 2).sum(-1))
    return {
        "hypercube": (hypercube(kernel, 5), 5.0),
        "even circle": (circle(kernel, 12), 1.0),
        "odd circle": (circle(kernel, 9), 1.0),
        "data set": (data_set(gram, points), gram),
    }


@pytest.mark.equation("review.31")
@pytest.mark.equation("review.134")
@pytest.mark.equation("review.137")
@pytest.mark.parametrize("name", ["hypercube", "even circle", "odd circle", "data set"])
def test_definition(name):
    space, norm = spaces()[name]
    M = space.size
    matrix = norm if isinstance(norm, np.ndarray) else kernel(space.points @ space.points.T / norm)
    assert np.allclose(space.eigenfunctions @ space.eigenfunctions.T / M, np.eye(M), atol=1e-13)
    assert np.allclose(matrix @ space.eigenfunctions.T / M, space.eigenfunctions.T * space.eigenvalues, atol=1e-13)
    assert np.allclose(space.kernel(), matrix, atol=1e-13)
    assert np.allclose(np.sort(space.eigenvalues), np.linalg.eigvalsh(matrix / M), atol=1e-13)


def test_hypercube_modes_are_products_of_coordinates():
    space = hypercube(kernel, 4)
    expected = {
        tuple(np.prod(space.points[:, list(subset)], axis=1))
        for k in range(5)
        for subset in itertools.combinations(range(4), k)
    }
    assert {tuple(mode) for mode in space.eigenfunctions} == expected
    assert space.levels.tolist() == [0] + [1] * 4 + [2] * 6 + [3] * 4 + [4]


def test_exact_numbers_stay_exact():
    """The parity kernel prod_i (1 + x_i x'_i)/2 is the identity: all eigenvalues 2^-d."""
    values = [Fraction(1)] + [Fraction(0)] * 4
    assert hypercube_eigenvalues(values) == [Fraction(1, 16)] * 5


@pytest.mark.equation("review.32")
@pytest.mark.equation("review.138")
@pytest.mark.equation("review.152")
def test_coefficients_rebuild_the_target():
    space = circle(kernel, 8)
    target = np.random.default_rng(0).normal(size=8)
    assert np.allclose(space.coefficients(target) @ space.eigenfunctions, target, atol=1e-13)


def test_levels_of_a_hypercube_that_is_not_held():
    """The levels of d = 7 are those of the whole space; at d = 16 the trace over all modes is the kernel at 1."""
    whole, levels = hypercube(kernel, 7), hypercube_levels(kernel, 7, 7)
    first = np.unique(whole.levels, return_index=True)[1]
    assert np.allclose(levels.eigenvalues, whole.eigenvalues[first], rtol=1e-9, atol=1e-13) and levels.tail == 0
    large = hypercube_levels(kernel, 16, 16)
    assert large.multiplicities @ large.eigenvalues == pytest.approx(np.e + 0.3, rel=1e-10)
    cut = hypercube_levels(kernel, 16, 2)
    assert cut.tail == pytest.approx(large.multiplicities[3:] @ large.eigenvalues[3:], rel=1e-8)
    # a product of three coordinates is a mode: its eigenvalue is a mean over random corners
    corners = np.random.default_rng(0).choice([-1.0, 1.0], size=(200_000, 16))
    values = kernel(corners.mean(axis=1)) * corners[:, 0] * corners[:, 5] * corners[:, 9]
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - large.eigenvalues[3]) < 4 * error


def test_refusals():
    with pytest.raises(NumericError, match="positive semidefinite"):
        hypercube(lambda c: -c, 3)
    with pytest.raises(NumericError, match="symmetric"):
        data_set(np.array([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(NumericError, match="finite"):
        circle(lambda c: np.log(c - 2 + 0j).real * np.nan, 5)
    with pytest.raises(NumericError, match="dimension"):
        hypercube(kernel, 30)
