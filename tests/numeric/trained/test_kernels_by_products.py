"""Kernels known by their products: functions of them, memory, refusals; against eigendecompositions and counts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from numeric.errors import NumericError
from numeric.trained.conjugate_gradients import conjugate_gradients, nystrom
from numeric.trained.frozen_kernel import FrozenKernelTraining
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.kernel_regression import KernelRegression
from numeric.trained.krylov import apply_function
from numeric.trained.modes import SingularKernel, modes_of
from numeric.trained.operators import COPIES, HELD, BlockKernel, DenseKernel, KernelOperator

RNG = np.random.default_rng(8)


def positive(size):
    x = RNG.normal(size=(size, size))
    return x @ x.T / size + 0.1 * np.eye(size)


@pytest.mark.parametrize("size", [1.0, 1e-18, 1e12])
def test_functions_of_kernels_of_any_size(size):
    """g(K) b for a kernel whose parts differ by eighteen orders of magnitude, each column in one of them."""
    A, B = positive(12), size * positive(9)
    K = np.zeros((21, 21))
    K[:12, :12], K[12:, 12:] = A, B
    b = np.zeros((21, 2))
    b[:12, 0], b[12:, 1] = RNG.normal(size=12), RNG.normal(size=9)

    def root(h):
        return np.sqrt(h)

    found = apply_function(DenseKernel(K), b, root, tolerance=1e-10)
    for column, block, rows in ((0, A, slice(0, 12)), (1, B, slice(12, 21))):
        h, U = np.linalg.eigh(block)
        expected = U @ (root(h) * (U.T @ b[rows, column]))
        assert np.abs(found.value[rows, column] - expected).max() < 1e-7 * np.abs(expected).max()
    assert found.products >= 9


def test_functions_of_kernels_refuse():
    K, b = DenseKernel(positive(10)), RNG.normal(size=(10, 1))
    with pytest.raises(NumericError, match="The number of products"):
        apply_function(K, b, np.sqrt, most=0)
    with pytest.raises(NumericError, match="memory=80 bytes holds 1 vectors"):
        apply_function(K, b, np.sqrt, memory=80.0)
    with pytest.raises(NumericError, match="The number of iterations"):
        conjugate_gradients(K, b, 0.1, most=0)
    small = IterativeRegression(K, b[:, 0], 0.1, memory=80.0, rank=0)
    with pytest.raises(NumericError, match="memory=80 bytes holds 1 vectors"):
        small.flow_weights(1.0)


def test_iterations_are_counted():
    """As many products as different eigenvalues that the right-hand side meets; none for zeros."""
    K = np.diag([1.0, 1.0, 2.0, 5.0, 5.0])
    b, b30 = np.array([[1.0, 0.0]] * 5), np.ones((30, 1))
    found = conjugate_gradients(DenseKernel(K), b, 0.5, tolerance=1e-12)
    assert found.iterations == 3
    assert found.x[:, 0] == pytest.approx(1 / (np.diag(K) + 0.5)) and np.abs(found.x[:, 1]).max() == 0
    assert conjugate_gradients(DenseKernel(K), 0 * b, 0.5).iterations == 0
    rough, small = (conjugate_gradients(DenseKernel(positive(30)), s * b30, 0.1, tolerance=1e-3) for s in (1.0, 1e-9))
    assert 1e-5 < rough.residual < 1e-2 and 1e-5 < small.residual < 1e-2  # of the right-hand side, however small


def test_how_long_systems_are_iterated():
    """A thousand times unless told; up to ten times the tolerance may be left then."""
    hard = DenseKernel(np.diag(np.logspace(-14, 0, 60)))
    with pytest.raises(NumericError, match="1000 iterations leave a residual"):
        conjugate_gradients(hard, np.ones((60, 1)), tolerance=1e-13)
    K, b = DenseKernel(np.diag(np.arange(1.0, 31.0))), np.ones((30, 1))
    found = conjugate_gradients(K, b, tolerance=0.1, most=3)
    left = found.residual[0]
    assert found.iterations == 3 and left > 0.1
    assert conjugate_gradients(K, b, tolerance=left / 9.5, most=3).residual[0] == left
    with pytest.raises(NumericError, match="3 iterations leave"):
        conjugate_gradients(K, b, tolerance=left / 10.5, most=3)
    with pytest.raises(NumericError, match="The tolerance is a number above 0, not 0"):
        conjugate_gradients(K, b, tolerance=0.0)
    with pytest.raises(NumericError, match="The tolerance is a number above 0, not 0"):
        apply_function(K, b, np.sqrt, tolerance=0.0)


def test_sketches_of_kernels_of_low_rank():
    """Two eigenvalues and zeros: the shift that a factorization needs is taken off again; the seed is 0 unless told."""
    x = RNG.normal(size=(12, 2))
    K = DenseKernel(x @ x.T)
    exact = np.linalg.eigvalsh(x.T @ x)[::-1]
    for seed in range(3):
        found = nystrom(K, 8, seed).h
        assert found[:2] == pytest.approx(exact)
        assert found[2:].max() < 0.6 * np.sqrt(12) * np.finfo(float).eps * exact[0]
    assert np.array_equal(nystrom(K, 2).U, nystrom(K, 2, 0).U)
    assert not np.array_equal(nystrom(K, 2).U, nystrom(K, 2, 1).U)


class OnlyProducts(KernelOperator):
    """A kernel without any shorter way."""

    def __init__(self, K):
        self.K, self.size = K, len(K)

    def product(self, V):
        return self.K @ V


def test_columns_by_products():
    K = positive(5)
    assert np.abs(OnlyProducts(K).columns(np.array([3, 0])) - K[:, [3, 0]]).max() < 1e-15


def test_what_a_kernel_in_blocks_may_hold():
    """Eight bytes a number: the kernel is held up to its share of the memory, the rest is for making blocks."""
    X = RNG.normal(size=(300, 2))

    def dot(a, b):
        return a @ b.T

    enough = 8 * 300**2 / HELD
    held, made = BlockKernel(dot, X, 1.001 * enough), BlockKernel(dot, X, 0.999 * enough)
    assert held.held and not made.held
    assert held.room == pytest.approx(1.001 * enough - 8 * 300**2) and made.room == pytest.approx(0.999 * enough)
    for block in (held, made):
        assert block.rows == min(300, int((block.room / (8 * COPIES)) ** 0.5)) and block.rows < 300
        V = RNG.normal(size=(300, 2))
        assert np.abs(block.product(V) - X @ (X.T @ V)).max() < 1e-11


def test_a_kernel_that_is_held_is_evaluated_once():
    X, calls = RNG.normal(size=(40, 2)), []

    def dot(a, b):
        calls.append(len(a))
        return a @ b.T

    for memory, evaluations in ((1e9, 1), (8 * 40**2, 2)):
        block = BlockKernel(dot, X, memory)
        calls.clear()
        block.product(np.eye(40))
        once = len(calls)
        assert block.product(np.eye(40)) == pytest.approx(X @ X.T)
        assert len(calls) == evaluations * once > 0


def test_how_little_memory_a_kernel_may_have():
    """Blocks of 16 inputs, or of all if there are fewer."""
    X = RNG.normal(size=(300, 2))

    def dot(a, b):
        return a @ b.T

    assert BlockKernel(dot, X, 16**2 * 8 * COPIES).rows == 16
    for memory, rows in ((16**2 * 8 * COPIES - 1, 15), (1.0, 1)):
        with pytest.raises(NumericError, match=f"holds blocks of {rows} inputs only: give 1e6 or more"):
            BlockKernel(dot, X, memory)
    assert BlockKernel(dot, X[:1], 1.0).product(np.ones((1, 1)))[0, 0] == pytest.approx(X[0] @ X[0])
    for wrong in (0, -1.0):
        with pytest.raises(NumericError, match="The memory is a number above 0"):
            BlockKernel(dot, X, wrong)
    with pytest.raises(NumericError, match="the inputs hold values that are not finite numbers"):
        BlockKernel(dot, X * np.nan)


class InBlocks:
    """A kernel with blocks of its own, which are never empty."""

    def __call__(self, X1, X2):
        return X1 @ X2.T

    def blocks(self, X, against, memory, progress):
        other = X if against is None else against
        assert len(X) and len(other)
        yield slice(0, len(X)), slice(0, len(other)), X @ other.T


def test_kernels_with_blocks_of_their_own_are_not_asked_for_nothing():
    X = RNG.normal(size=(4, 2))
    block = BlockKernel(InBlocks(), X)
    assert block.product(np.eye(4)) == pytest.approx(X @ X.T)
    assert block.evaluate(X[:2], np.ones(4)) == pytest.approx((X @ X.T).sum(axis=1)[:2])
    assert block.evaluate(X[:0], np.ones(4)).shape == (0,)
    assert block.between(X[:3], X[:0]).shape == (3, 0)


def test_kernels_are_symmetric_to_single_precision():
    K = np.array([[2.0, 1.0], [1.0 + 1e-6, 2.0]])
    assert DenseKernel(K).size == 2
    K[1, 0] = 1.0 + 8e-6
    with pytest.raises(NumericError, match="symmetric"):
        DenseKernel(K)
    assert DenseKernel(np.array([[1.0, 1e-9], [9e-7, 1.0]])).size == 2  # of the largest entry
    for above, below in ((0.0, 1.5e-6), (1.0, 1 + 2.5e-6)):  # a millionth of the largest, and one of the entry itself
        with pytest.raises(NumericError, match="symmetric"):
            DenseKernel(np.array([[1.0, above], [below, 1.0]]))
    assert DenseKernel(np.diag([5.0, -4e-6])).size == 2
    with pytest.raises(NumericError, match=r"entry \(1, 1\) is -7.5e-06"):
        DenseKernel(np.diag([5.0, -7.5e-6]))


def test_fits_say_what_to_do_and_take_lists():
    K = np.ones((2, 2))
    with pytest.raises(SingularKernel, match="use a ridge or remove repeated inputs"):
        _ = KernelRegression(K, [1.0, 2.0]).alpha
    start = KernelRegression([[2.0, 1.0], [1.0, 2.0]], [1.0, 2.0], 0.5, [0.25, -1.0])
    assert start.residual == pytest.approx([0.75, 3.0]) and start.f0.shape == start.y.shape == (2,)
    assert start.alpha == pytest.approx(np.linalg.solve([[2.5, 1.0], [1.0, 2.5]], [0.75, 3.0]))
    own = IterativeRegression(DenseKernel([[2.0, 1.0], [1.0, 2.0]]), [1, 2], 0.5, [0.25, -1])
    assert own.residual == pytest.approx([0.75, 3.0]) and own.f0.shape == own.y.shape == (2,)
    assert own.f0.dtype == own.y.dtype == float
    assert own.alpha == pytest.approx(start.alpha)


def test_modes_are_left_out_below_a_share_of_the_largest():
    found = modes_of(np.diag([1.0, 10.0, 1000.0]), rcond=0.005)
    assert found.h == pytest.approx([10.0, 1000.0]) and found.dropped == 1


def test_at_most_six_inputs_are_named():
    v = np.ones(9)
    with pytest.raises(SingularKernel) as told:
        modes_of(np.eye(9) - np.outer(v, v) / 9)  # every input has its share in what is not seen
    names = str(told.value).split("training inputs ")[1].split(" is invisible")[0]
    assert len(names.split(", ")) == 6


def test_divergence_is_told_without_warnings():
    training = FrozenKernelTraining(np.ones((1, 1)), np.ones(1), np.zeros(1), 0.1)  # beyond infinity: minus itself
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NumericError, match="diverges at eta = 1e\\+200"):
            training.loss_descent_weights(6, lambda f, y: ((f - y) ** 2).sum() / 2, 1e200)


def test_the_error_of_random_traces():
    """Two probes of random signs, drawn with the seed after the fit's: the scatter of two is half their distance."""
    K, y = positive(12), RNG.normal(size=12)
    fit = IterativeRegression(DenseKernel(K), y, 0.3, tolerance=1e-13, seed=6)
    signs = np.random.default_rng(7).choice([-1.0, 1.0], size=(12, 2))
    G = np.linalg.inv(K + 0.3 * np.eye(12))
    one, two = (signs[:, k] @ G @ signs[:, k] / 12 for k in range(2))
    mean, error = (one + two) / 2, abs(one - two) / 2
    found = fit.gcv(probes=2)
    assert found.value == pytest.approx(np.mean((G @ y) ** 2) / mean**2)
    assert found.error == pytest.approx(2 * found.value * error / mean) and error > 0
