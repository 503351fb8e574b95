"""Generated sigma(z, order) as JAX runs it, against 60-digit values of the definition."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp

from derive.activations import BUILTIN, activation
from derive.symbols import z
from numeric import special_functions as special
from numeric.activations import load

POINTS = [s * x for s in (-1, 1) for x in (1e-8, 1e-5, 0.01, 0.4, 1.3, 4.0, 15.0, 60.0, 1e4)]


ORDERS = (0, 1, 2, 5)


def exact(definition):
    """{point: [sigma^(k)(point) for k = 0 to 6]} by differentiating the definition symbolically."""
    sigma = activation(definition)
    pieces = [sp.lambdify(z, list(row), "mpmath", cse=True) for row in zip(*map(sigma.derivative_pieces, range(7)))]
    values = {}
    for point in POINTS:
        with mpmath.workdps(60 + int(min(2 * abs(point), 200))):
            values[point] = pieces[sum(1 for kink in sigma.kinks if kink <= point)](mpmath.mpf(point))
    return values


@pytest.mark.parametrize("name", [*BUILTIN, "sin(z)+z*tanh(z)", "softplus(z)-log(2)", "leaky_relu(slope=1/10)"])
def test_derivatives_keep_their_digits_without_overflow(name):
    sigma = load(name).FUNCTIONS.derivatives
    rows = jax.jit(lambda x: [sigma(x, order) for order in ORDERS])
    want = exact(name)
    for dtype, tolerance, floor, top in ((jnp.float64, 3e-14, 1e-44, 1e300), (jnp.float32, 3e-5, 1e-30, 1e37)):
        for order, got in zip(ORDERS, rows(jnp.asarray(POINTS, dtype))):
            assert got.dtype == dtype
            for x, value in zip(POINTS, np.asarray(got, dtype=float)):
                target, slope = want[x][order], want[x][order + 1]
                if abs(target) < top:
                    scale = float(abs(target) + abs(x * slope))
                    assert abs(value - float(target)) <= tolerance * scale + floor, (dtype, order, x, value, target)


@pytest.mark.parametrize("name", ["tanh", "mish", "gelu_tanh", "arctan", "swish"])
def test_derivatives_beyond_the_written_ones(name):
    """The seventh and eighth derivative, which derivatives of brackets need, also exactly at z = 0."""
    points = [-3.0, -0.2, 0.0, 0.9]
    sigma = load(name).FUNCTIONS.derivatives
    piece = activation(name).pieces[0]
    for order in (7, 8):
        with mpmath.workdps(40):
            function = sp.lambdify(z, piece, "mpmath")
            want = [float(mpmath.taylor(function, p, order)[order] * mpmath.factorial(order)) for p in points]
        got = np.asarray(sigma(jnp.asarray(points), order))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.max(np.abs(want)))


def test_special_functions_and_their_derivatives_are_closed():
    for function, want in (
        (special.sech2, lambda x: mpmath.sech(x) ** 2),
        (special.sech, mpmath.sech),
        (special.log_cosh, lambda x: mpmath.log(mpmath.cosh(x))),
        (special.bell, lambda x: 1 / mpmath.sqrt(1 + x * x)),
        (special.ramp, lambda x: x / mpmath.sqrt(1 + x * x)),
        (special.root, lambda x: mpmath.sqrt(1 + x * x)),
    ):
        points = (-2.0, -1e-6, 0.0, 0.5, 30.0)
        towers = [function]
        for _ in range(3):
            towers.append(jax.grad(towers[-1]))
        got = jax.jit(jax.vmap(lambda x, towers=towers: [f(x) for f in towers]))(jnp.asarray(points))
        for order, row in enumerate(got):
            with mpmath.workdps(50):
                expected = [float(mpmath.diff(want, mpmath.mpf(point), order)) for point in points]
            np.testing.assert_allclose(np.asarray(row), expected, rtol=1e-13, atol=1e-15)


def test_unknown_names_and_formulas_are_refused_by_derive():
    from derive.errors import FormulaError
    from numeric import NumericError

    with pytest.raises(FormulaError):
        load("__import__('os')")
    with pytest.raises(FormulaError):
        load("layer")
    with pytest.raises(NumericError, match="not int"):
        load(3)


def test_one_module_for_one_definition():
    assert load("silu") is load("swish")
    assert load("z*tanh(z)") is load(" z*tanh(z) ")
    assert load(sp.sympify("z").subs("z", z) * sp.tanh(z)).FUNCTIONS.name == load("z*tanh(z)").FUNCTIONS.name
