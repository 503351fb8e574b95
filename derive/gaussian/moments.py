r"""E[prod_a z_a^(p_a) prod_j sgn(u_j)] for jointly Gaussian z and u: Wick's theorem and the arcsine law.

Stein's lemma lowers a power, E[z_a g] = mean_a E[g] + sum_b C_ab E[d_b g] + sum_j C_aj E[2 delta(u_j) g'], and a delta
function conditions the Gaussian on u_j = 0 (Schur complement); without signs that is Wick's theorem. What remains are
products of signs: E[sgn u] = erf(m/sqrt(2v)); for centred variables E[sgn u sgn v] = (2/pi) asin(rho) (Sheppard 1899),
odd numbers vanish; four and more correlated signs have no elementary closed form. Steps 1(z > x) and erf(y/sqrt(2)) =
E_w sgn(y + w), w ~ N(0, 1), are signs: this gives the arc-cosine kernels (Cho & Saul 2009) and the erf and GELU kernels
(Williams 1997).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product as cartesian

import sympy as sp

from derive.gaussian.elementary import NoClosedForm


@lru_cache(maxsize=65536)
def moment(powers: tuple[int, ...], mean: tuple[sp.Expr, ...], covariance: sp.ImmutableDenseMatrix) -> sp.Expr:
    """The first len(powers) variables are the z's, the others the u's of the signs."""
    n = len(powers)
    if not any(powers):
        return _signs(mean[n:], covariance[n:, n:])
    a = max(range(n), key=lambda i: powers[i])
    lower = _less(powers, a)
    total = sp.S.Zero if mean[a] == 0 else distribute(mean[a] * moment(lower, mean, covariance))
    for b in range(n):
        if lower[b] and covariance[a, b] != 0:
            total += distribute(lower[b] * covariance[a, b] * moment(_less(lower, b), mean, covariance))
    for j in range(n, len(mean)):
        if covariance[a, j] != 0:
            density = 2 * sp.exp(-(mean[j] ** 2) / (2 * covariance[j, j])) / root(2 * sp.pi * covariance[j, j])
            total += distribute(covariance[a, j] * density * moment(lower, *_given_zero(j, mean, covariance)))
    return distribute(total)


def distribute(expression: sp.Expr) -> sp.Expr:
    """Products over sums, leaving powers and denominators as they are (`expand` multiplies denominators out)."""
    if expression.is_Add:
        return sp.Add(*map(distribute, expression.args))
    sums = [a for a in expression.args if a.is_Add] if expression.is_Mul else []
    if not sums:
        return expression
    rest = sp.Mul(*(a for a in expression.args if not a.is_Add))
    return sp.Add(*(sp.Mul(rest, *parts) for parts in cartesian(*(a.args for a in sums))))


def _less(powers: tuple[int, ...], a: int) -> tuple[int, ...]:
    return (*powers[:a], powers[a] - 1, *powers[a + 1 :])


@lru_cache(maxsize=4096)
def _given_zero(
    j: int, mean: tuple[sp.Expr, ...], covariance: sp.ImmutableDenseMatrix
) -> tuple[tuple[sp.Expr, ...], sp.ImmutableDenseMatrix]:
    """Mean and covariance of the other variables given that variable j is zero."""
    keep = [i for i in range(len(mean)) if i != j]
    ratio = {i: sp.cancel(covariance[i, j] / covariance[j, j]) for i in keep}
    new = sp.ImmutableDenseMatrix(
        len(keep),
        len(keep),
        lambda r, c: sp.factor(covariance[keep[r], keep[c]] - ratio[keep[r]] * covariance[j, keep[c]]),
    )
    return tuple(sp.cancel(mean[i] - ratio[i] * mean[j]) for i in keep), new


def _signs(mean: tuple[sp.Expr, ...], covariance: sp.ImmutableDenseMatrix) -> sp.Expr:
    result = sp.S.One
    for group in components(covariance):
        centred = all(mean[i] == 0 for i in group)
        if centred and len(group) % 2:
            return sp.S.Zero
        if len(group) == 1:
            (i,) = group
            result *= sp.erf(mean[i] / root(2 * covariance[i, i]))
        elif len(group) == 2 and centred:
            i, j = group
            correlation = covariance[i, j] / (root(covariance[i, i]) * root(covariance[j, j]))
            result *= 2 * sp.asin(sp.simplify(correlation) if not correlation.free_symbols else correlation) / sp.pi
        else:
            raise NoClosedForm
    return result


def components(covariance: sp.ImmutableDenseMatrix) -> list[list[int]]:
    """The groups of correlated variables."""
    groups: list[list[int]] = []
    for i in range(covariance.shape[0]):
        joined = [g for g in groups if any(covariance[i, j] != 0 for j in g)]
        groups = [g for g in groups if g not in joined] + [sorted([i, *(j for g in joined for j in g)])]
    return groups


def root(expression: sp.Expr) -> sp.Expr:
    """sqrt, with what is a perfect square taken out."""
    return sp.sqrt(sp.factor(expression))
