"""The equivalence principle, from its definition: every layer contributes equally to the NTK, and O(1) in all."""

import numpy as np
import pytest
import sympy as sp

from derive.activations import activation
from derive.depth import exponents
from derive.depth.iterate import Brackets, Real
from derive.depth.learning_rates import parse_rule
from derive.errors import DeriveError
from derive.gaussian import Bracket, Sigma
from derive.symbols import L, ell, lambda_b, lambda_W

SS, PP = Bracket(Sigma(0), Sigma(0)), Bracket(Sigma(0, 1), Sigma(0, 1))


def contributions(name, depth, start):
    """(lambda_b^(l) + lambda_W^(l) <ss>^(l-1)) prod_{l'=l}^{L-1} chi_perp^(l') for l = 2 ... L, K iterated exactly."""
    bias, weight = (
        sp.lambdify((ell, L), e.subs({lambda_b: sp.Rational(7, 10), lambda_W: sp.Rational(13, 10)}))
        for e in exponents(name).rates.expressions
    )
    measure = Brackets(activation(name), [SS, PP])
    kernel, sources, chi = Real(start), [], []
    for layer in range(1, depth):
        square, slope = measure(kernel)
        kernel = square  # C_W = 1, C_b = 0 for the activations below
        sources.append(bias(layer + 1, depth) + weight(layer + 1, depth) * square)
        chi.append(slope)
    passed_on = np.cumprod(np.array([1, *chi[:0:-1]], dtype=Real))[::-1]
    return np.array(sources, dtype=Real) * passed_on


@pytest.mark.parametrize(("name", "start"), [("tanh", "0.5"), ("sin(z)+4/5*(1-cos(z))", "0.7"), ("softsign", "0.3")])
def test_every_layer_contributes_equally(name, start):
    depths = (1500, 3000)
    shares = [contributions(name, depth, start) for depth in depths]
    for share, depth in zip(shares, depths):
        late = share[depth // 4 :]
        assert late.max() / late.min() < 1.02
    assert abs(shares[1].sum() / shares[0].sum() - 1) < 0.01  # of order one: independent of L
    assert 0.1 < shares[1].sum() < 10


def test_constant_rates_are_not_equal():
    """With constant rates the first layers contribute less: the share of a layer grows with l (tanh: as l)."""
    depth = 1500
    share = contributions("tanh", depth, "0.5")
    bias_only = share / np.array([0.7 / layer + 1e-30 for layer in range(2, depth + 1)])  # undo lambda_b ~ 1/l, roughly
    assert bias_only[-1] / bias_only[depth // 4] > 3


def test_rules():
    assert parse_rule("equivalence") is None
    assert parse_rule("constant").expressions == (lambda_b, lambda_W)
    assert parse_rule("power(1, -1/2)").expressions == (lambda_b / ell, lambda_W * sp.sqrt(ell))
    for text in ("power(1)", "power(a,b)", "sometimes"):
        with pytest.raises(DeriveError):
            parse_rule(text)


def test_power_laws_interpolate_between_the_rules():
    """power(1,0) is tanh's equivalence rule without its power of L (which is one): the same table."""
    ours, rule = exponents("tanh", "power(1,0)"), exponents("tanh")
    for name, tensor in rule.tensors.items():
        assert ours.tensors[name].coefficient == tensor.coefficient and ours.tensors[name].exponent == tensor.exponent
