r"""The mutual information of two sets of outputs, and the aspect ratio L/n that maximizes it; PDLT A.3, derived.

For one input the outputs of a network are a Gaussian scale mixture: given everything before the last layer they are
independent Gaussians with one common variance K (1 + g), a random number with E[g] = 0 and E[g^2] = v = V/(n K^2).
Expanding the densities in g (generalized Laguerre polynomials) gives the mutual information as a series in v; the third
cumulant of g, of order v^2, drops out at order v^3, since it comes with a polynomial orthogonal to the one of v.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

v, m_1, m_2 = sp.symbols("v m_1 m_2", positive=True)
"""V/(n K^2), and the numbers of outputs in the two sets."""
_third = sp.Symbol("kappa_3")


def _relative_entropy(m: sp.Expr) -> sp.Expr:
    """E[r log r] through v^3, for r the density of m outputs over that of m Gaussians, both at K = 1.

    r = E_g[(1+g)^(-m/2) exp(t g/(2(1+g)))] with t = |z|^2, which is chi-squared with m degrees of freedom under the
    Gaussian: E[t^k] = m (m+2) ... (m+2k-2).
    """
    t = sp.Symbol("t")
    logarithm = [
        sp.S.Zero,
        *((-1) ** (j + 1) * (t - m / j) / 2 for j in range(1, 5)),
    ]  # of the integrand, in powers of g
    terms = [sp.S.One]
    for k in range(1, 5):  # its exponential, by f' = (log f)' f
        terms.append(sp.expand(sum(j * logarithm[j] * terms[k - j] for j in range(1, k + 1)) / k))
    moments = {2: v, 3: _third * v**2, 4: 3 * v**2}  # of g, through order v^2
    d = sp.expand(sum(terms[k] * moment for k, moment in moments.items()))
    first, second = d.coeff(v, 1), d.coeff(v, 2)
    # r log r with r = 1 + d is d + d^2/2 - d^3/6 + ..., and E[d] = 0
    powers = sp.Poly(v**2 * first**2 / 2 + v**3 * (first * second - first**3 / 6), t)
    return sp.expand(sum(c * sp.prod([m + 2 * j for j in range(k)]) for (k,), c in powers.terms()))


@cache
def mutual_information() -> sp.Expr:
    """I of m_1 and m_2 outputs through v^3.

    >>> sp.factor(mutual_information())
    -m_1*m_2*v**2*(3*m_1*v + 3*m_2*v + 20*v - 6)/48
    """
    both = _relative_entropy(m_1 + m_2)
    return sp.expand(both - _relative_entropy(m_1) - _relative_entropy(m_2))


@cache
def best_fluctuation() -> sp.Expr:
    """The v = V/(n K^2) at which the mutual information is largest, in terms of all outputs n_L = m_1 + m_2.

    >>> best_fluctuation()
    4/(3*n_L + 20)
    """
    n_L = sp.Symbol("n_L", positive=True)
    slope = sp.cancel(sp.diff(mutual_information(), v) / v)
    (found,) = sp.solve(slope.subs(m_2, n_L - m_1), v)
    return sp.factor(found)


def best_aspect_ratio(nu: float, outputs: int) -> float:
    """r* = L/n for V/(n K^2) = nu L/n and that many outputs.

    >>> best_aspect_ratio(5.0, 2)
    0.03076923076923077
    """
    (n_L,) = best_fluctuation().free_symbols
    return float(best_fluctuation().subs(n_L, outputs)) / nu
