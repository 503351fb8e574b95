"""Kinked activations on the host: pair brackets with delta functions are derivatives with respect to the kernel, here
taken by differences of brackets without any; quadruples of up to three labels are those of the compiled programs."""

import itertools
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from numeric import NumericError
from numeric.activations import load
from numeric.brackets import PATTERNS, Rectangle, arrangements, make_quadruple_plan, tensor
from numeric.brackets.kinked.host import host_pairs
from numeric.brackets.kinked.kinkpairs import DERIVATIVES
from numeric.brackets.kinked.sectors import sector_pairs
from numeric.brackets.nested.plan import _alone, _batch, _rule

ALL = tuple(DERIVATIVES)
HELD = {"elu": ALL, "softsign": ALL, "selu": ((0, 2), (1, 3), (2, 2))}


def bracket(name, order, a, b, c, same=False):
    pairs = Rectangle(np.array([a]), np.array([b]), np.array([[c]]), np.array([[same]]))
    return host_pairs(load(name).FUNCTIONS, (order,), pairs, False, 36)[order][0, 0]


def slope(f, x, step=4e-3):
    """The derivative by central differences, extrapolated twice."""
    d = [(f(x + h) - f(x - h)) / (2 * h) for h in (step, step / 2, step / 4)]
    first = [(4 * fine - coarse) / 3 for coarse, fine in itertools.pairwise(d)]
    return (16 * first[1] - first[0]) / 15


@pytest.mark.parametrize("name", HELD)
def test_distinct_inputs(name):
    a, b, c = 1.1, 0.7, -0.4
    for order in HELD[name]:
        base, which = DERIVATIVES[order]
        value = lambda b, c, base=base: bracket(name, (base, base), a, b, c)  # noqa: E731
        for place in which:
            inner = value
            value = (
                (lambda b, c, f=inner: 2 * slope(lambda x: f(x, c), b))
                if place == 0
                else (lambda b, c, f=inner: slope(lambda x: f(b, x), c))
            )
        found = bracket(name, order, a, b, c)
        assert found == pytest.approx(value(b, c), rel=2e-6, abs=1e-7), order
        turned = bracket(name, order[::-1], b, a, c)
        assert turned == pytest.approx(found, rel=1e-12), order


@pytest.mark.parametrize("name", HELD)
def test_one_input(name):
    """The combinations of the recursions: derivatives of <sigma sigma> and <sigma' sigma'> at one input."""
    K = 0.6
    square = lambda order: lambda k: bracket(name, (order, order), k, k, k, True)  # noqa: E731
    found = {order: bracket(name, order, K, K, K, True) for order in HELD[name]}
    assert square(1)(K) + found[0, 2] == pytest.approx(slope(square(0), K), rel=1e-9)
    assert found[2, 2] + found[1, 3] == pytest.approx(slope(square(1), K), rel=1e-9)
    if (0, 4) in found:
        for base, (far, near, middle) in enumerate(((4, 3, 2), (5, 4, 3))):
            total = found[base, far] + 4 * found[base + 1, near] + 3 * found[middle, middle]
            curvature = slope(lambda k, base=base: slope(square(base), k), K)
            assert total == pytest.approx(2 * curvature, rel=2e-6)


def test_parallel_and_absent_inputs():
    """Opposite inputs of an odd activation; an input without variance; angles that are small, but not zero."""
    assert bracket("softsign", (1, 3), 0.5, 0.5, -0.5) == pytest.approx(bracket("softsign", (1, 3), 0.5, 0.5, 0.5))
    assert bracket("softsign", (0, 2), 0.5, 0.5, -0.5) == pytest.approx(-bracket("softsign", (0, 2), 0.5, 0.5, 0.5))
    assert bracket("elu", (1, 1), 0.5, 0.0, 0.0) == pytest.approx(bracket("elu", (1, 1), 0.5, 1e-14, 0.0), rel=1e-6)
    assert bracket("elu", (1, 3), 0.5, 0.0, 0.0) == 0
    gaps = [
        1 - bracket("selu", (1, 1), 0.5, 0.5, 0.5 * (1 - 2 * t**2)) / bracket("selu", (1, 1), 0.5, 0.5, 0.5)
        for t in (2e-8, 1e-7)
    ]
    assert gaps[1] / gaps[0] == pytest.approx(5, rel=0.1)  # a kink: in proportion to the angle


def test_what_is_not_available():
    with pytest.raises(NumericError, match="not available"):
        bracket("elu", (3, 4), 1.0, 1.0, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_pairs_are_those_of_the_compiled_programs(name):
    functions, orders = load(name).FUNCTIONS, ((0, 0), (1, 1), *HELD[name])
    base = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.79], [-0.2, 0.79, 1.5]])
    for K in (base, 50 * base, 1e-3 * base):
        d, same = np.diagonal(K).copy(), np.eye(3, dtype=bool)
        host = host_pairs(functions, orders, Rectangle(d, d, K, same), True, 28)
        compiled = sector_pairs(functions, orders, Rectangle(*map(jnp.asarray, (d, d, K, same))), True, 28)
        for order in orders:
            lost = 1e3 if sum(order) > 4 else 1.0  # fifth derivatives at variance 75: what cancels is 1e6 times the sum
            limit = lost * 1e-12 * np.abs(host[order]).max()
            assert np.allclose(host[order], compiled[order], rtol=1e-10, atol=limit), order


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(4,), (3, 1), (2, 2), (2, 1, 1)])
def test_quadruples_are_those_of_the_compiled_programs(counts):
    functions, components = load("elu").FUNCTIONS, arrangements(PATTERNS)
    K = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.5], [-0.2, 0.5, 1.5]])[: len(counts), : len(counts)]
    host = _alone(functions, components, counts, np.ascontiguousarray(K).tobytes(), 40)
    compiled = _batch(functions, components, counts, jnp.asarray(K)[None], tuple(map(jnp.asarray, _rule(40, 40))))[0]
    assert np.allclose(host, compiled, rtol=1e-11, atol=1e-13)


REFERENCES = json.loads((Path(__file__).parents[2] / "data" / "brackets" / "quadruples.json").read_text())


@pytest.mark.parametrize(
    "name", ["elu", *(pytest.param(name, marks=pytest.mark.slow) for name in ("softsign", "selu"))]
)
def test_quadruples_against_stored_references(name):
    """Two and three inputs at every stored kernel, to 1e-8 of the pattern's largest entry, nothing compiled.

    References share no code with the engine; inputs at an angle of 1e-8, which a kernel does not hold, are left out.
    """
    functions = load(name).FUNCTIONS
    kernels = {json.dumps(row[1]) for row in REFERENCES if row[0] == name and len(row[1]) in (2, 3)}
    seen = 0
    for text in kernels:
        K = np.array(json.loads(text))
        if K[0, 1] / np.sqrt(K[0, 0] * K[1, 1]) > 1 - 1e-15:
            continue
        rows = [row for row in REFERENCES if row[0] == name and json.dumps(row[1]) == text]
        patterns = tuple(sorted({tuple(sorted(row[3])) for row in rows}))
        plan = make_quadruple_plan(functions, K, patterns, 1e-9)
        unique = plan.unique(functions, arrangements(patterns), K)
        for _, _, labels, orders, value, _ in rows:
            order = np.argsort(orders, kind="stable")
            tensor_ = np.asarray(tensor(unique, patterns, tuple(sorted(orders)), len(K)))
            found = float(tensor_[tuple(np.array(labels)[order])])
            assert abs(found - float(value)) <= 1e-8 * np.abs(tensor_).max(), (text, labels, orders)
            seen += 1
    assert seen > 20 or name == "selu"
