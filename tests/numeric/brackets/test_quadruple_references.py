"""Four-point brackets of kinked activations and at large variances, against stored references that share no code with
the engine: derive's at two inputs, product rules on orthants at three and four (tests/data/brackets)."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bracket_twin import functions
from quadruple_check import quadruple_errors

from numeric.brackets import PATTERNS, make_quadruple_plan, quadruple_brackets, unique_quadruples
from numeric.brackets.nested.plan import _rule, _values
from numeric.errors import NumericError

ROWS = json.loads((Path(__file__).parents[2] / "data" / "brackets" / "quadruples.json").read_text())
CASES = sorted({(row[0], len(row[1]), round(row[1][0][0], 9)) for row in ROWS})
QUICK = {("elu", 2, 1.0), ("gelu", 2, 1000.0), ("erf", 2, 900.0)}
slow = pytest.mark.slow


def rows_of(name, size, variance):
    return [row for row in ROWS if (row[0], len(row[1]), round(row[1][0][0], 9)) == (name, size, variance)]


def tensors(f, K, patterns, tolerance=1e-9):
    plan = make_quadruple_plan(f, K, patterns, tolerance)
    return jax.jit(lambda K, plan: quadruple_brackets(f, K, plan, patterns))(jnp.asarray(K), plan)


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[] if c in QUICK else slow, id="-".join(map(str, c))) for c in CASES]
)
def test_against_stored_references(case):
    """To 1e-8 of the pattern's largest entry, with references a hundred times better.

    The covariance of two inputs at an angle of 1e-8 is, in float64, that of equal ones (1 - cos is 5e-17), while
    brackets of kinked activations change in proportion to the angle: a kernel does not hold more than some 1e-8 times
    that slope (measured: 1.6e-8 for elu, 1.1e-7 for softsign's pattern 1113).
    """
    f = functions(case[0])
    for K in {json.dumps(row[1]) for row in rows_of(*case)}:
        rows = [row for row in rows_of(*case) if json.dumps(row[1]) == K]
        patterns = tuple(sorted({tuple(sorted(row[3])) for row in rows}))
        out = tensors(f, np.array(json.loads(K)), patterns)
        tolerance = 2e-7 if f.kinked and rows[0][1][0][1] > 1 - 1e-15 else 1e-8
        for _, _, labels, orders, text, error in rows:
            assert error < 1e-10
            order = np.argsort(orders, kind="stable")
            tensor = out[tuple(sorted(orders))]
            found = float(tensor[tuple(np.array(labels)[order])])
            assert abs(found - float(text)) <= tolerance * float(jnp.max(jnp.abs(tensor))), (labels, orders, found)


@pytest.mark.parametrize(
    "name, scale", [("elu", 1.0), pytest.param("softsign", 400.0, marks=slow), pytest.param("tanh", 1000.0, marks=slow)]
)
def test_four_inputs(name, scale):
    """One quadruple of four distinct labels, by the nested rule alone."""
    rows = [r for r in ROWS if r[0] == name and len(r[1]) == 4 and abs(r[1][0][0] / (1.05 * scale) - 1) < 1e-9]
    f = functions(name)
    patterns = tuple(sorted({tuple(row[3]) for row in rows}))
    nodes = 18 if name == "elu" else 28
    rule = tuple(jnp.asarray(x) for x in _rule(nodes, nodes))
    values = jax.jit(lambda C: _values(f, patterns, (1, 1, 1, 1), C, rule))(jnp.asarray(rows[0][1]))
    assert len(rows) == len(patterns) == 12
    for _, _, _, orders, text, _ in rows:
        largest = max(abs(float(row[4])) for row in rows if sorted(row[3]) == sorted(orders))
        assert abs(float(values[patterns.index(tuple(orders))]) - float(text)) <= 1e-8 * largest, orders


def test_what_does_not_exist_is_refused():
    f = functions("selu")
    with pytest.raises(NumericError, match="delta functions"):
        make_quadruple_plan(f, np.eye(2), PATTERNS)
    with pytest.raises(NumericError, match="variance zero"):
        make_quadruple_plan(functions("elu"), np.diag([1.0, 0.0]), PATTERNS)


@slow
@pytest.mark.parametrize("name", ["elu", "softsign"])
def test_planar_inputs(name):
    """First-layer kernel of inputs in two dimensions: four kinks in one plane, by sectors of the angle in NumPy."""
    x = np.array([[1.0, 0.2], [0.3, 0.9], [-0.5, 0.4], [0.2, -1.1]])
    f = functions(name)
    patterns = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 2, 2))
    out = tensors(f, x @ x.T, patterns)
    kinks = np.sort(np.concatenate([np.arctan2(x[:, 0], -x[:, 1]), np.arctan2(-x[:, 0], x[:, 1])]))
    edges = np.append(kinks, kinks[0] + 2 * np.pi)
    g, w = np.polynomial.legendre.leggauss(60)
    r, wr = 4.5 * (g + 1), 4.5 * w
    total = dict.fromkeys(patterns, 0.0)
    for low, high in pairwise(edges):
        t, wt = (low + high) / 2 + (high - low) / 2 * g, (high - low) / 2 * w
        plane = np.stack([np.outer(r, np.cos(t)), np.outer(r, np.sin(t))])
        weight = np.outer(wr * r * np.exp(-(r**2) / 2), wt) / (2 * np.pi)
        z = np.tensordot(x, plane, axes=1)
        for p in patterns:
            values = [np.asarray(f.derivatives(jnp.asarray(z[i]), k)) for i, k in enumerate(p)]
            total[p] += float((weight * np.prod(values, axis=0)).sum())
    for p in patterns:
        assert abs(float(out[p][0, 1, 2, 3]) - total[p]) <= 1e-8 * float(jnp.max(jnp.abs(out[p]))), p


@slow
def test_measured_errors_of_nested_rules():
    """A deliberately coarse rule is flagged by the other order of integration; a converged one is not."""
    f = functions("softsign")
    x = np.random.default_rng(3).normal(size=(4, 3))
    K = 2.0 * x @ x.T
    plan = make_quadruple_plan(f, K, tolerance=1e-9)
    coarse = _coarse(plan, 5)
    found = {}
    for key, own in (("fine", plan), ("coarse", coarse)):
        unique = jax.jit(lambda K, p: unique_quadruples(f, K, p))(jnp.asarray(K), own)
        found[key] = max(quadruple_errors(f, K, own, unique).values())
    assert found["fine"] < 1e-9 and found["coarse"] > 1e-5


def _coarse(plan, nodes):
    x, w = (jnp.asarray(v) for v in _rule(nodes, nodes))
    return replace(plan, nested=tuple(replace(bucket, nodes=x, weights=w) for bucket in plan.nested))


@slow
def test_derivatives_and_maps_of_kinked_brackets():
    """<0000> of elu: integration by parts against differences, and a map over kernels."""
    f = functions("elu")
    K = np.array([[1.0, 0.3], [0.3, 0.8]])
    move = np.array([[0.3, 0.2], [0.2, -0.4]])
    patterns = ((0, 0, 0, 0), (0, 0, 1, 1))
    plan = make_quadruple_plan(f, K, patterns, 1e-10)

    def value(K):
        return jnp.stack(list(quadruple_brackets(f, K, plan, patterns).values()))

    _, tangent = jax.jvp(value, (jnp.asarray(K),), (jnp.asarray(move),))
    h = 1e-4
    pair = jax.vmap(value)(jnp.stack([jnp.asarray(K + h * move), jnp.asarray(K - h * move)]))
    np.testing.assert_allclose(tangent, (pair[0] - pair[1]) / (2 * h), atol=3e-8)
    with pytest.raises(NumericError, match="delta functions"):
        wrong = ((1, 1, 2, 2),)
        jax.jvp(lambda K: quadruple_brackets(f, K, plan, wrong)[wrong[0]], (jnp.asarray(K),), (jnp.asarray(move),))
