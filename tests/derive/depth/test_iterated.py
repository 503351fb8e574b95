"""Independent truth: the exact recursions, iterated to l = 100000 in extended precision with quadrature at every layer
(tests/data/asymptotics, made by make_iterations.py), against the solver's exponents, coefficients and series."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp

from derive.activations import activation
from derive.depth import exponents
from derive.depth.critical_solution import network_equations
from derive.depth.exponent_table import problem, solution
from derive.depth.fit import match_constants
from derive.depth.iterate import Brackets, Real, iterate
from derive.gaussian import Bracket, value

DATA = Path(__file__).parents[2] / "data" / "asymptotics"
POWER_LAWS = ["tanh", "tanh_constant", "sin", "non_odd", "softsign"]
SERIES = {"tanh": 4, "tanh_constant": 4, "sin": 4, "non_odd": 4, "softsign": 3}


def stored(name):
    return json.loads((DATA / f"{name}.json").read_text())


def number(expression):
    return mpmath.mpf(str(sp.N(expression, 25)))


def fitted(data, tensor, exponent, basis):
    """Coefficients of l^(-exponent) times functions (j, q) -> log^q(l)/l^j, from as many layers as functions."""
    layers = sorted(map(int, data["layers"]))[-len(basis) :]
    matrix, right = mpmath.matrix(len(basis)), mpmath.matrix(len(basis), 1)
    for i, layer in enumerate(layers):
        depth = mpmath.mpf(layer)
        for k, (j, q) in enumerate(basis):
            matrix[i, k] = mpmath.log(depth) ** q / depth**j
        right[i] = mpmath.mpf(data["layers"][str(layer)][tensor]) * depth ** number(exponent)
    return mpmath.lu_solve(matrix, right)


@pytest.mark.parametrize("name", [*POWER_LAWS, "elu"])
def test_coefficients_by_extrapolation_alone(name):
    """Leading coefficients of all tensors to 1e-8, from the iterated numbers alone: nine layers, nine functions."""
    data = stored(name)
    rates = data["learning_rates"]
    table = exponents(data["activation"], rates, lambda_b=data["lambda_b"], lambda_W=data["lambda_W"])
    basis = [(0, 0), *((1, q) for q in range(3)), *((2, q) for q in range(5))]
    with mpmath.workdps(30):
        for tensor, found in table.tensors.items():
            assert found.log_power == 0
            leading = fitted(data, tensor, found.exponent, basis)[0]
            assert abs(leading / number(found.coefficient) - 1) < (3e-8 if name == "elu" else 1e-8), tensor


@pytest.mark.parametrize("name", POWER_LAWS)
def test_exponents_by_extrapolation_alone(name):
    """Exponents of all tensors: a wrong one by d would show as a term -d log(l) beside the leading one. Nine functions
    resolve 1e-8, and 1e-7 for the activation with the largest corrections, which the series test sharpens."""
    data = stored(name)
    rates = data["learning_rates"]
    table = exponents(data["activation"], rates, lambda_b=data["lambda_b"], lambda_W=data["lambda_W"])
    basis = [(0, 0), (0, 1), *((1, q) for q in range(3)), *((2, q) for q in range(4))]
    with mpmath.workdps(30):
        for tensor, found in table.tensors.items():
            solved = fitted(data, tensor, found.exponent, basis)
            assert abs(solved[1] / solved[0]) < (1e-7 if name == "non_odd" else 1e-8), tensor


@pytest.mark.parametrize("name", list(SERIES))
def test_series_follow_the_iteration(name):
    """Constants fitted at l = 100000; then the whole series, logarithms included, holds at other layers to 1e-9."""
    data = stored(name)
    rates = data["learning_rates"]
    solved = solution(problem(data["activation"], rates, 0, data["lambda_b"], data["lambda_W"]))
    system = solved.system(SERIES[name])
    constants = match_constants(system, 100000, data["layers"]["100000"])
    assert "c_K" in constants and "c_Theta" in constants
    for tensor in system.equations:
        series = system.solve(tensor)
        accuracy = 1e-9 if series.order - series.lead > 2.5 else 1e-5
        errors = []
        for layer in (20000, 50000):
            found = series.evaluate(layer, constants)
            errors.append(found / mpmath.mpf(data["layers"][str(layer)][tensor]) - 1)
            assert abs(errors[-1]) < accuracy, (tensor, layer)
        if accuracy == 1e-9:  # a wrong exponent would show as a slope in log(l)
            assert abs(errors[1] - errors[0]) / mpmath.log(mpmath.mpf(5) / 2) < 1e-9


@pytest.mark.parametrize("name", ["tanh", "softsign", "gelu"])
def test_stored_iterations_are_reproduced(name):
    """The script's own numbers, again from the start, at the first stored layer."""
    data = stored(name)
    bias, weight = (Fraction(x) for x in data["learning_rates"][6:-1].split(","))
    rates = (
        lambda layer: Real(data["lambda_b"]) * Real(layer) ** int(-bias),
        lambda layer: Real(data["lambda_W"]) * Real(layer) ** int(-weight),
    )
    equations = network_equations()
    if name != "tanh":  # the others' later tensors cost time and add nothing here
        equations = {n: e for n, e in equations.items() if n in ("K", "Theta", "V", "B")}
    first = min(map(int, data["layers"]))
    found = iterate(activation(data["activation"]), equations, data["start"], data, rates, [first])[first]
    for tensor, entry in found.items():
        assert abs(entry / Real(data["layers"][str(first)][tensor]) - 1) < 1e-14


@pytest.mark.parametrize("name", ["tanh", "sin(z)+4/5*(1-cos(z))", "swish"])
@pytest.mark.parametrize("kernel", ["0.5", "0.0009765625"])
def test_the_iterations_quadrature(name, kernel):
    """Every bracket of the recursions by the iteration's own quadrature, against derive.gaussian's to 18 digits."""
    sigma = activation(name)
    wanted = sorted({b for e in network_equations().values() for b in e.atoms(Bracket)}, key=str)
    values = Brackets(sigma, wanted)(Real(kernel))
    with mpmath.workdps(30):
        for bracket, found in zip(wanted, values):
            exact = value(bracket, sigma, mpmath.mpf(kernel), 22)
            text = np.format_float_scientific(found, precision=21, unique=False)
            assert abs(mpmath.mpf(text) - exact) < mpmath.mpf("3e-18") * max(1, abs(exact)), bracket
