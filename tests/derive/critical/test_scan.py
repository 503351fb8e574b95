"""The averages behind the root isolation: values, slopes and curvature bounds against closed forms."""

import math

import pytest
import sympy as sp

from derive.activations import activation
from derive.critical.scan import condition_integrand
from derive.symbols import K

t = sp.Symbol("t", real=True)
PHI = sp.exp(-1 / (2 * K)) / sp.sqrt(2 * sp.pi * K)
CLOSED_FORMS = {
    # <s s''> by hand: moments, moment generating functions, one delta function
    "sin": -(1 - sp.exp(-2 * K)) / 2,
    "sin(z)+4/5*(1-cos(z))": -(1 - sp.exp(-2 * K)) / 2
    + sp.Rational(16, 25) * (sp.exp(-K / 2) - (1 + sp.exp(-2 * K)) / 2),
    "z^3 - z": 6 * 3 * K**2 - 6 * K,
    "max(z, -1)": -PHI,
    "relu(z)^2": 3 * K - 2 * K,
    "elu": sp.exp(2 * K) * sp.erfc(sp.sqrt(2 * K)) / 2 - sp.exp(K / 2) * sp.erfc(sp.sqrt(K / 2)) / 2,
    "gelu": K * (2 + 3 * K - K**2) / (2 * sp.pi * (1 + K) ** 2 * (1 + 2 * K) ** sp.Rational(3, 2)),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_values_slopes_and_bounds(name: str) -> None:
    integrand = condition_integrand(activation(name))
    form = CLOSED_FORMS[name].subs(K, sp.exp(t))
    slope, bend = sp.diff(form, t), sp.diff(form, t, 2)
    for kernel in (1e-6, 3e-3, 0.7, 4.0, 90.0, 1000.0):
        at = sp.Float(math.log(kernel), 40)
        value, derivative, size = integrand.value_and_slope(math.log(kernel))
        assert value == pytest.approx(float(form.subs(t, at).evalf(25)), rel=1e-9, abs=1e-12 * size)
        assert derivative == pytest.approx(float(slope.subs(t, at).evalf(25)), rel=1e-9, abs=1e-11 * size)
        low, high = math.log(kernel), math.log(kernel) + 0.2
        bound = integrand.curvature_bound(low, high)
        for place in (low, low + 0.1, high):
            assert abs(float(bend.subs(t, sp.Float(place, 40)).evalf(25))) <= bound * (1 + 1e-9) + 1e-300


def test_range_of_doubles_limits_the_search() -> None:
    assert condition_integrand(activation("tanh")).highest == 1000
    reached = condition_integrand(activation("exp")).highest
    assert 50 < reached < 150  # <exp(2z)> has its weight at z = 2K, and exp(2z) overflows beyond z = 354
