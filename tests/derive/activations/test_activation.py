"""Smoothness, parity, delta functions and Taylor data, each against something that does not share their code."""

import time

import mpmath
import pytest
import sympy as sp

from derive.activations import BUILTIN, activation
from derive.errors import FormulaError
from derive.symbols import z

SMOOTH = ["tanh", "sin", "erf", "arctan", "sigmoid", "softplus", "gelu", "gelu_tanh", "swish", "mish", "exp"]
FORMULAS = ["sigmoid_half(shift=1)", "sqrt(2+z^2)", "log(1+z^2)", "asinh(z+1/2)", "2^z*cos(z)", "tanh(z+1)"]

EXPECTED_DELTA = {
    # name: (kinks, first derivative with a delta, weight of that delta), by hand from the definitions
    "relu": ((0,), 2, 1),
    "leaky_relu(slope=1/10)": ((0,), 2, sp.Rational(9, 10)),
    "softsign": ((0,), 3, -4),
    "elu": ((0,), 3, -1),
    "elu(alpha=2)": ((0,), 2, -1),
    "max(z, -1)": ((-1,), 2, 1),
    "abs(z)": ((0,), 2, 2),
    "relu(z)^2": ((0,), 3, 2),
    "abs(z)^3": ((0,), 4, 12),
    "sign(z)": ((0,), 1, 2),
}


def reference(name: str) -> mpmath.mpf:
    """Independent numeric definitions."""
    m = mpmath
    table = {
        "tanh": m.tanh,
        "sin": m.sin,
        "erf": m.erf,
        "arctan": m.atan,
        "exp": m.exp,
        "softsign": lambda x: x / (1 + abs(x)),
        "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
        "softplus": lambda x: m.log(1 + m.exp(x)),
        "gelu": lambda x: x * m.ncdf(x),
        "gelu_tanh": lambda x: x / 2 * (1 + m.tanh(m.sqrt(2 / m.pi) * (x + m.mpf("0.044715") * x**3))),
        "swish": lambda x: x / (1 + m.exp(-x)),
        "mish": lambda x: x * m.tanh(m.log(1 + m.exp(x))),
        "elu": lambda x: x if x > 0 else m.expm1(x),
        "relu": lambda x: max(x, 0),
        "sigmoid_half": lambda x: m.tanh(x / 2) / 2,
    }
    return table[name]


@pytest.mark.parametrize("name", [*SMOOTH, "softsign", "elu", "relu", "sigmoid_half"])
def test_values(name: str) -> None:
    sigma = activation(name)
    with mpmath.workdps(30):
        for point in ("-7", "-1.25", "-0.001", "0.001", "0.5", "3"):
            expected = reference(name)(mpmath.mpf(point))
            assert abs(mpmath.mpf(sigma(sp.Rational(point)).evalf(35)) - expected) < mpmath.mpf(10) ** -27


@pytest.mark.parametrize("name", [*SMOOTH, *FORMULAS])
def test_taylor_against_numerical_derivatives(name: str) -> None:
    """Contour integrals (mpmath.taylor) of a function written by mpmath's own lambdify."""
    sigma = activation(name)
    function = sp.lambdify(z, sigma.expression, "mpmath")
    with mpmath.workdps(40):
        expected = mpmath.taylor(function, 0, 9, singular=False, radius=0.2, method="quad")
        for k, c in enumerate(sigma.taylor_coefficients(9)):
            assert abs(mpmath.mpf(c.evalf(40)) - expected[k].real) < mpmath.mpf(10) ** -15, k


@pytest.mark.parametrize("name", ["tanh", "gelu", "gelu_tanh", "swish", "mish", "erf", "sin", "softplus", "arctan"])
def test_sixty_taylor_coefficients_are_fast_and_right(name: str) -> None:
    sigma = activation(name)
    start = time.process_time()
    coefficients = sigma.taylor_coefficients(60)
    assert time.process_time() - start < 2.5
    with mpmath.workdps(40):
        for point in ("0.1", "-0.1"):
            total = mpmath.polyval([mpmath.mpf(c.evalf(40)) for c in reversed(coefficients)], mpmath.mpf(point))
            assert abs(total - reference(name)(mpmath.mpf(point))) < mpmath.mpf(10) ** -30


def test_known_taylor_coefficients() -> None:
    assert [activation("tanh").taylor(k) for k in (1, 3, 5)] == [1, -2, 16]
    assert activation("gelu").taylor(2) == sp.sqrt(2) / sp.sqrt(sp.pi)
    assert activation("mish").taylor(1) == sp.Rational(3, 5)
    assert activation("softplus").taylor(0) == sp.log(2)
    assert activation("elu").taylor(2, "-") == 1
    assert activation("elu").taylor(2, "+") == 0
    with pytest.raises(FormulaError, match="one side"):
        activation("elu").taylor(1)


@pytest.mark.parametrize("name", EXPECTED_DELTA)
def test_kinks_and_deltas(name: str) -> None:
    sigma = activation(name)
    kinks, order, weight = EXPECTED_DELTA[name]
    assert sigma.kinks == kinks
    assert sigma.first_delta_order == order
    assert not any(sigma.deltas(k) for k in range(order))
    (delta,) = sigma.deltas(order)
    assert (delta.at, delta.order, delta.coefficient) == (kinks[0], 0, weight)


@pytest.mark.parametrize("name", ["selu", "softsign", "elu(alpha=2)"])
def test_deltas_make_the_derivatives_integrate_back(name: str) -> None:
    """sigma^(k-1)(1) - sigma^(k-1)(-1) is the integral of sigma^(k), deltas included."""
    sigma = activation(name)
    for k in (1, 2, 3):
        upper, lower = (sigma.derivative_pieces(k - 1)[index].subs(z, point) for index, point in ((-1, 1), (0, -1)))
        left = sp.lambdify(z, sigma.derivative_pieces(k)[0], "mpmath")
        right = sp.lambdify(z, sigma.derivative_pieces(k)[-1], "mpmath")
        regular = mpmath.quad(left, [-1, 0]) + mpmath.quad(right, [0, 1])
        spikes = sum(d.coefficient for d in sigma.deltas(k) if d.order == 0)
        assert abs(float(upper - lower) - float(regular) - float(spikes)) < 1e-12


def test_several_kinks() -> None:
    sigma = activation("max(z, -1) + abs(z - 2)")
    assert sigma.kinks == (-1, 2)
    assert [d.coefficient for d in sigma.deltas(2)] == [1, 2]
    assert activation("min(max(z, -1), 1)").pieces == (-1, z, 1)
    assert activation("abs(abs(z) - 1)").kinks == (-1, 0, 1)
    assert activation("abs(z)*abs(z)").is_smooth
    assert activation("max(z, z)").is_smooth
    assert not activation("max(z^2 - 2, 0)").is_smooth
    assert activation("max(z^2 - 2, 0)").kinks == (-sp.sqrt(2), sp.sqrt(2))


def test_parity() -> None:
    odd = {"linear", "tanh", "sin", "erf", "arctan", "softsign", "sigmoid_half"}
    for name in BUILTIN:
        sigma = activation(name)
        assert sigma.is_odd == (name in odd), name
        assert sigma.is_even == (name == "monomial"), name
    assert activation("1/(1+exp(-z)) - 1/2").is_odd
    assert activation("abs(z)*z").is_odd
    assert activation("cos(z)").is_even and activation("abs(z)").is_even
    assert not activation("max(z, -1)").is_odd


def test_scale_invariance() -> None:
    slopes = {"linear": (1, 1), "relu": (1, 0), "leaky_relu": (1, sp.Rational(1, 100))}
    for name in BUILTIN:
        assert activation(name).scale_invariant == slopes.get(name)
    assert activation("abs(z)").scale_invariant == (1, -1)
    assert activation("max(z,0)+1/10").scale_invariant is None


def test_all_builtins_have_one_definition_and_are_hashable() -> None:
    assert {"linear", "relu", "leaky_relu", "tanh", "sin", "erf", "arctan", "softsign", "sigmoid", "sigmoid_half"} | {
        "softplus", "gelu", "gelu_tanh", "swish", "mish", "elu", "selu", "exp", "monomial"
    } == set(BUILTIN)  # fmt: skip
    assert len({activation(name) for name in BUILTIN}) == len(BUILTIN)
    for name in BUILTIN:
        sigma = activation(name)
        assert sigma.expression.free_symbols == {z}
        assert activation(sigma) is sigma
        assert sigma.is_smooth == (name not in {"relu", "leaky_relu", "softsign", "elu", "selu"})
