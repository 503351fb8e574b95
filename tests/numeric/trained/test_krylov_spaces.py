"""Functions of a kernel in Krylov spaces: their error, the products they take, where a space ends; by dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained.krylov import apply_function
from numeric.trained.operators import DenseKernel

RNG = np.random.default_rng(12)
N = 60
TURN = np.linalg.qr(RNG.normal(size=(N, N)))[0]
K = TURN @ np.diag(np.linspace(0.01, 3.0, N)) @ TURN.T
SMALL, LARGE = 1e-4 * RNG.normal(size=N), TURN[:, 40:] @ RNG.normal(size=20)
LOOKS = (8, 12, 16, 20, 25, 31, 38, 47)
"""The first look at the error after 8 products, then after a quarter more, and at least 4, each time."""


def in_the_span(m, b, g):
    """g(K) b with K on the span of b, K b, ..., K^(m-1) b, by its matrix in an orthonormal basis."""
    Q = b[:, None]
    for _ in range(m - 1):
        Q = np.linalg.qr(np.column_stack([Q, K @ Q[:, -1]]))[0]
    h, U = np.linalg.eigh(Q.T @ K @ Q)
    return Q @ U @ (g(h) * (U.T @ (Q.T @ b)))


def change(m, b, g):
    """How much of it the last quarter of the products has changed."""
    now, before = in_the_span(m, b, g), in_the_span(m - m // 4, b, g)
    return np.linalg.norm(now - before) / np.linalg.norm(now)


@pytest.mark.parametrize(("tolerance", "products"), [(0.3, 8), (0.1, 12), (0.05, 20), (1e-2, 25), (1e-4, 38)])
def test_the_error_is_the_change_over_the_last_quarter_of_the_products(tolerance, products):
    """Of the worst column, however small it is, beside one of zeros; the first look at which it is small is the end."""

    def g(h):
        return 1 / (h + 0.03)

    errors = {m: [change(m, b, g) for b in (SMALL, LARGE)] for m in LOOKS if m <= products}
    assert all(one > other for one, other in errors.values())
    found = apply_function(DenseKernel(K), np.stack([SMALL, LARGE, np.zeros(N)], axis=1), g, tolerance=tolerance)
    assert found.products == next(m for m in errors if max(errors[m]) <= tolerance) == products
    assert found.error == pytest.approx(max(errors[products]), rel=1e-3)
    for column, b in enumerate((SMALL, LARGE)):
        expected = in_the_span(products, b, g)
        assert np.abs(found.value[:, column] - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(found.value[:, 2]).max() == 0


def test_a_space_has_as_many_directions_as_eigenvalues():
    h, b = np.repeat(np.linspace(0.1, 2.0, 10), 3), RNG.normal(size=(30, 2))
    found = apply_function(DenseKernel(np.diag(h)), b, np.log)
    assert found.products == 10 and found.error == 1e-15
    assert np.abs(found.value - np.log(h)[:, None] * b).max() < 1e-12


@pytest.mark.parametrize(
    ("eigenvalues", "left", "products"),
    [((1.0, 2.0), 5e-14, 1), ((1.0, 2.0), 2e-13, 2), ((0.0, 2.0, 3.0), 3e-14, 2), ((0.0, 2.0, 3.0), 3e-13, 3)],
)
def test_a_space_ends_where_what_is_left_is_rounding(eigenvalues, left, products):
    """1e-14 of the kernel, times the root of 100 points; the last direction has the share `left`."""
    h = np.zeros(100)
    h[: len(eigenvalues)] = eigenvalues
    b = np.zeros((100, 1))
    b[: len(eigenvalues) - 1], b[len(eigenvalues) - 1] = 1 / np.sqrt(len(eigenvalues) - 1), left
    found = apply_function(DenseKernel(np.diag(h)), b, np.exp)
    assert found.products == products
    assert np.abs(found.value - np.exp(h)[:, None] * b).max() < 1e-11


def test_the_number_of_products_is_enough_for_a_look():
    b = np.ones((N, 1))
    for most in (1, 7):
        with pytest.raises(NumericError, match=f"The number of products is a whole number from 8 to .*, not {most}"):
            apply_function(DenseKernel(K), b, np.exp, most=most)
    with pytest.raises(NumericError, match="8 products with the kernel leave an error of"):
        apply_function(DenseKernel(K), b, np.exp, most=8)
    few = DenseKernel(np.diag([1.0, 2.0, 3.0]))
    assert apply_function(few, b[:3], np.exp, most=3).value[:, 0] == pytest.approx(np.exp([1.0, 2.0, 3.0]))
    with pytest.raises(NumericError, match="from 3 to"):
        apply_function(few, b[:3], np.exp, most=2)


def test_what_leaves_the_range_of_numbers_is_no_answer():
    with np.errstate(invalid="ignore"), pytest.raises(NumericError, match="an error of nan"):
        apply_function(DenseKernel(K), np.ones((N, 1)), lambda h: np.where(h > 1, np.inf, -np.inf), most=12)
