"""`flow(..., skip=...)`: against the slow twin, against plain networks, under JAX's transformations; refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from residual_twin import Twin

from numeric import flow
from numeric.activations import load
from numeric.errors import NumericError
from numeric.evaluation.inputs import Parameters, read_parameters
from numeric.functionals.evaluation import Residual

SEVEN = ["V", "G1", "D", "F", "H1", "A", "B"]
X = [[1.0, -0.4, 0.7], [0.3, 0.9, -0.6]]
H = {
    "C_b": [0.2, 0.05, 0.1, 0.15],
    "C_W": [1.2, 0.8, 0.6, 1.1],
    "lambda_b": [0.3, 0.1, 0.2, 0.2],
    "lambda_W": [0.5, 0.4, 0.3, 0.7],
}
SKIPS = (0.8, 1.1)


@pytest.fixture(scope="module")
def shifted():
    """A smooth activation that is neither odd nor even."""
    return flow("sin(z + 1)", X, depth=4, width=16, skip=SKIPS, tensors=[*SEVEN, "V3", "D3"], **H)


def test_every_tensor_is_the_twins(shifted):
    twin = Twin(lambda z: jnp.sin(z + 1), X, (0.0, *SKIPS, 0.0), **H)
    for layer in (2, 3, 4):
        found = shifted.layer(layer)
        assert np.abs(found.K - twin.K[layer]).max() < 1e-9 and np.abs(found.Theta - twin.Theta[layer]).max() < 1e-9
        for name in SEVEN:
            array = np.asarray(found[name])
            size = max(np.abs(array).max(), 1e-3)
            for i in np.ndindex(*array.shape):
                assert abs(array[i] - twin.tensor(name, layer, *i)) < 1e-8 * size, (layer, name, i)


def test_three_legs_of_an_activation_that_is_not_odd(shifted):
    """n Cov(z, z z) and n Cov(z, H) of two neurons: the twin's at the layers with a skip, nothing at the output."""
    twin = Twin(lambda z: jnp.sin(z + 1), X, (0.0, *SKIPS, 0.0), **H)
    for layer in (2, 3):
        V, D = (np.asarray(shifted.layer(layer)[name]) for name in ("V3", "D3"))
        assert np.abs(V).max() > 0.02 and np.abs(D).max() > 0.02
        for a, b, c in np.ndindex(2, 2, 2):
            z, zz = (((a, -1),), layer), (tuple(sorted(((b, -1), (c, -1)))), layer)
            assert abs(V[a, b, c] - twin.C2(layer, z, zz)) < 1e-8 and abs(D[a, b, c] - twin.D(layer, z, b, c)) < 1e-8
    assert np.abs(shifted.V3).max() == 0 and np.abs(shifted.D3).max() == 0


@pytest.mark.slow
def test_without_skips_all_thirteen_are_the_plain_networks():
    """The tables of functionals at skip 0 against the generated layer step, another code altogether."""
    module = load("sin(z + 1)")
    plain = flow("sin(z + 1)", X, depth=4, width=[8, 12, 20], **H)
    widths = (3, 8, 12, 20)
    run = Residual(
        module.FUNCTIONS, plain.names, widths, Parameters(**read_parameters(4, jnp.float64, H)), jnp.zeros(4), 1e-10
    )
    inputs = jnp.asarray(X)
    layers = run.concrete(inputs, run.plans(inputs))
    for layer in (2, 3, 4):
        for name in plain.names:
            own, other = np.asarray(layers[layer][name]), np.asarray(plain.layer(layer)[name])
            assert np.abs(own - other).max() <= 1e-9 * max(np.abs(other).max(), 1e-6), (layer, name)


def test_a_skip_of_zero_is_no_skip():
    f = flow("tanh", X, depth=3, width=4, C_b=0.0, C_W=1.0, skip=0.0, tensors="V")
    assert f.skip is None and np.array_equal(f.V, flow("tanh", X, depth=3, width=4, C_b=0.0, C_W=1.0, tensors="V").V)


@pytest.mark.slow
def test_transformations():
    """jit gives the same numbers; the gradient with respect to the skip is the difference quotient's; vmap maps."""
    plan = flow("sin(z + 1)", X[:1], depth=4, width=16, skip=SKIPS, tensors=["V", "F"], **H).plan

    def V(skip):
        return flow("sin(z + 1)", X[:1], depth=4, width=16, skip=skip, tensors=["V", "F"], plan=plan, **H).V[0, 0, 0, 0]

    at = jnp.asarray(0.9)
    compiled, slope = jax.jit(jax.value_and_grad(V))(at)
    high, low = (float(V(float(at) + e)) for e in (1e-4, -1e-4))
    assert abs(compiled - V(0.9)) < 1e-9 and abs(slope - (high - low) / 2e-4) < 1e-5 * abs(slope)
    assert np.allclose(jax.vmap(V)(jnp.asarray([0.9, 0.8])), [V(0.9), V(0.8)], atol=1e-9)


@pytest.mark.slow
def test_error_is_measured():
    f = flow("tanh", X[:1], depth=4, width=16, skip=1.0, tensors="V", C_b=0.1, C_W=0.5)
    assert set(f.error) == {"K", "V"} and all(0 < e < 1e-8 for e in f.error.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": [8, 12, 8]}, "A skip joins layers of equal width; hidden layers 1 and 2 have 8 and 12 neurons."),
        ({"skip": [1.0, 1.0, 1.0]}, "skip is a number, or 2 numbers"),
        ({"skip": [1.0, 1.0, 1.0, 1.0]}, "The first and the last layer have no skip"),
        ({"skip": "much"}, "skip is a number"),
        ({"skip": float("nan")}, "skip is a number"),
        ({"tensors": ["X"]}, "There is no tensor 'X'"),
        ({"activation": "relu", "tensors": ["G1"]}, "G1 of a residual network is not available for relu"),
        ({"C_W": 1e90}, "overflows at layer"),
        ({"C_W": None}, "A residual network has no default for C_W"),
        ({"width": None, "tensors": "V"}, "V is a 1/n quantity: give the width"),
    ],
)
def test_refusals_are_one_sentence(change, message):
    arguments = {"activation": "tanh", "X": X, "depth": 4, "width": 8, "skip": 1.0, "C_b": 0.0, "C_W": 1.0}
    arguments |= {"lambda_b": 1.0, "lambda_W": 1.0} | change
    with pytest.raises(NumericError, match=message) as error:
        flow(**arguments)
    assert "\n" not in str(error.value)
