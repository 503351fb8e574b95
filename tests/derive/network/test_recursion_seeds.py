"""The seed's printed recursions of the ddNTKs, (infinity.14)-(infinity.17) and (infinity.177)-(infinity.181).

Single-input equations are typed as printed. The multi-input ones are typed as they should read (docs/errata lists what
the print has instead): with insertions of z and the inverse kernel, evaluated as numbers for random tensors, which
checks the derivative form by arithmetic that it does not share.
"""

import numpy as np
import pytest
import sympy as sp
from sampled_networks import Neuron, apply_recursion
from seed_equations import OneLayer, seed_R, seed_S, seed_T, seed_U

from derive.gaussian.bracket import Bracket, Sigma, expect, partial
from derive.network import Component, recursion
from derive.network.trees import TENSORS, orbits, parse
from derive.symbols import C_W, lambda_W, z


def b(*orders, zs=0):
    """<sigma^(k) ...> at the single input; a factor z (zs=1) by parts, <z f> = K <f'>, in units of K."""
    f = sp.Mul(*(Sigma(0, k) for k in orders))
    return expect(partial(f, 0)) if zs else expect(f)


def at_one_input(name):
    return Component(name, *(0,) * len(TENSORS[name].subscripts))


Theta, B, F, P, Q, R, S, T, U = map(at_one_input, ["Theta", *"BFPQRSTU"])
chi_perp = C_W * b(1, 1)

PRINTED = {
    "R": chi_perp**2 * R
    + lambda_W * C_W * b(2, 1, 1, 0) * Theta**2
    + C_W**2 * b(3, 1, 1, 1) * Theta**3
    + chi_perp * (lambda_W * b(2, 0) + C_W * Theta * b(3, 1)) * (B + P)
    + chi_perp * (lambda_W * b(1, 1) + C_W * Theta * b(2, 2)) * P,
    "S": chi_perp**2 * S
    + C_W * lambda_W * b(1, 1, 1, 1) * Theta**2
    + C_W**2 * b(2, 2, 1, 1) * Theta**3
    + chi_perp * (lambda_W * b(1, 1) + C_W * Theta * b(2, 2)) * B,
    "T": chi_perp**2 * T
    + 2 * C_W * lambda_W * b(2, 1, 1, 0) * Theta**2
    + C_W**2 * b(2, 2, 1, 1) * Theta**3
    + lambda_W**2 * b(1, 1, 0, 0) * Theta
    + (lambda_W * b(1, 0, zs=1) + C_W * Theta * b(2, 1, zs=1)) ** 2 * F
    + 2 * chi_perp * (lambda_W * (b(2, 0) + b(1, 1)) + C_W * Theta * (b(3, 1) + b(2, 2))) * Q,
    "U": chi_perp**2 * U + C_W**2 * b(2, 2, 1, 1) * Theta**3,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("R", marks=pytest.mark.equation("infinity.14")),
        pytest.param("S", marks=pytest.mark.equation("infinity.15")),
        pytest.param("T", marks=pytest.mark.equation("infinity.16")),
        pytest.param("U", marks=pytest.mark.equation("infinity.17")),
    ],
)
def test_single_input_as_printed(name):
    derived = recursion(name).single_input().equal_widths()
    assert sp.expand(derived.expression - PRINTED[name]) == 0
    assert set(derived.labels) == {0}
    assert "delta" not in derived.latex()


@pytest.mark.equation("infinity.18")
def test_single_input_susceptibilities():
    """chi_perp multiplies Theta; chi_parallel = (C_W/K) <z sigma sigma'> is the slope of K' in K."""
    derived = recursion("Theta").single_input().expression
    assert sp.expand(derived.coeff(Theta) - chi_perp) == 0
    chi_parallel = C_W * b(1, 0, zs=1)
    slope = expect(partial(partial(Sigma(0) ** 2, 0), 0)) / 2 * C_W  # d<f>/dK = <f''>/2
    assert sp.expand(slope - chi_parallel) == 0
    V = recursion("V").single_input().equal_widths().expression
    assert sp.expand(V.coeff(at_one_input("V")) - chi_parallel**2) == 0


def test_only_six_four_point_patterns_at_a_single_input():
    found = set()
    for name in TENSORS:
        for bracket in recursion(name).single_input().expression.atoms(Bracket):
            if len(bracket.args) == 4:
                found.add("".join(str(k) for k in sorted(a.order for a in bracket.args)))
    assert found == {"0000", "0011", "1111", "0112", "1113", "1122"}


@pytest.mark.equation("infinity.176")
@pytest.mark.equation("infinity.178")
def test_kronecker_structures_are_the_seeds():
    """(infinity.11) = (infinity.176): one tensor for ddI; (infinity.12) = (infinity.178): three for ddII."""
    assert [len(orbit) for orbit in orbits(parse("ddI"))] == [3]
    assert [len(orbit) for orbit in orbits(parse("ddII"))] == [1, 1, 1]
    for product in ("z.z", "H", "z.z.z.z", "z.z.H", "H.H", "dH.z", "ddI", "ddII"):
        named = [t for t in TENSORS.values() if t.product == product and not t.subleading]
        assert len(named) == len(orbits(parse(product)))


@pytest.fixture(scope="module")
def layer():
    """Random tensors for two inputs, with their symmetries."""
    rng = np.random.default_rng(8)
    tensors = {}
    for name, tensor in TENSORS.items():
        raw = rng.normal(size=(2,) * len(tensor.subscripts))
        tensors[name] = sum(raw.transpose(g) for g in tensor.symmetries) / len(tensor.symmetries)
    tensors["K"] = np.array([[0.9, 0.3], [0.3, 0.7]])
    neuron = Neuron(tensors["K"], {"sigma": sp.sin(z + sp.Rational(1, 3))})
    return OneLayer(tensors, neuron, C=1.3, rate=0.7, r=1.6)


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        pytest.param("R", seed_R, marks=pytest.mark.equation("infinity.177")),
        pytest.param("S", seed_S, marks=pytest.mark.equation("infinity.179")),
        pytest.param("T", seed_T, marks=pytest.mark.equation("infinity.180")),
        pytest.param("U", seed_U, marks=pytest.mark.equation("infinity.181")),
    ],
)
def test_many_inputs_with_insertions_of_z(layer, name, equation):
    numbers = {"C_W": layer.C, "lambda_W": layer.rate, "r": layer.r}
    derived = apply_recursion(recursion(name), layer.tensors, layer.neuron, np.eye(2), numbers)
    np.testing.assert_allclose(layer.tabulate(equation), derived, rtol=1e-9, atol=1e-11)
