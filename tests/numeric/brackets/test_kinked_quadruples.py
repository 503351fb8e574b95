"""Four-point brackets of activations with a kink in the plane of two inputs: moments against mpmath, brackets against
stored references and nested quadrature, which share no code with them."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bracket_twin import functions

from numeric.brackets import PATTERNS, arrangements, make_quadruple_plan, sorted_quadruples, unique_quadruples
from numeric.brackets.calculus import QuadrupleQuestion
from numeric.brackets.kinked.moments import Moments, Table, line, times_z
from numeric.brackets.nested import plan_all
from numeric.brackets.rules import evaluate

ROWS = json.loads((Path(__file__).parents[2] / "data" / "brackets" / "quadruples.json").read_text())
KINKED = ("elu", "softsign", "selu")


def patterns_of(name):
    return PATTERNS if name != "selu" else PATTERNS[:3]


def on_host(f, plan, K, patterns):
    with np.errstate(all="ignore"):
        return jax.tree_util.tree_map(np.asarray, plan).unique(f, arrangements(patterns), np.asarray(K, dtype=float))


def sizes(components, values):
    """The largest entry of each component's pattern."""
    codes = [tuple(sorted(p)) for p in components]
    return np.array([max(np.abs(values[:, j]).max() for j, q in enumerate(codes) if q == p) for p in codes])


def difference(f, K, patterns, found, other):
    """Relative to the largest entry of each pattern."""
    return float(np.max(np.abs(found - other) / sizes(arrangements(patterns), other)))


@pytest.mark.parametrize("name, formula", [("elu", lambda z: mpmath.exp(z) if z < 0 else 0), ("softsign", None)])
def test_moments_against_mpmath(name, formula):
    """<sigma''(m + s y) h_n(y)> by mpmath, cut at the kink; sigma and z sigma'' follow from the same table."""
    f = functions(name)
    formula = formula or (lambda z: 2 / (1 - z) ** 3 if z < 0 else -2 / (1 + z) ** 3)
    table = Table(33, 24.0, 192, 16)
    s = np.array([0.3, 1.7])
    values = {k: evaluate(f, k, line(table, s)) for k in range(3)}
    means = np.array([[-3.1, 0.0, 0.13, 2.0]] * 2) * s[:, None]
    found = Moments(table, 2, s, values).at(means)
    with mpmath.workdps(30):
        for i, k, j in ((0, 0, 0), (0, 2, 9), (1, 3, 1), (1, 1, 31)):
            m, width = mpmath.mpf(float(means[i, k])), mpmath.mpf(float(s[i]))

            def integrand(y, m=m, width=width, j=j):
                h = mpmath.hermite(j, y / mpmath.sqrt(2)) / mpmath.sqrt(mpmath.mpf(2) ** j * mpmath.factorial(j))
                return formula(m + width * y) * h * mpmath.npdf(y)

            cuts = sorted({mpmath.mpf(-12), *map(mpmath.mpf, range(-8, 9, 4)), -m / width, mpmath.mpf(12)})
            exact = mpmath.quad(integrand, cuts)
            assert abs(found[2][i, j, k] - exact) < 1e-11
            with_z = mpmath.quad(lambda y, m=m, w=width, g=integrand: (m + w * y) * g(y), cuts)
            assert abs(times_z(found[2], means, s)[i, j, k] - with_z) < 1e-11


@pytest.mark.parametrize("name", KINKED)
def test_stored_references(name):
    """To 1e-10 of the pattern's largest entry at the default tolerance: three and four inputs, alike ones too."""
    f = functions(name)
    rows = [row for row in ROWS if row[0] == name and len(row[1]) > 2 and row[1][0][0] < 100]
    for text in sorted({json.dumps(row[1]) for row in rows}):
        K = np.array(json.loads(text))
        plan = make_quadruple_plan(f, K, patterns_of(name))
        values = on_host(f, plan, K, patterns_of(name))
        index = {tuple(q): i for i, q in enumerate(sorted_quadruples(len(K)).tolist())}
        components = arrangements(patterns_of(name))
        largest = sizes(components, values)
        assert not plan.nested
        for _, _, labels, orders, number, error in (row for row in rows if json.dumps(row[1]) == text):
            column = components.index(tuple(orders))
            found = values[index[tuple(labels)], column]
            assert abs(found - float(number)) <= (1e-10 + 10 * error) * largest[column], (labels, orders, found)


def inputs(kind):
    random = np.random.default_rng(5)
    X = random.normal(size=(3, 4))
    match kind:
        case "coincident":
            X[1] = X[0]
        case "nearly coincident":
            X[1] = X[0] + 1e-4 * X[1]
        case "opposite":
            X[1] = -X[0]
        case "nearly opposite":
            X[1] = 1e-3 * X[1] - X[0]
        case "coplanar":
            X[:, 2:] = 0
        case "alike":
            X += 4
        case "small":
            X *= 1e-4
        case "of different size":
            X *= np.array([[1e-3], [1.0], [5.0]])
    return X @ X.T / 4


KINDS = ["coincident", "nearly coincident", "opposite", "nearly opposite", "coplanar", "alike", "small"]


@pytest.mark.parametrize("name", ["softsign", "elu"])
@pytest.mark.parametrize("kind", [*KINDS, "of different size"])
def test_three_inputs_against_nested_quadrature(name, kind):
    f, K = functions(name), inputs(kind)
    plan = make_quadruple_plan(f, K, PATTERNS, 1e-10)
    question = QuadrupleQuestion(K[None], PATTERNS, 1e-12, float(np.max(K)))
    nested = on_host(f, plan_all(f, question), K, PATTERNS)
    assert difference(f, K, PATTERNS, on_host(f, plan, K, PATTERNS), nested) < 1e-10


def test_other_pairs_agree():
    """The second route: conditioned on other pairs, with finer rules; and the compiled program on the same plan."""
    f = functions("elu")
    X = np.random.default_rng(2).normal(size=(5, 6)) + 0.5
    K = X @ X.T / 6
    plan = make_quadruple_plan(f, K, PATTERNS, 1e-9)
    first = plan.conditioned_on()
    again = make_quadruple_plan(f, K, PATTERNS, 1e-11, avoid=first, finer=True)
    distinct = (np.diff(sorted_quadruples(5), axis=1) > 0).sum(axis=1) + 1
    assert np.all(again.conditioned_on()[distinct > 2] != first[distinct > 2])
    values = on_host(f, plan, K, PATTERNS)
    assert difference(f, K, PATTERNS, values, on_host(f, again, K, PATTERNS)) < 1e-10


@pytest.mark.slow
def test_compiled_programs_give_the_same():
    f = functions("softsign")
    X = np.random.default_rng(2).normal(size=(4, 6))
    K = X @ X.T / 6
    plan = make_quadruple_plan(f, K, PATTERNS, 1e-10)
    compiled = jax.jit(lambda K, plan: unique_quadruples(f, K, plan, PATTERNS))(jnp.asarray(K), plan)
    assert difference(f, K, PATTERNS, on_host(f, plan, K, PATTERNS), np.asarray(compiled)) < 1e-13


def test_parity():
    """softsign is odd: brackets of an odd number of odd factors change their sign with one input, exactly."""
    f = functions("softsign")
    X = np.random.default_rng(4).normal(size=(4, 6))
    K = X @ X.T / 6
    turned = K * np.outer([1, 1, 1, -1], [1, 1, 1, -1])
    components = arrangements(PATTERNS)
    one, other = (on_host(f, make_quadruple_plan(f, k, PATTERNS, 1e-9), k, PATTERNS) for k in (K, turned))
    slots = (sorted_quadruples(4) == 3).astype(int)
    signs = np.array(
        [[np.prod([(-1.0) ** ((k + 1) * m) for k, m in zip(p, row)]) for p in components] for row in slots]
    )
    assert difference(f, K, PATTERNS, signs * other, one) < 2e-10


def test_constants_are_integrated_exactly():
    """sigma' is one at tiny inputs: <1111> is one to rounding, or what cancels (A of small inputs) would be noise."""
    f = functions("softsign")
    X = 1e-16 * np.random.default_rng(0).normal(size=(4, 6))
    plan = make_quadruple_plan(f, X @ X.T, ((1, 1, 1, 1),), 1e-8)
    np.testing.assert_allclose(on_host(f, plan, X @ X.T, ((1, 1, 1, 1),)), 1.0, atol=1e-14)
