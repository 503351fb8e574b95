"""Stable forms: equal to their definitions, closed under differentiation, free of what cancels."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from derive.activations import BUILTIN, activation
from derive.codegen.families import family, strip
from derive.codegen.sigma import stable_sigma
from derive.codegen.stable import Erfc, Expm1, Logistic, Sech2, Softplus, Tanh, expand_primitives, rewrite
from derive.errors import FormulaError
from derive.symbols import z

FORMULAS = [
    "z*tanh(z)",
    "sin(z)+4/5*(1-cos(z))",
    "softplus(z)-log(2)",
    "log(cosh(z))",
    "sqrt(1+z^2)-1",
    "z*exp(-z^2)",
    "z^3/(1+z^4)",
    "asinh(z)",
    "sech(z)",
    "z/(1+exp(-1.702*z))",
    "erf(z)-1",
    "exp(z)/(1+exp(z))",
]


@pytest.mark.parametrize("name", [*BUILTIN, *FORMULAS])
def test_rewriting_changes_no_value(name):
    for piece in activation(name).pieces:
        back = sp.lambdify(z, expand_primitives(rewrite(piece)), "mpmath")
        original = sp.lambdify(z, piece, "mpmath")
        with mpmath.workdps(50):
            for point in ("-2.3", "-0.4", "0.7", "3.1"):
                x = mpmath.mpf(point)
                assert abs(back(x) - original(x)) < mpmath.mpf("1e-45") * (1 + abs(original(x)))


def test_forms_are_the_ones_a_numerical_analyst_would_write():
    assert rewrite(1 / (1 + sp.exp(-z))) == Logistic(z)
    assert rewrite(sp.exp(z) / (1 + sp.exp(z))) == Logistic(z)
    assert rewrite(sp.log(1 + sp.exp(z))) == Softplus(z)
    assert rewrite(1 / (1 + sp.exp(-z)) - sp.Rational(1, 2)) == Tanh(z / 2) / 2
    assert rewrite(sp.exp(z) - 1) == Expm1(z)
    assert rewrite(1 - sp.cos(z)) == 2 * sp.sin(z / 2) ** 2
    assert rewrite(1 - sp.erf(z)) == Erfc(z)
    assert rewrite(1 / sp.cosh(z) ** 2) == Sech2(z)
    assert not sp.diff(rewrite(sp.tanh(z)), z, 4).has(sp.tanh, sp.cosh)


@pytest.mark.parametrize("name", [*BUILTIN, *FORMULAS])
def test_emitted_source_keeps_its_digits_in_both_precisions(name):
    """Errors are in units of rounding, relative to |f| + |z f'|, from |z| = 1e-8 to 1e4, derivatives 0 to 5."""
    found = stable_sigma(activation(name))
    assert found.error64 < 200
    assert found.error32 < 400


def test_a_quotient_of_exponentials_is_recognized():
    """(e^z - e^-z)/(e^z + e^-z) overflows as it stands at |z| = 1e4; its emitted form is tanh's."""
    assert "jnp.tanh" in stable_sigma(activation("(exp(z)-exp(-z))/(exp(z)+exp(-z))")).source


def test_a_formula_without_a_stable_form_is_refused_with_the_place():
    with pytest.raises(FormulaError, match="loses its digits in floating point near z ="):
        stable_sigma(activation("exp(z)*(1+10^20)/(exp(z)+10^20)-exp(z)/(1+exp(z)/10^20)"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tanh", np.pi / 2),
        ("swish", np.pi),
        ("arctan", 1.0),
        ("mish", 3 * np.pi / 4),
        ("z^3/(1+z^4)", np.sqrt(0.5)),
        ("z*exp(-z^2)", np.inf),
        ("tanh(2*z)*tanh(z)", np.pi / 4),
    ],
)
def test_strip_of_analyticity(name, expected):
    assert strip(activation(name).pieces[0]) == pytest.approx(expected, rel=1e-12)


def test_families_are_read_off_the_definition_not_the_name():
    known = {name: family(activation(name)).get("calculus") for name in BUILTIN}
    kinds = {name: calculus and calculus.name for name, calculus in known.items()}
    assert kinds["gelu"] == kinds["erf"] == "Erf"
    assert kinds["relu"] == kinds["leaky_relu"] == "PiecewiseLinear"
    assert kinds["sin"] == kinds["exp"] == "Exponentials"
    assert kinds["linear"] == kinds["monomial"] == "Polynomial"
    assert kinds["elu"] == kinds["selu"] == kinds["softsign"] == "Kinked"
    assert kinds["tanh"] is kinds["swish"] is kinds["mish"] is kinds["gelu_tanh"] is None
    own = family(activation("3*z^2 + 2*z*erf(z/2) - 1"))
    p, q, scale = own["calculus"].arguments
    x, k = sp.Rational(7, 10), sp.nsimplify(scale**2)
    gauss = (1 + sp.erf(sp.sqrt(k) * x / sp.sqrt(2))) / 2
    value = sum(c * x**i for i, c in enumerate(p)) + sum(c * x**i for i, c in enumerate(q)) * gauss
    assert float(value) == pytest.approx(float(activation("3*z^2 + 2*z*erf(z/2) - 1")(x)), rel=1e-14)
    pairs = family(activation("exp(z)*sin(2*z)+1"))["calculus"].arguments[0]
    value = sum(c * np.exp(r * 0.7) for c, r in pairs)
    assert value == pytest.approx(np.exp(0.7) * np.sin(1.4) + 1, rel=1e-14)


def test_kinks_elsewhere_are_refused_and_jumps_known():
    with pytest.raises(FormulaError, match="only kink is at z = 0"):
        family(activation("max(z-1, 0)"))
    assert family(activation("sign(z)"))["calculus"].arguments == (0,)
