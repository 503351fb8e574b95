"""The recursions of one input at finite depth: brackets against 25 digits, tensors against numeric.flow, rates."""

import math

import mpmath
import numpy as np
import pytest

from derive.activations import activation
from derive.critical import criticality
from derive.design.one_input import one_input
from derive.errors import DeriveError
from derive.gaussian import parse_bracket, value
from derive.gaussian.one_input import OneInputBrackets

PATTERNS = ["s0 s0", "s0' s0'", "s0 s0 s0' s0'", "s0 s0 z0 z0"]


@pytest.mark.parametrize("name", ["tanh", "gelu", "softsign", "max(min(z,1),-1/2)", "tanh(20*z)", "selu"])
def test_brackets_against_arbitrary_precision(name):
    sigma = activation(name)
    wanted = [parse_bracket(p) for p in PATTERNS]
    fast = OneInputBrackets(sigma, wanted)
    for kernel in (0.003, 1.7, 300.0):
        found = fast(kernel)
        for bracket, number in zip(wanted, found):
            exact = value(bracket, sigma, kernel, 25)
            assert abs(float(number) / float(exact) - 1) < 1e-13, (bracket, kernel)
    assert fast.error < 1e-13


def test_mpmath_iteration_of_swish():
    """Six layers of K and chi_perp by mpmath's own quadrature of the definition."""
    s = lambda z: z / (1 + mpmath.exp(-z))  # noqa: E731
    slope = lambda z: mpmath.diff(s, z)  # noqa: E731
    bias, weight, norm = 0.5, 1.9, 3.0
    found = one_input("swish", 4, bias, weight, norm, tensors=False)
    with mpmath.workdps(20):
        K = mpmath.mpf(bias) + mpmath.mpf(weight) * norm
        for layer in range(3):
            assert math.isclose(found.tensors["K"][layer], float(K), rel_tol=1e-13)

            def mean(f, K=K):
                return mpmath.quad(lambda u: f(mpmath.sqrt(K) * u) * mpmath.npdf(u), [-12, -4, 0, 4, 12])

            chi = mpmath.mpf(weight) * mean(lambda z: slope(z) ** 2)
            assert math.isclose(found.multipliers[layer], float(chi), rel_tol=1e-12)
            K = mpmath.mpf(bias) + mpmath.mpf(weight) * mean(lambda z: s(z) ** 2)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("gelu", "softsign")]


@pytest.mark.parametrize("name", ["relu", *SLOW])
def test_every_tensor_is_that_of_the_jax_flow(name):
    from numeric import flow

    rates = {"lambda_b": [0.3, 0.1, 0.7, 0.2], "lambda_W": [1.0, 0.4, 0.9, 1.3]}
    found = one_input(name, 4, 0.2, 1.6, 0.9, **rates)
    x = np.sqrt(0.9) * np.array([[1.0, 1.0, -1.0]])
    f = flow(name, x, 4, 50, 0.2, 1.6, **rates)
    shared = ["K", "Theta", "V", "G1", "D", "F", "H1", "A", "B"] if name == "relu" else list(found.tensors)
    for tensor in shared:
        own = found.tensors[tensor]
        assert math.isclose(own[-1], float(np.asarray(getattr(f, tensor)).ravel()[0]), rel_tol=1e-8, abs_tol=1e-14), (
            tensor
        )
    assert len(found.tensors) == (11 if name == "relu" else 15)


@pytest.mark.equation("10.74")
@pytest.mark.parametrize("name", ["tanh", "gelu", "swish", "mish", "relu", "elu", "sin", "max(min(z,1),-1)"])
def test_each_layer_contributes_the_same(name):
    """Measured by switching one layer's learning rate on at a time, in the recursion of Theta itself."""
    depth = 9
    point = criticality(name).points[0]
    found = one_input(name, depth, point.C_b, point.C_W, 1.3, tensors=False)
    settings = (name, depth, point.C_b, point.C_W, 1.3)
    alone = []
    for layer in range(depth):
        off, b, w = [0.0] * depth, [0.0] * depth, [0.0] * depth
        b[layer], w[layer] = found.lambda_b[layer], found.lambda_W[layer]
        alone.append(one_input(*settings, lambda_b=b, lambda_W=off, tensors=False).tensors["Theta"][-1])
        alone.append(one_input(*settings, lambda_b=off, lambda_W=w, tensors=False).tensors["Theta"][-1])
    assert np.allclose(alone, 1 / (2 * depth), rtol=1e-12)
    assert math.isclose(found.tensors["Theta"][-1], 1.0, rel_tol=1e-12)


@pytest.mark.equation("infinity.29")
def test_large_depth_rates_are_the_power_laws():
    """tanh: lambda_b ~ 1/l, lambda_W constant (p_perp = 1); their logarithmic corrections fall as log(l)/l."""
    found = one_input("tanh", 3000, 0, 1, tensors=False)
    late = range(1000, 3000, 500)
    scaled = [found.lambda_b[l - 1] * l for l in late]
    assert max(scaled) / min(scaled) - 1 < 0.005
    assert max(found.lambda_W[l - 1] for l in late) / min(found.lambda_W[l - 1] for l in late) - 1 < 0.005


def test_complaints():
    with pytest.raises(DeriveError, match="weight layers"):
        one_input("tanh", 0, 0, 1)
    with pytest.raises(DeriveError, match="3 numbers"):
        one_input("tanh", 3, [0, 0], 1)
    with pytest.raises(DeriveError, match="from 0 on"):
        one_input("tanh", 3, 0, 1, -2.0)
    with pytest.raises(DeriveError, match="is not between"):
        one_input("tanh", 3, 0, 1, 0.0)
