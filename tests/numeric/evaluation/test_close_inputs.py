"""Nearly parallel inputs of kinked activations, against two-input flows in arithmetic of many digits."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.activations import load
from numeric.evaluation.close_inputs import BASIS, ClosePairs, pair_flows
from numeric.generated.layer import STEPS

DATA = Path(__file__).resolve().parents[2] / "data" / "close"
TENSORS = ("K", "Theta", "V", "G1", "D", "F", "H1", "A")


def references(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def run(name, case, tensors=TENSORS):
    numbers = {key: case[key] for key in ("depth", "width", "C_b", "C_W", "lambda_b", "lambda_W")}
    return flow(name, [case["x"], case["y"]], tensors=list(tensors), **numbers)


def worst(f, case, tensors=TENSORS):
    """{tensor: error relative to its largest entry}."""
    out = {}
    for name in tensors:
        exact = np.array(case["tensors"][name])
        out[name] = float(np.abs(np.asarray(f.layer(f.depth)[name]) - exact).max() / np.abs(exact).max())
    return out


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_piecewise_linear_at_every_distance_and_depth(name):
    """Distances from 0.1 to 1e-9, depths to 45 in the ordered phase, parallel inputs of different norms."""
    for case in references(name):
        f = run(name, case)
        # H1 and G1 of one input vanish exactly, so that of close ones they are as small as the angle and its cube
        for tensor, error in worst(f, case).items():
            size, others = (np.abs(case["tensors"][name]).max() for name in (tensor, "A"))
            floor = 2e-14 * max(others, 1.0) / size if tensor in ("G1", "H1") else 0.0
            assert error < 1e-12 + floor, (case["y"], case["depth"], tensor, error)


def test_the_estimate_sees_what_is_left_of_small_numbers():
    for case in references("relu")[3:5]:
        f = run("relu", case, ("H1",))
        assert all(error <= 10 * f.error[tensor] for tensor, error in worst(f, case, ("K", "Theta", "V", "H1")).items())
        assert f.error["H1"] < 1e-5 and f.error["V"] < 1e-12


def pair_flow(name, case):
    """The pair's own flow alone: the four-point quadrature of one input is tested elsewhere."""
    functions = load(name).FUNCTIONS
    X, depth, width = np.array([case["x"], case["y"]]), case["depth"], case["width"]
    close = ClosePairs(functions, X, np.full(depth, case["C_b"]), np.array([[0, 1]]))
    numbers = {key: jnp.asarray(case[key]) for key in ("C_b", "C_W", "lambda_b", "lambda_W")}
    ratios = [1.0, width / 2, *[1.0] * depth]
    values = [numbers | {"r": jnp.asarray(ratios[layer])} for layer in range(depth)]
    return pair_flows(functions, TENSORS, X, values, close, {}, finer=False)[-1]


@pytest.mark.parametrize("name", ["elu", "softsign"])
def test_curved_pieces(name):
    for case in references(name):
        found = pair_flow(name, case)
        for tensor in TENSORS:
            exact = np.array(case["tensors"][tensor])
            error = np.abs(found[tensor][0] - exact).max() / np.abs(exact).max()
            assert error < 1e-10, (case["y"], case["depth"], tensor, error)


def test_the_numbers_of_an_ordered_network():
    """relu at depth 30 and 45, as computed with 60 digits."""
    options = {"width": 64, "C_b": 0.1, "C_W": 1, "lambda_b": 0.3, "lambda_W": 1, "tensors": ["H1"]}
    X = [[1, 0.3], [-0.4, 1]]
    assert float(flow("relu", X, depth=30, **options).H1[0, 1]) == pytest.approx(0.000498734, rel=1e-5)
    f = flow("relu", X, depth=45, **options)
    assert float(f.H1[0, 1]) == pytest.approx(4.6539335e-06, rel=1e-7)
    assert float(f.H1[0, 1]) == float(f.H1[1, 0])


def test_duplicates_stay_exact_beside_close_inputs():
    X = [[1.0, 0.3], [1.0, 0.3], [1.0, 0.3 + 1e-6]]
    f = flow("relu", X, depth=4, width=16, C_b=0.1, C_W=2.0, tensors=["H1", "A"])
    np.testing.assert_array_equal(f.H1[0, 1], f.H1[0, 0])
    np.testing.assert_allclose(f.H1[0, 2], f.H1[1, 2], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(f.A)[2, 0, 2, 0], np.asarray(f.A)[2, 1, 2, 1], rtol=1e-12)


def test_an_odd_activation_of_nearly_opposite_inputs():
    """softsign: the second input reflected changes signs and nothing else."""
    rest = {"x": [1.0, 0.3], "depth": 3, "width": 8, "C_b": 0.0, "C_W": 1.3, "lambda_b": 0.0, "lambda_W": 1.0}
    near, opposite = (pair_flow("softsign", rest | {"y": [sign, sign * 0.3001]})["H1"][0] for sign in (1.0, -1.0))
    np.testing.assert_allclose(opposite[0, 1], -near[0, 1], rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(opposite), np.diagonal(near), rtol=1e-12)


def test_which_labels_may_change_their_basis():
    """Preactivations may; labels under an NTK or a derivative keep their input."""
    assert {name: sorted(labels) for name, labels in BASIS.items()} == {
        "K": [1, 2], "Theta": [], "V": [1, 2, 3, 4], "G1": [1, 2], "D": [1, 2], "F": [1, 2], "H1": [], "A": [], "B": [],
    }  # fmt: skip
    assert all(name in STEPS for name in BASIS)
