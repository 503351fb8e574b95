"""Four-point brackets against the slow twin, against each other's routes, and under transformations."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bracket_twin import awkward_inputs, functions, twin
from quadruple_check import quadruple_errors

from numeric.brackets import PATTERNS, Calculus, make_quadruple_plan, quadruple_brackets, unique_quadruples
from numeric.errors import NumericError

QUADRUPLES = ([0, 1, 2, 3], [2, 0, 1, 1], [0, 2, 3, 3], [4, 0, 1, 2], [1, 1, 1, 1], [3, 0, 0, 0], [4, 4, 2, 0])
evaluate = jax.jit(
    lambda f, K, plan, patterns=PATTERNS: quadruple_brackets(f, K, plan, patterns), static_argnums=(0, 3)
)


def check(f, K, tolerance, quadruples=QUADRUPLES, plan_tolerance=1e-9):
    out = evaluate(f, jnp.asarray(K), make_quadruple_plan(f, K, tolerance=plan_tolerance))
    for labels in quadruples:
        for p, expected in zip(PATTERNS, twin(f, K, labels, PATTERNS)):
            error = abs(float(out[p][tuple(labels)]) - expected) / float(jnp.max(jnp.abs(out[p])))
            assert error <= tolerance, (labels, p, error)
    return out


slow = pytest.mark.slow
SMOOTH = [("tanh", 1.0), ("tanh", 1e-10), ("tanh", 3.0), ("swish", 1.0), ("softplus", 0.5), ("sin", 1.0)]


@pytest.mark.parametrize(
    "name, scale", [pytest.param(*case, marks=[slow] if case[0] != "tanh" or case[1] > 1 else []) for case in SMOOTH]
)
def test_smooth_activations_at_awkward_inputs(name, scale):
    """Near-duplicate (angle 1e-8), opposite and vanishing inputs among them."""
    check(functions(name), awkward_inputs(scale), 1e-8)


@pytest.mark.parametrize(
    "name, scale", [("gelu", 1.0), pytest.param("erf", 1e-10, marks=slow), pytest.param("gelu", 1e-10, marks=slow)]
)
def test_stein_and_signs_at_awkward_inputs(name, scale):
    check(functions(name), awkward_inputs(scale), 3e-11)


@slow
def test_four_independent_inputs():
    """A quadruple whose covariance has full rank, by a rule over four dimensions."""
    x = np.random.default_rng(5).normal(size=(4, 4))
    K = 0.25 * x @ x.T
    check(functions("tanh"), K, 1e-8, quadruples=([0, 1, 2, 3], [3, 1, 0, 2]))
    check(functions("gelu"), K, 1e-8, quadruples=([0, 1, 2, 3], [3, 1, 0, 2]))


def test_one_input():
    f = functions("tanh")
    check(f, np.array([[1.7]]), 1e-8, quadruples=([0, 0, 0, 0],))


@slow
def test_two_routes_agree_for_gelu():
    """The closed form and the pair-conditioned series share nothing but the definition of the bracket."""
    x = np.random.default_rng(1).normal(size=(5, 6))
    K = x @ x.T / 6
    closed = functions("gelu")
    series = replace(closed, calculus=Calculus())
    a = evaluate(closed, jnp.asarray(K), make_quadruple_plan(closed, K))
    b = evaluate(series, jnp.asarray(K), make_quadruple_plan(series, K, tolerance=1e-10))
    for p in PATTERNS:
        np.testing.assert_allclose(a[p], b[p], atol=1e-9 * float(jnp.max(jnp.abs(a[p]))))


def test_exponentials_at_large_variance():
    f = functions("sin")
    K = 6.0 * np.array([[1.0, 0.5], [0.5, 1.2]])
    out = evaluate(f, jnp.asarray(K), make_quadruple_plan(f, K))
    for labels in ([0, 0, 1, 1], [0, 1, 1, 1]):
        for p, expected in zip(PATTERNS, twin(f, K, labels, PATTERNS)):
            assert float(out[p][tuple(labels)]) == pytest.approx(expected, abs=1e-11)


def test_entries_are_symmetric_and_blocks_agree():
    f = functions("gelu")
    K = awkward_inputs(1.0)
    plan = make_quadruple_plan(f, K)
    full = evaluate(f, jnp.asarray(K), plan)
    np.testing.assert_array_equal(full[0, 0, 1, 1], full[0, 0, 1, 1].transpose(1, 0, 3, 2))
    np.testing.assert_array_equal(full[0, 1, 1, 2], full[0, 1, 1, 2].transpose(0, 2, 1, 3))
    rows = (jnp.array([0, 3]), jnp.array([2, 1]))
    part = quadruple_brackets(f, jnp.asarray(K), plan, rows=rows)
    for p in PATTERNS:
        np.testing.assert_allclose(part[p], full[p][rows], atol=1e-13)


@pytest.mark.parametrize("name", ["gelu", pytest.param("tanh", marks=slow)])
def test_derivatives_with_respect_to_the_kernel(name):
    f = functions(name)
    K = np.array([[1.0, 0.3], [0.3, 0.8]])
    move = np.array([[0.3, 0.2], [0.2, -0.4]])
    patterns = ((0, 0, 0, 0), (0, 0, 1, 1))
    plan = make_quadruple_plan(f, K, tolerance=1e-10)

    def value(K):
        return jnp.stack(list(quadruple_brackets(f, K, plan, patterns).values()))

    _, tangent = jax.jvp(value, (jnp.asarray(K),), (jnp.asarray(move),))
    h = 1e-4
    value = jax.jit(value)
    expected = (value(jnp.asarray(K + h * move)) - value(jnp.asarray(K - h * move))) / (2 * h)
    np.testing.assert_allclose(tangent, expected, atol=3e-8)


RELU = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1))


def test_relu_against_samples():
    f = functions("relu")
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4, 4))
    K = x @ x.T / 4
    out = evaluate(f, jnp.asarray(K), make_quadruple_plan(f, K, RELU), RELU)
    z = rng.normal(size=(400_000, 4)) @ x.T / 2
    sigma = [np.maximum(z, 0), (z > 0) * 1.0]
    for labels in ([0, 1, 2, 3], [2, 0, 3, 1], [0, 0, 1, 2], [1, 2, 1, 2], [3, 3, 3, 0]):
        for p in RELU:
            sample = np.prod([sigma[k][:, i] for i, k in zip(labels, p)], axis=0)
            error = sample.std() / np.sqrt(len(sample))
            assert abs(float(out[p][tuple(labels)]) - sample.mean()) < 4.5 * error, (labels, p)


def test_relu_where_it_is_known():
    f = functions("relu")
    K = np.array([[2.0, 0.0, 2.0], [0.0, 3.0, 0.0], [2.0, 0.0, 2.0]])
    out = evaluate(f, jnp.asarray(K), make_quadruple_plan(f, K, RELU), RELU)
    assert float(out[0, 0, 0, 0][0, 0, 0, 0]) == pytest.approx(3 * 4 / 2, rel=1e-14)
    assert float(out[0, 0, 0, 0][0, 0, 1, 1]) == pytest.approx(1 * 1.5, rel=1e-14)  # independent inputs
    assert float(out[0, 0, 0, 0][0, 2, 1, 1]) == pytest.approx(1 * 1.5, rel=1e-7)  # duplicate inputs
    assert float(out[1, 1, 1, 1][0, 0, 1, 1]) == pytest.approx(0.25, rel=1e-14)


def test_relu_patterns_that_do_not_exist():
    f = functions("relu")
    K = np.eye(2)
    with pytest.raises(NumericError, match="delta function"):
        quadruple_brackets(f, jnp.asarray(K), make_quadruple_plan(f, K), ((0, 1, 1, 2),))


@pytest.mark.parametrize("tolerance", [pytest.param(1e-3, marks=slow), 1e-6])
def test_measured_errors_bound_the_true_ones(tolerance):
    """A deliberately coarse plan, its errors measured by re-pairing, against the slow twin."""
    f = functions("tanh")
    x = np.random.default_rng(7).normal(size=(4, 2))
    K = 0.6 * x @ x.T
    plan = make_quadruple_plan(f, K, tolerance=tolerance)
    unique = jax.jit(lambda K, plan: unique_quadruples(f, K, plan))(jnp.asarray(K), plan)
    measured = quadruple_errors(f, K, plan, unique)
    out = evaluate(f, jnp.asarray(K), plan)
    true = dict.fromkeys(PATTERNS, 0.0)
    for labels in ([0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [0, 1, 2, 3], [0, 0, 1, 2], [1, 2, 2, 3]):
        for p, expected in zip(PATTERNS, twin(f, K, labels, PATTERNS)):
            error = abs(float(out[p][tuple(labels)]) - expected) / float(jnp.max(jnp.abs(out[p])))
            true[p] = max(true[p], error)
    for p in PATTERNS:
        assert true[p] <= 1.5 * measured[p] + 1e-12, (p, true[p], measured[p])
    assert 1e-2 * tolerance < max(true.values()) and max(measured.values()) < 10 * tolerance
