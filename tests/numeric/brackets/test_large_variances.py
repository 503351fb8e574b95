"""Smooth activations at large variances: the plane cut at zero against series, which share nothing but the pairs."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from numeric.activations import load
from numeric.brackets import PATTERNS, arrangements, make_quadruple_plan, sorted_quadruples
from numeric.brackets.calculus import QuadrupleQuestion
from numeric.brackets.kinked.quadruples import KinkedQuadruples
from numeric.brackets.series.quadruples import ConditionedQuadruples, plan_conditioned


def kernel(variance: float) -> np.ndarray:
    X = np.random.default_rng(1).normal(size=(4, 64))
    return variance * X @ X.T / 64


def values(name, plan, K):
    host = jax.tree_util.tree_map(np.asarray, plan)
    return host.unique(load(name).FUNCTIONS, arrangements(PATTERNS), K)


@pytest.mark.parametrize(
    ("name", "variance"), [("tanh", 12.0), ("mish", 12.0), pytest.param("tanh(z-3)", 20.0, marks=pytest.mark.slow)]
)
def test_the_plane_agrees_with_series(name, variance):
    K, functions = kernel(variance), load(name).FUNCTIONS
    plan = make_quadruple_plan(functions, K, PATTERNS, 1e-9)
    assert isinstance(plan, KinkedQuadruples) and not plan.nested
    question = QuadrupleQuestion(K[None], PATTERNS, 1e-10, float(K.max()), None, False, None)
    exact = values(name, plan_conditioned(functions, question), K)
    assert np.abs(values(name, plan, K) - exact).max() < 1e-9 * np.abs(exact).max()


def test_small_variances_and_sharp_places_elsewhere_stay_with_series():
    for name, variance in (("tanh", 2.0), ("exp(-(z-4)^2)", 16.0)):
        plan = make_quadruple_plan(load(name).FUNCTIONS, kernel(variance), PATTERNS, 1e-8)
        assert isinstance(plan, ConditionedQuadruples)


def test_independent_inputs_factorize():
    """With K = 100 times the identity every bracket is a product of one-dimensional integrals."""
    K, functions = 100.0 * np.eye(4), load("tanh").FUNCTIONS
    plan = make_quadruple_plan(functions, K, PATTERNS, 1e-9)
    assert isinstance(plan, KinkedQuadruples)
    z = np.linspace(-90, 90, 9_001)
    weight = np.exp(-(z**2) / 200)
    weight /= weight.sum()
    t = np.tanh(z)
    derivatives = [t, 1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
    found, components = values("tanh", plan, K), arrangements(PATTERNS)
    for row, labels in zip(found, sorted_quadruples(4)):
        for value, orders in zip(row, components):
            exact = 1.0
            for label in set(labels):
                own = [derivatives[k] for k, place in zip(orders, labels) if place == label]
                exact *= float(weight @ np.prod(own, axis=0))
            assert abs(value - exact) < 1e-9
