"""K and Theta in blocks: against closed recursions typed here and the flow, within a budget, test against train."""

import subprocess
import sys

import numpy as np
import pytest

from numeric import BlockKernel, NetworkKernel, NonFiniteFlow, NumericError, flow, kernel_blocks, kernel_matrices
from numeric.evaluation import kernel_blocks as module

DEPTH, SETTINGS = 4, {"C_b": 0.1, "C_W": 1.3, "lambda_b": 0.3, "lambda_W": 0.8}


def relu(a, b, K):
    size = np.sqrt(np.outer(a, b))
    angle = np.arccos(np.clip(K / size, -1, 1))
    return (size * np.sin(angle) + K * (np.pi - angle)) / (2 * np.pi), (np.pi - angle) / (2 * np.pi), a / 2, b / 2


def erf(a, b, K):
    size = np.sqrt(np.outer(1 + 2 * a, 1 + 2 * b))
    own = [2 / np.pi * np.arcsin(2 * v / (1 + 2 * v)) for v in (a, b)]
    return 2 / np.pi * np.arcsin(2 * K / size), 4 / np.pi / np.sqrt(size**2 - 4 * K**2), *own


def recursion(brackets, X, Y):
    p = SETTINGS
    gram, a, b = X @ Y.T / X.shape[1], (X * X).mean(axis=1), (Y * Y).mean(axis=1)
    K, a, b = (p["C_b"] + p["C_W"] * x for x in (gram, a, b))
    Theta = p["lambda_b"] + p["lambda_W"] * gram
    for _ in range(DEPTH - 1):
        value, slope, a, b = brackets(a, b, K)
        Theta = p["lambda_b"] + p["lambda_W"] * value + p["C_W"] * slope * Theta
        K, a, b = (p["C_b"] + p["C_W"] * x for x in (value, a, b))
    return K, Theta


@pytest.mark.parametrize("name, brackets", [("relu", relu), ("erf", erf)])
def test_rectangles_against_closed_recursions(name, brackets, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 16)  # three blocks by two, the last ones short
    X, Y = (np.random.default_rng(seed).normal(size=(size, 6)) for seed, size in ((0, 41), (1, 30)))
    found = kernel_matrices(name, X, DEPTH, **SETTINGS, against=Y)
    for own, exact in zip(found, recursion(brackets, X, Y)):
        np.testing.assert_allclose(own, exact, rtol=1e-12)
    shapes = [(b.rows, b.columns) for b in kernel_blocks(name, X, DEPTH, **SETTINGS, against=Y)]
    assert len(shapes) == 6 and shapes[-1] == (slice(28, 41), slice(15, 30))


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_the_same_inputs_twice_and_nearly(name, monkeypatch):
    """A test input that is also a training input, or nearly so, is no special case: the flow of all has the same."""
    monkeypatch.setattr(module, "LARGEST", 4)
    X = np.random.default_rng(2).normal(size=(9, 5))
    X[6], X[7] = X[1], X[2] * (1 + 1e-11)
    f = flow(name, X, DEPTH, **SETTINGS)
    square = kernel_matrices(name, X, DEPTH, **SETTINGS)
    part = kernel_matrices(name, X[6:], DEPTH, **SETTINGS, against=X[:6])
    for own, some, exact in zip(square, part, (np.asarray(f.K), np.asarray(f.Theta))):
        np.testing.assert_allclose(own, exact, rtol=2e-14)
        np.testing.assert_allclose(some, exact[6:, :6], rtol=2e-14)
        assert np.array_equal(own, own.T)


def test_rates_by_the_equivalence_principle_are_those_of_the_training_inputs():
    X = np.random.default_rng(3).normal(size=(5, 3))
    f = flow("erf", X[:3], 3)
    Theta = kernel_matrices("erf", X, 3, against=X[:3]).Theta
    np.testing.assert_allclose(Theta[:3], f.Theta, rtol=1e-13)


def test_a_step_has_the_kernel_of_arcsines():
    """sign(z) at one hidden layer: K = (2/pi) arcsin(x.y / (|x| |y|)), and no Theta."""
    X, Y = (np.random.default_rng(seed).normal(size=(size, 4)) for seed, size in ((6, 7), (7, 5)))
    found = NetworkKernel("sign(z)", X, depth=2, tensor="K", C_b=0.0, C_W=1.0)(X, Y)
    angle = X @ Y.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    np.testing.assert_allclose(found, 2 / np.pi * np.arcsin(angle), rtol=1e-12)
    with pytest.raises(NumericError, match="jumps at zero"):
        NetworkKernel("sign(z)", X, depth=2, C_b=0.0, C_W=1.0)


@pytest.mark.parametrize("tensor", ["K", "Theta"])
def test_solvers_take_a_network_s_own_blocks(tensor, monkeypatch):
    """Held or made anew at each product, and on other inputs: always the matrix of the closed recursion."""
    monkeypatch.setattr(module, "LARGEST", 16)
    monkeypatch.setattr(module, "SMALLEST", 8)
    X, Y = (np.random.default_rng(seed).normal(size=(size, 6)) for seed, size in ((0, 41), (1, 30)))
    kernel = NetworkKernel("erf", X, DEPTH, tensor, **SETTINGS)
    square, between = (recursion(erf, X, other)[tensor == "Theta"] for other in (X, Y))
    np.fill_diagonal(square, kernel.diagonal(X))  # arccos and arcsin of one
    V = np.random.default_rng(8).normal(size=(41, 2))
    for memory, held in ((1e6, True), (15e3, False)):
        blocks = BlockKernel(kernel, X, memory)
        assert blocks.held is held
        np.testing.assert_allclose(blocks.product(V), square @ V, rtol=1e-11)
        np.testing.assert_allclose(blocks.evaluate(Y, V), between.T @ V, rtol=1e-11)
        np.testing.assert_allclose(blocks.columns(np.array([3, 40])), square[:, [3, 40]], rtol=1e-11)


def test_what_is_refused():
    X = np.ones((2000, 2))
    with pytest.raises(NumericError, match=r"block by block from numeric\.kernel_blocks"):
        kernel_matrices("relu", X, 2, memory=1e7)
    with pytest.raises(NumericError, match="too little for a block"):
        kernel_blocks("relu", X, 2, memory=1e5)
    with pytest.raises(NumericError, match="2 components an input, against has 3"):
        kernel_blocks("relu", X, 2, against=np.ones((1, 3)))
    with pytest.raises(NonFiniteFlow, match="at layer"):
        kernel_blocks("relu", X[:2], 4000, C_W=3.0)


@pytest.mark.slow
def test_ten_thousand_inputs_within_the_budget():
    """1e8 entries in 2 GB; random entries against the flow of their inputs."""
    X = np.random.default_rng(4).normal(size=(10_000, 20))
    found = kernel_matrices("erf", X, 4, **SETTINGS, memory=2.2e9)
    some = np.random.default_rng(5).choice(len(X), 50, replace=False)
    K, Theta = recursion(erf, X[some], X[some])
    apart = ~np.eye(50, dtype=bool)
    np.testing.assert_allclose(found.K[np.ix_(some, some)][apart], K[apart], rtol=1e-12)
    np.testing.assert_allclose(found.Theta[np.ix_(some, some)][apart], Theta[apart], rtol=1e-12)


@pytest.mark.slow
def test_regression_with_ten_thousand_inputs_within_the_budget():
    """Theta of a tanh network in 1 GB: the weights solve the equations of rows that are made apart."""
    code = (
        "import resource, numpy as np; from numeric import BlockKernel, IterativeRegression, NetworkKernel;"
        "X = np.random.default_rng(0).normal(size=(10_000, 20)); y = np.sin(X[:, 0]);"
        "kernel = NetworkKernel('tanh', X, 4); kernel(X[:2000], X[:2000]);"  # compiles what the blocks need
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "blocks = BlockKernel(kernel, X, 1e9, progress=False);"
        "alpha = IterativeRegression(blocks, y, 0.1, progress=False).alpha;"
        "left = kernel(X[:50], X) @ alpha + 0.1 * alpha[:50] - y[:50];"
        "print(np.abs(left).max(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    left, grown = map(float, done.stdout.split())
    assert left < 1e-6 and grown < 1.0
