"""Draws that a contraction shares among the outputs: averaged over them where nothing else has met them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from numeric.trained.sampled.graph import Rows, contract, factor_edge, matrix_edge

SIZE, ROWS = 4, 3
random = np.random.default_rng(3)
A, B, C = random.normal(size=(3, SIZE, SIZE))
FACTOR = random.normal(size=(SIZE, 2))
CARRIER, FIRST, SECOND = random.normal(size=(3, ROWS, SIZE))
ONES = jnp.ones((1, SIZE))


def contracted(edges, places, carrier, groups):
    vectors = [None] * 4
    for label, vector in places.items():
        vectors[label] = jnp.asarray(vector)
    return np.asarray(contract(vectors, [matrix_edge(*e) for e in edges], 0, ONES, Rows(carrier, groups)))


def test_a_closed_branch_is_averaged_for_every_output():
    """x -A- carrier, x -B- 2 -C- 3 with draws on 2 and 3."""
    edges = [(0, 1, A), (0, 2, B), (2, 3, C)]
    found = contracted(edges, {1: CARRIER, 2: FIRST, 3: SECOND}, 1, (frozenset({2, 3}),))
    branch = np.einsum("xa,ra,ab,rb->x", B, FIRST, C, SECOND) / ROWS
    np.testing.assert_allclose(found, np.einsum("xa,ra->rx", A, CARRIER) * branch, rtol=1e-6)


def test_draws_on_both_sides_of_the_carrier_stay_with_their_output():
    """x -A- 2 -B- carrier -C- 3."""
    edges = [(0, 2, A), (2, 1, B), (1, 3, C)]
    found = contracted(edges, {1: CARRIER, 2: FIRST, 3: SECOND}, 1, (frozenset({2, 3}),))
    exact = np.einsum("xa,ra,ab,rb,bc,rc->rx", A, FIRST, B, CARRIER, C, SECOND)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_a_group_that_is_cut_keeps_the_other_one_open():
    """Two groups share the label 2: the mean waits for both."""
    edges = [(0, 1, A), (0, 2, B), (2, 3, C)]
    places = {0: CARRIER + FIRST, 1: CARRIER, 2: FIRST, 3: SECOND}
    found = contracted(edges, places, 1, (frozenset({2, 3}), frozenset({0, 2})))
    branch = np.einsum("rx,xa,ra,ab,rb->x", CARRIER + FIRST, B, FIRST, C, SECOND) / ROWS
    np.testing.assert_allclose(found, np.einsum("xa,ra->rx", A, CARRIER) * branch, rtol=1e-5)


@pytest.mark.parametrize("forward", [True, False])
def test_a_thin_factor_is_its_matrix(forward):
    edge = factor_edge(0, 1, jnp.asarray(FACTOR))
    found = (edge.forward if forward else edge.backward)(jnp.asarray(CARRIER))
    np.testing.assert_allclose(found, CARRIER @ FACTOR @ FACTOR.T, rtol=1e-6)
