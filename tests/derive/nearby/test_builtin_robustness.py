"""The depth scaling of robustness for the built-in activations with a criticality, against stored exact iterations."""

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from derive import activation
from derive.depth.iterate import Brackets
from derive.gaussian import Bracket
from derive.nearby import generalization
from derive.nearby.flow import nearby_equations
from derive.network.component import Component
from derive.symbols import C_W, C_b, lambda_b, lambda_W

DATA = json.loads((Path(__file__).parents[2] / "data" / "nearby" / "builtin.json").read_text())
FLOWING = ("tanh", "sin", "erf", "arctan", "softsign", "elu", "sigmoid_half")
HALF_STABLE = ("gelu", "gelu_tanh", "swish", "mish")


@pytest.mark.parametrize("rule", ["equivalence", "constant"])
@pytest.mark.parametrize("name", FLOWING)
def test_depth_scaling(name, rule):
    rows = {int(depth): row for depth, row in DATA[name][rule].items()}
    found = generalization(name, rule)
    number = float(found.robustness.coefficient.subs({lambda_b: 1, lambda_W: 2}))
    power = float(found.robustness.exponent)
    p_perp = float(found.p_perp)
    # the equivalence rates of the stored run are those of depth 10^4, so only its last layer is an output layer
    depths = [3000, 10000] if rule == "constant" else [10000]
    errors = []
    for depth in depths:
        delta2 = rows[depth]["ddK_2"] * depth**p_perp
        errors.append(abs(rows[depth]["robustness"] / (number * delta2 * depth**-power) - 1))
    assert errors[-1] < 1e-2
    if len(errors) == 2:
        assert errors[1] < 0.6 * errors[0] or errors[1] < 1e-3


@pytest.mark.parametrize("name", HALF_STABLE)
def test_half_stable_recursions_at_finite_depth(name):
    """The regime of these starts beyond reachable depths: the delta-recursions, iterated, against the exact flow."""
    rows = {int(depth): row for depth, row in DATA[name]["constant"].items()}
    sigma = activation(name)
    depth = max(rows)
    critical = sigma.criticality().points[0]
    bias, weight = float(critical.C_b), float(critical.C_W)
    equations = nearby_equations(True)
    brackets = sorted({b for e in equations.values() for b in e.atoms(Bracket)}, key=str)
    evaluate = Brackets(sigma, brackets)
    names = list(equations)
    table = {c: sp.Symbol(c.name) for e in equations.values() for c in e.atoms(Component)}
    dummies = {b: sp.Symbol(f"b{k}") for k, b in enumerate(brackets)}
    step = sp.lambdify(
        [C_b, C_W, lambda_b, lambda_W, *(sp.Symbol(n) for n in names), *dummies.values()],
        [e.xreplace({**table, **dummies}) for e in equations.values()],
    )
    point = sigma.criticality().points[0]
    first = float(point.K_star) + (1.0 if "above" in point.stability else -0.5)
    psi, gram = 0.001, (first - bias) / weight
    separation = first * np.sin(psi / 2) ** 2
    midpoint = first - separation  # K_00 = K_++ - ddK_2 at the first layer
    state = {"K": midpoint, "Theta": 1 + 2 * (gram - separation / weight)}
    state |= {"ddK_2": separation, "ddTheta_2": 2 * separation / weight}
    values = [state.get(n, 0.0) for n in names]
    for layer in range(1, depth):
        numbers = [float(b) for b in evaluate(np.longdouble(values[0]))]
        values = step(bias, weight, 1.0, 2.0, *values, *numbers)
        if layer + 1 in rows:
            found = dict(zip(names, values))
            ratio = -2 * found["ddTheta_2"] / (found["Theta"] + found["ddTheta_0"] + found["ddTheta_2"])
            exact = rows[layer + 1]["robustness"]
            assert abs(ratio / exact - 1) < 1e-5 + 2 * abs(exact), layer + 1  # the next order in delta^2
