"""Regression and training with products alone, against dense solves, lineax's CG and matrix functions of SciPy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from numeric.errors import NumericError
from numeric.trained.conjugate_gradients import conjugate_gradients, nystrom
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.krylov import apply_function
from numeric.trained.operators import BlockKernel, DenseKernel
from numeric.trained.sketched_regression import FeatureRegression, NystromRegression

RNG = np.random.default_rng(3)
N, RIDGE = 300, 1e-2
X = RNG.normal(size=(N, 4))
T = RNG.normal(size=(40, 4))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 0.1 * RNG.normal(size=(N, 2))


def kernel(a, b):
    return np.exp(-0.25 * ((a[:, None] - b[None]) ** 2).sum(-1))


K = kernel(X, X)
EXACT = kernel(T, X) @ np.linalg.solve(K + RIDGE * np.eye(N), Y)


@pytest.mark.parametrize("memory", [1e9, 1e5], ids=["held", "blocks"])
def test_the_fit_and_the_bound_on_its_error(memory):
    operator = BlockKernel(kernel, X, memory)
    assert operator.held == (memory > 8 * N * N)
    fit = IterativeRegression(operator, Y, RIDGE, tolerance=1e-6)
    gap = np.abs(fit.predict(operator.between(T, X)) - EXACT)
    assert (gap <= fit.prediction_bound(np.ones(len(T))) + 1e-12).all()
    tight = IterativeRegression(operator, Y, RIDGE, tolerance=1e-12)
    assert np.abs(tight.predict(kernel(T, X)) - EXACT).max() < 1e-9
    assert fit.solution.iterations < tight.solution.iterations


def test_only_the_pairs_that_are_needed():
    seen = []

    def counted(a, b):
        seen.append(len(a) * len(b))
        return kernel(a, b)

    BlockKernel(counted, X, 1e5).between(T, X)
    assert sum(seen) == len(T) * N
    seen.clear()
    BlockKernel(counted, X, 1e5).product(Y)
    assert sum(seen) < 0.7 * N * N


def test_the_preconditioner_saves_iterations_and_finds_the_large_eigenvalues():
    operator = DenseKernel(K)
    sketch = nystrom(operator, 100)
    exact = np.linalg.eigvalsh(K)[::-1]
    assert np.allclose(sketch.h[:10], exact[:10], rtol=2e-2) and (sketch.h <= exact[:100] * (1 + 1e-9)).all()
    plain = conjugate_gradients(operator, Y, RIDGE)
    helped = conjugate_gradients(operator, Y, RIDGE, sketch.preconditioner(RIDGE))
    assert helped.iterations < plain.iterations / 2


def test_against_lineax():
    lineax = pytest.importorskip("lineax")
    matrix = lineax.MatrixLinearOperator(jnp.asarray(K + RIDGE * np.eye(N)), lineax.positive_semidefinite_tag)
    judge = lineax.linear_solve(matrix, jnp.asarray(Y[:, 0]), lineax.CG(rtol=1e-12, atol=1e-12)).value
    own = conjugate_gradients(DenseKernel(K), Y[:, :1], RIDGE, tolerance=1e-11).x[:, 0]
    assert np.linalg.norm(own - np.asarray(judge)) < 1e-7 * np.linalg.norm(judge)


def test_generalized_cross_validation_by_random_traces():
    G = np.linalg.inv(K + RIDGE * np.eye(N))
    exact = np.mean((G @ Y) ** 2) / np.mean(np.diag(G)) ** 2
    found = IterativeRegression(DenseKernel(K), Y, RIDGE).gcv()
    assert abs(found.value - exact) < 4 * found.error < 0.2 * exact


def test_training_in_time_is_a_matrix_function():
    fit = IterativeRegression(DenseKernel(K), Y, RIDGE)
    H = K + RIDGE * np.eye(N)
    flowed = np.linalg.solve(H, Y - scipy.linalg.expm(-3.0 * H) @ Y)
    found = fit.flow_weights(3.0)
    assert np.linalg.norm(found.value - flowed) < 1e-8 * np.linalg.norm(flowed)
    eta, alpha = 1 / np.linalg.eigvalsh(H)[-1], np.zeros_like(Y)
    for _ in range(50):
        alpha = alpha + eta * (Y - H @ alpha)
    assert np.linalg.norm(fit.descent_weights(50, eta).value - alpha) < 1e-8 * np.linalg.norm(alpha)


def test_the_error_of_a_matrix_function_is_honest():
    for tolerance in (1e-3, 1e-6):
        found = apply_function(DenseKernel(K), Y, lambda h: np.sqrt(h + 1), tolerance=tolerance)
        h, U = np.linalg.eigh(K)
        exact = U @ (np.sqrt(h + 1)[:, None] * (U.T @ Y))
        assert np.linalg.norm(found.value - exact) <= 2 * max(found.error, 1e-13) * np.linalg.norm(exact)


def test_landmarks_and_their_error():
    block = BlockKernel(kernel, X)
    for landmarks in (60, 150):
        found = NystromRegression(block, Y, RIDGE, landmarks).predict(T)
        gap, error = np.sqrt(np.mean((found.mean - EXACT) ** 2)), np.sqrt(np.mean(found.error**2))
        assert 0.1 * error < gap < 2 * error
    whole = NystromRegression(block, Y, RIDGE, N).predict(T).mean
    assert np.abs(whole - EXACT).max() < 1e-4  # columns nearly dependent: what the cut of W's null space leaves


def test_random_fourier_features_and_their_error():
    ratios = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        w, b = random.normal(size=(4, 400)) * np.sqrt(0.5), random.uniform(0, 2 * np.pi, 400)
        psi, test = (np.cos(Z @ w + b) * np.sqrt(2 / 400) for Z in (X, T))
        found = FeatureRegression(psi, Y, 0.3).predict(test)
        exact = kernel(T, X) @ np.linalg.solve(K + 0.3 * np.eye(N), Y)
        ratios.append(np.sqrt(np.mean((found.mean - exact) ** 2) / np.mean(found.error**2)))
    assert 0.5 < np.mean(ratios) < 2


def test_refusals():
    operator = DenseKernel(K)
    for make, words in (
        (lambda: DenseKernel(K[:3]), "square"),
        (lambda: DenseKernel(np.triu(K)), "symmetric"),
        (lambda: DenseKernel(-np.eye(3)), "positive semidefinite"),
        (lambda: DenseKernel(np.full((2, 2), np.nan)), "finite"),
        (lambda: BlockKernel(kernel, np.zeros((0, 2))), "at least one row"),
        (lambda: BlockKernel(lambda a, b: a, X).product(Y), "must return"),
        (lambda: BlockKernel(kernel, X, memory=100), "memory"),
        (lambda: IterativeRegression(operator, Y[:5]), "as many labels"),
        (lambda: IterativeRegression(operator, Y, -1.0), "ridge"),
        (lambda: IterativeRegression(operator, Y, 0.1, f0=Y[:, 0]), "shape of the labels"),
        (lambda: IterativeRegression(operator, Y, 0.1).predict(K[:, :4]), "test rows"),
        (lambda: IterativeRegression(operator, Y).prediction_bound(np.ones(3)), "nearly singular"),
        (lambda: IterativeRegression(operator, Y, 0.1).flow_weights(-1.0), "time"),
        (lambda: IterativeRegression(DenseKernel(np.ones((4, 4))), np.arange(4.0), rank=0).alpha, "ridge"),
        (lambda: conjugate_gradients(operator, Y, 0.0, most=3), "ill-conditioned"),
        (lambda: nystrom(DenseKernel(np.array([[0.0, 2.0], [2.0, 0.0]])), 2), "positive semidefinite"),
        (lambda: FeatureRegression(X, Y, 0.0), "ridge"),
        (lambda: NystromRegression(BlockKernel(kernel, X), Y, 0.1, N + 1), "landmarks"),
    ):
        with pytest.raises(NumericError, match=words):
            make()
