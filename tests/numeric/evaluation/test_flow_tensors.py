"""numeric.evaluation.flow against its slow twin, against exact single-input recursions, and on awkward inputs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flow_twin import Twin

from numeric import MissingTensor, NumericError, flow

TENSORS = ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U")
X = np.array([[0.9, 0.3, -0.5], [0.2, -1.0, 0.4], [0.7, 0.8, 0.6]])
NETWORK = {
    "width": [5, 7],
    "C_b": [0.1, 0.05, 0.2],
    "C_W": [1.2, 1.6, 1.1],
    "lambda_b": [0.3, 0.2, 0.4],
    "lambda_W": [1.0, 0.9, 1.1],
}


def swish(z):
    return z * jax.nn.sigmoid(z)


@pytest.fixture(scope="module")
def three_inputs():
    """A non-odd activation, unequal widths and hyperparameters, three inputs, two hidden layers."""
    return flow("swish", X, depth=3, **NETWORK)


@pytest.fixture(scope="module")
def twin():
    widths, rest = NETWORK["width"], {k: v for k, v in NETWORK.items() if k != "width"}
    return Twin(swish, X, widths, **rest, step=0.3, radius=7.8)


@pytest.mark.parametrize("name", TENSORS)
def test_every_tensor_equals_its_twin_at_every_layer(three_inputs, twin, name):
    for layer in (1, 2, 3):
        want = twin.layers[layer - 1][name]
        got = np.asarray(three_inputs.layer(layer)[name])
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * max(np.abs(want).max(), 1e-300))


def test_the_error_estimate_is_honest(three_inputs, twin):
    """Not smaller than the true error, and not so large that it says nothing."""
    for name, estimate in three_inputs.error.items():
        want = twin.layers[-1][name]
        true = np.abs(np.asarray(three_inputs.layer(3)[name]) - want).max() / np.abs(want).max()
        assert true <= estimate + 1e-10  # the twin's own grid is good to 1e-10
        assert estimate < 1e-7


def test_symmetries_of_the_arrays(three_inputs):
    from derive.network import TENSORS as table

    for name in TENSORS:
        array = np.asarray(three_inputs.layer(3)[name])
        for permutation in table[name].symmetries:
            np.testing.assert_allclose(array, array.transpose(permutation), atol=1e-10 * np.abs(array).max())


def test_what_a_flow_tells_of_itself(three_inputs):
    f = three_inputs
    assert f.depth == 3 and f.widths == (3, 5, 7) and f.width == 7
    np.testing.assert_allclose(f.parameters.C_W, NETWORK["C_W"])
    assert f.V.dtype == jnp.float64
    assert f.layer(3).V is f.V
    with pytest.raises(NumericError, match="layers 1 to 3"):
        f.layer(4)
    with pytest.raises(AttributeError):
        _ = f.nonsense


def test_a_subset_of_tensors_and_layers(three_inputs):
    f = flow("swish", X, depth=3, tensors="F", layers="last", **NETWORK)
    assert f.names == ("K", "Theta", "F")
    np.testing.assert_allclose(f.F, three_inputs.F, rtol=0, atol=1e-9 * float(jnp.abs(f.F).max()))
    with pytest.raises(MissingTensor, match="The tensor V was not asked for"):
        _ = f.V
    with pytest.raises(NumericError, match="Layer 2 was not kept"):
        f.layer(2)
    with pytest.raises(NumericError, match="There is no tensor 'W'"):
        flow("swish", X, depth=3, tensors=["W"])


def test_single_input_equals_the_exact_recursions_of_derive():
    """N = 1 against derive's single-input recursions with 18-digit brackets."""
    import derive
    from derive import symbols
    from derive.gaussian import value
    from derive.gaussian.bracket import Bracket
    from derive.network import TENSORS as table
    from derive.network import Component, recursion

    x = np.array([[0.9, -0.4]])
    hyper = {"C_b": 0.1, "C_W": 1.3, "lambda_b": 0.2, "lambda_W": 0.8}
    f = flow("gelu", x, depth=3, width=[4, 6], **hyper)
    norm = float((x**2).sum() / 2)
    state = {name: 0.0 for name in table} | {"K": 0.1 + 1.3 * norm, "Theta": 0.2 + 0.8 * norm}
    sigma = derive.activation("gelu")
    rules = {name: recursion(name).single_input().expression for name in table}
    brackets = sorted(set().union(*(rule.atoms(Bracket) for rule in rules.values())), key=str)
    for ratio in (4 / 2, 6 / 4):
        numbers = {b: value(b, sigma, state["K"], 18) for b in brackets}
        known = {getattr(symbols, key): number for key, number in hyper.items()} | {symbols.r: ratio}
        components = {c for rule in rules.values() for c in rule.atoms(Component)}
        filled = numbers | known | {c: state[c.name] for c in components}
        state = {name: float(rule.xreplace(filled)) for name, rule in rules.items()}
    for name in table:
        assert float(np.ravel(f.layer(3)[name])[0]) == pytest.approx(state[name], rel=1e-12), name


def test_relu_at_one_input_by_hand():
    """<s s> = K/2, <s' s'> = 1/2, <s^4> = 3K^2/2, <s s s' s'> = K/2, <(s^2)''> = 1; derivatives of <s' s'> vanish."""
    C_b, C_W, lambda_b, lambda_W, r = 0.1, 1.7, 0.2, 0.8, 6 / 4
    f = flow("relu", [[0.9, -0.4]], depth=3, width=[4, 6], C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)
    assert f.names == ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B")
    norm = (0.9**2 + 0.4**2) / 2
    K, T = C_b + C_W * norm, lambda_b + lambda_W * norm
    V = D = F = A = B = 0.0
    for ratio in (2.0, r):
        A = (
            lambda_W**2 * 5 / 4 * K**2 + 2 * lambda_W * C_W * T * K / 4 + (C_W * T) ** 2 / 4
            + ratio * (lambda_W**2 * V / 4 + C_W * D * lambda_W / 2 + C_W**2 * A / 4)
        )  # fmt: skip
        D = C_W * (lambda_W * 5 / 4 * K**2 + C_W * T * K / 4) + ratio * C_W * (lambda_W * V / 4 + C_W * D / 4)
        F = C_W**2 * K * T / 2 + ratio * C_W**2 * F / 4
        V = C_W**2 * 5 / 4 * K**2 + ratio * C_W**2 * V / 4
        B = C_W**2 * T**2 / 2 + ratio * C_W**2 * B / 4
        K, T = C_b + C_W * K / 2, lambda_b + lambda_W * K / 2 + C_W * T / 2
    for name, want in {"K": K, "Theta": T, "V": V, "D": D, "F": F, "A": A, "B": B}.items():
        assert float(np.ravel(f.layer(3)[name])[0]) == pytest.approx(want, rel=1e-13), name


@pytest.mark.slow
def test_relu_is_the_limit_of_sharp_gelus():
    """z Phi(b z) tends to relu: differences halve with each doubling of b, and two of them extrapolate."""
    options = {"depth": 4, "width": [5, 7, 6], "C_b": 0.1, "C_W": [1.2, 1.3, 1.1, 1.4], "tensors": ["A", "H1", "B"]}
    f = flow("relu", X[:2], **options)
    sharp = [flow(f"z*(1+erf({b}*z/sqrt(2)))/2", X[:2], **options) for b in (16, 32)]
    for name in f.names:
        want = np.asarray(f.layer(4)[name])
        once, twice = (np.abs(np.asarray(g.layer(4)[name]) - want).max() / np.abs(want).max() for g in sharp)
        assert once < 0.06 and twice < 0.65 * once


def test_coincident_opposite_near_and_vanishing_inputs():
    """Duplicates give the duplicated entries, an angle of 1e-8 changes nothing beyond its own size, zero is allowed."""
    a, b = np.array([0.8, 0.5]), np.array([-0.3, 0.9])
    near = a + 1e-8 * np.array([-0.5, 0.8])
    f = flow("tanh", [a, b, a, -a, near, 0 * a], depth=3, width=8, C_b=0.0, C_W=1.4)
    for name in TENSORS:
        array = np.asarray(f.layer(3)[name])
        size = np.abs(array).max()
        assert np.isfinite(array).all()
        for index in itertools.product(range(2), repeat=array.ndim):
            twin = tuple(2 if i == 0 else i for i in index)
            close = tuple(4 if i == 0 else i for i in index)
            assert abs(array[twin] - array[index]) < 1e-9 * size
            assert abs(array[close] - array[index]) < 1e-7 * size
    np.testing.assert_allclose(f.K[0, 3], -f.K[0, 0], rtol=1e-12)
    np.testing.assert_allclose(f.K[5], 0, atol=1e-15)


@pytest.mark.parametrize("size", [1e-5, pytest.param(30.0, marks=pytest.mark.slow)])
def test_tiny_and_huge_kernels(size):
    """K of 1e-10 and of 1e3 at the first layer, against the twin's direct sums on a grid made for them."""
    x = size * np.array([[1.0, 0.2], [-0.6, 1.1]])
    options = {"C_b": [0.0, 0.0], "C_W": [1.0, 1.0], "lambda_b": [0.0, 0.0], "lambda_W": [1.0, 1.0]}
    f = flow("tanh", x, depth=2, width=3, tensors=["V", "B", "F"], C_b=0.0, C_W=1.0, lambda_b=0.0, lambda_W=1.0)
    step = 0.3 if size < 1 else 0.006
    want = Twin(jnp.tanh, x, [3], **options, step=step, radius=7.8 if size < 1 else 6.5).layers[-1]
    for name in ("K", "Theta", "V", "B", "F"):
        np.testing.assert_allclose(f.layer(2)[name], want[name], rtol=0, atol=2e-8 * np.abs(want[name]).max())


def test_compiled_steps_equal_the_twin_too(twin, monkeypatch):
    """So few inputs are done on the host; more, and all under jit, by compiled programs of the same formulas."""
    import numeric.evaluation.host

    monkeypatch.setattr(numeric.evaluation.host, "FEW", 0)
    f = flow("swish", X, depth=3, layers="last", **NETWORK)
    for name in TENSORS:
        want = twin.layers[2][name]
        np.testing.assert_allclose(f.layer(3)[name], want, rtol=0, atol=1e-9 * np.abs(want).max())
