"""The seeds' printed large-depth results, typed here as expectations, against what the solver derives."""

import pytest
import sympy as sp

from derive.activations import activation
from derive.critical import chi_perp
from derive.depth import asymptotics, exponents
from derive.depth.background import P_PERP
from derive.depth.exponent_table import problem, solution
from derive.gaussian import taylor_symbol
from derive.symbols import K, L, ell, lambda_b, lambda_W

S1, S2, S3 = (taylor_symbol(k) for k in (1, 2, 3))
A1_ODD = S3 / S1
X_ODD = lambda_b + lambda_W * S1**2 / (-A1_ODD)
A1 = S3 / S1 + sp.Rational(3, 4) * (S2 / S1) ** 2
B1 = S3 / S1 + (S2 / S1) ** 2


@pytest.fixture(scope="module")
def odd():
    return exponents("generic odd")


@pytest.fixture(scope="module")
def general():
    return exponents("generic")


@pytest.fixture(scope="module")
def linear():
    return exponents("linear")


def same(found, expected):
    return sp.simplify(found - expected) == 0


@pytest.mark.equation("infinity.28")
@pytest.mark.equation("10.71")
def test_kernel_of_the_zero_class(general):
    """K = 1/(-a_1) 1/l, with a_1 as printed; perpendicular perturbations fall as l^(-p_perp), p_perp = b_1/a_1."""
    flow = solution(problem("generic")).background.flow
    assert same(flow[1], A1)
    kernel = general.tensors["K"]
    assert kernel.exponent == 1 and kernel.log_power == 0 and same(kernel.coefficient, -1 / A1)
    assert same(general.p_perp, B1 / A1)
    assert general.p_parallel == 2


@pytest.mark.equation("10.72")
def test_perpendicular_susceptibility():
    """chi_perp = 1 - p_perp/l + ... as a series in depth."""
    system = solution(problem("tanh")).system(2)
    series = system.evaluate(chi_perp())
    assert sp.expand(series.truncate(2).to_sympy() - (1 - 1 / ell)) == 0
    mixed = solution(problem("sin(z)+4/5*(1-cos(z))")).system(2)
    assert sp.expand(mixed.evaluate(chi_perp()).truncate(2).to_sympy() - (1 - sp.Rational(9, 13) / ell)) == 0


@pytest.mark.equation("infinity.29")
@pytest.mark.equation("10.74")
def test_equivalence_principle(general, odd):
    bias, weight = general.rates.expressions
    assert same(bias, lambda_b * ell**-P_PERP * L ** (P_PERP - 1))
    assert same(sp.log(weight / lambda_W), (P_PERP - 1) * (sp.log(L) - sp.log(ell)))
    assert odd.rates.expressions == (lambda_b / ell, lambda_W)


@pytest.mark.equation("10.75")
def test_frozen_ntk(general):
    theta = general.tensors["Theta"]
    assert same(theta.exponent, P_PERP - 1)
    assert same(theta.coefficient, (lambda_b + lambda_W * S1**2 / (-A1)) * L ** (P_PERP - 1))


@pytest.mark.equation("10.79")
def test_frozen_ntk_for_constant_rates():
    theta = exponents("generic odd", learning_rates="constant").tensors["Theta"]
    assert theta.exponent == -1 and theta.log_power == 0 and same(theta.coefficient, lambda_b / 2)


@pytest.mark.parametrize(
    ("tensor", "exponent", "expected"),
    [
        pytest.param(
            "R",
            -2,
            -sp.Rational(1, 48) * (3 * lambda_b + 4 * lambda_W * S1**2 / (-A1_ODD)) * X_ODD**2 * (-A1_ODD),
            marks=pytest.mark.equation("infinity.30"),
        ),
        pytest.param(
            "S",
            -2,
            sp.Rational(1, 12) * X_ODD**2 * lambda_W * S1**2,
            marks=pytest.mark.equation("infinity.31"),
        ),
        pytest.param(
            "T",
            -2,
            sp.Rational(1, 32) * X_ODD * (-A1_ODD) * lambda_b**2,
            marks=pytest.mark.equation("infinity.32"),
        ),
        pytest.param(
            "U",
            0,
            sp.Rational(1, 2) * X_ODD**3 * (-A1_ODD),
            marks=pytest.mark.equation("infinity.33"),
        ),
    ],
)
def test_ddntk_of_odd_activations(odd, tensor, exponent, expected):
    found = odd.tensors[tensor]
    assert found.exponent == exponent and found.log_power == 0
    assert same(found.coefficient, expected)


W_ODD = lambda_W * S1**2 / (-A1_ODD)


@pytest.mark.parametrize(
    ("tensor", "exponent", "expected"),
    [
        pytest.param(
            "R",
            -1,
            -sp.Rational(1, 48) * (3 * lambda_b + 4 * W_ODD) / (lambda_b + W_ODD),
            marks=[pytest.mark.equation("infinity.34"), pytest.mark.equation("infinity.21")],
        ),
        pytest.param(
            "S", -1, sp.Rational(1, 12) * W_ODD / (lambda_b + W_ODD), marks=pytest.mark.equation("infinity.35")
        ),
        pytest.param(
            "T",
            -1,
            sp.Rational(1, 32) * (lambda_b / (lambda_b + W_ODD)) ** 2,
            marks=[pytest.mark.equation("infinity.36"), pytest.mark.equation("infinity.22")],
        ),
        pytest.param("U", 1, sp.Rational(1, 2), marks=pytest.mark.equation("infinity.37")),
    ],
)
def test_dimensionless_ratios_of_odd_activations(odd, tensor, exponent, expected):
    ratio = odd.ratios[tensor]
    assert ratio.exponent == exponent and ratio.log_power == 0
    assert same(ratio.coefficient, expected)


@pytest.mark.equation("infinity.38")
def test_cutoff_scaling(odd, general):
    """R, S, T go as l/n; U is down by l^2 for odd activations and only by l for others (the seed's footnote 2)."""
    for table in (odd, general):
        assert all(table.ratios[t].grows_as_depth_over_width for t in "RST")
    assert odd.ratios["U"].exponent == 1 and general.ratios["U"].exponent == 0
    others = ("V", "F", "B", "P", "Q", "A", "D", "G1", "H1")
    assert all(odd.ratios[t].exponent == -1 for t in others)


@pytest.mark.equation("infinity.39")
@pytest.mark.equation("infinity.40")
@pytest.mark.parametrize("name", ["relu", "leaky_relu(slope=1/10)"])
def test_what_does_not_exist_for_kinked_scale_invariant_activations(name):
    """sigma'' is a delta function: every tensor with its square in the recursion, R S T U, does not exist."""
    table = exponents(name)
    missing = {t for t, found in table.tensors.items() if not found.exists}
    assert missing == set("RSTU")
    assert all("delta function at z = 0" in table.tensors[t].reason for t in missing)
    assert table.tensors["P"].coefficient == 0  # the seed's (11.74), quoted before (infinity.46)
    sigma = activation(name)
    a_plus, a_minus = sigma.scale_invariant
    (delta,) = sigma.deltas(2)
    assert delta.at == 0 and delta.coefficient == a_plus - a_minus


@pytest.mark.equation("infinity.41")
@pytest.mark.equation("infinity.42")
@pytest.mark.equation("infinity.43")
@pytest.mark.equation("infinity.44")
def test_why_the_taylor_expansion_in_eta_fails():
    """z = relu(x + b): db = -eta eps dz/db; the change of z is -eta eps while it fires, and -x - b once it stops."""
    relu = activation("relu")
    x, b, eps = sp.Rational(1, 2), sp.Rational(1, 4), sp.Integer(3)
    slope = relu.derivative_pieces(1)[1]
    for eta, expected in (
        (sp.Rational(1, 5), -sp.Rational(3, 5)),
        (sp.Rational(1, 3), -x - b),
        (sp.Integer(2), -x - b),
    ):
        db = -eta * slope * eps
        assert db == -eta * eps
        assert relu(x + b + db) - relu(x + b) == expected


@pytest.mark.equation("infinity.45")
def test_scale_invariant_learning_rates(linear):
    assert linear.rates.expressions == (lambda_b / L, lambda_W / L)
    assert exponents("relu").rates.expressions == (lambda_b / L, lambda_W / L)


@pytest.mark.equation("infinity.46")
def test_deep_linear_networks_have_no_first_ddntk(linear):
    for name in ("R", "U", "P"):
        assert linear.tensors[name].series == 0 and linear.tensors[name].exists


@pytest.mark.equation("infinity.47")
@pytest.mark.equation("infinity.48")
def test_deep_linear_second_ddntk():
    common = ell**2 * (ell**2 - 1) / (12 * L**3)
    assert same(asymptotics("linear", "S").series, common * (lambda_b + lambda_W * K) ** 2 * lambda_W)
    assert same(asymptotics("linear", "T").series, common * (lambda_b + lambda_W * K) * lambda_W**2 * K)
    assert asymptotics("linear", "S").remainder is None


@pytest.mark.equation("infinity.49")
@pytest.mark.equation("infinity.50")
@pytest.mark.equation("infinity.51")
def test_deep_linear_ratios(linear):
    share = lambda_W * K / (lambda_b + lambda_W * K)
    assert linear.tensors["S"].exponent == linear.tensors["T"].exponent == -4
    assert same(linear.ratios["S"].coefficient, share / 12) and linear.ratios["S"].grows_as_depth_over_width
    assert same(linear.ratios["T"].coefficient, share**2 / 12) and linear.ratios["T"].grows_as_depth_over_width


@pytest.mark.equation("10.90")
@pytest.mark.equation("10.91")
def test_scale_invariant_kernel_and_ntk():
    """K constant; Theta = (lambda_b + lambda_W A_2 K) l / L, exactly, with A_2 = (a_+^2 + a_-^2)/2."""
    for name, a_2 in (("relu", sp.Rational(1, 2)), ("linear", 1), ("leaky_relu(slope=1/10)", sp.Rational(101, 200))):
        assert asymptotics(name, "K").series == K
        theta = asymptotics(name, "Theta")
        assert theta.remainder is None and same(theta.series, (lambda_b + lambda_W * a_2 * K) * ell / L)


@pytest.mark.equation("infinity.39")
def test_kink_condition():
    """The print says a_+ != -a_-; but |z|, with a_+ = -a_-, has the kink, and the linear one, a_+ = a_-, has none."""
    absolute, linear = activation("Abs(z)"), activation("linear")
    assert absolute.scale_invariant == (1, -1) and linear.scale_invariant == (1, 1)
    assert absolute.deltas(2)[0].coefficient == 2 and not linear.deltas(2)
    exist = {
        name: {t for t, found in exponents(name).tensors.items() if not found.exists} for name in ("Abs(z)", "linear")
    }
    assert exist == {"Abs(z)": set("RSTU"), "linear": set()}
