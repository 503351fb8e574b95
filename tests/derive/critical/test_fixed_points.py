"""Off criticality: fixed points and correlation depths against iterated kernels by the test's own quadrature."""

import math

import numpy as np
import pytest
import sympy as sp

from derive.critical import fixed_points
from derive.errors import DeriveError

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(180)
WEIGHTS = WEIGHTS / math.sqrt(2 * math.pi)
SIGMA = {
    "tanh": (np.tanh, lambda u: 1 / np.cosh(u) ** 2),
    "sin": (np.sin, np.cos),
    "sigmoid": (lambda u: 1 / (1 + np.exp(-u)), lambda u: np.exp(-u) / (1 + np.exp(-u)) ** 2),
}


def iterate(name: str, bias: float, weight: float, kernel: float, layers: int) -> list[float]:
    s = SIGMA[name][0]
    flow = [kernel]
    for _ in range(layers):
        flow.append(bias + weight * float(WEIGHTS @ s(math.sqrt(flow[-1]) * NODES) ** 2))
    return flow


@pytest.mark.parametrize(
    ("name", "bias", "weight"), [("tanh", "0.1", "1.5"), ("tanh", "0", "3"), ("sin", "0", "3"), ("sigmoid", "1", "5")]
)
def test_stable_point_is_where_the_flow_ends_and_xi_is_how_fast(name: str, bias: str, weight: str) -> None:
    found = fixed_points(name, bias, weight)
    (stable,) = [p for p in found.points if p.stability == "stable"]
    flow = iterate(name, float(bias), float(weight), 1.3, 300)
    assert flow[-1] == pytest.approx(float(stable.K_star), rel=1e-9)
    decay = (flow[9] - flow[-1]) / (flow[8] - flow[-1]) if abs(flow[8] - flow[-1]) > 1e-6 else None
    if decay is not None:
        assert decay == pytest.approx(float(stable.chi_parallel), rel=1e-2)
    s1 = SIGMA[name][1]
    chi = float(weight) * float(WEIGHTS @ s1(math.sqrt(flow[-1]) * NODES) ** 2)
    assert chi == pytest.approx(float(stable.chi_perp), rel=1e-8)
    assert float(stable.xi_perp) == pytest.approx(1 / abs(math.log(chi)), rel=1e-6)  # type: ignore[arg-type]
    assert stable.phase == ("chaotic" if chi > 1 else "ordered")


def test_zero_is_a_fixed_point_without_bias() -> None:
    zero, other = fixed_points("tanh", 0, 2).points
    assert (zero.K_star, zero.chi_parallel, zero.chi_perp, zero.stability) == (0, 2, 2, "unstable")
    assert zero.xi_perp == 1 / sp.log(2)
    assert other.stability == "stable"
    (only,) = fixed_points("tanh", 0, "1/2").points
    assert (only.K_star, only.stability, only.phase) == (0, "stable", "ordered")


def test_critical_hyperparameters_have_infinite_depths() -> None:
    (point,) = fixed_points("tanh", 0, 1).points
    assert (point.stability, point.phase, point.xi_parallel, point.xi_perp) == ("marginal", "critical", None, None)


def test_exponential_has_two_fixed_points() -> None:
    """K = C_W exp(2K): solved with Lambert's W."""
    found = fixed_points("exp", 0, "1/10").points
    expected = [-sp.LambertW(-sp.Rational(1, 5), k) / 2 for k in (0, -1)]
    assert [p.stability for p in found] == ["stable", "unstable"]
    for point, value in zip(found, expected):
        assert abs(point.K_star - value.evalf(35)) < sp.Float("1e-27")
        assert abs(point.chi_parallel - 2 * value.evalf(35)) < sp.Float("1e-27")
    none = fixed_points("exp", 1, 1)
    assert none.points == () and "grows" in none.reason


def test_scale_invariant_is_exact() -> None:
    assert fixed_points("relu", 1, 1).points[0].K_star == 2
    assert fixed_points("relu", 1, 2).points == ()
    assert fixed_points("relu", 0, 2).points[0].stability == "marginal"
    assert fixed_points("relu", 0, 3).points[0].stability == "unstable"


@pytest.mark.parametrize(("bias", "weight"), [(-1, 1), (0, 0), (0, -2), ("z", 1), (float("nan"), 1), (1, float("inf"))])
def test_bad_hyperparameters(bias: object, weight: object) -> None:
    with pytest.raises(DeriveError):
        fixed_points("tanh", bias, weight)


def test_jumping_activation_has_no_chi_perp() -> None:
    with pytest.raises(DeriveError, match="jumps"):
        fixed_points("sign(z)", 0, 1)
