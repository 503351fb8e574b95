r"""The single-input recursions of a network near a fixed point of the kernel, solved one after the other.

The kernel's recursion is nonlinear; with y^(1/step) = K - K* it is the flow y' = y (1 + sum_j a_j y^j). Every other
tensor's is linear in itself, with a multiplier and a source that are polynomials in brackets and earlier tensors: the
system is triangular. The recursions come from `derive.network`; nothing about them is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from derive import symbols
from derive.asymptotics.expansion import FixedPoint, PowerSeries, existing_form
from derive.asymptotics.field import Field
from derive.asymptotics.learning_rates import LearningRates, equivalence
from derive.asymptotics.series import DepthRing, Series
from derive.asymptotics.solver import LinearSolution, NoApproach, compose, solve_flow, solve_linear
from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian import Bracket
from derive.network.component import Component

P_PERP = sp.Symbol("p_perp", real=True)
"""The exponent of prod chi_perp, where it is not rational."""


@dataclass(frozen=True)
class Equation:
    """`name`^(l+1) = right-hand side, in brackets, components of layer l and the layer parameters."""

    name: str
    expression: sp.Expr

    @cached_property
    def component(self) -> Component | None:
        found = [c for c in self.expression.atoms(Component) if c.name == self.name]
        return found[0] if found else None

    @property
    def multiplier(self) -> sp.Expr:
        return self.expression.coeff(self.component) if self.component is not None else sp.S.Zero

    @property
    def source(self) -> sp.Expr:
        return self.expression.xreplace({self.component: sp.S.Zero}) if self.component is not None else self.expression

    @property
    def depends_on(self) -> set[str]:
        return {c.name for c in self.source.atoms(Component)}


def constant_name(tensor: str) -> str:
    """The free constant of a tensor's recursion."""
    return f"c_{tensor}"


class System:
    """All equations at one fixed point, with everything needed to solve them to a relative order l^(-corrections).

    `equations` maps names to expressions in dependency order, the first of them the kernel's; `constants` are numbers
    for C_b and C_W; `rates` None means the equivalence principle; `fixed` gives learning rates that are numbers
    ({"lambda_b": 0}).
    """

    def __init__(
        self,
        point: FixedPoint,
        equations: Mapping[str, sp.Expr],
        C_b: sp.Expr,
        C_W: sp.Expr,
        rates: LearningRates | None = None,
        corrections: int = 2,
        fixed: Mapping[str, sp.Expr] | None = None,
        sample: float | None = None,
    ) -> None:
        self.point = point
        self.corrections = corrections
        self.C_b, self.C_W = sp.sympify(C_b), sp.sympify(C_W)
        self.fixed = dict(fixed or {})
        self.sample = sample
        self.missing: dict[str, str] = {}
        self.equations: dict[str, Equation] = {}
        self._expansions: dict[Bracket, PowerSeries] = {}
        self.order = max(4, 2 * corrections + 2)
        for name, expression in equations.items():
            self._admit(name, expression)
        self._prepare_kernel()
        self._prepare_ring()
        self.rates = rates if rates is not None else self._equivalence()
        self._solved: dict[str, Series] = {}
        self.solutions: dict[str, LinearSolution] = {}
        self._brackets: dict[Bracket, Series] = {}

    # preparation ----------------------------------------------------------------------------------------------------
    def _admit(self, name: str, expression: sp.Expr) -> None:
        """Take an equation if all its brackets, and all tensors it needs, exist; else keep the reason."""
        equation = Equation(name, sp.expand(existing_form(expression, self.point.activation)))
        absent = sorted(equation.depends_on & set(self.missing))
        if absent:
            self.missing[name] = f"it is sourced by {absent[0]}, which does not exist: {self.missing[absent[0]]}"
            return
        try:
            for bracket in equation.expression.atoms(Bracket):
                self.power_series(bracket)
        except DivergentExpectation as reason:
            self.missing[name] = str(reason)
            return
        self.equations[name] = equation

    def power_series(self, bracket: Bracket) -> PowerSeries:
        if bracket not in self._expansions:
            self._expansions[bracket] = self.point.expand(bracket, self.order)
        return self._expansions[bracket]

    def _combination(self, expression: sp.Expr) -> PowerSeries:
        """A combination of brackets, linear in them, as one power series with SymPy coefficients."""
        expression = sp.expand(expression.subs({symbols.C_W: self.C_W, symbols.C_b: self.C_b}))
        total: dict[int, sp.Expr] = {}
        order = 10**6
        for term in sp.Add.make_args(expression):
            brackets = list(term.atoms(Bracket))
            known = self.power_series(brackets[0]) if brackets else PowerSeries({0: sp.S.One}, order)
            factor = term.xreplace({brackets[0]: sp.S.One}) if brackets else term
            order = min(order, known.order)
            for j, c in known.coefficients.items():
                total[j] = total.get(j, sp.S.Zero) + factor * c
        tidy = {j: sp.cancel(c) if c.free_symbols else sp.expand(c) for j, c in total.items() if j < order}
        return PowerSeries({j: c for j, c in tidy.items() if c != 0}, order)

    def _prepare_kernel(self) -> None:
        """The flow of y, and chi_perp, as power series."""
        kernel, theta = self.equations["K"], self.equations.get("Theta")
        self.kernel_map = self._combination(kernel.expression)
        self.flow = _flow_in_y(self.kernel_map, self.point)
        if not self.flow:
            raise NoApproach("the kernel does not flow with depth at this point: the activation is scale-invariant")
        self.leading_power = min(self.flow)
        self.chi_perp = self._combination(theta.multiplier) if theta is not None else None

    def _prepare_ring(self) -> None:
        m = self.leading_power
        numbers = [self.C_W, *self.flow.values(), *self.fixed.values()]
        numbers += [c for known in self._expansions.values() for c in known.coefficients.values()]
        kappa_power = -1 / (m * self.flow[m])
        exact = not any(n.has(sp.Float) for n in numbers)
        kappa = kappa_power if m == 1 else sp.root(kappa_power, m)
        if m > 1 and not kappa.is_real:
            raise NoApproach("the kernel moves away from this fixed point on both sides")
        if self.point.at_zero and not self.flow[m].free_symbols and self.flow[m] > 0:
            raise NoApproach("the kernel grows away from K* = 0 with depth, so that there is no asymptotic regime there")
        field = Field.containing([*numbers, kappa])
        b = (self.chi_perp.coefficients.get(m, sp.S.Zero) if self.chi_perp else sp.S.Zero) / (m * self.flow[m])
        p_perp = sp.cancel(b) if b.free_symbols else sp.nsimplify(b) if exact and field.domain.is_QQ else sp.simplify(b)
        fraction = field.fraction(field(p_perp))
        irrationals = {}
        if fraction is None:
            value = self.sample if p_perp.free_symbols else float(p_perp)
            if value is None:
                raise DeriveError("a symbolic p_perp needs a sample value, which decides what dominates")
            irrationals[P_PERP] = (p_perp, value)
        else:
            p_perp = sp.Rational(fraction.numerator, fraction.denominator)
        self.p_perp_value = p_perp
        names = ["lambda_b", "lambda_W", *(constant_name(n) for n in self.equations)]
        self.ring = DepthRing(field, names, irrationals)
        self.kappa = kappa

    # solving --------------------------------------------------------------------------------------------------------
    @cached_property
    def y(self) -> Series:
        order = float(Fraction(1, self.leading_power)) + self.corrections
        return solve_flow(self.ring, self.flow, order, constant_name("K"), scale=self.kappa)

    @cached_property
    def kernel(self) -> Series:
        power = int(1 / self.point.step)
        return self.y**power + self.ring.coefficient(self.point.K_star)

    def bracket(self, bracket: Bracket) -> Series:
        """A bracket as a series in depth."""
        if bracket not in self._brackets:
            known = self.power_series(bracket)
            low = min([0, *known.coefficients])
            regular = {j - low: c for j, c in known.coefficients.items()}
            total = compose(regular, self.y, (known.order - low) * self.y.lead)
            if low:
                p, c = self.y.leading
                inverse = self.y.power(Fraction(-1), self.ring.field(1) / c.coeff(1))
                total = total * inverse ** (-low)
            self._brackets[bracket] = total
        return self._brackets[bracket]

    def rate(self, name: str) -> Series:
        """lambda^(l+1) as a series; the power of L, common to both rates, is restored in the results."""
        ring = self.ring
        exponent = ring.exponent(self.rates.bias if name == "lambda_b" else self.rates.weight)
        coefficient = ring.coefficient(self.fixed[name]) if name in self.fixed else ring.coefficient(name)
        return ring.term(coefficient, exponent).shift(ring.value(exponent) + self.corrections + 1)

    @cached_property
    def _rates(self) -> dict[sp.Symbol, Series]:
        return {symbols.lambda_b: self.rate("lambda_b"), symbols.lambda_W: self.rate("lambda_W")}

    def evaluate(self, expression: sp.Expr) -> Series:
        """A polynomial in brackets, components and parameters as a series in depth."""
        total = self.ring.zero()
        for term in sp.Add.make_args(sp.expand(expression)):
            product = self.ring.one()
            for factor in sp.Mul.make_args(term):
                base, power = factor.as_base_exp()
                product = product * self._factor(base, power)
            total = total + product
        return total

    def _factor(self, base: sp.Expr, power: sp.Expr) -> Series:
        ring = self.ring
        if base.is_number:
            return ring.term(base**power)
        if base == symbols.C_W:
            return ring.term(self.C_W**power)
        if base == symbols.C_b:
            return ring.term(self.C_b**power)
        if base == symbols.K:
            found = self.kernel
        elif isinstance(base, Bracket):
            found = self.bracket(base)
        elif isinstance(base, Component):
            found = self.kernel if base.name == "K" else self.solve(base.name)
        elif base in (symbols.lambda_b, symbols.lambda_W):
            found = self._rates[base]
        else:
            raise DeriveError(f"the recursion holds {base}, for which there is no series")
        exponent = int(power)
        if exponent < 0:
            _, lead = found.leading
            found = found.power(Fraction(-1), ring.field(1) / lead.coeff(1))
        return found ** abs(exponent)

    def solve(self, name: str) -> Series:
        """The series of a tensor; those it needs are solved first."""
        if name in self._solved:
            return self._solved[name]
        if name in self.missing:
            raise DivergentExpectation(f"{name} does not exist: {self.missing[name]}")
        if name == "K":
            self._solved[name] = self.kernel
        else:
            equation = self.equations[name]
            multiplier = self.evaluate(equation.multiplier)
            source = self.evaluate(equation.source)
            solution = solve_linear(multiplier, source, constant_name(name), name=name)
            self.solutions[name] = solution
            self._solved[name] = solution.series
        return self._solved[name]

    def homogeneous_exponent(self, multiplier: sp.Expr) -> sp.Expr:
        """h of prod m ~ l^(-h) for a multiplier m made of brackets."""
        solution = solve_linear(self.evaluate(multiplier), self.ring.zero(), constant_name("K"), name="the product")
        if solution.homogeneous.exponent is None:
            raise NoApproach("the product of susceptibilities is exponential in depth, not a power of it")
        return self.ring.exponent_expr(solution.homogeneous.exponent)

    def _equivalence(self) -> LearningRates:
        self._brackets = {}
        theta = self.equations["Theta"]
        p_perp = self.homogeneous_exponent(theta.multiplier)
        active = self.evaluate(sp.expand(theta.source).coeff(symbols.lambda_W))
        return equivalence(p_perp, self.ring.exponent_expr(active.leading[0]))


def _flow_in_y(kernel_map: PowerSeries, point: FixedPoint) -> dict[int, sp.Expr]:
    """{j: a_j} of y' = y (1 + sum a_j y^j), from K' = K* + y^(1/step) (1 + ...)."""
    q = int(1 / point.step)
    shifted = {j: c - (point.K_star if j == 0 else 0) for j, c in kernel_map.coefficients.items()}
    tolerance = sp.Float(10) ** -25
    shifted = {j: c for j, c in shifted.items() if c != 0 and not (c.has(sp.Float) and abs(c) < tolerance)}
    if not shifted or min(shifted) < q or not _is_one(shifted[q]):
        raise NoApproach("this is not a critical fixed point: K' is not K + higher powers near it")
    ratio = {j - q: c for j, c in shifted.items() if j > q}
    if not point.at_zero:
        # the slope at K* is one within the precision of K*: it is one
        ratio = {j: c for j, c in ratio.items()}
    length = kernel_map.order - q
    return _binomial_power(ratio, sp.Rational(1, q), length)


def _is_one(c: sp.Expr) -> bool:
    return sp.cancel(c - 1) == 0 if not c.has(sp.Float) else bool(abs(c - 1) < sp.Float(10) ** -20)


def _binomial_power(series: Mapping[int, sp.Expr], power: sp.Rational, length: int) -> dict[int, sp.Expr]:
    """(1 + sum_j c_j y^j)^power - 1 below y^length."""
    total: dict[int, sp.Expr] = {}
    product: dict[int, sp.Expr] = {0: sp.S.One}
    for k in range(1, length):
        product = _multiply(product, series, length)
        if not product:
            break
        weight = sp.binomial(power, k)
        for j, c in product.items():
            total[j] = total.get(j, sp.S.Zero) + weight * c
    tidy = {j: sp.cancel(c) if c.free_symbols else sp.expand(c) for j, c in total.items()}
    return {j: c for j, c in sorted(tidy.items()) if c != 0}


def _multiply(a: Mapping[int, sp.Expr], b: Mapping[int, sp.Expr], length: int) -> dict[int, sp.Expr]:
    result: dict[int, Any] = {}
    for i, x in a.items():
        for j, w in b.items():
            if i + j < length:
                result[i + j] = sp.expand(result.get(i + j, 0) + x * w)
    return result
