"""Trees without vertices, weights without a name, symbols that are positive, tangents by Stein's lemma in numbers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import sympy as sp

from derive.gaussian.bracket import Sigma
from derive.training import AnyAlgorithm
from derive.training.projectors import eta, h
from derive.training.tangents import a, b, with_tangents
from derive.training.trees import LEAF, expansion, forests, trees


def test_nothing_has_one_forest_and_no_tree():
    assert trees(0) == [] and forests(0) == [()]


def test_two_training_samples_in_a_row_are_named_from_the_marks_on():
    """Σ over paths δ-a-b: the dNTK's inner vertex is a, the first sample that the mark meets."""
    (path, star) = expansion(("δ",), 2)
    assert (path.tensor, path.subscripts, star.subscripts) == ("dH", ("a", "δ", "b"), ("δ", "a", "b"))
    assert path.branches == (((LEAF,), ("a", "b")),)
    chains = [term for term in expansion(("x", "y"), 2) if term.branches[0][0] == (LEAF,)]
    assert [term.subscripts for term in chains] == [("x", "a", "y", "b"), ("y", "a", "x", "b")]
    assert all(term.branches == (((LEAF,), ("a", "b")),) for term in chains)


def test_rates_and_eigenvalues_are_positive():
    """SymPy may take roots and logarithms of products of them apart."""
    for symbol in (eta, h("a")):
        assert sp.sqrt(symbol**2) == symbol


def test_weights_without_a_name_are_as_many_as_trees():
    labels = ("a", "b", "c", "d")
    for size in (2, 3, 4):
        weights = {AnyAlgorithm().weight(tree, labels[:size]) for tree in trees(size)}
        assert len(weights) == len(trees(size))
        assert all(weight.args == tuple(h(label) for label in labels[:size]) for weight in weights)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_tangents_meet_in_pairs_or_shift_exponentials(count):
    """E[q_1 … q_k exp(z_a + z_b)]: exp shifts every q by its covariance with z_a + z_b, the rest is Wick's theorem."""
    rng = np.random.default_rng(count)
    root = rng.normal(size=(count + 2, count + 2))
    covariance = root @ root.T
    own = list(zip("ghkl", "abba"))[:count]
    shift = covariance[:count, count:].sum(axis=1)

    def moment(left: tuple[int, ...]) -> float:
        """E of shifted Gaussians: the first is its mean, or meets another."""
        if not left:
            return 1.0
        first, rest = left[0], left[1:]
        met = sum(covariance[first, k] * moment(tuple(m for m in rest if m != k)) for k in rest)
        return shift[first] * moment(rest) + met

    value = {}
    for i, (group, label) in enumerate(own):
        for place, other in enumerate("ab"):
            value["z", group + label + other] = covariance[i, count + place]
        for k, (second, at) in enumerate(own):
            value["q", group + second + label + at] = covariance[i, k]
    terms = with_tangents(Sigma(a) * Sigma(b), tuple(own))
    total = sum(t.number * prod(value[name] for name in t.covariances) for t in terms)  # all brackets are the same
    assert total == pytest.approx(moment(tuple(range(count))), rel=1e-12)
