"""Closed forms against brute-force integrals of hand-typed activations, to 25 digits."""

import mpmath as mp
import pytest
import sympy as sp
from gaussian_reference import HAND, homogeneous_pair, one_label, two_labels

from derive.gaussian import Bracket, Sigma, Z, exact, parse_bracket
from derive.symbols import K

ORDERS = [(0,), (0, 0), (1, 1), (0, 2), (1, 2), (0, 0, 1, 1)]
DIGITS = mp.mpf("1e-25")


def bracket(orders, insertions=0):
    return Bracket(*(Sigma(0, k) for k in orders), *(Z(0) for _ in range(insertions)))


def number(expression, digits=40):
    return mp.mpf(expression.evalf(digits, maxn=20000)._mpf_) if expression != 0 else mp.mpf(0)


def close(found, wanted):
    return abs(found - wanted) <= DIGITS * max(abs(wanted), mp.mpf("1e-5"))


@pytest.mark.parametrize(
    "name", ["monomial(k=3)", "sin", "exp", "erf", "gelu", "elu", "relu", "leaky_relu(slope=1/10)"]
)
def test_one_label(name):
    checked = 0
    for orders in ORDERS:
        if max(orders) >= len(HAND[name]) or (max(orders) >= 2 and "relu" in name):
            continue  # deltas have their own tests
        closed = exact(bracket(orders), name)
        if closed is None:
            assert (name, orders) in {("gelu", (0, 0, 1, 1)), ("elu", ())}  # four erf factors
            continue
        for kernel in ("0.3", "2.7"):
            with mp.workdps(34):
                wanted = one_label(orders, name, mp.mpf(kernel))
                assert close(number(closed.subs(K, sp.Rational(kernel))), wanted), (orders, kernel)
                checked += 1
    assert checked >= 4


@pytest.mark.parametrize("name", ["gelu", "elu", "sin", "relu"])
def test_one_label_with_insertions(name):
    closed = exact(bracket((0, 1), 3), name)
    with mp.workdps(40):
        assert close(number(closed.subs(K, sp.Rational("1.3"))), one_label((0, 1), name, mp.mpf("1.3"), 3))


@pytest.mark.parametrize("name, h", [("erf", "0.2"), ("gelu", "0.2"), ("sin", "0.3"), ("monomial(k=3)", "0.3")])
@pytest.mark.parametrize("orders", [(0, 0), (1, 1), (0, 2), (1, 3)])
def test_two_labels_smooth(name, h, orders):
    a, b = orders
    closed = exact(Bracket(Sigma(0, a), Sigma(1, b)), name)
    kernels = [("0.8", "-0.5", "0.6"), ("0.5", "0.69", "0.98")][:: -1 if a else 1][:1]
    for entries in kernels:
        symbols = dict(zip(sp.symbols("K_00 K_11", positive=True), (sp.Rational(entries[0]), sp.Rational(entries[2]))))
        symbols[sp.Symbol("K_01", real=True)] = sp.Rational(entries[1])
        with mp.workdps(32):
            wanted = two_labels(a, b, name, *map(mp.mpf, entries), mp.mpf(h))
            assert close(number(closed.xreplace(symbols)), wanted), entries


@pytest.mark.parametrize("rho", ["-0.9", "0.3", "0.999"])
@pytest.mark.parametrize("name", ["relu", "leaky_relu(slope=1/10)"])
def test_arc_cosine_kernels(name, rho):
    matrix = [[4, 6 * sp.Rational(rho)], [6 * sp.Rational(rho), 9]]
    with mp.workdps(40):
        for orders, degree, scale in (((0, 0), 2, 6), ((1, 1), 0, 1)):
            f, g = (HAND[name][k] for k in orders)
            wanted = scale * homogeneous_pair(f, g, degree, mp.mpf(rho))
            closed = exact(Bracket(Sigma(0, orders[0]), Sigma(1, orders[1])), name, matrix)
            assert close(number(closed), wanted)


@pytest.mark.equation("10.83")
@pytest.mark.equation("10.84")
@pytest.mark.equation("10.85")
@pytest.mark.equation("10.86")
def test_scale_invariant_pair_functions_as_printed():
    """The chapter's finite-angle forms: A_2 and rho of the slopes 1 and 1/10, angle psi between the inputs."""
    name, up, down = "leaky_relu(slope=1/10)", sp.S.One, sp.Rational(1, 10)
    A2 = (up**2 + down**2) / 2
    rho = (up - down) ** 2 / (up**2 + down**2) / sp.pi
    kd = sp.Symbol("K_d", positive=True)
    assert exact(parse_bracket("s0 s0"), name, kd) == A2 * kd
    assert exact(parse_bracket("s0' s0'"), name, kd) == A2
    for psi in (sp.Rational(1, 3), sp.Rational(5, 2)):
        matrix = [[kd, kd * sp.cos(psi)], [kd * sp.cos(psi), kd]]
        printed = A2 * kd * (sp.cos(psi) + rho * (sp.sin(psi) - psi * sp.cos(psi)))
        assert abs((exact(parse_bracket("s0 s1"), name, matrix) - printed).subs(kd, 2).evalf(40)) < 1e-30
        slopes = exact(parse_bracket("s0' s1'"), name, matrix) - A2 * (1 - rho * psi)
        assert abs(slopes.subs(kd, 2).evalf(40)) < 1e-30


def test_many_labels_by_wick_and_generating_function():
    names = {(a, b): sp.Symbol(f"k{min(a, b)}{max(a, b)}", real=True) for a in range(4) for b in range(4)}
    four = exact(parse_bracket("s0 s1 s2 s3"), "linear", names)
    k = lambda a, b: names[a, b]  # noqa: E731
    assert sp.expand(four - (k(0, 1) * k(2, 3) + k(0, 2) * k(1, 3) + k(0, 3) * k(1, 2))) == 0
    exponentials = exact(parse_bracket("s0 s1 s2 s3"), "exp", names)
    total = sum(k(a, b) for a in range(4) for b in range(4)) / 2
    assert sp.simplify(exponentials / sp.exp(total)) == 1


def test_three_erfs_and_cosines():
    """Three erfs vanish by parity; three cosines are a sum over signs of exponentials."""
    matrix = [[1, sp.Rational(1, 2), 0], [sp.Rational(1, 2), 1, sp.Rational(1, 3)], [0, sp.Rational(1, 3), 2]]
    assert exact(parse_bracket("s0 s1 s2"), "erf", matrix) == 0
    found = exact(parse_bracket("s0' s1' s2'"), "sin", matrix)  # E[cos cos cos]: sum over signs of exp(-v.K v/2)/8
    signs = [sp.Matrix([a, b, c]) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
    wanted = sum(sp.exp(-(v.T * sp.Matrix(matrix) * v)[0] / 2) for v in signs) / 8
    assert abs((found - wanted).evalf(30)) < 1e-28


def test_no_closed_form_is_none_and_gelu_is_readable():
    assert exact(parse_bracket("s0 s0"), "tanh") is None
    assert exact(parse_bracket("s0 s1"), "elu") is None
    found = exact(parse_bracket("s0 s0"), "gelu")
    wanted = K / 4 + K / (2 * sp.pi) * (sp.asin(K / (1 + K)) + 2 * K / ((1 + K) * sp.sqrt(1 + 2 * K)))
    assert sp.simplify(found - wanted) == 0


def test_kernel_at_correlation_one_reduces_to_one_label():
    one = exact(parse_bracket("s0 s0'"), "gelu", 3)
    assert exact(parse_bracket("s0 s1'"), "gelu", [[3, 3], [3, 3]]) == one
    mirrored = exact(parse_bracket("s0 s1"), "relu", [[3, -3], [-3, 3]])
    assert mirrored == 0
