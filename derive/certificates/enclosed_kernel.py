"""The kernel's flow near a critical point in balls: what the depth solver sees, with every number enclosed.

Brackets near K* > 0 are Taylor series whose coefficients <f He_2n(z/sqrt K)>/((2K)^n n!) are integrals at the ball of
K*; near K* = 0 they are exact numbers. The solver itself is `derive.depth`, over a field of balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from sympy.polys.orthopolys import hermite_prob_poly

from derive import symbols
from derive.activations.enclosure import available, constant_ball
from derive.certificates.ball_field import BallField
from derive.certificates.critical_points import point_balls
from derive.certificates.kernel_function import KernelFunction, sum_at_kernel
from derive.depth.background import ConstantKernel, FlowingKernel
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import FlowSolution, Problem
from derive.depth.expansion import FixedPoint, PowerSeries
from derive.depth.powers import binomial_power, linear_combination
from derive.depth.series import DepthRing, Series
from derive.depth.tensor_recursions import System, constant_name
from derive.gaussian import Bracket, Z
from derive.gaussian.balls import LineIntegral
from derive.gaussian.covariance import covariance
from derive.gaussian.support import regular_integrals
from derive.notation import P_PERP

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

DIGITS = 40
"""Of K*, C_W, C_b and of the integrals that the coefficients are made of."""
BITS = int(DIGITS * 3.33) + 80
ORDERS = 5


class EnclosedPoint:
    """K*, C_W and C_b of a critical point, and brackets near it, as balls."""

    def __init__(self, point: FixedPoint, C_b: sp.Expr, C_W: sp.Expr) -> None:
        assert point.activation is not None
        self.point, self.activation = point, point.activation
        if point.at_zero:
            self.K_star, self.C_W, self.C_b = (constant_ball(sp.sympify(x, strict=True)) for x in (0, C_W, C_b))
        else:
            near = constant_ball(sp.N(point.K_star, DIGITS))
            self.K_star, self.C_W, self.C_b = point_balls(
                self.activation, KernelFunction(self.activation, 0, 2), near, DIGITS
            )

    def expand(self, bracket: Bracket, order: int) -> dict[int, arb]:
        """The bracket's coefficients in powers of y = (K - K*)^step, up to `order` (as far as known at K* = 0)."""
        if self.point.at_zero:
            return {j: constant_ball(c) for j, c in self.point.expand(bracket, order).coefficients.items()}
        moments = [self._moment(bracket, k) for k in range(order + 1)]
        x = sp.Symbol("x")
        found = {}
        for n in range(order + 1):
            total = flint.arb(0)
            for (power,), c in sp.Poly(hermite_prob_poly(2 * n, x), x).terms():
                total += int(c) * moments[power // 2] / self.K_star ** (power // 2)
            found[n] = total / ((2 * self.K_star) ** n * int(sp.factorial(n)))
        return found

    @lru_cache(maxsize=1024)  # noqa: B019 - a point lives as long as its table
    def _moment(self, bracket: Bracket, k: int) -> arb:
        """<f z^(2k)> at the ball of K*."""
        whole = Bracket(*bracket.args, *[Z(0)] * (2 * k))
        terms = regular_integrals(whole, self.activation, covariance(None, whole.labels))
        size = flint.arb(2) ** -60
        for term in terms:
            if term.factors:
                size = size.max(LineIntegral(term.factors[0], term.mean[0], self.K_star).guess())
        return sum_at_kernel(terms, self.K_star, size / flint.arb(10) ** DIGITS)


def _combined(
    expression: sp.Expr, known: Mapping[Bracket, Mapping[int, arb]], constants: Mapping[sp.Symbol, arb]
) -> dict[int, arb]:
    """A combination of brackets, linear in them, as one power series of balls."""
    total: dict[int, arb] = {}
    for term in sp.Add.make_args(sp.expand(expression)):
        weight, series = flint.arb(1), {0: flint.arb(1)}
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, Bracket):
                series = dict(known[base])
            else:
                weight *= constants[base] ** int(power) if base in constants else constant_ball(factor)
        for j, c in series.items():
            total[j] = total.get(j, flint.arb(0)) + weight * c
    return total


class EnclosedKernel(FlowingKernel):
    """`FlowingKernel` over a field of balls."""

    def __init__(
        self,
        enclosed: EnclosedPoint,
        kernel_map: sp.Expr,
        chi_perp: sp.Expr,
        brackets: Sequence[Bracket],
        problem: Problem,
        names: Sequence[str],
        corrections: int,
    ) -> None:
        self.point, self.corrections = enclosed.point, corrections
        self._order = max(4, 2 * corrections + 2) if self.point.at_zero else corrections + 2
        self._star = enclosed.K_star
        known = {b: enclosed.expand(b, self._order) for b in brackets}
        reach = {b: self.point.expand(b, self._order).order if self.point.at_zero else self._order + 1 for b in known}
        self._expansions = {b: PowerSeries(c, reach[b]) for b, c in known.items()}
        self._series: dict[Bracket, Series] = {}
        self.constants = {symbols.C_b: enclosed.C_b, symbols.C_W: enclosed.C_W}
        field = BallField()
        if self.point.at_zero:
            self.flow = self._exact_flow(kernel_map, problem)
        else:  # K' = K* + (K - K*) (1 + ...), where the 1 is what criticality means
            moved = _combined(kernel_map, known, self.constants)
            self.flow = {j - 1: c for j, c in moved.items() if j > 1}
        self.flow = {j: a for j, a in self.flow.items() if not field.negligible(a)}
        if not self.flow:
            raise NoApproach("the kernel does not flow with depth at this point to the order that was looked at")
        self.leading_power = m = min(self.flow)
        power = -1 / (m * self.flow[m])
        self.kappa = power if m == 1 else power.root(m)
        perpendicular = _combined(chi_perp, known, self.constants)
        self.p_perp = None
        irrationals = {}
        if all(field.negligible(c) for j, c in perpendicular.items() if 0 < j < m):
            self.p_perp = perpendicular.get(m, flint.arb(0)) / (m * self.flow[m])
            if field.fraction(self.p_perp) is None:
                irrationals = {P_PERP: (self.p_perp, float(self.p_perp.mid()))}
        self.ring = DepthRing(field, names, irrationals)

    def _exact_flow(self, kernel_map: sp.Expr, problem: Problem) -> dict[int, arb]:
        """a_j of y' = y (1 + sum a_j y^j) at K* = 0, exactly and then as balls."""
        exact = {b: self.point.expand(b, self._order) for b in kernel_map.atoms(Bracket)}
        values = {symbols.C_b: problem.C_b, symbols.C_W: problem.C_W}
        series = linear_combination(kernel_map.subs(values), exact)
        q = int(1 / self.point.step)
        moved = {j - q: c for j, c in series.coefficients.items() if j > q}
        found = binomial_power(moved, sp.Rational(1, q), series.order - q)
        return {j: constant_ball(a) for j, a in found.items()}

    @cached_property
    def kernel(self) -> Series:
        return self.y ** int(1 / self.point.step) + self.ring.coefficient(self._star)


class EnclosedConstant(ConstantKernel):
    """`ConstantKernel` at K*, over a field of balls; series reach `ORDERS` powers of the layer."""

    def __init__(self, enclosed: EnclosedPoint, brackets: Sequence[Bracket], names: Sequence[str]) -> None:
        self.corrections = ORDERS
        self.constants = {symbols.C_b: enclosed.C_b, symbols.C_W: enclosed.C_W}
        self._values = {b: enclosed.expand(b, 0)[0] for b in brackets}
        self.ring = DepthRing(BallField(), names)
        self.kernel = self.ring.term(enclosed.K_star)


class EnclosedSolution(FlowSolution):
    """`FlowSolution` in balls."""

    def __init__(self, problem: Problem, enclosed: EnclosedPoint) -> None:
        super().__init__(problem)
        self.enclosed = enclosed

    @property
    def names(self) -> list[str]:
        return ["lambda_b", "lambda_W", *(constant_name(n) for n in self.admitted.equations)]

    def system(self, corrections: int) -> System:
        if corrections not in self._systems:
            equations, fixed = self.admitted.equations, dict(self.problem.fixed)
            background = EnclosedKernel(
                self.enclosed,
                equations["K"].expression,
                equations["Theta"].multiplier,
                self.admitted.brackets,
                self.problem,
                self.names,
                corrections,
            )
            self._systems[corrections] = System(self.admitted, background, self.problem.rates, fixed)
        return self._systems[corrections]
