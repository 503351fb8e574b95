"""Residual layers at large depth: coefficients, growth at a skip of one, the command."""

import json

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.design.residual_depth import residual_exponents
from derive.design.residual_growth import residual_growth
from derive.errors import DeriveError

NODES = np.polynomial.hermite_e.hermegauss(60)


def mean(f, K):
    return float(NODES[1] @ f(np.sqrt(K) * NODES[0])) / np.sqrt(2 * np.pi)


def test_tanh_ratios_are_the_plain_ones_times_one_minus_the_fourth_power():
    """V gains 2 K^2 (1 - xi^4) a layer and K loses 2 (1 - xi^2) K^2: V/(n K^2) = (2/3) (1 - xi^4) l."""
    skip = sp.Rational(3, 5)
    table, plain = residual_exponents("tanh", skip), derive.exponents("tanh")
    for name in ("V", "F", "B"):
        assert sp.simplify(table.ratios[name].coefficient / plain.ratios[name].coefficient - (1 - skip**4)) == 0
        assert table.ratios[name].exponent == -1
    assert table.tensors["K"].coefficient == 1 / (2 * (1 - skip**2))
    assert table.p_perp == plain.p_perp == 1 and table.to_json()["skip"]["exact"] == "3/5"


@pytest.mark.slow
def test_a_kernel_that_stays_has_k_and_theta_by_the_solver_and_numbers_else():
    """The solver has nothing for the others, and says so."""
    table = residual_exponents("swish", sp.Rational(1, 2), "constant", lambda_b=0, lambda_W=1)
    assert set(table.tensors) == {"K", "Theta"} and table.universality_class == "half-stable" and not table.ratios
    assert "functionals" not in str(table.notes[1]) and "numbers" in str(table.notes[1])


def test_saturating_networks_grow_linearly_and_their_ntk_as_a_stretched_exponential():
    found = residual_growth("tanh", sp.Integer(1))
    assert found.kind == "saturating" and [law.branch for law in found.laws] == ["1", "1/sqrt(L)", "1/L"]
    values = {derive.symbols.C_b: 0, derive.symbols.C_W: 1}
    K, log, marks = 1.0, 0.0, {}
    for layer in range(1, 8001):
        many = np.sqrt(2 * np.pi * K)  # for large K: integrals of 1 - tanh^2 and of its square, over the spread
        less = mean(lambda z: 1 / np.cosh(z) ** 2, K) if K < 4 else 2 / many
        log += np.log1p(mean(lambda z: 1 / np.cosh(z) ** 4, K) if K < 4 else 4 / 3 / many)
        K += 1 - less
        marks[layer] = K, log
    law = found.laws[0]
    kernel, theta = (sp.lambdify(derive.symbols.L, e.subs(values)) for e in (law.kernel, law.log_theta))
    slope = (marks[8000][1] - marks[2000][1]) / (theta(8000) - theta(2000))
    assert abs(marks[8000][0] / kernel(8000) - 1) < 0.03 and abs(slope - 1) < 0.03


def test_linear_activations_grow_exponentially_and_others_have_no_law():
    found = residual_growth("leaky_relu(slope=1/2)", sp.Integer(-1))
    assert found.kind == "linear" and found.slope == sp.Rational(5, 8)
    assert found.laws[0].kernel == (1 + sp.Rational(5, 8) * derive.symbols.C_W) ** derive.symbols.L
    assert residual_growth("sin", sp.Integer(1)).kind == "between" and not residual_growth("sin", sp.Integer(1)).laws


def test_command_prints_the_table():
    shown = CliRunner().invoke(group, ["exponents", "tanh", "--layer", "residual", "--skip", "3/5", "--json"])
    assert shown.exit_code == 0 and json.loads(shown.output)["ratios"]["V"]["coefficient"]["exact"] == "1088/1875"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "residual"}, "needs --skip"),
        ({"skip": 1}, "--skip belongs to --layer residual"),
        ({"layer": "residual", "skip": 0.5, "plateau": True}, "for plain layers"),
        ({"layer": "residual", "skip": 1.5}, "no critical point.*9/4 to the power of the depth"),
        ({"layer": "input-skip"}, "not 'input-skip'"),
    ],
)
def test_refusals_are_one_sentence(arguments, message):
    with pytest.raises(DeriveError, match=message) as error:
        derive.exponents("tanh", **arguments)
    assert "\n" not in str(error.value)


def test_real_networks_of_forty_layers_have_the_v_of_the_solver():
    """V of tanh networks with a skip of 4/5, sampled without a weight matrix, beside the recursion of tensors alone.

    The latter is iterated with a quadrature of its own; far out it has the solver's coefficient.
    """
    rng, n, count, xi, C = np.random.default_rng(1), 512, 2000, 0.8, 0.36
    z = rng.standard_normal((count, n), dtype=np.float32)
    for _ in range(39):  # W s given s is Gaussian
        spread = np.sqrt(np.float32(C) * (np.tanh(z) ** 2).mean(1, keepdims=True))
        z = np.float32(xi) * z + spread * rng.standard_normal((count, n), dtype=np.float32)
    q = (z.astype(float) ** 2).mean(1)
    x = np.arange(-400, 401) * 2e-2
    w = np.exp(-(x**2) / 2) * 2e-2 / np.sqrt(2 * np.pi)
    K, V, ratio = 1.0, 0.0, {}
    for layer in range(2, 8001):
        s = np.tanh(np.sqrt(K) * x)
        d = 1 - s**2
        square, bent = w @ s**2, w @ (2 * d**2 - 4 * s**2 * d)
        both = w @ s**4 - square**2 + V * bent**2 / 4
        V = xi**4 * V + 2 * C * xi**2 * (K**2 * bent + V * bent / 2) + C**2 * both
        K = xi**2 * K + C * square
        ratio[layer] = V / K**2
    sampled = n * q.var() / q.mean() ** 2 - 2
    assert abs(sampled - ratio[40]) < 4 * (sampled + 2) * np.sqrt(2 / count)
    coefficient = float(residual_exponents("tanh", sp.Rational(4, 5)).ratios["V"].coefficient)
    assert abs((ratio[8000] - ratio[4000]) / 4000 / coefficient - 1) < 5e-3
