"""Numbers: requested digits really met, extreme K, correlations of exactly and nearly one, several labels."""

import mpmath as mp
import numpy as np
import pytest
from gaussian_reference import HAND, homogeneous_pair, one_label, two_labels

from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian import Bracket, Sigma, evaluate, exact, parse_bracket, value

SMOOTH_AND_KINKED = ["tanh", "softsign", "swish", "arctan", "softplus", "gelu", "elu"]


def relative(found, wanted):
    return abs(found - wanted) / abs(wanted)


@pytest.mark.parametrize("digits", [15, 30, 50])
@pytest.mark.parametrize("name", SMOOTH_AND_KINKED)
def test_requested_digits_are_met(name, digits):
    orders = (0, 0) if digits != 30 else (0, 0, 1)
    with mp.workdps(digits + 12):
        found = evaluate(Bracket(*(Sigma(0, k) for k in orders)), name, "0.7", digits)
        wanted = one_label(orders, name, mp.mpf("0.7"))
        assert relative(found.value, wanted) < mp.mpf(10) ** -digits
        assert abs(found.value - wanted) <= found.error
        assert found.error < mp.mpf(10) ** -digits * abs(wanted)


@pytest.mark.parametrize("kernel", ["1e-12", "1e4"])
@pytest.mark.parametrize("name", ["tanh", "softsign", "swish", "gelu", "elu"])
def test_extreme_kernels(name, kernel):
    """Relative accuracy where <sigma> of a non-odd activation is itself small (K^1 against a typical sigma ~ K^1/2)."""
    with mp.workdps(45):
        for orders in ((0, 0), (0,)) if name in {"swish", "gelu"} else ((0, 0),):
            found = value(Bracket(*(Sigma(0, k) for k in orders)), name, kernel, 20)
            assert relative(found, one_label(orders, name, mp.mpf(kernel))) < mp.mpf("1e-20")


@pytest.mark.parametrize("name, ratio", [("tanh", 1), ("tanh", -2), ("softsign", 3), ("gelu", -1)])
def test_correlation_exactly_one(name, ratio):
    """z_1 = c z_0: an integral over one variable."""
    f, g = HAND[name][0], HAND[name][1]
    K = [[2, 2 * ratio], [2 * ratio, 2 * ratio**2]]
    with mp.workdps(30):
        points = [-20 * mp.sqrt(2), -4, 0, 4, 20 * mp.sqrt(2)]
        density = lambda z: mp.exp(-z * z / 4) / mp.sqrt(4 * mp.pi)  # noqa: E731
        wanted = mp.quad(lambda z: f(z) * f(ratio * z) * g(z) * density(z), points)
        assert relative(value(parse_bracket("s0 s1 s0'"), name, K, 20), wanted) < mp.mpf("1e-20")


@pytest.mark.parametrize("rho", ["-0.6", "0.5", "0.9999999999"])
def test_two_labels_smooth(rho):
    with mp.workdps(24):
        for name, orders in (("tanh", (0, 0)), ("swish", (0, 1))):
            K = {(0, 0): "0.5", (1, 1): "0.5", (0, 1): mp.mpf(rho) / 2}
            bracket = Bracket(Sigma(0, orders[0]), Sigma(1, orders[1]))
            wanted = two_labels(*orders, name, mp.mpf("0.5"), mp.mpf(rho) / 2, mp.mpf("0.5"), mp.mpf(1) / 8)
            assert relative(value(bracket, name, K, 18), wanted) < mp.mpf("1e-18")


@pytest.mark.parametrize("rho", ["-0.99", "0.2", "0.99999999"])
def test_two_labels_kinked_by_quadrature(rho):
    with mp.workdps(30):
        wanted = homogeneous_pair(HAND["relu"][0], HAND["relu"][0], 2, mp.mpf(rho))
        found = evaluate(parse_bracket("s0 s1"), "relu", [[1, rho], [rho, 1]], 15, closed_forms=False)
        assert relative(found.value, wanted) < mp.mpf("1e-15")


def test_large_kernel_two_labels():
    """tanh at K = 1e4, correlation 0.9: d<s0 s1>/dK_01 = <s0' s1'> is localized; integrate it over K_01 in float64."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    z = np.arange(-24, 24.001, 0.2)
    slopes = np.cosh(z) ** -2.0
    total = 0.0
    for x, w in zip(nodes, weights):
        k = 4500 * (x + 1)
        det = 1e8 - k * k
        quadratic = (1e4 * z[:, None] ** 2 - 2 * k * z[:, None] * z[None, :] + 1e4 * z[None, :] ** 2) / det
        density = np.exp(-quadratic / 2) / (2 * np.pi * np.sqrt(det))
        total += 4500 * w * 0.04 * slopes @ density @ slopes
    found = value(parse_bracket("s0 s1"), "tanh", [[10000, 9000], [9000, 10000]], 14)
    assert abs(float(found) / total - 1) < 1e-12


def test_three_labels():
    """Against a plain trapezoid in float64."""
    K = np.array([[1, 0.5, 0.25], [0.5, 2, -0.5], [0.25, -0.5, 0.5]])
    L = np.linalg.cholesky(K)
    y = np.arange(-8, 8.001, 0.25)
    w = 0.25 * np.exp(-y * y / 2) / np.sqrt(2 * np.pi)
    a, b, c = np.meshgrid(y, y, y, indexing="ij")
    z0, z1, z2 = L[0, 0] * a, L[1, 0] * a + L[1, 1] * b, L[2, 0] * a + L[2, 1] * b + L[2, 2] * c
    integrand = np.tanh(z0) * np.tanh(z1) * np.cosh(z2) ** -4.0
    wanted = np.einsum("i,j,k,ijk", w, w, w, integrand)
    found = value(parse_bracket("s0 s1 s2' s2'"), "tanh", K, 7)
    assert abs(float(found) / wanted - 1) < 1e-7


def test_rank_two_with_three_labels():
    """z_2 = z_0 + z_1 exactly: <relu_0 relu_1 relu_2> = <relu_0 relu_1 (z_0 + z_1)>: z_2 > 0 where the others are."""
    K = [[1, "0.25", "1.25"], ["0.25", 2, "2.25"], ["1.25", "2.25", "3.5"]]
    pair = {(0, 0): 1, (0, 1): "0.25", (1, 1): 2}
    wanted = value(parse_bracket("s0 s1 z0"), "relu", pair, 15) + value(parse_bracket("s0 s1 z1"), "relu", pair, 15)
    found = evaluate(parse_bracket("s0 s1 s2"), "relu", K, 10, closed_forms=False)
    assert relative(found.value, wanted) < mp.mpf("1e-10")


def test_zeros():
    assert value(parse_bracket("s0"), "tanh", 2, 30) == 0
    assert value(parse_bracket("s0 s1'"), "tanh", [[1, 0.5], [0.5, 1]], 30) == 0
    assert value(parse_bracket("s0 s1"), "tanh", [[1, 0], [0, 1]], 30) == 0
    assert value(parse_bracket("s0"), "relu", 0, 30) == 0
    vanishing = evaluate(parse_bracket("s0"), "z**2 - 1", 1, 15)  # E[z^2] = 1: zero, but by no symmetry
    assert vanishing.value == 0 and not vanishing.relative_met and vanishing.error < 1e-40


def test_exponential_growth():
    with mp.workdps(30):
        assert relative(value(parse_bracket("s0"), "exp", 10000, 20), mp.exp(5000)) < mp.mpf("1e-20")
        wanted = mp.exp(mp.mpf(10000 + 10000 + 2 * 9000) / 2)
        found = value(parse_bracket("s0 s1"), "exp", [[10000, 9000], [9000, 10000]], 20)
        assert relative(found, wanted) < mp.mpf("1e-20")


@pytest.mark.parametrize(
    "K, message",
    [
        (-1, "negative"),
        (float("nan"), "finite"),
        ("one", "Unknown name 'one'"),
        ([[1, 2], [2, 1]], "1 x 1"),
        (None, "numeric K"),
    ],
)
def test_bad_kernels_one_label(K, message):
    with pytest.raises(DeriveError, match=message):
        value(parse_bracket("s0"), "tanh", K)


@pytest.mark.parametrize(
    "K, message",
    [
        ([[1, 2], [2, 1]], "exceeds 1"),
        ([[1, 0.5], [0.4, 1]], "symmetric"),
        (1, "labels 0, 1"),
        ({(0, 0): 1, (1, 1): 1}, "no entry"),
    ],
)
def test_bad_kernels_two_labels(K, message):
    with pytest.raises(DeriveError, match=message):
        value(parse_bracket("s0 s1"), "tanh", K)


def test_not_positive_semidefinite_with_three_labels():
    with pytest.raises(DeriveError, match="semidefinite"):
        value(parse_bracket("s0 s1 s2"), "tanh", [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])


def test_divergence_is_not_a_number():
    with pytest.raises(DivergentExpectation):
        value(parse_bracket("s0'' s0''"), "relu", 1)


@pytest.mark.parametrize(
    "formula",
    ["sin(z + 1)", "z*exp(-z**2) + exp(z)", "erf(z + 1)", "Max(z, 0)**2", "exp(-Abs(z)) + z", "Max(z, 0)*erf(z)"],
)
def test_formulas_of_a_user(formula):
    """Symbolic rules and quadrature share no code: they must agree on formulas that neither knows."""
    for pattern, K in (("s0 s0'", "0.5"), ("s0 s0''", "3.5"), ("s0 s1'", [[1, "0.5"], ["0.5", 2]])):
        closed = exact(parse_bracket(pattern), formula, K)
        if closed is None:
            assert "Abs" in formula and pattern == "s0 s1'"
            continue
        found = evaluate(parse_bracket(pattern), formula, K, 16, closed_forms=False).value
        assert abs(found - mp.mpf(str(closed.evalf(25)))) <= 1e-15 * abs(found)


@pytest.mark.slow
def test_four_labels():
    """<tanh_0 tanh_1 tanh_2 tanh_3> against a plain four-dimensional trapezoid in float64."""
    K = np.array([[1, 0.5, 0.25, 0.1], [0.5, 2, -0.5, 0.2], [0.25, -0.5, 0.5, 0.3], [0.1, 0.2, 0.3, 1]])
    L = np.linalg.cholesky(K)
    y = np.arange(-7, 7.001, 0.35)
    w = 0.35 * np.exp(-y * y / 2) / np.sqrt(2 * np.pi)
    grid = np.stack(np.meshgrid(y, y, y, y, indexing="ij"))
    integrand = np.prod(np.tanh(np.einsum("ab,bijkl->aijkl", L, grid)), axis=0)
    wanted = np.einsum("i,j,k,l,ijkl", w, w, w, w, integrand)
    assert abs(float(value(parse_bracket("s0 s1 s2 s3"), "tanh", K, 4)) / wanted - 1) < 1e-4


@pytest.mark.parametrize(
    "sharpness, centre, kernel",
    [(10**6, "0.3", 1), (1, "200", 10**4), pytest.param(10**8, "-1.7", 2, marks=pytest.mark.slow)],
)
def test_narrow_features_are_not_overlooked(sharpness, centre, kernel):
    """<f f> for f = exp(-a (z - c)^2): the density of N(0, K + 1/(4a)) at c, times sqrt(pi/(2a))."""
    formula = f"exp(-{sharpness}*(z - ({round(float(centre) * 10)}/10))**2)"
    with mp.workdps(30):
        variance = mp.mpf(kernel) + mp.mpf(1) / (4 * sharpness)
        wanted = mp.sqrt(mp.pi / (2 * sharpness)) * mp.npdf(mp.mpf(centre), 0, mp.sqrt(variance))
        assert relative(value(parse_bracket("s0 s0"), formula, kernel, 18), wanted) < mp.mpf("1e-18")


@pytest.mark.parametrize("kernel", ["0.1", "1", "30"])
def test_terms_that_diverge_one_by_one(kernel):
    """exp(z^2) erfc(|z|) is bounded; exp(z^2), the first of its terms, has no expectation beyond K = 1/4."""
    with mp.workdps(25):
        s = mp.sqrt(mp.mpf(kernel))
        wanted = 2 * mp.quad(
            lambda x: (mp.exp((s * x) ** 2) * mp.erfc(s * x)) ** 2 * mp.npdf(x), [0, 0.01, 0.1, 1, 3, 12]
        )
        assert relative(value(parse_bracket("s0 s0"), "exp(z^2)*erfc(abs(z))", kernel, 15), wanted) < mp.mpf("1e-15")
    assert exact(parse_bracket("s0 s0"), "exp(z^2)*erfc(abs(z))") is None
