"""Each derived recursion against its entry of THEORY.md, typed here, as an exact symbolic identity.

The right-hand sides use only `expect` and `partial` of the bracket module; sums run over the labels that
occur in the bracket.
"""

from itertools import product

import pytest
import sympy as sp

import derive
from derive.gaussian.bracket import Sigma, expect, partial
from derive.network import TENSORS, Component, initial, recursion
from derive.symbols import C_W, C_b, lambda_b, lambda_W, r


def s(label, order=0):
    return Sigma(label, order)


def C(name):
    return lambda *labels: Component(name, *labels)


Theta, G1, H1 = C("Theta"), C("G1"), C("H1")
V, D, F, A, B, P, Q, R, S, T, U = map(C, "VDFABPQRSTU")


def occurring(f):
    return sorted({int(a.label) for a in f.atoms(Sigma)})


def d(f, *labels):
    for label in labels:
        f = partial(f, label)
    return expect(f)


def total(coefficient, *functions_and_counts):
    """Sum over labels g of coefficient(g...) times products of <d_g... f>: functions as (f, number of derivatives)."""
    ranges = [occurring(f) for f, count in functions_and_counts for _ in range(count)]
    result = sp.S.Zero
    for labels in product(*ranges):
        term, start = coefficient(*labels), 0
        for f, count in functions_and_counts:
            term *= d(f, *labels[start : start + count])
            start += count
        result += term
    return result


def Omega(a, b):
    return lambda_W * s(a) * s(b) + C_W * Theta(a, b) * s(a, 1) * s(b, 1)


def omega(a, b):
    return lambda_W * s(a, 1) * s(b) + C_W * Theta(a, b) * s(a, 2) * s(b, 1)


def dl(f):
    return total(G1, (f, 2)) / 2 + total(V, (f, 4)) / 8


def E(*factors):
    return expect(sp.Mul(*factors))


THEORY = {
    "K": C_b + C_W * E(s(1), s(2)),
    "Theta": lambda_b + lambda_W * E(s(1), s(2)) + C_W * E(s(1, 1), s(2, 1)) * Theta(1, 2),
    "V": C_W**2 * (E(s(1), s(2), s(3), s(4)) - E(s(1), s(2)) * E(s(3), s(4)))
    + r * C_W**2 / 4 * total(V, (s(1) * s(2), 2), (s(3) * s(4), 2)),
    "G1": r * C_W * dl(s(1) * s(2)),
    "D": C_W * (E(s(1), s(2), Omega(3, 4)) - E(s(1), s(2)) * E(Omega(3, 4)))
    + r * C_W / 4 * total(V, (s(1) * s(2), 2), (Omega(3, 4), 2))
    + r * C_W**2 / 2 * E(s(3, 1), s(4, 1)) * total(lambda g, h: D(g, h, 3, 4), (s(1) * s(2), 2)),
    "F": C_W**2 * E(s(1), s(2), s(3, 1), s(4, 1)) * Theta(3, 4)
    + r * C_W**2 * total(lambda g, h: F(g, 3, h, 4), (s(1) * s(3, 1), 1), (s(2) * s(4, 1), 1)),
    "H1": r
    * (
        lambda_W * dl(s(1) * s(2))
        + C_W * Theta(1, 2) * dl(s(1, 1) * s(2, 1))
        + C_W * E(s(1, 1), s(2, 1)) * H1(1, 2)
        + C_W / 2 * total(lambda g, h: D(g, h, 1, 2) + F(g, 1, h, 2) + F(g, 2, h, 1), (s(1, 1) * s(2, 1), 2))
    ),
    "A": E(Omega(1, 2), Omega(3, 4))
    - E(Omega(1, 2)) * E(Omega(3, 4))
    + r / 4 * total(V, (Omega(1, 2), 2), (Omega(3, 4), 2))
    + r * C_W / 2 * E(s(3, 1), s(4, 1)) * total(lambda g, h: D(g, h, 3, 4), (Omega(1, 2), 2))
    + r * C_W / 2 * E(s(1, 1), s(2, 1)) * total(lambda g, h: D(g, h, 1, 2), (Omega(3, 4), 2))
    + r * C_W**2 * E(s(1, 1), s(2, 1)) * E(s(3, 1), s(4, 1)) * A(1, 2, 3, 4),
    "B": C_W**2 * E(s(1, 1), s(2, 1), s(3, 1), s(4, 1)) * Theta(1, 2) * Theta(3, 4)
    + r * C_W**2 * E(s(1, 1), s(3, 1)) * E(s(2, 1), s(4, 1)) * B(1, 3, 2, 4),
    "P": C_W**2 * E(s(0, 2), s(1, 1), s(2, 1), s(3)) * Theta(0, 1) * Theta(0, 2)
    + r
    * C_W**2
    * E(s(1, 1), s(2, 1))
    * (E(s(0, 2), s(3)) * B(0, 0, 1, 2) + total(lambda g: P(0, 1, 2, g), (s(0, 1) * s(3), 1))),
    "Q": C_W * E(s(2, 1), s(3), omega(0, 1)) * Theta(0, 2)
    + r * C_W * total(lambda g, h: F(g, 0, h, 2), (omega(0, 1), 1), (s(2, 1) * s(3), 1))
    + r * C_W**2 * E(s(0, 1), s(1, 1)) * total(lambda g: Q(0, 1, 2, g), (s(2, 1) * s(3), 1)),
    "R": lambda_W * C_W * E(s(0, 2), s(1), s(2, 1), s(3, 1)) * Theta(0, 2) * Theta(0, 3)
    + C_W**2 * E(s(0, 3), s(1, 1), s(2, 1), s(3, 1)) * Theta(0, 1) * Theta(0, 2) * Theta(0, 3)
    + r
    * C_W
    * E(s(2, 1), s(3, 1))
    * (
        lambda_W * (E(s(0, 2), s(1)) * B(0, 0, 2, 3) + total(lambda g: P(0, 2, 3, g), (s(0, 1) * s(1), 1)))
        + C_W
        * Theta(0, 1)
        * (E(s(0, 3), s(1, 1)) * B(0, 0, 2, 3) + total(lambda g: P(0, 2, 3, g), (s(0, 2) * s(1, 1), 1)))
        + C_W * E(s(0, 1), s(1, 1)) * R(0, 1, 2, 3)
    ),
    "S": C_W * lambda_W * E(s(1, 1), s(2, 1), s(3, 1), s(4, 1)) * Theta(1, 3) * Theta(2, 4)
    + C_W**2 * E(s(1, 2), s(2, 2), s(3, 1), s(4, 1)) * Theta(1, 2) * Theta(1, 3) * Theta(2, 4)
    + r
    * C_W
    * E(s(3, 1), s(4, 1))
    * (lambda_W * E(s(1, 1), s(2, 1)) + C_W * Theta(1, 2) * E(s(1, 2), s(2, 2)))
    * B(1, 2, 3, 4)
    + r * C_W**2 * E(s(1, 1), s(2, 1)) * E(s(3, 1), s(4, 1)) * S(1, 2, 3, 4),
    "T": E(omega(1, 3), omega(2, 4)) * Theta(1, 2)
    + r * total(lambda g, h: F(g, 1, h, 2), (omega(1, 3), 1), (omega(2, 4), 1))
    + r * C_W * E(s(2, 1), s(4, 1)) * total(lambda g: Q(2, 4, 1, g), (omega(1, 3), 1))
    + r * C_W * E(s(1, 1), s(3, 1)) * total(lambda g: Q(1, 3, 2, g), (omega(2, 4), 1))
    + r * C_W**2 * E(s(1, 1), s(3, 1)) * E(s(2, 1), s(4, 1)) * T(1, 3, 4, 2),
    "U": C_W**2 * E(s(1, 2), s(2, 2), s(3, 1), s(4, 1)) * Theta(1, 2) * Theta(1, 3) * Theta(2, 4)
    + r * C_W**2 * E(s(1, 1), s(4, 1)) * E(s(2, 1), s(3, 1)) * U(1, 4, 2, 3),
}


@pytest.mark.parametrize("name", list(THEORY))
def test_recursion_is_the_theory_pages(name):
    assert sp.expand(recursion(name).expression - THEORY[name]) == 0


@pytest.mark.parametrize("name", list(THEORY))
def test_a_wrong_coefficient_would_be_seen(name):
    """The comparison can fail: each monomial of the answer key matters."""
    wrong = sp.expand(THEORY[name])
    for monomial in sp.Add.make_args(wrong):
        assert sp.expand(recursion(name).expression - (wrong + monomial)) != 0


@pytest.mark.parametrize("name", list(THEORY))
def test_displayed_terms_add_up_and_labels_are_the_tensors_own(name):
    derived = recursion(name)
    assert sp.expand(sum(t.expression for t in derived.terms) - THEORY[name]) == 0
    labels = {int(a.label) for a in derived.expression.atoms(Sigma)}
    labels |= {int(x) for c in derived.expression.atoms(Component) for x in c.labels}
    assert labels <= set(derived.labels) == set(TENSORS[name].subscripts)


SYMMETRIES = {  # what THEORY.md's decompositions imply, as maps of the subscripts written there
    "K": ["12", "21"],
    "Theta": ["12", "21"],
    "G1": ["12", "21"],
    "H1": ["12", "21"],
    "V": ["1234", "2134", "1243", "2143", "3412", "4312", "3421", "4321"],
    "A": ["1234", "2134", "1243", "2143", "3412", "4312", "3421", "4321"],
    "D": ["1234", "2134", "1243", "2143"],
    "F": ["1324", "2413"],
    "B": ["1324", "3142", "2413", "4231"],
    "P": ["0123", "0213"],
    "Q": ["0123"],
    "R": ["0123", "0132"],
    "S": ["1234", "2143"],
    "T": ["1342", "2431"],
    "U": ["1423", "2314"],
}


@pytest.mark.parametrize("name", list(SYMMETRIES))
def test_symmetries(name):
    derived = recursion(name)
    spelled = {"".join(str(derived.labels[k]) for k in g) for g in derived.symmetries}
    assert spelled == set(SYMMETRIES[name])
    for text in SYMMETRIES[name]:  # and the recursion respects them
        mapping = dict(zip(derived.labels, map(int, text)))
        moved = sum(t.relabel(mapping).expression for t in derived.terms)
        assert sp.expand(moved - derived.expression) == 0


DEPENDS = {
    "K": "K",
    "Theta": "K Theta",
    "V": "K V",
    "G1": "K V G1",
    "D": "K Theta V D",
    "F": "K Theta F",
    "H1": "K Theta V G1 D F H1",
    "A": "K Theta V D A",
    "B": "K Theta B",
    "P": "K Theta B P",
    "Q": "K Theta F Q",
    "R": "K Theta B P R",
    "S": "K Theta B S",
    "T": "K Theta F Q T",
    "U": "K Theta U",
}


@pytest.mark.parametrize("name", list(DEPENDS))
def test_dependencies(name):
    assert recursion(name).depends_on == tuple(DEPENDS[name].split())


def test_first_layer():
    gram = Component("Gram", 1, 2)
    assert sp.expand(initial("K").expression - (C_b + C_W * gram)) == 0
    assert sp.expand(initial("Theta").expression - (lambda_b + lambda_W * gram)) == 0
    assert all(initial(name).expression == 0 for name in TENSORS if name not in ("K", "Theta"))


def test_equal_widths_only_sets_the_ratio_to_one():
    for name in TENSORS:
        assert sp.expand(recursion(name).equal_widths().expression - THEORY[name].subs(r, 1)) == 0


def test_unknown_tensor_is_one_sentence():
    with pytest.raises(derive.errors.DeriveError, match="no tensor 'Z'; choose one of K Theta V"):
        recursion("Z")


def test_public_name():
    assert derive.recursion("R") is recursion("R")
