r"""Exponentials under a Gaussian: completing the square.

E[exp(alpha.z - z.B z/2) g(z)] over N(m, K), B diagonal, is a constant times E[g] over another Gaussian:
covariance S = K (1 + B K)^(-1) and mean m + S a with a = alpha - B m; the constant is
det(1 + K B)^(-1/2) exp(alpha.m - m.B m/2 + a.S a/2). For B = 0 and g = 1 this is the moment generating function.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from derive.errors import DivergentExpectation


def tilt(
    mean: Sequence[sp.Expr], covariance: sp.ImmutableDenseMatrix, alpha: Sequence[sp.Expr], beta: Sequence[sp.Expr]
) -> tuple[sp.Expr, tuple[sp.Expr, ...], sp.ImmutableDenseMatrix]:
    """(constant, mean, covariance) of the tilted Gaussian.

    >>> K = sp.Symbol("K", positive=True)
    >>> tilt([sp.S.Zero], sp.ImmutableDenseMatrix([[K]]), [sp.S.One], [sp.S.Zero])
    (exp(K/2), (K,), Matrix([[K]]))
    """
    n = len(mean)
    m, a, B = sp.Matrix(list(mean)), sp.Matrix(list(alpha)), sp.diag(*beta)
    constant: sp.Expr = sp.S.One
    if not any(beta):
        S = sp.Matrix(covariance)
    else:
        one = sp.eye(n) + sp.Matrix(covariance) * B
        determinant = sp.factor(sp.cancel(one.det()))
        _check_integrable(one, beta)
        constant = 1 / sp.sqrt(determinant)
        S = (one.adjugate() * sp.Matrix(covariance) / determinant).applyfunc(lambda x: sp.factor(sp.cancel(x)))
    shift = a - B * m
    exponent = sp.expand(a.dot(m) - m.dot(B * m) / 2 + shift.dot(S * shift) / 2) if n else sp.S.Zero
    new_mean = tuple(sp.cancel(x) for x in m + S * shift)
    return constant * sp.exp(exponent), new_mean, sp.ImmutableDenseMatrix(S)


def _check_integrable(one: sp.Matrix, beta: Sequence[sp.Expr]) -> None:
    """With some beta < 0 the integral exists only if 1 + K B has positive eigenvalues (checked for numbers)."""
    if one.free_symbols or all(b.is_nonnegative for b in beta):
        return
    if any(sp.re(value) <= 0 for value in (sp.Matrix(one).evalf(30)).eigenvals(multiple=True)):
        raise DivergentExpectation(
            "The expectation diverges: the integrand grows as fast as the Gaussian of this K decays."
        )
