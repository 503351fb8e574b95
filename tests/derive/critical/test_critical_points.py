"""Critical points, classes and stability: against the textbook's numbers, own quadrature and iterated kernels."""

from functools import cache

import mpmath
import pytest
import sympy as sp

from derive.activations import BUILTIN, activation
from derive.critical import chi_parallel, chi_perp, closed_form, criticality, kernel_step
from derive.critical.points import FROM_ABOVE, FROM_BELOW
from derive.critical.scan import condition_integrand, isolate
from derive.symbols import C_W, C_b, K, z

CLASSES = {
    "linear": "scale-invariant",
    "relu": "scale-invariant",
    "leaky_relu": "scale-invariant",
    "tanh": "K*=0",
    "sin": "K*=0",
    "erf": "K*=0",
    "arctan": "K*=0",
    "softsign": "K*=0 non-analytic",
    "sigmoid": "none",
    "sigmoid_half": "K*=0",
    "softplus": "none",
    "gelu": "half-stable",
    "gelu_tanh": "half-stable",
    "swish": "half-stable",
    "mish": "half-stable",
    "elu": "K*=0 non-analytic",
    "selu": "K*=0 non-analytic",
    "exp": "none",
    "monomial": "none",
}


@cache
def sigma_functions(name: str) -> list[object]:
    """sigma and its first two derivatives as mpmath functions, smooth activations only."""
    expression = activation(name).expression
    return [sp.lambdify(z, sp.diff(expression, z, k), "mpmath") for k in range(3)]


def gauss(f: object, kernel: mpmath.mpf) -> mpmath.mpf:
    """<f>_K by mpmath's own quadrature on scaled pieces."""
    root = mpmath.sqrt(kernel)
    edges = [-24, -12, -6, -3, -1, 0, 1, 3, 6, 12, 24]
    return mpmath.quad(lambda x: f(root * x) * mpmath.npdf(x), edges)  # type: ignore[operator]


def step(name: str, kernel: mpmath.mpf, bias: mpmath.mpf, weight: mpmath.mpf) -> mpmath.mpf:
    s = sigma_functions(name)[0]
    return bias + weight * gauss(lambda u: s(u) ** 2, kernel)  # type: ignore[operator]


@pytest.mark.parametrize("name", BUILTIN)
def test_class_of_every_builtin(name: str) -> None:
    found = criticality(name)
    assert found.universality_class == CLASSES[name]
    assert bool(found.points) == (CLASSES[name] != "none")
    assert found.reason.endswith(".") and len(found.steps) >= 2


def test_textbook_numbers() -> None:
    gelu, swish = criticality("gelu").points, criticality("swish").points
    assert gelu[0].K_star == (3 + sp.sqrt(17)) / 2
    assert [round(float(x), 8) for x in (gelu[0].C_W, gelu[0].C_b)] == [1.98305826, 0.17292239]
    assert [round(float(x), 8) for x in (swish[0].K_star, swish[0].C_W, swish[0].C_b)] == [
        14.32017362,
        1.98800468,
        0.55514317,
    ]
    for points in (gelu, swish):
        assert [(p.K_star, p.C_W, p.C_b, p.stability) for p in points[1:]] == [(0, 4, 0, "unstable")]
    assert criticality("relu").points[0].C_W == 2
    slope = sp.Rational(1, 10)
    assert 2 / (1 + slope**2) == criticality("leaky_relu(slope=1/10)").points[0].C_W
    for name, weight in {"tanh": 1, "sin": 1, "sigmoid_half": 16, "erf": sp.pi / 4}.items():
        (point,) = criticality(name).points
        assert (point.K_star, point.C_W, point.C_b, point.stability) == (0, weight, 0, "stable")


def test_leading_terms_at_zero() -> None:
    """K' = K + a_1 K^2 with a_1 = sigma_3/sigma_1 + (3/4)(sigma_2/sigma_1)^2 (the textbook's), and K^(3/2) by hand."""
    for name in ("tanh", "sin", "sin(z)+4/5*(1-cos(z))", "swish", "gelu", "mish", "sigmoid_half(shift=1)"):
        sigma = activation(name)
        point = next(p for p in criticality(name).points if p.K_star == 0)
        s1, s2, s3 = (sigma.taylor(k) for k in (1, 2, 3))
        assert point.approach is not None and point.approach[0] == 2
        expected = s3 / s1 + sp.Rational(3, 4) * (s2 / s1) ** 2
        assert abs(point.approach[1].evalf(40) - expected.evalf(40)) < sp.Float("1e-30")
    # elu: sigma = z - (z^2/2) 1(z<0): <s s> = K + 2 <z (z^2/2) 1(z<0)> = K - sqrt(2/pi) K^(3/2)
    assert criticality("elu").points[0].approach == (sp.Rational(3, 2), -sp.sqrt(2) / sp.sqrt(sp.pi))
    # softsign: sigma^2 = z^2 - 2|z|^3 + ..., <|z|^3> = 2 sqrt(2/pi) K^(3/2)
    assert criticality("softsign").points[0].approach == (sp.Rational(3, 2), -4 * sp.sqrt(2) / sp.sqrt(sp.pi))


@pytest.mark.parametrize("name", ["gelu", "swish", "mish", "gelu_tanh", "z*tanh(z)"])
def test_half_stable_points_are_critical_to_thirty_digits(name: str) -> None:
    point = criticality(name).points[0]
    s, s1, s2 = sigma_functions(name)
    with mpmath.workdps(36):
        kernel, weight, bias = (mpmath.mpf(x.evalf(36)) for x in (point.K_star, point.C_W, point.C_b))
        assert abs(step(name, kernel, bias, weight) - kernel) < mpmath.mpf(10) ** -28
        assert abs(weight * gauss(lambda u: s1(u) ** 2, kernel) - 1) < mpmath.mpf(10) ** -28  # type: ignore[operator]
        assert abs(gauss(lambda u: s(u) * s2(u), kernel)) < mpmath.mpf(10) ** -28  # type: ignore[operator]


@pytest.mark.parametrize("name", ["gelu", "swish", "mish"])
def test_side_of_attraction_by_iteration(name: str) -> None:
    """One step from either side: towards K* on the attracting side, away on the other."""
    point = criticality(name).points[0]
    with mpmath.workdps(30):
        kernel, weight, bias = (mpmath.mpf(x.evalf(30)) for x in (point.K_star, point.C_W, point.C_b))
        shift = kernel / 1000  # swish: beyond 2 % the cubic term wins
        above = step(name, kernel + shift, bias, weight) < kernel + shift
        below = step(name, kernel - shift, bias, weight) > kernel - shift
    assert (above, below) == (point.stability == FROM_ABOVE, point.stability == FROM_BELOW)


@pytest.mark.parametrize("name", ["gelu", "erf", "sin", "elu"])
def test_closed_form_susceptibilities(name: str) -> None:
    """chi_parallel is the numerical derivative of the kernel's step; chi_perp <= chi_parallel where <s s''> <= 0."""
    sigma = activation(name)
    forms = [closed_form(e, sigma) for e in (kernel_step(), chi_parallel(), chi_perp())]
    assert all(form is not None for form in forms)
    for kernel in (sp.Rational(1, 5), sp.Integer(4)):
        given = {C_W: sp.Rational(3, 2), C_b: sp.S.Zero}
        step_, parallel, perp = (f.xreplace(given) for f in forms)  # type: ignore[union-attr]
        slope = sp.diff(step_, K).xreplace({K: kernel}).evalf(30)
        assert abs(slope - parallel.xreplace({K: kernel}).evalf(30)) < 1e-25
        derivative = sp.lambdify(z, sigma.derivative(1), "mpmath")
        with mpmath.workdps(25):
            expected = gauss(lambda u: derivative(u) ** 2, mpmath.mpf(kernel.evalf(30))) * 3 / 2  # noqa: B023
            assert abs(mpmath.mpf(perp.xreplace({K: kernel}).evalf(30)) - expected) < mpmath.mpf(10) ** -20


def test_no_root_is_missed_where_the_roots_are_known() -> None:
    """sigma = polynomial: <s s''> is a polynomial in K, whose positive roots SymPy knows exactly."""
    for text in ("z - z^3/10 + z^5/500 - z^7/90000", "z + z^2/5 - z^4/40 + z^6/3000", "z - z^3/6 + z^5/120"):
        sigma = activation(text)
        polynomial = sp.expand(sigma.expression * sp.diff(sigma.expression, z, 2))
        wick = sum(c * sp.factorial2(k - 1) * K ** (k // 2) for (k,), c in sp.Poly(polynomial, z).terms() if k % 2 == 0)
        expected = [r for r in sp.Poly(wick, K).real_roots() if 0 < r <= 1000]
        integrand = condition_integrand(sigma)
        found = isolate(integrand.value_and_slope, integrand.curvature_bound, 1e-8, integrand.highest)
        assert not found.unsettled
        assert len(found.brackets) == len(expected)
        for (low, high), root in zip(found.brackets, expected):
            assert low <= float(root) <= high


def test_isolation_finds_close_pairs_and_rejects_near_misses() -> None:
    """Zeros of (t - c)^2 - d in t = log K: two for d > 0 however close, none for d < 0."""
    for d, count in ((1e-8, 2), (1e-10, 2), (-1e-8, 0), (-1e-10, 0), (4.0, 2)):

        def f(t: float, d: float = d) -> tuple[float, float, float]:
            return (t - 1.2345) ** 2 - d, 2 * (t - 1.2345), (t - 1.2345) ** 2 + abs(d)

        found = isolate(f, lambda low, high: 2.0)
        assert (len(found.brackets), found.unsettled) == (count, ())


def test_reasons_name_the_condition_that_fails() -> None:
    assert "sigma(0)^2 = 1/4" in criticality("sigmoid").reason
    assert "negative" in criticality("sigmoid").reason
    assert "log(2)" in criticality("softplus").reason and "non-negative" in criticality("softplus").reason
    assert "sigma'(0) = 0" in criticality("monomial(k=3)").reason
    assert "jumps" in criticality("sign(z)").reason
    # shifted far down: <s s''> = 0 has a solution, but only with C_b < 0
    found = criticality("swish(beta=1)")
    assert "unstable" in found.reason


def test_points_with_negative_bias_are_inadmissible() -> None:
    """sigma = 3 + z^2 - z^4/20: <s s''> = 6 + K/5 - 21 K^2/10 + 9 K^3/20 by Wick, with two positive roots."""
    found = criticality("3 + z^2 - z^4/20")
    (point,), (refused,) = found.points, found.inadmissible
    assert point.K_star == sp.Rational(10, 3)
    condition = 6 + K / 5 - sp.Rational(21, 10) * K**2 + sp.Rational(9, 20) * K**3
    assert sp.simplify(condition.xreplace({K: refused.K_star})) == 0
    assert refused.C_b.evalf() < 0
    assert any("not admissible" in step.text for step in found.steps)


def test_flat_activation_has_a_line_of_critical_points() -> None:
    """relu(z - 1): s'' sits where s vanishes, so chi_parallel = chi_perp at every K."""
    (point,) = criticality("relu(z-1)").points
    tail = (1 - sp.erf(1 / sp.sqrt(2 * K))) / 2  # P(z > 1)
    assert sp.simplify(point.C_W * tail) == 1
    assert point.universality_class == "half-stable"


def test_stability_beyond_all_powers() -> None:
    """max(z, -1): K' = K up to exp(-1/(2K)); clipping makes K fall."""
    point = criticality("max(z,-1)").points[0]
    assert (point.K_star, point.C_W, point.stability) == (0, 1, "stable")


def test_rescaling_the_argument_rescales_the_point() -> None:
    """sigma(2z)/2 has K* -> K*/4, C_b -> C_b/4 and the same C_W."""
    one, two = criticality("swish").points[0], criticality("swish(beta=2)").points[0]
    for a, b in ((one.K_star, 4 * two.K_star), (one.C_b, 4 * two.C_b), (one.C_W, two.C_W)):
        assert abs(a - b) < sp.Float("1e-26")


def test_several_points_are_all_listed() -> None:
    """z^3 - z: <s s''> = 18 K^2 - 6 K vanishes at 1/3, where <s' s'> = 1 - 6 K + 27 K^2 = 2; and K* = 0."""
    points = criticality("z^3 - z").points
    assert [(p.K_star, p.C_W) for p in points] == [(0, 1), (sp.Rational(1, 3), sp.Rational(1, 2))]
    third = sp.Rational(1, 3)
    square = third - 6 * third**2 + 15 * third**3  # <s s>
    assert points[1].C_b == third - square / 2
