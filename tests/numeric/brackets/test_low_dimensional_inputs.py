"""Four inputs that span two or three dimensions, against quadrature on a grid cut at every kink.

Data in the plane or in space without a bias, and points on a line with one: no series suits them (`kinked.space`).
"""

import jax
import numpy as np
import pytest
from bracket_twin import functions

from numeric.brackets import PATTERNS, arrangements, make_quadruple_plan, sorted_quadruples
from numeric.brackets.calculus import QuadrupleQuestion
from numeric.brackets.nested import plan_all
from numeric.brackets.rules import evaluate

DIFFERENT = (np.diff(sorted_quadruples(4), axis=1) > 0).all(axis=1)
PLAIN = PATTERNS[:3]
"""Without delta functions, which a grid does not see."""


def values(f, K, patterns, tolerance, **more):
    """(components,) of the quadruple of four inputs, and its plan."""
    plan = make_quadruple_plan(f, K, patterns, tolerance, wanted=DIFFERENT, **more)
    with np.errstate(all="ignore"):
        every = jax.tree_util.tree_map(np.asarray, plan).unique(f, arrangements(patterns), K)
    return np.asarray(every)[DIFFERENT][0], plan


def panels(edges, count):
    """Gauss-Legendre nodes between neighbouring edges (..., E): (..., nodes) and weights."""
    x, w = np.polynomial.legendre.leggauss(count)
    half = np.diff(edges, axis=-1)[..., None] / 2
    middle = (edges[..., 1:, None] + edges[..., :-1, None]) / 2
    return [y.reshape(*edges.shape[:-1], -1) for y in (middle + half * x, half * w)]


def grid(f, X, patterns, counts=(24, 24, 20), far=9.0):
    """<...> of z = X g for a Gaussian g of two or three numbers: spherical coordinates, a panel between any two kinks.

    Polar angles: cut where a kink's plane is tangent or two of them meet; azimuths at fixed polar angle: at each kink.
    """
    components = arrangements(patterns)
    if X.shape[1] == 2:
        cuts = np.sort(np.mod(np.arctan2(X[:, 1], X[:, 0])[:, None] + np.array([0.5, 1.5]) * np.pi, 2 * np.pi).ravel())
        angle, w = panels(np.concatenate([cuts, [cuts[0] + 2 * np.pi]]), counts[0])
        along = X @ np.stack([np.cos(angle), np.sin(angle)])
        power = 1
    else:
        meets = [np.cross(X[i], X[j]) for i in range(4) for j in range(i)]
        meets = [m[2] / np.linalg.norm(m) for m in meets if np.linalg.norm(m) > 1e-12]
        height = X[:, 2] / np.linalg.norm(X, axis=1)
        tangent = np.sqrt(1 - height**2)
        edges = np.unique(np.concatenate([[-1, 1], meets, np.negative(meets), tangent, -tangent]))
        theta, wt = panels(np.arcsin(np.clip(edges, -1, 1)), counts[0])  # latitudes, evenly spaced near tangents
        c, s = np.cos(theta)[:, None], np.sin(theta)[:, None]
        phase, size = np.arctan2(X[:, 1], X[:, 0]), np.hypot(X[:, 0], X[:, 1])
        with np.errstate(invalid="ignore"):
            half = np.arccos(np.clip(-X[:, 2] * s / (size * c), -1, 1))
        cuts = np.mod(np.concatenate([phase + half, phase - half], axis=1), 2 * np.pi)
        cuts = np.sort(np.concatenate([cuts, np.zeros_like(c), np.full_like(c, 2 * np.pi)], axis=1), axis=1)
        phi, wp = panels(cuts, counts[1])
        w = (wt[:, None] * c * wp).ravel()
        u = np.stack([c * np.cos(phi), c * np.sin(phi), s + 0 * phi]).reshape(3, -1)
        along, power = X @ u, 2
    r, wr = panels(np.array([0.0, far / 4, far]), counts[2])
    wr = wr * r**power * np.exp(-(r**2) / 2)
    total = np.zeros(len(components))
    scale = w.sum() * wr.sum()
    for start in range(0, w.size, 4096):
        part = slice(start, start + 4096)
        z = along[:, part, None] * r
        sigma = [{k: evaluate(f, k, z[i]) for k in {p[i] for p in components}} for i in range(4)]
        both = w[part, None] * wr
        total += [np.sum(both * np.prod([sigma[i][k] for i, k in enumerate(p)], axis=0)) for p in components]
    return total / scale


def apart(found, other, patterns):
    """The largest difference, relative to the pattern's largest entry."""
    codes = [tuple(sorted(p)) for p in arrangements(patterns)]
    return max(abs(x - y) / max(abs(v) for v, q in zip(other, codes) if q == p) for x, y, p in zip(found, other, codes))


@pytest.mark.parametrize("name, largest", [("elu", 4.0), ("softsign", 4.0), ("selu", 4.0), ("tanh", 12.0)])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_inputs_in_a_plane_and_in_space(name, largest, dimensions):
    f, X = functions(name), np.random.default_rng(1).normal(size=(4, dimensions))
    X *= (largest / np.max(np.sum(X**2, axis=1))) ** 0.5
    patterns = PATTERNS if name == "tanh" else PLAIN
    found, plan = values(f, X @ X.T, patterns, 1e-8)
    assert plan.spaces and not plan.nested
    assert apart(found, grid(f, X, patterns, (40, 32, 40)), patterns) < 1e-8


def test_points_on_a_line_with_a_bias():
    """Inputs x_i and a bias: a plane, two of them on opposite sides, one at the origin."""
    X = np.stack([np.array([-1.0, 0.0, 0.4, 2.0]), np.full(4, 0.3)], axis=1)
    for name in ("elu", "softsign"):
        f = functions(name)
        found, plan = values(f, X @ X.T, PLAIN, 1e-10)
        assert plan.spaces and not plan.nested
        assert apart(found, grid(f, X, PLAIN, (60, 0, 60)), PLAIN) < 1e-10


def test_second_evaluations_take_other_inputs_and_finer_rules():
    f, X = functions("elu"), np.random.default_rng(3).normal(size=(4, 3))
    found, plan = values(f, X @ X.T, PATTERNS, 1e-8)
    other, again = values(f, X @ X.T, PATTERNS, 1e-10, avoid=plan.conditioned_on(), finer=True)
    assert again.spaces[0].options() != plan.spaces[0].options()
    assert again.spaces[0].setting.rule > plan.spaces[0].setting.rule
    assert apart(found, other, PATTERNS) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elu", "softsign"])
@pytest.mark.parametrize("kind", ["space", "a nearly parallel pair"])
def test_against_nested_quadrature(name, kind):
    """All patterns, delta functions among them."""
    f, X = functions(name), np.random.default_rng(0).normal(size=(4, 4))
    X[:, 3] = 0
    if kind == "a nearly parallel pair":
        X[1] = X[0] + 1e-4 * X[1]
    K = X @ X.T / 3
    found, plan = values(f, K, PATTERNS, 1e-8)
    assert plan.spaces and not plan.nested
    nested = plan_all(f, QuadrupleQuestion(K[None], PATTERNS, 1e-11, float(np.max(K)), wanted=DIFFERENT))
    with np.errstate(all="ignore"):
        every = jax.tree_util.tree_map(np.asarray, nested).unique(f, arrangements(PATTERNS), K)
    assert apart(found, np.asarray(every)[DIFFERENT][0], PATTERNS) < 2e-9
