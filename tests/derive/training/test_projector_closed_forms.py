"""Closed forms of the projectors against the theory page, the printed single-input limits, and a second route."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from derive.training import (
    AnyAlgorithm,
    GradientDescent,
    GradientFlow,
    NewtonStep,
    expansion,
    universal,
)
from derive.training.projectors import eta, h, projectors, term_weight
from derive.training.table import POWERS, edge_of_stability, single_input, x
from derive.training.trees import trees

a, b, c = h("a"), h("b"), h("c")


def u(x):
    return 1 - eta * x


def expected() -> dict[str, sp.Expr]:
    """Section 7 of the theory page."""
    X2 = lambda x, y: 1 / (x + y - eta * x * y)  # noqa: E731
    X3 = eta / (1 - u(a) * u(b) * u(c))
    return {
        "Z_A": u(a) * X2(a, b) / a,
        "Z_B": 1 / (2 * a * b),
        "Z_IA": -(1 / a - X2(a, b) - X2(a, c) + X3) / (2 * b * c),
        "Z_IB": -1 / (6 * a * b * c),
        "Z_IIA": -(u(a) ** 2) * u(b) * X2(a, b) * X3 / a,
        "Z_IIB": -u(a) * X2(a, c) / (a * b),
    }


@pytest.mark.parametrize("name", ["Z_A", "Z_B", "Z_IA", "Z_IB", "Z_IIA", "Z_IIB"])
def test_gradient_descent_in_closed_form(name):
    assert sp.simplify(projectors(GradientDescent())[name] - expected()[name]) == 0


@pytest.mark.equation("infinity.149")
@pytest.mark.equation("infinity.150")
def test_gradient_flow_is_the_limit_of_small_steps():
    descent, flow = projectors(GradientDescent()), projectors(GradientFlow())
    for name in flow:
        assert sp.simplify(descent[name].subs(eta, 0) - flow[name]) == 0, name


@pytest.mark.equation("infinity.148")
def test_two_steps_leave_two_projectors():
    assert [name for name, value in projectors(NewtonStep()).items() if value != 0] == ["Z_B", "Z_IB"]


@pytest.mark.equation("infinity.168")
@pytest.mark.equation("infinity.171")
def test_single_training_input():
    H = sp.Symbol("H", positive=True)
    same = {a: H, b: H, c: H}
    flow = {name: value.subs(same) for name, value in projectors(GradientFlow()).items()}
    assert flow["Z_A"] == flow["Z_B"] == 1 / (2 * H**2)
    assert flow["Z_IA"] == flow["Z_IB"] == flow["Z_IIA"] == -1 / (6 * H**3)
    assert flow["Z_IIB"] == -1 / (2 * H**3)
    descent = projectors(GradientDescent())
    assert sp.simplify(descent["Z_A"].subs(same) - (1 - eta * H) / (2 - eta * H) / H**2) == 0
    assert descent["Z_B"].subs(same) == 1 / (2 * H**2)


def test_two_of_six_do_not_know_the_algorithm_and_a_third_follows_from_Z_A():
    """Proof by construction: with nothing known of the algorithm but that it reaches its targets."""
    found = projectors(AnyAlgorithm())
    assert universal() == ["Z_B", "Z_IB"]
    q = found["Z_A"]
    assert found["Z_IIB"] == -q.subs(b, c) / b
    for rule in (GradientDescent(), GradientFlow(), NewtonStep()):
        Z = projectors(rule)
        assert Z["Z_B"] == found["Z_B"] and Z["Z_IB"] == found["Z_IB"]
        assert sp.simplify(Z["Z_IIB"] + Z["Z_A"].subs(b, c) / b) == 0
    assert sp.simplify(projectors(GradientDescent())["Z_IIB"] - projectors(NewtonStep())["Z_IIB"]) != 0


def test_rooted_trees_are_counted_by_the_known_sequence():
    assert [len(trees(n)) for n in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]


@pytest.mark.equation("infinity.117")
def test_interaction_ntk_by_marking_an_edge():
    """(infinity.117), which the seed's text has lost: from its difference equation (infinity.105)."""
    terms = {(t.tensor, *t.subscripts): t.coefficient for o in (1, 2) for t in expansion(("1", "2"), o)}
    assert terms == {
        ("dH", "1", "2", "a"): -1,
        ("dH", "2", "1", "a"): -1,
        ("ddI", "1", "2", "a", "b"): sp.Rational(1, 2),
        ("ddI", "2", "1", "a", "b"): sp.Rational(1, 2),
        ("ddII", "1", "2", "a", "b"): 1,
        ("ddII", "1", "a", "2", "b"): 1,
        ("ddII", "2", "a", "1", "b"): 1,
    }


@pytest.mark.equation("infinity.83")
@pytest.mark.equation("infinity.102")
def test_dynamical_dntk_by_marking_a_path():
    terms = {(t.tensor, *t.subscripts): t.coefficient for t in expansion(("0", "1", "2"), 1)}
    assert terms == {("ddI", *"012a"): -1, ("ddII", *"012a"): -1, ("ddII", *"021a"): -1}


@pytest.mark.parametrize("rule", ["GradientDescent", "GradientFlow", "NewtonStep"])
def test_symbolic_and_numeric_routes_agree(rule):
    from numeric.trained import algorithms
    from numeric.trained.projectors import Projectors

    symbolic = projectors(
        {"GradientDescent": GradientDescent, "GradientFlow": GradientFlow, "NewtonStep": NewtonStep}[rule]()
    )
    modes, rate = np.array([0.4, 1.1, 1.7]), 0.9
    algorithm = {
        "GradientDescent": algorithms.GradientDescent(rate),
        "GradientFlow": algorithms.GradientFlow(),
        "NewtonStep": algorithms.Newton(),
    }[rule]
    numeric = Projectors(algorithm, modes)
    for name, expression in symbolic.items():
        labels = [a, b] if name in ("Z_A", "Z_B") else [a, b, c]
        values = sp.lambdify(labels, expression.subs(eta, rate), "numpy")(*np.ix_(*[modes] * len(labels)))
        assert np.abs(getattr(numeric, name) - values).max() < 1e-13


def test_weights_of_one_term():
    term = expansion(("δ",), 2)[0]
    assert sp.simplify(term_weight(GradientFlow(), term) - 1 / (a * (a + b))) == 0


@pytest.mark.equation("infinity.171")
def test_the_edge_of_stability():
    """η → 2/h: against the product's numbers close to it, by another route (sums of geometric series in floats)."""
    from numeric.trained.algorithms import GradientDescent as Descent
    from numeric.trained.projectors import Projectors

    for gap in (1e-4, 1e-6):
        Z = Projectors(Descent((2 - gap) / 3.0), np.array([3.0]))
        for name, leading in edge_of_stability().items():
            value = getattr(Z, name).ravel()[0] * 3.0 ** POWERS[name]
            assert value == pytest.approx(float(leading.subs(x, 2 - gap)), rel=20 * gap, abs=20 * gap), name
    assert sorted(name for name, z in edge_of_stability().items() if z.has(x)) == ["Z_A", "Z_IA", "Z_IIA", "Z_IIB"]
    assert all(sp.cancel(z * (2 - x) if z.has(x) else z).is_Rational for z in edge_of_stability().values())
    assert single_input(GradientFlow())["Z_IIA"] == sp.Rational(-1, 6)
    assert x.is_positive  # a learning rate times an eigenvalue
