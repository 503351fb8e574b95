"""Entries of a tensor from the stored unique quadruples, against a dictionary filled label by label."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from numeric.brackets import arrangements, block, sorted_quadruples, tensor
from numeric.brackets.storage import LARGEST_INT32, _slot

PATTERNS = ((0, 1, 1, 2), (0, 0, 1, 1), (1, 1, 1, 3))
SIZE = 5


def stored():
    """Random numbers as brackets, and what they say of each product {(label, order), ...} of four factors."""
    rows, columns = sorted_quadruples(SIZE), arrangements(PATTERNS)
    unique = np.random.default_rng(3).normal(size=(len(rows), len(columns)))
    table = {}
    for i, labels in enumerate(rows.tolist()):
        for j, orders in enumerate(columns):
            key = tuple(sorted(zip(labels, orders)))
            unique[i, j] = table.setdefault(key, unique[i, j])
    return jnp.asarray(unique), table


def test_every_entry_is_found_where_its_factors_are_stored():
    unique, table = stored()
    for pattern in ((2, 1, 0, 1), (0, 1, 0, 1), (1, 1, 3, 1)):
        array = np.asarray(tensor(unique, PATTERNS, pattern, SIZE))
        for labels in itertools.product(range(SIZE), repeat=4):
            assert array[labels] == table[tuple(sorted(zip(labels, pattern)))]


def test_blocks_are_rows():
    unique, _ = stored()
    array = tensor(unique, PATTERNS, (2, 1, 0, 1), SIZE)
    rows = block(unique, PATTERNS, (2, 1, 0, 1), SIZE, jnp.array([3, 0]), jnp.array([1, 4]))
    np.testing.assert_array_equal(rows, jnp.stack([array[3, 1], array[0, 4]]))


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_addresses_of_the_largest_size_fit_their_integers(kind):
    """The last quadruple of LARGEST_INT32 labels, counted in Python's integers."""
    size = LARGEST_INT32
    labels = (size - 40, size - 3, size - 2, size - 1)
    before = math.comb(size + 3, 4)
    for place, label in enumerate(labels):  # those that are larger first at this place, and itself
        before -= math.comb(size - 1 - label + 3 - place, 4 - place)
    assert int(_slot([jnp.asarray(x, kind) for x in labels], size)) == before - 1
