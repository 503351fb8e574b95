"""A short checker of certificates that shares nothing with the code that made them: it evaluates and compares signs.

<s s''>_K by mpmath's tanh-sinh quadrature of the definition at 60 digits, on the two ends of the certified interval.
"""

from __future__ import annotations

import mpmath
import sympy as sp

z = sp.Symbol("z", real=True)


def expectation(pieces: list[sp.Expr], kinks: list[sp.Expr], K: mpmath.mpf) -> mpmath.mpf:
    """E[f(z)], z ~ N(0, K), for f given by pieces between kinks."""
    s = mpmath.sqrt(K)
    ends = [-18 * s, *(mpmath.mpf(str(sp.N(k, 70))) for k in kinks), 18 * s]
    total = mpmath.mpf(0)
    for piece, a, b in zip(pieces, ends, ends[1:]):
        f = sp.lambdify(z, piece, "mpmath")
        count = int(mpmath.ceil((b - a) / min(2 * s, mpmath.mpf(3))))
        total += mpmath.quad(
            lambda x, f=f: f(x) * mpmath.exp(-(x**2) / (2 * K)) / (s * mpmath.sqrt(2 * mpmath.pi)),
            mpmath.linspace(a, b, count + 1),
        )
    return total


def check_point(sigma: list[sp.Expr], kinks: list[sp.Expr], point: dict[str, object]) -> None:
    """The condition changes sign between the ends of K*, and C_W, C_b at the middle lie in their intervals."""
    with mpmath.workdps(60):
        low, high = (mpmath.mpf(x) for x in point["K_star"])
        bend = [s * sp.diff(s, z, 2) for s in sigma]
        assert expectation(bend, kinks, low) * expectation(bend, kinks, high) < 0
        middle = (low + high) / 2
        weight = 1 / expectation([sp.diff(s, z) ** 2 for s in sigma], kinks, middle)
        bias = middle - weight * expectation([s**2 for s in sigma], kinks, middle)
        for value, (bottom, top) in ((weight, point["C_W"]), (bias, point["C_b"])):
            assert mpmath.mpf(bottom) <= value <= mpmath.mpf(top)
