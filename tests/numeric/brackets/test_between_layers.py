"""Brackets of two activations at one layer and two at a later one: against sums over a four-dimensional grid."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric.activations import load
from numeric.brackets.series.persistent import between_layers

FOURS = (((0, 0), (0, 0)), ((0, 1), (1, 0)), ((1, 3), (0, 0)), ((2, 2), (0, 0)), ((1, 2), (1, 0)), ((1, 1), (1, 1)))


def derivatives(f, z):
    found = [f(z)]
    for _ in range(3):
        f = jax.grad(f)
        found.append(jax.vmap(f)(z.ravel()).reshape(z.shape))
    return [np.asarray(x) for x in found]


def on_a_grid(f, lower, upper, rho, a, b, c, d, radius=6.2):
    """{four: <...>}: z_a, z_b at the upper layer, z_c, z_d at the lower one, on whitened axes."""
    cross = rho * lower
    K = np.block([[lower, cross.T], [cross, upper]])
    n = len(lower)
    labels = [c, d, n + a, n + b]
    values, vectors = np.linalg.eigh(K[np.ix_(labels, labels)])
    step = 0.36 if values.min() > 1e-12 and len({a, b}) + len({c, d}) == 4 else 0.22  # four dimensions, no repetition
    axes = [np.arange(-radius, radius + step / 2, step) if v > 1e-12 else np.zeros(1) for v in values]
    root = vectors * np.sqrt(np.maximum(values, 0))
    x = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")])
    weight = np.exp(-(x**2).sum(axis=0) / 2)
    weight /= weight.sum()
    z = [derivatives(f, jnp.asarray(row)) for row in root @ x]
    return {((j, k), (p, q)): float(weight @ (z[2][j] * z[3][k] * z[0][p] * z[1][q])) for (j, k), (p, q) in FOURS}


@pytest.mark.parametrize("name, f, skip", [("tanh", jnp.tanh, 1.0), ("sin(z + 1)", lambda z: jnp.sin(z + 1), 0.7)])
def test_against_a_grid(name, f, skip):
    lower = np.array([[0.9, 0.4], [0.4, 0.7]])
    upper = skip**2 * lower + 0.1 + 0.6 * np.array([[0.35, 0.1], [0.1, 0.28]])
    products = np.array([[1.0, 0.0], [skip, 1.0]])
    found = between_layers(load(name).FUNCTIONS, FOURS, np.stack([lower, upper]), products, 1e-9)
    assert found is not None
    for a, b, c, d in [(0, 1, 0, 1), (1, 0, 0, 1), (0, 0, 0, 1), (0, 1, 1, 1), (1, 1, 0, 0), (0, 0, 0, 0)]:
        expected = on_a_grid(f, lower, upper, skip, a, b, c, d)
        for four in FOURS:
            size = np.abs(found[four][1, 0]).max()
            assert abs(found[four][1, 0, a, b, c, d] - expected[four]) < 3e-8 * size, (four, a, b, c, d)
    assert all(np.abs(found[four][m, l]).max() == 0 for four in FOURS for m, l in product(range(2), repeat=2) if m <= l)


def test_layers_without_noise_and_a_skip_of_zero():
    """The same layer twice is a bracket of one layer; what no skip connects is a product of two means."""
    K = np.array([[0.9, 0.4], [0.4, 0.7]])
    functions = load("tanh").FUNCTIONS
    same = between_layers(functions, FOURS, np.stack([K, K]), np.array([[1.0, 0.0], [1.0, 1.0]]), 1e-9)
    apart = between_layers(functions, FOURS, np.stack([K, K]), np.array([[1.0, 0.0], [0.0, 1.0]]), 1e-9)
    one = on_a_grid(jnp.tanh, K, K, 1.0, 0, 1, 1, 0)
    other = on_a_grid(jnp.tanh, K, K, 0.0, 0, 1, 1, 0)
    for four in FOURS:
        assert abs(same[four][1, 0, 0, 1, 1, 0] - one[four]) < 3e-8 * np.abs(same[four]).max()
        assert abs(apart[four][1, 0, 0, 1, 1, 0] - other[four]) < 3e-8 * max(np.abs(apart[four]).max(), 1e-3)


def test_an_input_that_is_zero():
    """Where an input is zero at every layer its sigma is sigma(0), a number; nothing is divided by zero."""
    K = np.array([[0.9, 0.0], [0.0, 0.0]])
    with np.errstate(all="raise", under="ignore"):
        found = between_layers(load("sin(z + 1)").FUNCTIONS, FOURS, np.stack([K, 2 * K]), np.tri(2), 1e-9)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    mean = w @ np.sin(np.sqrt(1.8) * x + 1)  # z_0 at the upper layer
    pair = ((0, 0), (0, 0))
    assert abs(found[pair][1, 0, 0, 1, 1, 1] - mean * np.sin(1) ** 3) < 1e-8
    assert all(np.isfinite(value).all() for value in found.values())


def test_nearly_equal_inputs_are_left_to_the_general_route():
    K = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    assert between_layers(load("tanh").FUNCTIONS, FOURS, np.stack([K, 2 * K]), np.tri(2), 1e-9) is None
