"""Eigenvalues of a rotation-invariant kernel on the sphere (Funk-Hecke): Gegenbauer coefficients of its cosine form.

On the unit sphere of R^d with the uniform measure, K(x, x') = sum_k lambda_k N_k P_k(cos), where P_k is the Gegenbauer
polynomial with P_k(1) = 1 and N_k the number of harmonics of degree k, and lambda_k is the mean of K P_k. Three ways:
exact integration of a closed form in the angle (`exact_eigenvalue`), a power series in the cosine with exact
coefficients (`series_eigenvalues`), and Gauss-Legendre quadrature in the angle with an error estimate
(`sphere_eigenvalues`); kernels of relu networks are not smooth in the cosine at 1 but they are in the angle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
import sympy as sp

from numeric.errors import NumericError
from numeric.spectra.eigensystem import Array

ANGLE = sp.Symbol("phi", positive=True)
"""The angle between two inputs, for kernels given in closed form."""


@dataclass(frozen=True)
class SphereSpectrum:
    """Eigenvalues lambda_k for degrees 0...k_max, their multiplicities, and what is left of the trace beyond k_max.

    `error` bounds the quadrature's error of every eigenvalue (the difference to half as many nodes, plus rounding).
    """

    dimension: int
    eigenvalues: Array
    multiplicities: Array
    tail: float
    error: float


def multiplicity(dimension: int, degree: int) -> int:
    """N_k, the number of spherical harmonics of degree k in d dimensions.

    >>> [multiplicity(3, k) for k in range(4)], multiplicity(2, 5)
    ([1, 3, 5, 7], 2)
    """
    if degree < 2:
        return 1 if degree == 0 else dimension
    return comb(degree + dimension - 1, degree) - comb(degree + dimension - 3, degree - 2)


def gegenbauer(dimension: int, degree: int, cosine: Array) -> Array:
    """P_0 ... P_degree at the cosines, normalized to P_k(1) = 1, by the three-term recurrence (stable on [-1, 1])."""
    t = np.asarray(cosine, float)
    P = [np.ones_like(t), t]
    for k in range(1, degree):
        P.append(((2 * k + dimension - 2) * t * P[k] - k * P[k - 1]) / (k + dimension - 2))
    return np.array(P[: degree + 1])


def sphere_eigenvalues(
    kernel: Callable[[Array], Any], dimension: int, degree: int = 20, nodes: int = 256
) -> SphereSpectrum:
    """lambda_0 ... lambda_degree of a kernel that is a function of the cosine, with an estimate of the error.

    >>> linear = sphere_eigenvalues(lambda cosine: cosine, 3, degree=2)
    >>> bool(np.allclose(linear.eigenvalues, [0, 1 / 3, 0], atol=1e-15))
    True
    """
    if dimension < 2 or degree < 0 or nodes < 8:
        raise NumericError("the sphere needs dimension 2 or more, a degree of 0 or more, and at least 8 nodes")
    fine = _quadrature(kernel, dimension, degree, nodes)
    coarse = _quadrature(kernel, dimension, degree, nodes // 2)
    at_one = float(np.asarray(kernel(np.array([1.0])), float)[0])
    if not np.all(np.isfinite(fine)) or not np.isfinite(at_one):
        raise NumericError("the kernel has entries that are not finite numbers")
    error = float(np.abs(fine - coarse).max()) + 4e-16 * abs(at_one)
    if fine.min() < -10 * error:
        raise NumericError(f"the kernel is not positive semidefinite: it has the eigenvalue {fine.min():.3g}")
    eigenvalues = np.maximum(fine, 0.0)
    count = np.array([float(multiplicity(dimension, k)) for k in range(degree + 1)])
    tail = max(at_one - float(count @ eigenvalues), 0.0)
    return SphereSpectrum(dimension, eigenvalues, count, tail, error)


def series_eigenvalues(coefficients: Sequence[Any], dimension: int, degree: int) -> list[Any]:
    """lambda_0 ... lambda_degree of the kernel sum_m a_m cos^m, with exact rational weights.

    Exact coefficients give the exact eigenvalues of the truncated series.

    >>> series_eigenvalues([sp.Integer(0), sp.Integer(0), sp.Integer(1)], 3, 2)
    [1/3, 0, 2/15]
    """
    return [
        sum((a * _monomial(m, k, dimension) for m, a in enumerate(coefficients)), sp.Integer(0))
        for k in range(degree + 1)
    ]


def exact_eigenvalue(kernel: sp.Expr, dimension: int, degree: int) -> sp.Expr:
    """lambda_k of a kernel given as a SymPy polynomial in `ANGLE`, its sine and its cosine, integrated exactly.

    >>> exact_eigenvalue((sp.pi - ANGLE) / (2 * sp.pi), 3, 1)       # the step's kernel: half the chance to agree
    1/16
    """
    t = sp.Symbol("t")
    if dimension == 2:
        polynomial = sp.chebyshevt(degree, t)
    else:
        alpha = sp.Rational(dimension - 2, 2)
        polynomial = sp.gegenbauer(degree, alpha, t) / sp.gegenbauer(degree, alpha, 1)
    weight = sp.sin(ANGLE) ** (dimension - 2)
    norm = _integrate(weight)
    value = _integrate(sp.expand(kernel * polynomial.subs(t, sp.cos(ANGLE)) * weight)) / norm
    return sp.nsimplify(sp.simplify(value))


def _integrate(integrand: sp.Expr) -> sp.Expr:
    """Integral over the angle from 0 to pi of a polynomial in the angle, its sine and its cosine.

    Products of sines and cosines become sums of single ones, whose integrals with powers of the angle SymPy knows.
    """
    linear = sp.expand(sp.expand(integrand).rewrite(sp.exp))
    antiderivative = sp.Integer(0)
    for term in sp.Add.make_args(sp.expand(sp.powsimp(linear))):
        antiderivative += _exponential_term(term)
    return sp.simplify(sp.expand(antiderivative.subs(ANGLE, sp.pi) - antiderivative.subs(ANGLE, 0)))


def _exponential_term(term: sp.Expr) -> sp.Expr:
    """Antiderivative of c phi^a exp(i m phi), by repeated integration by parts."""
    constant, rest = term.as_independent(ANGLE)
    power, rate = 0, sp.Integer(0)
    for factor in sp.Mul.make_args(rest):
        if isinstance(factor, sp.exp):
            rate += factor.exp.coeff(ANGLE)
        elif factor.is_polynomial(ANGLE):
            power += sp.degree(factor, ANGLE) if factor.has(ANGLE) else 0
        else:
            raise NumericError(
                f"an exact eigenvalue needs a polynomial in the angle, its sine and cosine; got {factor}"
            )
    if rate == 0:
        return constant * ANGLE ** (power + 1) / (power + 1)
    total = sum((-1) ** j * sp.ff(power, j) * ANGLE ** (power - j) / rate ** (j + 1) for j in range(power + 1))
    return constant * total * sp.exp(rate * ANGLE)


@cache
def _monomial(m: int, k: int, dimension: int) -> sp.Rational:
    """The mean of cos^m P_k over the sphere, from the recurrence of the moments (exact)."""
    if k > m or (m - k) % 2:
        return sp.Integer(0)
    if k == 0:
        # E[cos^m] for even m: (m - 1)!! / (d (d + 2) ... (d + m - 2))
        value = sp.Integer(1)
        for j in range(0, m, 2):
            value *= sp.Rational(j + 1, dimension + j)
        return value
    if k == 1:
        return _monomial(m + 1, 0, dimension)
    # (k + d - 3) P_k = (2k + d - 4) cos P_{k-1} - (k - 1) P_{k-2}
    up = (2 * k + dimension - 4) * _monomial(m + 1, k - 1, dimension)
    return (up - (k - 1) * _monomial(m, k - 2, dimension)) / sp.Integer(k + dimension - 3)


def _quadrature(kernel: Callable[[Array], Any], dimension: int, degree: int, nodes: int) -> Array:
    x, w = np.polynomial.legendre.leggauss(nodes)
    phi = np.pi * (x + 1) / 2
    weight = w * np.sin(phi) ** (dimension - 2)
    weight /= weight.sum()
    values = np.asarray(kernel(np.cos(phi)), float)
    return gegenbauer(dimension, degree, np.cos(phi)) @ (weight * values)
