"""f.error where it was once too small: large norms, tiny inputs, coarse tolerances, growing activations."""

import mpmath
import numpy as np
import pytest

from numeric import flow

PLAIN = {"C_b": 0.0, "C_W": 1.0, "lambda_b": 1.0, "lambda_W": 1.0}


def exact(function, K):
    """<function> over N(0, K) with 30 digits."""
    with mpmath.workdps(30):
        s = mpmath.sqrt(K)
        points = [-12, -1, -0.1, -0.01, -0.001, 0, 0.001, 0.01, 0.1, 1, 12]
        integral = mpmath.quad(lambda x: function(s * x) * mpmath.exp(-x * x / 2), points)
        return float(integral / mpmath.sqrt(2 * mpmath.pi))


def test_softsign_of_large_inputs():
    """Theta at x = (1000, 300): lambda_b + lambda_W <s s> + C_W <s' s'> Theta_1."""
    f = flow("softsign", [[1000.0, 300.0]], depth=2, tensors="Theta", **PLAIN)
    K = (1000.0**2 + 300.0**2) / 2
    want = 1 + exact(lambda z: (z / (1 + abs(z))) ** 2, K) + exact(lambda z: (1 + abs(z)) ** -4, K) * (1 + K)
    off = abs(float(f.Theta[0, 0]) - want) / want
    assert off <= 10 * f.error["Theta"] + 1e-14
    assert off < 1e-10


def test_exponential_growth():
    """exp, sinh(z), cosh(z)-1 at K of order one, in closed form."""
    K = (1 + 0.09) / 2
    E = float(np.exp(2 * K))
    wanted = {"exp": E, "sinh(z)": (E - 1) / 2, "cosh(z)-1": (E + 1) / 2 - 2 * float(np.exp(K / 2)) + 1}
    for name, want in wanted.items():
        f = flow(name, [[1.0, 0.3]], depth=2, tensors="K", **PLAIN)
        assert float(f.K[0, 0]) == pytest.approx(want, rel=1e-12), name


@pytest.mark.parametrize("formula", ["z^3*tanh(z)", "softplus(z)^4"])
def test_polynomial_growth(formula):
    K = (1 + 0.09) / 2
    functions = {
        "z^3*tanh(z)": lambda z: (z**3 * mpmath.tanh(z)) ** 2,
        "softplus(z)^4": lambda z: mpmath.log1p(mpmath.exp(z)) ** 8,
    }
    f = flow(formula, [[1.0, 0.3]], depth=2, tensors="K", **PLAIN)
    assert float(f.K[0, 0]) == pytest.approx(exact(functions[formula], K), rel=1e-12)


def test_tiny_inputs_of_elu():
    """A is what is left of brackets that nearly cancel: tolerances of brackets are not those of A."""
    options = PLAIN | {"depth": 2, "width": 8, "tensors": "A"}
    f, fine = (flow("elu", [[1e-5, 2e-5]], tolerance=t, **options) for t in (1e-7, 1e-13))
    off = abs(float(f.A[0, 0, 0, 0]) - float(fine.A[0, 0, 0, 0])) / float(fine.A[0, 0, 0, 0])
    assert off <= 10 * f.error["A"]


def test_numbers_beyond_int64_in_a_formula():
    """The fifth derivative of a narrow spike has coefficients above 2^63."""
    f = flow("tanh(z)+exp(-10000*z^2)", [[1.0, 0.3]], depth=2, width=8, tensors="K", **PLAIN)
    want = exact(lambda z: (mpmath.tanh(z) + mpmath.exp(-(10**4) * z * z)) ** 2, (1 + 0.09) / 2)
    assert float(f.K[0, 0]) == pytest.approx(want, rel=1e-13)
    assert (
        float(flow("tanh(z)+exp(-10000*z^2)", [[1.0, 0.3]], depth=2, width=8, tensors="T", **PLAIN).T[0, 0, 0, 0]) > 0
    )


def test_the_second_evaluation_never_has_the_first_ones_steps():
    """At tolerances 1e-10 and 1e-12 alike tanh takes one step, so that T was 2e-13 off and said to be within 2e-14."""
    numbers = {"C_b": 0.1, "C_W": 1.3, "lambda_b": 0.3, "lambda_W": 1.0}
    f = flow("tanh", [[1.0, 0.3], [-0.4, 1.0]], depth=2, width=8, tensors=["T", "U"], tolerance=1e-10, **numbers)
    fine = flow("tanh", [[1.0, 0.3], [-0.4, 1.0]], depth=2, width=8, tensors=["T", "U"], tolerance=1e-14, **numbers)
    for name in "TU":
        off = float(abs(f.layer(2)[name] - fine.layer(2)[name]).max() / abs(fine.layer(2)[name]).max())
        assert off > 5e-14 and off <= 2 * f.error[name], name


def test_what_rounding_leaves_of_nearly_equal_brackets():
    """A of tiny inputs is below the rounding of the brackets it is a difference of: the estimate says so."""
    numbers = {"C_b": 0.0, "C_W": 0.5, "lambda_b": 2.7, "lambda_W": 2.2}
    for depth in (2, 3, 4, 5):
        f = flow("arctan", [[-1.3e-5, -5.4e-5]], depth=depth, width=100, tensors="A", **numbers)
        assert f.error["A"] > 0.1
