r"""Gaussian moments of one neuron with what training moves: tangents of groups of parameters, and hidden updates.

A tangent q = Σ θ_μ ∂z/∂θ_μ over a group of parameters is carried to the next layer by the derivative of
z' = b + W σ(z), q' = W σ' q, (10.43). Tangents and preactivations are jointly Gaussian at infinite width, so that
an expectation with q's is one of derivatives (Stein's lemma): each q meets another q or differentiates.

The penultimate layer is moved by the last layer's weights, dz_{j;d} = -η Σ H_{jk;da} κ_ac W_ik σ'_{k;a} ε_{i;c},
(10.8): a weight is a leg of Wick's theorem, which ties two neurons' slots or brings the σ of an error's own output,
each at the price 1/n. What has the fewest such prices is the leading order, (10.11), (10.12).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.gaussian.bracket import Bracket, Sigma, expect, partial
from derive.network.trees import insertions, parse
from derive.training.moments import ERROR, LEG, WickTerm, wick

a, b = LABELS = sp.symbols("a b")


@dataclass(frozen=True)
class TangentTerm:
    """number × Π covariances × <σ^(j)_a σ^(k)_b>: a covariance is (q or z, its subscripts), orders are (j, k)."""

    number: int
    covariances: tuple[tuple[str, str], ...]
    orders: tuple[int, int]


def with_tangents(integrand: sp.Expr, tangents: tuple[tuple[str, str], ...]) -> list[TangentTerm]:
    """E[integrand × tangents], a tangent being a group's letter and a label; labels of the integrand are a, b.

    >>> [(t.covariances, t.orders) for t in with_tangents(Sigma(a, 1) * Sigma(b), (("g", "a"),))]
    [((('z', 'gaa'),), (2, 0)), ((('z', 'gab'),), (1, 1))]
    """
    if not tangents:
        return _brackets(integrand)
    (group, own), rest = tangents[0], tangents[1:]
    found = []
    for k, (other, at) in enumerate(rest):
        pair = ("q", group + other + own + at)
        found += [(pair, term) for term in with_tangents(integrand, (*rest[:k], *rest[k + 1 :]))]
    for label in LABELS:
        pair = ("z", f"{group}{own}{label}")
        found += [(pair, term) for term in with_tangents(partial(integrand, label), rest)]
    return [TangentTerm(t.number, (pair, *t.covariances), t.orders) for pair, t in found]


def _brackets(integrand: sp.Expr) -> list[TangentTerm]:
    terms = []
    for term in sp.Add.make_args(expect(integrand)):
        number, bracket = term.as_coeff_Mul()
        assert isinstance(bracket, Bracket)
        order = {atom.label: atom.order for atom in bracket.args}
        terms.append(TangentTerm(int(number), (), (order[a], order[b])))
    return terms


def carried_with_output() -> list[TangentTerm]:
    """E[q'_a z'_b]/C_W of a tangent that is carried on."""
    return with_tangents(partial(Sigma(a), a) * Sigma(b), (("g", "a"),))


def carried_with_tangent() -> list[TangentTerm]:
    """E[q'_a q'_b]/C_W of two of them."""
    return with_tangents(partial(Sigma(a), a) * partial(Sigma(b), b), (("g", "a"), ("h", "b")))


def leading(kinds: tuple[str, ...], components: str) -> list[WickTerm]:
    """The terms of Wick's theorem with the fewest contractions of weights."""
    terms = wick(kinds, components)
    fewest = min(len(term.deltas) for term in terms)
    return [term for term in terms if len(term.deltas) == fewest]


def update_mean() -> list[WickTerm]:
    """One weight (slot a) and the error of the same output (slot b): the weight brings σ_b of the neuron."""
    return leading((LEG, ERROR), "ii")


def update_square() -> list[WickTerm]:
    """Two weights (slots a, b) that tie their neurons, and the errors of their outputs (slots c, d)."""
    terms = leading((LEG, LEG, ERROR, ERROR), "ijij")
    assert all(term.deltas == ("ab",) for term in terms)
    return terms


def tied_ntk() -> tuple[str, str]:
    """The tensor of E[H_{jk;da} H_{jk;eb}], j ≠ k, and its subscripts."""
    slots = dict(zip(parse("H.H").vertices, "daeb"))
    vertex = {name: v for v, name in slots.items()}
    neurons = {frozenset(vertex[name] for name in pair) for pair in ("de", "ab")}
    (found,) = [i for i in insertions("H.H") if {frozenset(pair) for pair in i.pairing} == neurons]
    return found.tensor, "".join(slots[v] for v in found.subscripts)
