"""What `flow` says to bad input: one clear sentence; and what it does with every way to name an activation."""

import subprocess
import sys

import numpy as np
import pytest

from numeric import MissingTensor, NonFiniteFlow, NumericError, flow

X = [[1.0, 0.2], [0.3, -0.8]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"X": [[1.0, float("nan")], [0.0, 1.0]]}, "Input 0 of X holds NaN"),
        ({"X": [1.0, 2.0]}, r"X must have shape \(N, n_0\)"),
        ({"X": np.zeros((0, 3))}, r"X must have shape \(N, n_0\)"),
        ({"X": [[1.0], [1.0, 2.0]]}, "rectangular array"),
        ({"X": [["a", "b"]]}, "rectangular array"),
        ({"C_W": -1.0}, "C_W must not be negative; it is -1"),
        ({"C_b": [0.1, -0.2, 0.0]}, "C_b must not be negative; it is -0.2"),
        ({"lambda_W": float("inf")}, "lambda_W holds NaN or infinity"),
        ({"lambda_b": [1.0, 2.0]}, "lambda_b must be one number or 3 numbers"),
        ({"C_W": "one"}, "C_W must be a number"),
        ({"width": 0}, "A width is a whole number from 1 on, not 0"),
        ({"width": [4]}, "depth 3 has 2 hidden layers, but 1 widths are given"),
        ({"width": 2.5}, "A width is a whole number"),
        ({"depth": 0}, "depth is the number of weight layers"),
        ({"depth": 2.5}, "depth is the number of weight layers"),
        ({"tensors": ["X"]}, "There is no tensor 'X' here"),
        ({"dtype": "float16"}, "dtype is float64 or float32, not float16"),
        ({"tolerance": 2.0}, "tolerance lies between"),
        ({"layers": [5]}, "layers is"),
        ({"X": [[1.0 + 1.0j, 2.0]]}, "rectangular array of real numbers"),
        ({"X": [[1.0, None]]}, "rectangular array of real numbers"),
        ({"C_W": [None] * 3}, "C_W must be a number"),
        ({"width": None, "tensors": "V"}, "V is a 1/n quantity: give the width"),
        ({"width": [[4], [4, 5]]}, "A width is a whole number"),
        ({"depth": 10**9}, "depth is at most 100000"),
        ({"tensors": 5}, "tensors is a name or a list of names among K Theta"),
        ({"tolerance": "fine"}, "tolerance lies between"),
        ({"layers": 3}, "layers is"),
        ({"layers": [True]}, "layers is"),
        ({"memory": "8 GB"}, "memory is a budget in bytes"),
        ({"devices": "cpu"}, "devices is a list of some of"),
        ({"devices": []}, "devices is empty"),
        ({"X": np.ones((300, 2))}, "need about 2223 GB even row by row, more than memory=8 GB"),
    ],
)
def test_one_clear_sentence(change, sentence):
    given = {"X": X, "depth": 3, "width": 4} | change
    with pytest.raises(NumericError, match=sentence) as caught:
        flow("tanh", **given)
    assert "\n" not in str(caught.value)


def test_overflow_off_criticality_names_the_layer():
    with pytest.raises(NonFiniteFlow, match=r"K overflows at layer \d+ of 400"):
        flow("linear", X, depth=400, width=4, C_W=1e3, tensors="Theta")


def test_overflow_of_the_kernel_at_the_first_layer():
    with pytest.raises(NonFiniteFlow, match="K overflows at layer 1 of 2: scale the inputs"):
        flow("linear", [[1e200]], depth=2, width=4, tensors="K")


def test_tensors_that_do_not_exist_are_named_with_the_reason():
    f = flow("relu", X, depth=2, width=4, C_W=2.0, tensors="Theta")
    with pytest.raises(MissingTensor, match=r"S does not exist for relu: it needs .*product of delta functions"):
        _ = f.S
    with pytest.raises(MissingTensor, match="R does not exist for relu"):
        flow("relu", X, depth=2, width=4, C_W=2.0, tensors=["V", "R"])


def test_depth_one_is_the_first_layer():
    f = flow("tanh", X, depth=1, C_b=0.1, C_W=2.0, lambda_b=0.3, lambda_W=0.5, tensors=["V"])
    gram = np.asarray(X) @ np.asarray(X).T / 2
    np.testing.assert_allclose(f.K, 0.1 + 2 * gram)
    np.testing.assert_allclose(f.Theta if "Theta" in f.names else f.K, f.K)
    assert f.V.shape == (2, 2, 2, 2) and not np.any(f.V)


def test_names_formulas_modules_and_expressions_are_one():
    """Built-in name, formula, SymPy expression, derive's Activation and a generated file give the same numbers."""
    import importlib.util
    import tempfile
    from pathlib import Path

    import sympy as sp

    import derive
    from derive.codegen import activation_module, write
    from derive.symbols import z

    with tempfile.TemporaryDirectory() as folder:
        path = write(activation_module("z*tanh(z)", ["Theta"]), Path(folder) / "own_theory.py")
        spec = importlib.util.spec_from_file_location("own_theory", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert tuple(module.STEPS) == ("K", "Theta")
        ways = ["z*tanh(z)", z * sp.tanh(z), derive.activation("z*tanh(z)"), module]
        results = [flow(way, X, depth=3, width=4, C_W=1.1, tensors="Theta") for way in ways]
    for f in results[1:]:
        np.testing.assert_allclose(f.Theta, results[0].Theta, rtol=1e-13)
    with pytest.raises(NumericError, match="There is no tensor 'V' here; choose among K Theta"):
        flow(module, X, depth=2, width=4, tensors="V")


def test_importing_numeric_with_a_built_in_name_does_not_import_sympy():
    code = (
        "import sys; from numeric import flow; f = flow('tanh', [[1.0, 2.0]], depth=2, C_b=0, C_W=1);"
        "print('sympy' in sys.modules, f.K.dtype)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "float64"]


def test_float32_has_its_own_tolerance():
    f = flow("tanh", X, depth=3, width=4, C_W=1.1, tensors="Theta")
    g = flow("tanh", X, depth=3, width=4, C_W=1.1, tensors="Theta", dtype="float32")
    assert g.Theta.dtype == np.float32
    np.testing.assert_allclose(g.Theta, f.Theta, rtol=2e-5)
    assert 1e-8 < max(g.error.values()) < 1e-4


def test_steps_have_a_kernel_and_nothing_else():
    """Sign and threshold against the arcsine law; Theta holds a product of delta functions."""
    X, C_b, C_W = np.array([[1.0, 0.3], [0.2, -1.0], [0.5, 0.1]]), 0.1, 0.9
    K = C_b + C_W * X @ X.T / 2
    threshold = K.copy()
    for _ in range(2):
        size, other = np.sqrt(np.diag(K)), np.sqrt(np.diag(threshold))
        K = C_b + C_W * 2 / np.pi * np.arcsin(np.clip(K / np.outer(size, size), -1, 1))
        agree = np.arcsin(np.clip(threshold / np.outer(other, other), -1, 1))
        threshold = C_b + C_W * (0.25 + agree / (2 * np.pi))
    for formula, expected in (("sign(z)", K), ("where(z < 0, 0, 1)", threshold)):
        found = flow(formula, X, 3, C_b=C_b, C_W=C_W, tensors="K")
        assert np.allclose(np.asarray(found.K), expected, atol=1e-10)
        with pytest.raises(NumericError, match="jumps at zero"):
            flow(formula, X, 3, C_b=C_b, C_W=C_W, lambda_b=1.0, lambda_W=1.0, tensors="Theta")
