"""Tensors as products of two pairs, against the flow: neurons by quadrature instead of draws."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.generated.adjoint import CONTRACTIONS
from numeric.trained.infinite import kernel_prediction
from numeric.trained.sampled.objects import activities_of, made
from numeric.trained.sampled.opened import opened, without_edges
from numeric.trained.sampled.setting import theory_of


@pytest.fixture(scope="module")
def setting():
    X = np.array([[1.0, 0.3], [-0.4, 0.8]])
    f = flow("gelu", X, 3, [64, 96], 0.1, 1.2, 0.3, [0.9, 1.1, 1.3])
    return f, theory_of(f, kernel_prediction(f.Theta, f.K, [1.0], [0]))


def neurons(theory, layer):
    """Quadrature nodes of a neuron on both inputs, as draws with weights."""
    x, w = np.polynomial.hermite_e.hermegauss(48)
    noise = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 1, 1, 2)
    z = jnp.asarray(noise) @ theory.factors[layer].T
    return activities_of(theory.derivatives, z), np.outer(w, w).ravel() / (2 * np.pi)


def matrix(pieces):
    """The object O_12 of each draw, (S, 2, 2)."""
    total = 0.0
    for piece in pieces:
        left, right = (np.ones((1, 2)) if v is None else np.asarray(v)[:, 0, 0] for v in (piece.left, piece.right))
        edge = 1.0 if piece.matrix is None else np.asarray(piece.matrix)
        total = total + left[:, :, None] * right[:, None, :] * edge
    return total


@pytest.mark.parametrize("name", sorted(CONTRACTIONS))
def test_every_tensor_is_a_sum_over_neurons_of_two_pairs(setting, name):
    f, theory = setting
    own = CONTRACTIONS[name]
    total = np.zeros((2,) * 4)
    for layer, share in enumerate(theory.shares):
        activities, weights = neurons(theory, layer)
        objects = []
        for kind, axes in zip(own.kinds, own.axes):
            value = matrix(made(theory.pieces[layer][kind], activities))
            if own.centered:
                value = value - np.asarray(theory.means[layer][kind])
            objects.append(("".join("abcd"[axis] for axis in axes), value))
        links = [("abcd"[u] + "abcd"[v], np.asarray(theory.layers[layer].Theta)) for u, v in own.links]
        subscripts = ",".join(["s", *("s" + letters for letters, _ in objects), *(letters for letters, _ in links)])
        operands = [weights, *(x for _, x in objects), *(x for _, x in links)]
        total += share * np.einsum(f"{subscripts}->abcd", *operands)
    exact = np.asarray(getattr(f, name))
    np.testing.assert_allclose(total, exact, atol=1e-8 * np.abs(exact).max())


@pytest.mark.parametrize("layer", [0, 1])
def test_pairs_without_edges_average_to_the_exact_ones(setting, layer):
    """All normal numbers at +-sqrt(rank) along one axis at a time: their second moments are exact."""
    _, theory = setting
    source = {k: v[700:701] for k, v in neurons(theory, layer)[0].items()}
    assert "11" in theory.openings[layer]
    for kind, openings in theory.openings[layer].items():
        pieces = made(theory.pieces[layer][kind], source)

        def noise(number, rank):
            return jnp.sqrt(rank) * jnp.eye(rank)[:, None, None, :]

        found = [(matrix([piece]), random) for piece, random in without_edges(pieces, openings, noise)]
        total = sum(value.mean(axis=0) for value, _ in found)
        exact = matrix(pieces)[0]
        np.testing.assert_allclose(total, exact, atol=1e-8 * np.abs(exact).max())
        assert any(random for _, random in found) == any(own is not None and len(own.near) for own in openings)


def test_matrices_that_are_not_symmetric_are_opened_too():
    random = np.random.default_rng(5).normal(size=(6, 6))
    own = opened(random)
    np.testing.assert_allclose(own.left.T @ own.right + own.near.T @ own.far, random, atol=1e-12)
    assert float(jnp.sum(own.left**2) + jnp.sum(own.near**2)) == pytest.approx(np.linalg.norm(random, "nuc"))
    mild = random @ random.T - 2 * np.eye(6) + 1e-3 * random
    own = opened(mild)
    np.testing.assert_allclose(own.left.T @ own.right + own.near.T @ own.far, mild, atol=1e-12)
    noise = [float(jnp.sum(x**2) + jnp.sum(y**2)) for x, y in ((own.left, own.near), (own.right, own.far))]
    assert noise[0] == pytest.approx(noise[1]) and noise[0] < 1.001 * np.linalg.norm(mild, "nuc")
    outer = opened(np.outer(random[0], random[1]))
    assert len(outer.near) == 0
    np.testing.assert_allclose(outer.left.T @ outer.right, np.outer(random[0], random[1]), atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_large_symmetric_matrices_are_opened_by_a_factor(sign):
    """Positive ones with rounding between their halves, and one with eigenvalues of either sign."""
    random = np.random.default_rng(6).normal(size=(80, 80))
    matrix = random @ random.T / 80 + np.outer(random[0], random[0])
    matrix = matrix + 1e-13 * random if sign > 0 else matrix - 3 * np.eye(80)
    own = opened(matrix)
    np.testing.assert_allclose(own.left.T @ own.right + own.near.T @ own.far, matrix, atol=1e-11)
    largest = np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1]
    assert float(np.abs(own.left @ own.left.T)[0, 0]) == pytest.approx(largest)
    triangular = np.allclose(np.tril(own.near, -1), 0, atol=1e-12)
    assert triangular == (sign > 0) and (np.array_equal(own.near, own.far) or sign < 0)
