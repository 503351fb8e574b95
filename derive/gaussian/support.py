"""From a bracket to regular Gaussian integrals: perfectly correlated labels are merged, delta functions integrated.

Labels with correlation exactly 1 or -1 are one variable (z_b = c z_a), a label of zero variance is a number, and a
delta function fixes its variable: E[delta^(k)(z_a - x) G] = (-1)^k d^k/dx^k { p_a(x) E[G | z_a = x] }, where d/dx acts
on the conditional expectation as sum_b (K_ab/K_aa) d_b. What is left are products of ordinary functions, one a label,
over a Gaussian with covariance and mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import sympy as sp

from derive.activations import Delta
from derive.gaussian.bracket import Sigma
from derive.gaussian.covariance import Covariance, sign
from derive.gaussian.distribution import Distribution, activations_of, monomial, product, sigma_distribution


@dataclass(frozen=True)
class GaussianIntegral:
    """coefficient * E[prod_a factors[a](z_a)], z ~ N(mean, covariance) with one entry a label."""

    coefficient: sp.Expr
    factors: tuple[Distribution, ...]
    mean: tuple[sp.Expr, ...]
    covariance: sp.ImmutableDenseMatrix

    def without(self, i: int) -> GaussianIntegral:
        keep = [j for j in range(len(self.factors)) if j != i]
        return GaussianIntegral(
            self.coefficient,
            tuple(self.factors[j] for j in keep),
            tuple(self.mean[j] for j in keep),
            self.covariance.extract(keep, keep),
        )

    def with_factor(self, i: int, factor: Distribution, coefficient: sp.Expr) -> GaussianIntegral:
        factors = (*self.factors[:i], factor, *self.factors[i + 1 :])
        return GaussianIntegral(self.coefficient * coefficient, factors, self.mean, self.covariance)


def regular_integrals(bracket: sp.Expr, activation: object, K: Covariance) -> list[GaussianIntegral]:
    """The bracket as a sum of regular integrals; `DivergentExpectation` where it does not exist."""
    if bracket == 1:
        return [GaussianIntegral(sp.S.One, (), (), sp.ImmutableDenseMatrix(0, 0, []))]
    grouped: dict[sp.Basic, list[Distribution]] = defaultdict(list)
    named = activations_of(activation, {a.function for a in bracket.args if isinstance(a, Sigma)})
    insertions: dict[sp.Basic, int] = defaultdict(int)
    for atom in bracket.args:
        if isinstance(atom, Sigma):
            grouped[atom.label].append(sigma_distribution(named[atom.function], atom.order))
        else:
            insertions[atom.label] += 1
    for label, power in insertions.items():
        grouped[label].append(monomial(power))
    lists, mean, matrix = _merge([grouped[label] for label in K.labels], [sp.S.Zero] * len(K.labels), K.matrix)
    start = GaussianIntegral(sp.S.One, tuple(product(fs) for fs in lists), tuple(mean), matrix)
    return [term for term in _regularize(start) if term.coefficient != 0]


def _merge(
    lists: list[list[Distribution]], mean: list[sp.Expr], matrix: sp.ImmutableDenseMatrix
) -> tuple[list[list[Distribution]], list[sp.Expr], sp.ImmutableDenseMatrix]:
    """Fold every label that is an exact multiple of an earlier one into that one."""
    kept: list[int] = []
    lists = [list(fs) for fs in lists]
    for b in range(len(lists)):
        parent = next((a for a in kept if _perfectly_correlated(matrix, a, b)), None)
        if parent is None:
            kept.append(b)
            continue
        c = sp.cancel(matrix[parent, b] / matrix[parent, parent])
        if not _is_zero(c**2 * matrix[parent, parent] - matrix[b, b]):  # float input, correlation rounded above 1
            c = sign(c) * sp.sqrt(matrix[b, b] / matrix[parent, parent])
        shift = mean[b] - c * mean[parent]
        lists[parent] += [f.affine(c, shift) if (c, shift) != (1, 0) else f for f in lists[b]]
    return [lists[a] for a in kept], [mean[a] for a in kept], matrix.extract(kept, kept)


def _perfectly_correlated(matrix: sp.ImmutableDenseMatrix, a: int, b: int) -> bool:
    if _is_zero(matrix[a, a]) or _is_zero(matrix[b, b]):
        return False
    gap = matrix[a, a] * matrix[b, b] - matrix[a, b] ** 2
    return _is_zero(gap) or (not gap.free_symbols and sign(gap) < 0)


def _is_zero(expression: sp.Expr) -> bool:
    if expression.is_Rational:
        return bool(expression == 0)
    if expression.free_symbols:
        return bool(sp.cancel(expression) == 0)
    return sign(expression) == 0


def _regularize(term: GaussianIntegral) -> Iterator[GaussianIntegral]:
    for i, factor in enumerate(term.factors):
        if _is_zero(term.covariance[i, i]):
            value = factor.at(term.mean[i])
            yield from _regularize(_times(term.without(i), value))
            return
    lists, mean, matrix = _merge([[f] for f in term.factors], list(term.mean), term.covariance)
    if len(lists) < len(term.factors):
        merged = GaussianIntegral(term.coefficient, tuple(product(fs) for fs in lists), tuple(mean), matrix)
        yield from _regularize(merged)
        return
    for i, factor in enumerate(term.factors):
        if factor.deltas:
            yield from _regularize(term.with_factor(i, factor.regular, sp.S.One))
            for delta in factor.deltas:
                yield from _condition(term, i, delta)
            return
    yield term


def _times(term: GaussianIntegral, value: sp.Expr) -> GaussianIntegral:
    return GaussianIntegral(term.coefficient * value, term.factors, term.mean, term.covariance)


def _condition(term: GaussianIntegral, i: int, delta: Delta) -> Iterator[GaussianIntegral]:
    variance, x, k = term.covariance[i, i], sp.Dummy(), delta.order
    density = sp.exp(-((x - term.mean[i]) ** 2) / (2 * variance)) / sp.sqrt(2 * sp.pi * variance)
    slope = [sp.cancel(term.covariance[j, i] / variance) for j in range(len(term.factors))]
    n = len(term.factors)
    matrix = sp.ImmutableDenseMatrix(
        n, n, lambda a, b: sp.cancel(term.covariance[a, b] - slope[a] * term.covariance[i, b])
    )
    mean = tuple(m + c * (delta.at - term.mean[i]) for m, c in zip(term.mean, slope))
    rest = [GaussianIntegral(term.coefficient, term.factors, mean, matrix).without(i)]
    slopes = [c for j, c in enumerate(slope) if j != i]
    for j in range(k + 1):
        weight = delta.coefficient * (-1) ** k * comb(k, j) * sp.diff(density, x, k - j).xreplace({x: delta.at})
        if weight != 0:
            for one in rest:
                yield from _regularize(_times(one, weight))
        rest = [  # d/dx of the conditional expectation
            one.with_factor(b, one.factors[b].derivative(), c) for one in rest for b, c in enumerate(slopes) if c != 0
        ]
