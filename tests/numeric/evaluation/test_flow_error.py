"""f.error says what error the user got: against other evaluations, with plans that are too coarse on purpose."""

import jax.numpy as jnp
import numpy as np
import pytest
from flow_twin import Twin

from numeric import NumericError, flow
from numeric.evaluation.error import hardest_inputs

X = np.array([[0.9, 0.3, -0.5], [0.4, -1.1, 0.4]])
NETWORK = {
    "width": [5, 7],
    "C_b": [0.1, 0.05, 0.2],
    "C_W": [1.9, 1.6, 1.1],
    "lambda_b": [0.3] * 3,
    "lambda_W": [1.0] * 3,
}


def judge(f, want, own=1e-13):
    """The estimate is not smaller than the error, and at most a thousand times larger; `own` is the reference's."""
    for name, estimate in f.error.items():
        reference = np.asarray(want[name])
        true = np.abs(np.asarray(f.layer(f.depth)[name]) - reference).max() / np.abs(reference).max()
        assert true <= estimate + own, name
        assert estimate < 1e3 * (true + own), name
    return f.error


@pytest.fixture(scope="module")
def twin():
    rest = {key: value for key, value in NETWORK.items() if key != "width"}
    return Twin(jnp.tanh, X, NETWORK["width"], **rest, step=0.12, radius=8.5).layers[-1]


def test_a_coarse_tolerance(twin):
    errors = judge(flow("tanh", X, depth=3, tensors="B", tolerance=1e-3, **NETWORK), twin)
    assert 1e-9 < errors["B"] < 1e-2


def test_a_plan_for_smaller_inputs(twin):
    """Handed in outside jit: the numbers come from that plan, and the estimate sees how bad it is."""
    plan = flow("tanh", 0.1 * X, depth=3, tensors="B", tolerance=1e-3, **NETWORK).plan
    errors = judge(flow("tanh", X, depth=3, tensors="B", plan=plan, **NETWORK), twin)
    assert errors["B"] > 1e-5
    with pytest.raises(NumericError, match="The plan belongs to a flow of 2 inputs, not 1"):
        flow("tanh", X[:1], depth=3, tensors="B", plan=plan, **NETWORK)
    with pytest.raises(NumericError, match="The plan belongs to a flow of depth 3, not 2"):
        flow("tanh", X, depth=2, width=5, tensors="B", plan=plan)
    with pytest.raises(NumericError, match="plan is the `plan` of a flow"):
        flow("tanh", X, depth=3, tensors="B", plan="fine", **NETWORK)


def test_the_hardest_inputs_are_among_those_compared():
    x = np.random.default_rng(0).normal(size=(40, 6))
    x[11] *= 5
    x[23] = x[8] + 1e-4
    x[31] = -x[5] + 1e-4
    chosen = hardest_inputs(x, x @ x.T, None)
    assert {11, 8, 23, 5, 31} < set(chosen.tolist()) and len(chosen) == 6
    assert hardest_inputs(x[:4], x[:4] @ x[:4].T, None).tolist() == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "swish"])
def test_more_inputs_than_are_compared(activation):
    """Nine inputs, some of them nearly parallel or opposite, against a flow at 1e-12."""
    x = np.random.default_rng(1).normal(size=(9, 4))
    x[3], x[7] = x[2] + 1e-3, -x[0] + 0.01
    network = {"depth": 3, "width": [8, 9], "C_b": 0.1, "C_W": 1.4, "tensors": ["A", "T", "R"]}
    want = flow(activation, x, tolerance=1e-12, **network)
    assert max(want.error.values()) < 1e-9
    judge(flow(activation, x, tolerance=1e-3, **network), want.layer(3), own=1e-11)
    plan = flow(activation, 0.4 * x, tolerance=1e-6, **network).plan
    judge(flow(activation, x, plan=plan, **network), want.layer(3), own=1e-11)


@pytest.mark.slow
def test_activations_that_are_too_sharp_are_flagged():
    """z (1 + erf(100 z))/2 is within 1 % of relu: what is farther off is an error, and the estimate says so."""
    network = {"depth": 2, "width": 6, "C_b": 0.1, "C_W": 1.5, "tensors": ["A"]}
    relu = flow("relu", X, **network)
    sharp = flow("z*(1+erf(100*z))/2", X, **network)
    for name in relu.names:
        want = np.asarray(relu.layer(2)[name])
        off = np.abs(np.asarray(sharp.layer(2)[name]) - want).max() / np.abs(want).max()
        assert off < 0.01 + sharp.error[name]


def test_a_refusal_names_the_layer_whose_variance_it_tells():
    """One plan serves all layers; the variance that it cannot do is the inputs', before the second layer."""
    with pytest.raises(NumericError, match=r"^At layer 2: .*variance 5\.45e\+05"):
        flow("z*(1+erf(5*z))/2", [[1000.0, 300.0], [200.0, -900.0]], 3, 64, 0.0, 1.0, 1.0, 1.0)
