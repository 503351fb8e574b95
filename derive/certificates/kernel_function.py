r"""One-input brackets as rigorous functions of K: values, slopes in t = log K, and a bound on their curvature.

d/dt <f> = <P1 f> and d^2/dt^2 <f> = <P2 f> with P1 = (x^2 - 1)/2, P2 = (x^2 - 1)^2/4 - x^2/2, x = z/sqrt(K), and
|P2| <= (x^4 + 1)/4. For K in [K0, K1], r = K1/K0, the density is at most sqrt(r) times that of K1, so by Cauchy-Schwarz
|d^2/dt^2 <f>| <= sqrt(r (105 r^4 + 6 r^2 + 1)/16 <f^2>_K1); delta functions are added one by one.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.activations.enclosure import available, ball_function, constant_ball
from derive.gaussian import Bracket, Sigma, Z
from derive.gaussian.balls import LineIntegral
from derive.gaussian.covariance import covariance
from derive.gaussian.distribution import Distribution
from derive.gaussian.support import GaussianIntegral, regular_integrals
from derive.symbols import K, z

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint


class KernelFunction:
    """<sigma^(a) sigma^(b) ...>_K of one input."""

    def __init__(self, activation: Activation, *orders: int) -> None:
        self.activation, self.orders = activation, orders
        self.atoms = [Sigma(0, order) for order in orders]

    @cached_property
    def terms(self) -> list[list[GaussianIntegral]]:
        """The regular integrals, as functions of the symbol K, of f, z^2 f."""
        found = []
        for insertions in (0, 2):
            bracket = Bracket(*self.atoms, *[Z(0)] * insertions)
            found.append(regular_integrals(bracket, self.activation, covariance(None, bracket.labels)))
        return found

    @cached_property
    def regular(self) -> Distribution:
        """f without its delta functions."""
        for term in self.terms[0]:
            if term.factors:
                return term.factors[0]
        return Distribution((), (sp.S.Zero,))

    @cached_property
    def spikes(self) -> list[GaussianIntegral]:
        """What the delta functions give: numbers times Gaussian densities."""
        return [term for term in self.terms[0] if not term.factors]

    def value(self, kernel: arb, tolerance: arb) -> arb:
        """<f> at a ball of K."""
        return sum_at_kernel(self.terms[0], kernel, tolerance)

    def slope(self, kernel: arb, tolerance: arb) -> arb:
        """d<f>/dt at a ball of K."""
        second = sum_at_kernel(self.terms[1], kernel, tolerance * kernel) / kernel
        return (second - self.value(kernel, tolerance)) / 2

    def square(self, kernel: arb) -> arb:
        """<f^2> of the regular part, to a few digits."""
        squared = Distribution(self.regular.knots, tuple(p**2 for p in self.regular.pieces))
        if all(p == 0 for p in squared.pieces):
            return flint.arb(0)
        line = LineIntegral(squared, sp.S.Zero, kernel)
        return line.ball(line.guess() / 64)

    def curvature_bound(self, low: arb, high: arb) -> arb:
        """A bound on |d^2<f>/dt^2| for K in [low, high]."""
        ratio = high / low
        polynomial = (105 * ratio**4 + 6 * ratio**2 + 1) / 16
        total = (ratio * polynomial * flint.arb(self.square(high).abs_upper())).sqrt()
        for term in self.spikes:  # coefficient ~ exp(-x^2/(2 K))/sqrt(K): d^2/dt^2 by the same polynomials
            total += _spike_bound(term.coefficient, low, high)
        return flint.arb(total.abs_upper())


def sum_at_kernel(terms: list[GaussianIntegral], kernel: arb, tolerance: arb) -> arb:
    """The sum of regular integrals in the symbol K at a ball of K."""
    total = flint.arb(0)
    for term in terms:
        weight = at_kernel(term.coefficient, kernel)
        if term.factors:
            line = LineIntegral(term.factors[0], term.mean[0], kernel)
            weight *= line.ball(tolerance / (len(terms) * (1 + weight.abs_upper())))
        total += weight
    return total


def at_kernel(coefficient: sp.Expr, kernel: arb) -> arb:
    """A coefficient in the symbol K at a ball of K."""
    if not coefficient.has(K):
        return constant_ball(coefficient)
    return ball_function(coefficient.xreplace({K: z})).real(kernel)


def _spike_bound(coefficient: sp.Expr, low: arb, high: arb) -> arb:
    second = K * sp.diff(K * sp.diff(coefficient, K), K)
    total = flint.arb(0)
    pieces = 8
    for i in range(pieces):
        a = low + (high - low) * i / pieces
        b = low + (high - low) * (i + 1) / pieces
        total = total.max(flint.arb(at_kernel(second, a.union(b)).abs_upper()))
    return total
