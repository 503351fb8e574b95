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
