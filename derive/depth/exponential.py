r"""Series sum_k u_k(l) x^k in x = chi^(step l), with polynomials u_k in l: what tensors are near a non-critical K* = 0.

There chi_parallel = chi_perp = chi < 1, the kernel falls as chi^l, and every multiplier starts with a power of chi. A
step l -> l+1 turns u(l) x^k into chi_s^k u(l+1) x^k, chi_s = chi^step; where chi_s^k equals the multiplier's value the
solution gains one power of l. Numbers are mpmath's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath

ORDER = 9
"""Powers of x that are kept: sources whose first eight orders cancel are not met."""
_ZERO = 1e-16

Polynomial = tuple[Any, ...]
"""Coefficients of 1, l, l^2, ..."""


@dataclass(frozen=True)
class Exponentials:
    """One series, below x^ORDER."""

    terms: Mapping[int, Polynomial]

    @classmethod
    def number(cls, value: Any) -> Exponentials:
        return cls({0: (mpmath.mpf(value),)})

    def __add__(self, other: Exponentials) -> Exponentials:
        terms = dict(self.terms)
        for k, u in other.terms.items():
            terms[k] = _add(terms.get(k, ()), u)
        return Exponentials(terms)

    def __mul__(self, other: Exponentials) -> Exponentials:
        terms: dict[int, Polynomial] = {}
        for j, u in self.terms.items():
            for k, v in other.terms.items():
                if j + k < ORDER:
                    terms[j + k] = _add(terms.get(j + k, ()), _multiply(u, v))
        return Exponentials(terms)

    def __pow__(self, power: int) -> Exponentials:
        result = Exponentials.number(1)
        for _ in range(power):
            result = result * self
        return result

    def cleaned(self, scale: Any) -> Exponentials:
        """Without coefficients that are rounding, next to numbers of size `scale`."""
        terms = {}
        for k, u in self.terms.items():
            kept = list(u)
            while kept and abs(kept[-1]) < _ZERO * scale:
                kept.pop()
            if kept:
                terms[k] = tuple(kept)
        return Exponentials(terms)


def compose(coefficients: Mapping[int, Any], y: Exponentials) -> Exponentials:
    """sum_j c_j y^j; y has no constant term. Negative powers are taken out as powers of x by the caller."""
    total, product = Exponentials({}), Exponentials.number(1)
    for j in range(ORDER):
        if j in coefficients:
            total = total + product * Exponentials.number(coefficients[j])
        product = product * y
    return total


def solve_kernel(flow: Mapping[int, Any], chi: Any) -> Exponentials:
    """y of y' = chi y + sum_{j>=2} flow[j] y^j, normalized to y = x + ...: the inverse of Koenigs' function."""
    y = Exponentials({1: (mpmath.mpf(1),)})
    for k in range(2, ORDER):
        right = compose({1: chi, **flow}, y).terms.get(k, (mpmath.mpf(0),))
        y = y + Exponentials({k: (right[0] / (chi**k - chi),)})
    return y


def solve_linear(multiplier: Exponentials, source: Exponentials, chi: Any) -> tuple[Exponentials, int | None]:
    """(T, q): a solution of T' = m T + S order by order, and the q with chi^q = m at x^0 (None if there is none)."""
    start = multiplier.terms.get(0, (mpmath.mpf(0),))[0]
    rest = Exponentials({k: u for k, u in multiplier.terms.items() if k > 0})
    resonance = None
    solved = Exponentials({})
    for k in range(ORDER):
        known = (rest * solved + source).terms.get(k, ())
        factor = chi**k
        if start and abs(start / factor - 1) < 1e-12:
            resonance = k
        if known:
            solved = solved + Exponentials({k: _solve_step(factor, start, known)})
    return solved, resonance


def _solve_step(factor: Any, multiplier: Any, source: Polynomial) -> Polynomial:
    """u with factor u(l+1) - multiplier u(l) = source(l)."""
    resonant = multiplier != 0 and abs(factor / multiplier - 1) < 1e-12
    degree = len(source) - 1
    u = [mpmath.mpf(0)] * (degree + 2)
    for d in range(degree, -1, -1):
        place = d + 1 if resonant else d
        shifted = mpmath.fsum(factor * u[j] * mpmath.binomial(j, d) for j in range(place + 1, degree + 2))
        scale = factor * (d + 1) if resonant else factor - multiplier
        u[place] = (source[d] - shifted) / scale
    return tuple(u)


def _add(a: Sequence[Any], b: Sequence[Any]) -> Polynomial:
    length = max(len(a), len(b))
    return tuple((a[i] if i < len(a) else 0) + (b[i] if i < len(b) else 0) for i in range(length))


def _multiply(a: Sequence[Any], b: Sequence[Any]) -> Polynomial:
    result = [mpmath.mpf(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return tuple(result)
