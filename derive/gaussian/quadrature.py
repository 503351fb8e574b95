r"""Quadrature rules that converge exponentially, refined by halving until two levels agree.

On the whole line, and without kinks, the trapezoidal rule in y = (z - m)/s, or in t = asinh(z) where the Gaussian is
much wider than the activation's own scale; between kinks, the tanh-sinh rule on each piece (Takahasi & Mori 1974).
Halving reuses all nodes. For the analytic integrands here the error at one level is about the square of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import gmpy2
from gmpy2 import mpfr

from derive.errors import DeriveError

MAX_LEVEL = 15
Sum = tuple[mpfr, mpfr]


class Estimate(NamedTuple):
    """An integral, the integral of the absolute value of its integrand, and an estimate of the error."""

    value: mpfr
    magnitude: mpfr
    error: mpfr


def refine(new_sum: Callable[[int], Sum], tolerance: mpfr | None, bits: int, margin: int = 10) -> Estimate:
    """Halve until converged: S_k = S_(k-1)/2 + new_sum(k).

    `tolerance` is absolute (None: a rough answer, relative 1e-5). Converged is when the last change, or the change
    extrapolated geometrically by its last decrease (the true decrease is quadratic) and taken `margin` times, is below.
    """
    value, magnitude = new_sum(0)
    floor = gmpy2.exp2(6 - bits)
    before: mpfr | None = None
    for level in range(1, MAX_LEVEL + 1):
        new, absolute = new_sum(level)
        value, old = value / 2 + new, value
        magnitude = magnitude / 2 + absolute
        change = abs(value - old)
        goal = magnitude * 1e-5 if tolerance is None else tolerance
        if (level >= 2 or margin < 100) and (change <= goal or change <= magnitude * floor):
            return Estimate(value, magnitude, change)
        if before is not None and change < before / 1000 and margin * change**2 / before <= goal:
            return Estimate(value, magnitude, margin * change**2 / before)
        before = change
    raise DeriveError(
        "The expectation could not be evaluated to the requested precision: the quadrature converges slowly."
    )


@lru_cache(maxsize=256)
def gaussian_nodes(bits: int, radius: int, level: int) -> tuple[tuple[mpfr, mpfr], ...]:
    """New nodes y in [-radius, radius] of a level with h * density(y) as weights, spacing h = 2^-level."""
    with gmpy2.context(precision=bits):
        h = gmpy2.exp2(-level)
        factor = h / gmpy2.sqrt(2 * gmpy2.const_pi())
        count = radius * 2**level
        indices = range(-count, count + 1) if level == 0 else range(1 - count, count, 2)
        return tuple((j * h, factor * gmpy2.exp(-((j * h) ** 2) / 2)) for j in indices)


@lru_cache(maxsize=200_000)
def sinh_node(bits: int, t: float) -> tuple[mpfr, mpfr]:
    """(sinh t, cosh t) at a dyadic t."""
    with gmpy2.context(precision=bits):
        return gmpy2.sinh(mpfr(t)), gmpy2.cosh(mpfr(t))


@lru_cache(maxsize=256)
def tanh_sinh_nodes(bits: int, level: int) -> tuple[tuple[mpfr, mpfr], ...]:
    """New nodes of a level as (1 - x, weight) for x in [0, 1), spacing h = 2^-(level+1); level 0 starts with x = 0."""
    with gmpy2.context(precision=bits):
        h = gmpy2.exp2(-(level + 1))
        half_pi = gmpy2.const_pi() / 2
        limit = gmpy2.exp2(-bits - 10)
        nodes: list[tuple[mpfr, mpfr]] = []
        j = 0 if level == 0 else 1
        while True:
            t = j * h
            u = half_pi * gmpy2.sinh(t)
            complement = 2 / (1 + gmpy2.exp(2 * u))
            weight = h * half_pi * gmpy2.cosh(t) / gmpy2.cosh(u) ** 2
            if weight < limit:
                return tuple(nodes)
            nodes.append((complement, weight))
            j += 1 if level == 0 else 2
