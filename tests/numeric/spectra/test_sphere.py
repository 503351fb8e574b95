"""Gegenbauer coefficients three ways, against 30-digit integrals and sampled harmonics."""

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from numeric.errors import NumericError
from numeric.spectra.sphere import (
    ANGLE,
    exact_eigenvalue,
    gegenbauer,
    multiplicity,
    series_eigenvalues,
    sphere_eigenvalues,
)

ARCCOS = (sp.sin(ANGLE) + (sp.pi - ANGLE) * sp.cos(ANGLE)) / (2 * sp.pi)


def arccos(cosine):
    angle = np.arccos(np.clip(cosine, -1, 1))
    return (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)


def by_mpmath(kernel, d, k):
    """The mean of kernel times P_k over the sphere, with mpmath's own Gegenbauer function."""
    with mp.workdps(30):
        alpha = mp.mpf(d - 2) / 2
        normalized = (
            (lambda t: mp.chebyt(k, t)) if d == 2 else lambda t: mp.gegenbauer(k, alpha, t) / mp.gegenbauer(k, alpha, 1)
        )
        weight = lambda p: mp.sin(p) ** (d - 2)  # noqa: E731
        top = mp.quad(lambda p: kernel(p) * normalized(mp.cos(p)) * weight(p), mp.linspace(0, mp.pi, 5))
        return top / mp.quad(weight, mp.linspace(0, mp.pi, 3))


@pytest.mark.parametrize("d", [2, 3, 8])
def test_exact_and_quadrature_against_mpmath(d):
    kernel = lambda p: (mp.sin(p) + (mp.pi - p) * mp.cos(p)) / (2 * mp.pi)  # noqa: E731
    spectrum = sphere_eigenvalues(arccos, d, 6)
    for k in (0, 1, 2, 3, 6):
        truth = by_mpmath(kernel, d, k)
        with mp.workdps(30):
            assert abs(mp.mpf(str(sp.N(exact_eigenvalue(ARCCOS, d, k), 30))) - truth) < mp.mpf(10) ** -25
        assert abs(spectrum.eigenvalues[k] - float(truth)) <= spectrum.error + 1e-16
    assert spectrum.error < 1e-14


def test_deep_relu_kernel_is_smooth_in_the_angle():
    """Three layers: not smooth in the cosine, yet the quadrature in the angle keeps its error estimate."""

    def deep(cosine):
        return arccos(2 * arccos(cosine))

    layer = lambda c: (mp.sqrt(1 - c**2) + (mp.pi - mp.acos(c)) * c) / (2 * mp.pi)  # noqa: E731
    spectrum = sphere_eigenvalues(deep, 5, 4)
    truth = by_mpmath(lambda p: layer(2 * layer(mp.cos(p))), 5, 3)
    assert abs(spectrum.eigenvalues[3] - float(truth)) < 1e-13


def test_series_of_a_smooth_kernel():
    """exp(cos) from its Taylor series and from quadrature."""
    series = series_eigenvalues([sp.Rational(1, sp.factorial(m)) for m in range(30)], 5, 5)
    assert np.allclose([float(v) for v in series], sphere_eigenvalues(np.exp, 5, 5).eigenvalues, atol=2e-15)


def test_trace_and_tail():
    spectrum = sphere_eigenvalues(np.exp, 4, 3)
    assert spectrum.multiplicities @ spectrum.eigenvalues + spectrum.tail == pytest.approx(np.e, abs=1e-14)
    assert sphere_eigenvalues(np.exp, 4, 25).tail < 1e-13


def test_multiplicity_is_the_trace_of_the_projector():
    """N_k from E[P_k(x.x')^2] = 1/N_k, by exact series integration."""
    t = sp.Symbol("t")
    for d, k in ((3, 2), (4, 3), (7, 2)):
        alpha = sp.Rational(d - 2, 2)
        P = sp.Poly(sp.gegenbauer(k, alpha, t) / sp.gegenbauer(k, alpha, 1), t)
        norm = series_eigenvalues(list(reversed(P.all_coeffs())), d, k)[k]
        assert norm == sp.Rational(1, multiplicity(d, k))
        at = np.linspace(-1, 1, 5)
        assert np.allclose(gegenbauer(d, k, at)[k], sp.lambdify(t, P.as_expr())(at), atol=1e-14)


def test_refusals():
    with pytest.raises(NumericError, match="positive semidefinite"):
        sphere_eigenvalues(lambda c: -c, 3, 2)
    with pytest.raises(NumericError, match="polynomial in the angle"):
        exact_eigenvalue(sp.log(ANGLE), 3, 1)
