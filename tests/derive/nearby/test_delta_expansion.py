"""The delta-expansion against the printed recursions and against exact closed forms expanded by themselves."""

import pytest
import sympy as sp

from derive.gaussian import Bracket, Sigma
from derive.nearby import Deviation, delta_recursions, first_layer, one_training_input
from derive.network.component import Component
from derive.symbols import C_W, C_b, lambda_b, lambda_W

THETA = Component("Theta", 0, 0)
K1, K0, K2 = Deviation("K", 1, "1"), Deviation("K", 2, "0"), Deviation("K", 2, "2")
T1, T0, T2 = Deviation("Theta", 1, "1"), Deviation("Theta", 2, "0"), Deviation("Theta", 2, "2")


def pair(a, b):
    return Bracket(Sigma(0, a), Sigma(0, b))


@pytest.mark.equation("10.67")
def test_first_order_ntk_as_printed():
    # (C_W/K) <z s' s''> = C_W (<s'' s''> + <s' s'''>), chi_parallel = C_W (<s' s'> + <s s''>)
    chi_parallel = C_W * (pair(1, 1) + pair(0, 2))
    printed = C_W * pair(1, 1) * T1 + (lambda_W / C_W * chi_parallel + C_W * (pair(2, 2) + pair(1, 3)) * THETA) * K1
    assert sp.expand(delta_recursions("Theta")["dTheta_1"].expression - printed) == 0


@pytest.mark.equation("10.70")
@pytest.mark.equation("10.68")
@pytest.mark.equation("10.69")
def test_second_order_ntk_as_printed_at_equal_norms():
    found = delta_recursions("Theta")["ddTheta_2"].expression.xreplace({K1: 0, T1: 0})
    printed = C_W * pair(1, 1) * T2 + (lambda_W * pair(1, 1) + C_W * pair(2, 2) * THETA) * K2
    assert sp.expand(found - printed) == 0
    kernel = delta_recursions("K")["ddK_2"].expression.xreplace({K1: 0})
    assert sp.expand(kernel - C_W * pair(1, 1) * K2) == 0


@pytest.mark.equation("10.62")
@pytest.mark.equation("10.63")
def test_robustness_and_variance_at_equal_norms():
    robustness, variance = one_training_input(equal_norms=True)
    assert sp.expand(robustness + 2 * T2 / THETA) == 0
    assert sp.expand(variance - 4 * K2) == 0


@pytest.mark.equation("10.65")
@pytest.mark.equation("10.66")
def test_robustness_and_variance_at_unequal_norms():
    robustness, variance = one_training_input()
    ratio = T1 / THETA
    assert sp.expand(robustness - (-ratio - 2 * T2 / THETA + ratio**2)) == 0
    assert sp.expand(variance - (4 * K2 - 2 * K1 * ratio + Component("K", 0, 0) * ratio**2)) == 0


# sigma = sin(z) + a cos(z): brackets are exponentials of the covariance, whose Taylor expansion SymPy knows by itself
A = sp.Rational(3, 7)
KK = sp.Symbol("KK", positive=True)
e = sp.Symbol("e")


def sin_pair(j, k, v1, v2, c):
    """<sigma^(j)(z_1) sigma^(k)(z_2)> with variances v1, v2 and covariance c, from E exp(i(s z_1 + t z_2))."""
    total = 0
    shift1, shift2 = sp.pi / 2 * j, sp.pi / 2 * k
    for amplitude1, phase1 in ((1, -sp.pi / 2), (A, 0)):
        for amplitude2, phase2 in ((1, -sp.pi / 2), (A, 0)):
            p1, p2 = phase1 + shift1, phase2 + shift2
            minus = sp.cos(p1 - p2) * sp.exp(-(v1 + v2 - 2 * c) / 2)
            plus = sp.cos(p1 + p2) * sp.exp(-(v1 + v2 + 2 * c) / 2)
            total += amplitude1 * amplitude2 * (minus + plus) / 2
    return total


def evaluate(expression):
    """Midpoint brackets of the sine activation in closed form."""
    table = {}
    for bracket in expression.atoms(Bracket):
        j, k = (atom.order for atom in bracket.args)
        table[bracket] = sin_pair(j, k, KK, KK, KK)
    return expression.xreplace(table)


def names(expression):
    """Deviations and the midpoint NTK as plain symbols."""
    return expression.xreplace({c: sp.Symbol(c.name) for c in expression.atoms(Component)})


@pytest.mark.parametrize("order", [2, 3])
def test_kernel_expansion_equals_taylor_of_the_closed_form(order):
    symbols = {
        (n, p): sp.Symbol("d" * n + f"K_{p}") for n in range(1, order + 1) for p in ("02" if n % 2 == 0 else "1")
    }
    zeroth = sum(e**n * s for (n, p), s in symbols.items() if p == "0")
    first = sum(e**n * s for (n, p), s in symbols.items() if p == "1")
    second = sum(e**n * s for (n, p), s in symbols.items() if p == "2")
    plus, minus, cross = KK + zeroth + first + second, KK + zeroth - first + second, KK + zeroth - second
    forms = [sin_pair(0, 0, plus, plus, plus), sin_pair(0, 0, minus, minus, minus), sin_pair(0, 0, plus, minus, cross)]
    same, opposite, other = (C_b + C_W * f for f in forms)
    wanted = {
        "0": (same + opposite + 2 * other) / 4,
        "1": (same - opposite) / 2,
        "2": (same + opposite - 2 * other) / 4,
    }
    for name, derived in delta_recursions("K", order).items():
        n, part = derived.deviation.order, derived.deviation.part
        exact = sp.diff(wanted[part], e, n).subs(e, 0) / sp.factorial(n)
        point = {s: sp.Rational(1 + k, 3) for k, s in enumerate(symbols.values())}
        difference = (exact - names(evaluate(derived.expression))).subs(
            {**point, KK: sp.Rational(1, 2), C_W: 2, C_b: 1}
        )
        assert abs(sp.N(difference, 30)) < 1e-25, name


def test_ntk_expansion_equals_taylor_of_the_closed_form():
    k0, k1, k2, t, t0, t1, t2 = sp.symbols("ddK_0 dK_1 ddK_2 Theta ddTheta_0 dTheta_1 ddTheta_2")
    covariance = {s: KK + e**2 * k0 + s * e * k1 + e**2 * k2 for s in (1, -1)}
    cross, ntk_cross = KK + e**2 * (k0 - k2), t + e**2 * (t0 - t2)

    def ntk(v1, v2, c, theta):
        return lambda_b + lambda_W * sin_pair(0, 0, v1, v2, c) + C_W * sin_pair(1, 1, v1, v2, c) * theta

    same, opposite = (
        ntk(covariance[s], covariance[s], covariance[s], t + e**2 * t0 + s * e * t1 + e**2 * t2) for s in (1, -1)
    )
    other = ntk(covariance[1], covariance[-1], cross, ntk_cross)
    wanted = {
        "0": (same + opposite + 2 * other) / 4,
        "1": (same - opposite) / 2,
        "2": (same + opposite - 2 * other) / 4,
    }
    numbers = {k0: 2, k1: sp.Rational(1, 3), k2: 5, t: 7, t0: sp.Rational(2, 9), t1: 11, t2: sp.Rational(13, 2)}
    numbers |= {KK: sp.Rational(3, 5), C_W: 2, lambda_b: 3, lambda_W: sp.Rational(5, 7)}
    for name, derived in delta_recursions("Theta").items():
        n, part = derived.deviation.order, derived.deviation.part
        exact = sp.diff(wanted[part], e, n).subs(e, 0) / sp.factorial(n)
        difference = (exact - names(evaluate(derived.expression))).subs(numbers)
        assert abs(sp.N(difference, 30)) < 1e-24, name


def test_finite_width_tensor_expands_on_sign_patterns():
    found = delta_recursions("B", 1)
    # all inputs at +: the expansion is the single-input recursion's own derivative with respect to K and Theta
    single = found["dB_++++"].expression
    assert single.has(K1) and single.has(T1)
    slope = single.coeff(T1)
    four = Bracket(*[Sigma(0, 1)] * 4)
    assert sp.expand(slope - 2 * C_W**2 * four * THETA) == 0


def test_first_layer_is_bilinear():
    start = first_layer()
    assert start["ddK_0"] == start["ddTheta_0"] == 0
    assert start["ddK_2"] == C_W * Deviation("Gram", 2, "2")
