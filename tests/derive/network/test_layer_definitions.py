"""Changing the definition changes the result, and what the engine cannot close it refuses."""

import pytest
import sympy as sp

from derive.errors import DeriveError
from derive.gaussian.bracket import Sigma, expect
from derive.network import (
    FROZEN_WEIGHTS,
    INPUT_SKIP,
    MLP,
    RESIDUAL,
    TENSORS,
    TWO_MATRICES,
    Bias,
    Component,
    Layer,
    OpenHierarchy,
    Skip,
    Weights,
    recursion,
    recursions,
)
from derive.network.definition import C_X, C_Y, IDENTITY, lambda_X, lambda_Y, xi
from derive.symbols import C_W, C_b, lambda_b, lambda_W, r


def s(label, order=0, function="sigma"):
    return Sigma(label, order, function)


def t(label, order=0):
    return Sigma(label, order, "tau")


Theta12 = Component("Theta", 1, 2)
Theta34 = Component("Theta", 3, 4)


def same(a, b):
    return sp.expand(a - b) == 0


def test_two_matrices_by_hand():
    """K, Theta, V's own part, and B, by hand: pairs of W with W and of X with X."""
    ss, tt = expect(s(1) * s(2)), expect(t(1) * t(2))
    assert same(recursion("K", TWO_MATRICES).expression, C_b + C_W * ss + C_X * tt)
    slope = C_W * expect(s(1, 1) * s(2, 1)) + C_X * expect(t(1, 1) * t(2, 1))
    assert same(recursion("Theta", TWO_MATRICES).expression, lambda_b + lambda_W * ss + lambda_X * tt + slope * Theta12)
    G12 = C_W * s(1) * s(2) + C_X * t(1) * t(2)
    G34 = C_W * s(3) * s(4) + C_X * t(3) * t(4)
    own = recursion("V", TWO_MATRICES).expression.subs(r, 0)
    assert same(own, expect(G12 * G34) - expect(G12) * expect(G34))
    pair = lambda a, b: C_W * s(a, 1) * s(b, 1) + C_X * t(a, 1) * t(b, 1)  # noqa: E731
    own = recursion("B", TWO_MATRICES).expression.subs(r, 0)
    assert same(own, expect(pair(1, 3) * pair(2, 4)) * Theta12 * Theta34)
    through = sp.expand(recursion("B", TWO_MATRICES).expression).coeff(r)
    assert same(through, expect(pair(1, 3)) * expect(pair(2, 4)) * Component("B", 1, 3, 2, 4))


def test_two_equal_matrices_are_one():
    """W sigma + X sigma is one matrix with C_W + C_X and, if the rates have the same ratio, one learning rate."""
    split = Layer(
        (
            Bias(),
            Weights("W", "sigma", C_W / 4, lambda_W / 4),
            Weights("X", "sigma", 3 * C_W / 4, 3 * lambda_W / 4),
        )
    )
    for name in TENSORS:
        assert same(recursion(name, split).expression, recursion(name, MLP).expression), name


def test_two_matrices_without_the_second_are_the_mlp():
    for name in TENSORS:
        reduced = recursion(name, TWO_MATRICES).expression.subs({C_X: 0, lambda_X: 0})
        assert same(reduced, recursion(name).expression), name


def test_input_weights_enter_kernel_and_ntk_only():
    """They meet a fixed vector: given the layer below, their part does not fluctuate."""
    gram = Component("Gram", 1, 2)
    assert same(recursion("K", INPUT_SKIP).expression, recursion("K").expression + C_Y * gram)
    assert same(recursion("Theta", INPUT_SKIP).expression, recursion("Theta").expression + lambda_Y * gram)
    for name in TENSORS:
        if name not in ("K", "Theta"):
            assert same(recursion(name, INPUT_SKIP).expression, recursion(name).expression), name


def test_weights_without_learning_rate():
    for name in TENSORS:
        frozen = recursion(name, FROZEN_WEIGHTS).expression
        assert same(frozen, recursion(name).expression.subs(lambda_W, 0)), name
        assert not frozen.has(lambda_W)
    assert len(recursion("T", FROZEN_WEIGHTS).terms) < len(recursion("T").terms)


def test_residual_layer_gives_kernel_and_ntk():
    assert same(recursion("K", RESIDUAL).expression, recursion("K").expression + xi**2 * Component("K", 1, 2))
    assert same(recursion("Theta", RESIDUAL).expression, recursion("Theta").expression + xi**2 * Theta12)


@pytest.mark.parametrize("name", [name for name in TENSORS if name not in ("K", "Theta")])
def test_residual_layer_is_refused_with_the_reason(name):
    with pytest.raises(OpenHierarchy, match=r"xi z_i.*persists from layer to layer.*all orders.*do not close"):
        recursion(name, RESIDUAL)


def test_refusal_is_noticed_from_the_definition_not_from_a_name():
    mine = Layer((Bias(), Weights("A", "tau"), Skip(sp.Rational(1, 2), name="carry")))
    with pytest.raises(OpenHierarchy, match=r"the term 1/2 z_i"):
        recursion("D", mine)
    assert recursion("K", mine).expression.has(Component("K", 1, 2))


def test_all_fifteen_for_each_closed_definition():
    for layer in (MLP, TWO_MATRICES, INPUT_SKIP, FROZEN_WEIGHTS):
        assert list(recursions(layer)) == list(TENSORS)


def test_three_matrices_derive_too():
    """Not among the cases the engine was written around: three activations, no bias."""
    layer = Layer(tuple(Weights(m, f, sp.Symbol(f"C_{m}"), sp.Symbol(f"l_{m}")) for m, f in ("Af", "Bg", "Ch")))
    expected = sum(sp.Symbol(f"C_{m}") * expect(s(1, 0, f) * s(2, 0, f)) for m, f in ("Af", "Bg", "Ch"))
    assert same(recursion("K", layer).expression, expected)
    assert not recursion("R", layer).expression.has(C_b)


def test_linear_layers():
    """phi(z) = z: brackets become products of K (Isserlis), and V of equal widths has the known fixed structure."""
    linear = Layer((Bias(), Weights("W", IDENTITY)))
    K = lambda a, b: Component("K", a, b)  # noqa: E731
    V = Component("V", 1, 2, 3, 4)
    assert same(recursion("K", linear).expression, C_b + C_W * K(1, 2))
    assert same(recursion("V", linear).expression, C_W**2 * (K(1, 3) * K(2, 4) + K(1, 4) * K(2, 3) + r * V))
    assert same(recursion("G1", linear).expression, r * C_W * Component("G1", 1, 2))
    assert same(recursion("U", linear).expression, r * C_W**2 * Component("U", 1, 4, 2, 3))
    B = Component("B", 1, 3, 2, 4)
    assert same(recursion("B", linear).expression, C_W**2 * (Theta12 * Theta34 + r * B))


def test_ill_formed_definitions_are_refused():
    with pytest.raises(DeriveError, match="need different names, not W, W"):
        Layer((Weights(), Weights("W", "tau")))
    with pytest.raises(DeriveError, match="one with the sum of their strengths"):
        Layer((Skip(xi), Skip(xi, name="other")))
