"""The seed's printed recursions of the ddNTKs, (infinity.14)-(infinity.17) and (infinity.177)-(infinity.181).

Single-input equations are typed as printed. The multi-input ones are typed as they should read (docs/errata lists what
the print has instead): with insertions of z and the inverse kernel, evaluated as numbers for random tensors, which
checks the derivative form by arithmetic that it does not share.
"""

import numpy as np
import pytest
import sympy as sp
from sampled_networks import Neuron, apply_recursion

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


class Numbers:
    """Random tensors of one layer for two inputs, with their symmetries, and brackets with insertions of z."""

    def __init__(self):
        rng = np.random.default_rng(8)
        self.tensors = {}
        for name, tensor in TENSORS.items():
            raw = rng.normal(size=(2,) * len(tensor.subscripts))
            self.tensors[name] = sum(raw.transpose(g) for g in tensor.symmetries) / len(tensor.symmetries)
        self.tensors["K"] = np.array([[0.9, 0.3], [0.3, 0.7]])
        self.neuron = Neuron(self.tensors["K"], {"sigma": sp.sin(z + sp.Rational(1, 3))})
        self.inverse = np.linalg.inv(self.tensors["K"])
        self.C, self.rate, self.r = 1.3, 0.7, 1.6

    def mean(self, *factors, zs=None):
        """<sigma^(k)_a ...> with factors (a, k), or with an insertion of z_zs."""
        product = np.prod([self.neuron.value(a, k, "sigma") for a, k in factors], axis=0)
        return float((product * (1 if zs is None else self.neuron.z[zs])) @ self.neuron.weights)

    def raised(self, *factors):
        """sum_5 <z_5 ...> G^{57} as a vector in 7."""
        return self.inverse @ np.array([self.mean(*factors, zs=a) for a in range(2)])

    def derived(self, name):
        numbers = {"C_W": self.C, "lambda_W": self.rate, "r": self.r, "C_b": 0.2, "lambda_b": 0.1}
        return apply_recursion(recursion(name), self.tensors, self.neuron, np.eye(2), numbers)


@pytest.fixture(scope="module")
def layer():
    return Numbers()


def seed_R(n, d0, d1, d2, d3):
    H, P_, B_, R_ = (n.tensors[k] for k in ("Theta", "P", "B", "R"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r
    outer = C * m((d2, 1), (d3, 1))
    return (
        lam * C * m((d0, 2), (d1, 0), (d2, 1), (d3, 1)) * H[d0, d2] * H[d0, d3]
        + r * outer * lam * m((d0, 2), (d1, 0)) * B_[d0, d0, d2, d3]
        + r * outer * lam * (m((d0, 2), (d1, 0)) * P_[d0, d2, d3, d0] + m((d0, 1), (d1, 1)) * P_[d0, d2, d3, d1])
        + C**2 * m((d0, 3), (d1, 1), (d2, 1), (d3, 1)) * H[d0, d1] * H[d0, d2] * H[d0, d3]
        + r * outer * C * m((d0, 3), (d1, 1)) * B_[d0, d0, d2, d3] * H[d0, d1]
        + r
        * outer
        * C
        * H[d0, d1]
        * (m((d0, 3), (d1, 1)) * P_[d0, d2, d3, d0] + m((d0, 2), (d1, 2)) * P_[d0, d2, d3, d1])
        + r * outer * C * m((d0, 1), (d1, 1)) * R_[d0, d1, d2, d3]
    )


def seed_S(n, d1, d2, d3, d4):
    H, B_, S_ = (n.tensors[k] for k in ("Theta", "B", "S"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r
    outer = C * m((d3, 1), (d4, 1))
    return (
        C * lam * m((d1, 1), (d2, 1), (d3, 1), (d4, 1)) * H[d1, d3] * H[d2, d4]
        + r * outer * (lam * m((d1, 1), (d2, 1)) + C * H[d1, d2] * m((d1, 2), (d2, 2))) * B_[d1, d2, d3, d4]
        + C**2 * m((d1, 2), (d2, 2), (d3, 1), (d4, 1)) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C * m((d1, 1), (d2, 1)) * outer * S_[d1, d2, d3, d4]
    )


def seed_T(n, d1, d3, d4, d2):
    H, F_, Q_, T_ = (n.tensors[k] for k in ("Theta", "F", "Q", "T"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r

    def through_F(left, right):
        return np.einsum("a,b,ab", n.raised(*left), n.raised(*right), F_[:, d1, :, d2])

    low13, low24 = ((d1, 1), (d3, 0)), ((d2, 1), (d4, 0))
    high13, high24 = ((d1, 2), (d3, 1)), ((d2, 2), (d4, 1))
    Q24 = lambda f, g: m(*f) * Q_[d2, d4, d1, d1] + m(*g) * Q_[d2, d4, d1, d3]  # noqa: E731
    Q13 = lambda f, g: m(*f) * Q_[d1, d3, d2, d2] + m(*g) * Q_[d1, d3, d2, d4]  # noqa: E731
    return (
        lam**2 * m(*low13, *low24) * H[d1, d2]
        + r * lam**2 * through_F(low13, low24)
        + C * lam * m(*low13, *high24) * H[d2, d1] * H[d2, d4]
        + r * C * lam * H[d2, d4] * through_F(low13, high24)
        + r * C * lam * m((d2, 1), (d4, 1)) * Q24(((d1, 2), (d3, 0)), ((d1, 1), (d3, 1)))
        + C * lam * m(*high13, *low24) * H[d1, d2] * H[d1, d3]
        + r * C * lam * H[d1, d3] * through_F(high13, low24)
        + r * C * lam * m((d1, 1), (d3, 1)) * Q13(((d2, 2), (d4, 0)), ((d2, 1), (d4, 1)))
        + r * C**2 * m((d1, 1), (d3, 1)) * m((d2, 1), (d4, 1)) * T_[d1, d3, d4, d2]
        + C**2 * m(*high13, *high24) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C**2 * H[d1, d3] * H[d2, d4] * through_F(high13, high24)
        + r * C**2 * H[d2, d4] * m((d1, 1), (d3, 1)) * Q13(((d2, 3), (d4, 1)), ((d2, 2), (d4, 2)))
        + r * C**2 * H[d1, d3] * m((d2, 1), (d4, 1)) * Q24(((d1, 3), (d3, 1)), ((d1, 2), (d3, 2)))
    )


def seed_U(n, d1, d4, d2, d3):
    """(infinity.181) is missing in the seed's text; its single-input form (infinity.17) is there."""
    H, U_ = n.tensors["Theta"], n.tensors["U"]
    m, C, r = n.mean, n.C, n.r
    return (
        C**2 * m((d1, 2), (d2, 2), (d3, 1), (d4, 1)) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C**2 * m((d1, 1), (d4, 1)) * m((d2, 1), (d3, 1)) * U_[d1, d4, d2, d3]
    )


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
    derived = layer.derived(name)
    for index in np.ndindex(*derived.shape):
        assert equation(layer, *index) == pytest.approx(derived[index], rel=1e-9, abs=1e-11)
