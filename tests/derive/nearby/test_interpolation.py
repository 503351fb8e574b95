"""Interpolation: the derived formula against the exact kernel prediction (10.39) on the same inputs, as delta -> 0.

The activation is sin(z) + a cos(z), whose two-input brackets are elementary; kernels and NTKs of a three-layer network
are computed here in 60-digit arithmetic, with nothing of the product's."""

import mpmath
import pytest
import sympy as sp

from derive.nearby import interpolation_mean
from derive.nearby.deviation import Deviation
from derive.nearby.interpolation import (
    interpolation_output,
    interpolation_variance,
    on_line,
    y_minus,
    y_plus,
    z_minus,
    z_plus,
    z_test,
)
from derive.network.component import Component

A, C_B, C_W, L_B, L_W, DEPTH = 0.3, 0.2, 1.3, 0.4, 0.9, 3
THETA = Component("Theta", 0, 0)
T1, T0, T2 = Deviation("Theta", 1, "1"), Deviation("Theta", 2, "0"), Deviation("Theta", 2, "2")
T30, T21 = Deviation("Theta", 3, "30"), Deviation("Theta", 3, "21")


def bracket(order, v1, v2, c):
    """<sigma^(order) sigma^(order)>: sigma = sin + a cos = Re[(a - i) e^{iz}], so both orders 0 and 1 have |a - i|."""
    weight = mpmath.mpf(A)
    minus, plus = mpmath.exp(-(v1 + v2 - 2 * c) / 2), mpmath.exp(-(v1 + v2 + 2 * c) / 2)
    even = (1 + weight**2) / 2
    odd = (weight**2 - 1) / 2
    return even * minus + (odd if order == 0 else -odd) * plus


def network(inputs):
    """K and Theta of the output layer on a list of inputs."""
    n = len(inputs)
    dot = [[mpmath.fdot(a, b) / len(a) for b in inputs] for a in inputs]
    K = [[C_B + C_W * dot[i][j] for j in range(n)] for i in range(n)]
    T = [[L_B + L_W * dot[i][j] for j in range(n)] for i in range(n)]
    for _ in range(DEPTH - 1):
        args = lambda i, j, K=K: (K[i][i], K[j][j], K[i][j])  # noqa: E731
        T = [
            [L_B + L_W * bracket(0, *args(i, j)) + C_W * bracket(1, *args(i, j)) * T[i][j] for j in range(n)]
            for i in range(n)
        ]
        K = [[C_B + C_W * bracket(0, *args(i, j)) for j in range(n)] for i in range(n)]
    return mpmath.matrix(K), mpmath.matrix(T)


def study(delta, s, x0, direction, targets):
    plus = [a + delta * b / 2 for a, b in zip(x0, direction)]
    minus = [a - delta * b / 2 for a, b in zip(x0, direction)]
    test = [s * a + (1 - s) * b for a, b in zip(plus, minus)]
    K, T = network([plus, minus, test, x0])
    train = T[:2, :2]
    weights = T[2, :2] * train**-1
    exact = (weights * mpmath.matrix(targets))[0]
    vector = mpmath.matrix([[-weights[0], -weights[1], 1]])
    variance = (vector * K[:3, :3] * vector.T)[0]
    zeroth = (T[0, 0] + T[1, 1] + 2 * T[0, 1]) / 4 - T[3, 3]
    first, second = (T[0, 0] - T[1, 1]) / 2, (T[0, 0] + T[1, 1] - 2 * T[0, 1]) / 4
    # third order, from the midpoint: (T_{p0} - T_{-p0})/2 = T_10 p + a p^3, and first = 2 T_10 + 2 a + 2 b
    far = network(
        [
            plus,
            minus,
            x0,
            [a + delta * b for a, b in zip(x0, direction)],
            [a - delta * b for a, b in zip(x0, direction)],
        ]
    )[1]
    near_odd, far_odd = (far[0, 2] - far[1, 2]) / 2, (far[3, 2] - far[4, 2]) / 2  # T_10 p + a p^3 at p = 1, 2
    cubic = (far_odd - 2 * near_odd) / 6
    mixed = (first - 2 * near_odd) / 2  # first = 2 T_10 + 2 a + 2 b
    return exact, {THETA: T[3, 3], T1: first, T0: zeroth, T2: second, T30: cubic, T21: mixed}, variance, K


def predict(values, s, targets, equal_norms):
    formula = interpolation_mean(equal_norms)
    names = {c: sp.Float(str(v), 50) for c, v in values.items()}
    numbers = {
        sp.Symbol("s", real=True): sp.Float(s, 50),
        y_plus: sp.Float(targets[0], 50),
        y_minus: sp.Float(targets[1], 50),
    }
    return mpmath.mpf(str(sp.N(formula.xreplace({k: v for k, v in names.items()}).subs(numbers), 50)))


def slopes(errors, deltas):
    return [mpmath.log(a / b) / mpmath.log(x / y) for a, b, x, y in zip(errors, errors[1:], deltas, deltas[1:])]


@pytest.mark.equation("10.99")
@pytest.mark.equation("10.105")
@pytest.mark.equation("10.114")
@pytest.mark.equation("10.115")
def test_equal_norms_and_where_the_print_is_wrong():
    """(10.114)-(10.116) print 4 s(1-s) and z + y: the right factor is s(1-s), of z - y."""
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [0, 0, mpmath.mpf(1)]  # orthogonal: equal norms
        s, deltas = mpmath.mpf("0.3"), [mpmath.mpf(10) ** -k for k in (2, 3, 4)]
        errors, printed, scale = [], [], []
        for delta in deltas:
            targets = (
                mpmath.mpf("0.7") + delta,
                mpmath.mpf("0.7") - 2 * delta,
            )  # a smooth target: y_+ - y_- = O(delta)
            exact, values, _, _ = study(delta, s, x0, direction, targets)
            errors.append(abs(exact - predict(values, s, targets, True)))
            curvature = values[T0] / values[THETA]
            line = s * targets[0] + (1 - s) * targets[1]
            printed.append(abs(exact - (line - 4 * s * (1 - s) * curvature * sum(targets))))
            scale.append(abs(s * (1 - s) * curvature * sum(targets)))
        assert all(abs(p - 3) < 0.1 for p in slopes(errors, deltas))  # O(delta^3), as stated
        assert errors[-1] / scale[-1] < 1e-3
        assert printed[-1] / scale[-1] > 2.9  # three times the whole effect


def test_targets_that_differ_at_order_one_need_one_more_term():
    """The remainder O(delta^3) of (10.113)-(10.115) holds for y_+ - y_- = O(delta); else it is O(delta^2)."""
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [0, 0, mpmath.mpf(1)]
        s, deltas, targets = (
            mpmath.mpf("0.3"),
            [mpmath.mpf(10) ** -k for k in (2, 3, 4)],
            (mpmath.mpf(1), mpmath.mpf(-2)),
        )
        found = [study(d, s, x0, direction, targets) for d in deltas]
        errors = [abs(exact - predict(values, s, targets, True)) for exact, values, _, _ in found]
        assert all(abs(p - 2) < 0.1 for p in slopes(errors, deltas))


@pytest.mark.equation("10.113")
@pytest.mark.equation("10.112")
@pytest.mark.equation("10.106")
def test_unequal_norms_and_where_the_print_is_wrong():
    """(10.113) prints the determinant without its factor 4, z + y for z - y, and lacks the third order of the NTK."""
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [mpmath.mpf("0.3"), mpmath.mpf("-0.1"), mpmath.mpf(1)]
        s, deltas = mpmath.mpf("0.3"), [mpmath.mpf(10) ** -k for k in (2, 3, 4)]
        errors, scale, printed, without = [], [], [], []
        for delta in deltas:
            targets = (
                mpmath.mpf("0.7") + delta,
                mpmath.mpf("0.7") - 2 * delta,
            )  # a smooth target: y_+ - y_- = O(delta)
            exact, v, _, _ = study(delta, s, x0, direction, targets)
            line = s * targets[0] + (1 - s) * targets[1]
            errors.append(abs(exact - predict(v, s, targets, False)))
            scale.append(abs(exact - line))
            total, gap = sum(targets), targets[0] - targets[1]
            determinant = 4 * v[THETA] * v[T2] - v[T1] ** 2
            no_third = 2 * v[T0] / determinant * (2 * v[T2] * total - v[T1] * gap)
            without.append(abs(exact - (line - s * (1 - s) * no_third)))
            wrong = 2 * v[T0] / (v[THETA] * v[T2] - v[T1] ** 2) * (2 * v[T2] * total - v[T1] * gap)
            printed.append(abs(exact - (line - s * (1 - s) * wrong)))
        relative = [a / b for a, b in zip(errors, scale)]
        assert all(p > 0.9 for p in slopes(relative, deltas))  # one more power of delta
        assert relative[-1] < 1e-3
        assert printed[-1] / scale[-1] > 0.5
        assert without[-1] / scale[-1] > 0.05  # the third order is not a small correction


@pytest.mark.equation("10.117")
def test_variance_vanishes_as_the_fourth_power():
    """(10.117) says O(delta^3); it is in fact O(delta^4)."""
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [mpmath.mpf("0.3"), mpmath.mpf("-0.1"), mpmath.mpf(1)]
        deltas = [mpmath.mpf(10) ** -k for k in (2, 3, 4)]
        found = [study(d, mpmath.mpf("0.3"), x0, direction, (1, 1))[2] for d in deltas]
        assert all(abs(p - 4) < 0.1 for p in slopes(found, deltas))


@pytest.mark.equation("10.107")
@pytest.mark.equation("10.108")
@pytest.mark.equation("10.109")
@pytest.mark.equation("10.110")
@pytest.mark.equation("10.111")
def test_ntk_on_the_line():
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [mpmath.mpf("0.3"), mpmath.mpf("-0.1"), mpmath.mpf(1)]
        errors, deltas = [], [mpmath.mpf(10) ** -k for k in (2, 3, 4)]
        e1, e2 = mpmath.mpf("0.35"), mpmath.mpf("-1.4")
        for delta in deltas:
            points = [[a + e * delta * b / 2 for a, b in zip(x0, direction)] for e in (1, -1, e1, e2, 0)]
            _, T = network(points)
            zeroth = (T[0, 0] + T[1, 1] + 2 * T[0, 1]) / 4 - T[4, 4]
            first, second = (T[0, 0] - T[1, 1]) / 2, (T[0, 0] + T[1, 1] - 2 * T[0, 1]) / 4
            values = {THETA: T[4, 4], T1: first, T0: zeroth, T2: second}
            numbers = {c: sp.Float(str(v), 50) for c, v in values.items()}
            form = on_line(sp.Float(str(e1), 50), sp.Float(str(e2), 50)).xreplace(numbers)
            errors.append(abs(T[2, 3] - mpmath.mpf(str(sp.N(form, 50)))))
        assert all(p > 2.9 for p in slopes(errors, deltas))


@pytest.mark.equation("10.113")
@pytest.mark.equation("10.116")
@pytest.mark.equation("10.117")
def test_one_network_its_bias_and_the_variance_of_all():
    """(10.113) for given initial outputs against the exact formula (10.39), and the variance of order delta^4."""
    with mpmath.workdps(60):
        x0, direction = [mpmath.mpf(1), mpmath.mpf("0.5"), 0], [0, 0, mpmath.mpf(1)]
        s, ratios = mpmath.mpf("0.3"), []
        for k in (2, 3):
            delta = mpmath.mpf(10) ** -k
            targets = mpmath.mpf("0.7") + delta, mpmath.mpf("0.7") - 2 * delta
            exact, values, variance, _ = study(delta, s, x0, direction, targets)
            points = [[a + p * delta * b / 2 for a, b in zip(x0, direction)] for p in (1, -1, 0)]
            K, _ = network(points)
            corners = (K[0, 0] + K[1, 1] + 2 * K[0, 1]) / 4
            sides = (K[0, 2] + K[1, 2]) / 2
            found = {Component("K", 0, 0): K[2, 2], Deviation("K", 4, "22"): corners - 2 * sides + K[2, 2]}
            found[Deviation("K", 2, "0")] = corners - K[2, 2]
            numbers = {c: sp.Float(str(v), 50) for c, v in (values | found).items()}
            formula = interpolation_variance().xreplace(numbers).subs(sp.Symbol("s", real=True), sp.Float(s, 50))
            ratios.append(abs(mpmath.mpf(str(sp.N(formula, 40))) / variance - 1))
            # one network: initial outputs that are smooth along the line
            start = [mpmath.mpf("0.4") + p * delta - 3 * p**2 * delta**2 for p in (1, -1, 2 * s - 1)]
            _, T = network([*points[:2], [s * a + (1 - s) * b for a, b in zip(*points[:2])]])
            weights = T[2, :2] * T[:2, :2] ** -1
            trained = start[2] - (weights * mpmath.matrix([start[0] - targets[0], start[1] - targets[1]]))[0]
            places = dict(zip((z_plus, z_minus, z_test, y_plus, y_minus), (*start, *targets)))
            derived = (
                interpolation_output(True)
                .xreplace(numbers)
                .subs(
                    {name: sp.Float(str(v), 50) for name, v in places.items()}
                    | {sp.Symbol("s", real=True): sp.Float(s, 50)}
                )
            )
            gap = abs(mpmath.mpf(str(sp.N(derived, 40))) - trained)
            assert gap < 10 * delta**3
            truth = mpmath.mpf("0.2")
            assert abs((exact - truth) - (predict(values, s, targets, True) - truth)) < 10 * delta**3
        assert ratios[1] < 1e-3 and ratios[1] < ratios[0] / 5
