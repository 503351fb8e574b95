r"""The single-input recursions of a network over a given background, solved one after the other.

Every tensor's recursion is linear in itself, with a multiplier and a source that are polynomials in brackets and in
earlier tensors: the system is triangular. The recursions come from `derive.network` (or from whoever has more of them,
such as the delta-expansion's); nothing about them is known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.depth.background import Background, inverse
from derive.depth.balance import LinearSolution, NoApproach, solve_linear
from derive.depth.expansion import existing_form
from derive.depth.learning_rates import LearningRates, equivalence
from derive.depth.series import Series
from derive.errors import DeriveError, DivergentExpectation
from derive.gaussian import Bracket
from derive.network.component import Component


@dataclass(frozen=True)
class Equation:
    """`name`^(l+1) = right-hand side, in brackets, components of layer l and the layer parameters."""

    name: str
    expression: sp.Expr

    @cached_property
    def component(self) -> Component | None:
        return next((c for c in self.expression.atoms(Component) if c.name == self.name), None)

    @property
    def multiplier(self) -> sp.Expr:
        return self.expression.coeff(self.component) if self.component is not None else sp.S.Zero

    @property
    def source(self) -> sp.Expr:
        return self.expression.xreplace({self.component: sp.S.Zero}) if self.component is not None else self.expression

    @property
    def depends_on(self) -> set[str]:
        return {c.name for c in self.source.atoms(Component)}

    @property
    def brackets(self) -> set[Bracket]:
        return self.expression.atoms(Bracket)


@dataclass(frozen=True)
class Admitted:
    """The equations whose brackets exist, and for the others the reason why not."""

    equations: Mapping[str, Equation]
    missing: Mapping[str, str]

    @property
    def brackets(self) -> list[Bracket]:
        return sorted({b for e in self.equations.values() for b in e.brackets}, key=str)


def admit(expressions: Mapping[str, sp.Expr], activation: Activation | None, check: Iterable[object] = ()) -> Admitted:
    """Sort equations, given in dependency order, into those that exist for this activation and those that do not."""
    from derive.gaussian import series

    equations: dict[str, Equation] = {}
    missing: dict[str, str] = {}
    for name, expression in expressions.items():
        equation = Equation(name, sp.expand(existing_form(expression, activation)))
        absent = sorted(equation.depends_on & set(missing))
        if absent:
            missing[name] = f"it is sourced by {absent[0]}, which does not exist: {missing[absent[0]]}"
            continue
        try:
            for bracket in sorted(equation.brackets, key=str):
                series(bracket, activation, 0)
        except DivergentExpectation as reason:
            missing[name] = str(reason)
            continue
        equations[name] = equation
    return Admitted(equations, missing)


def constant_name(tensor: str) -> str:
    """The free constant of a tensor's recursion."""
    return f"c_{tensor}"


class System:
    """Equations over a background. `rates` None means the equivalence principle, worked out here; `fixed` gives
    learning rates that are numbers ({"lambda_b": 0})."""

    def __init__(
        self,
        admitted: Admitted,
        background: Background,
        rates: LearningRates | None = None,
        fixed: Mapping[str, sp.Expr] | None = None,
    ) -> None:
        self.background = background
        self.ring = background.ring
        self.equations, self.missing = admitted.equations, admitted.missing
        self.fixed = dict(fixed or {})
        self.solutions: dict[str, LinearSolution] = {}
        self.multipliers: dict[str, Series] = {}
        self.sources: dict[str, Series] = {}
        self._chosen = rates

    @cached_property
    def rates(self) -> LearningRates:
        """Those given, or what the equivalence principle asks for at this fixed point."""
        if self._chosen is not None:
            return self._chosen
        theta = self.equations["Theta"]
        try:
            p_perp = self.homogeneous_exponent(theta.multiplier)
        except NoApproach:
            raise NoApproach(
                "prod chi_perp is exponential in a power of the depth here, so that the equivalence principle asks for "
                "learning rates that are no power laws; choose constant ones"
            ) from None
        active = self.evaluate(theta.source.coeff(symbols.lambda_W))
        return equivalence(p_perp, self.ring.exponent_expr(active.leading[0]))

    def homogeneous_exponent(self, multiplier: sp.Expr) -> sp.Expr:
        """h of prod m ~ l^(-h), for a multiplier m made of brackets."""
        product = self.evaluate(multiplier)
        order = inf if product.order < inf else 1.0
        solution = solve_linear(product, self.ring.zero(), self.ring.names[0], order, "the product")
        if solution.homogeneous.exponent is None:
            raise NoApproach("the product of susceptibilities is exponential in depth, not a power of it")
        return self.ring.exponent_expr(solution.homogeneous.exponent)

    @cached_property
    def _rates(self) -> dict[sp.Symbol, Series]:
        """lambda^(l+1) as series; the power of L, common to both rates, is restored in the results."""
        found = {}
        for symbol, power in ((symbols.lambda_b, self.rates.bias), (symbols.lambda_W, self.rates.weight)):
            exponent = self.ring.exponent(power)
            coefficient = self.ring.coefficient(self.fixed.get(symbol.name, symbol.name))
            order = self.ring.value(exponent) + self.background.corrections + 1
            found[symbol] = self.ring.term(coefficient, exponent).shift(order)
        return found

    def evaluate(self, expression: sp.Expr) -> Series:
        """A polynomial in brackets, components and parameters as a series in depth."""
        total = self.ring.zero()
        for term in sp.Add.make_args(sp.expand(expression)):
            product = self.ring.one()
            for factor in sp.Mul.make_args(term):
                product = product * self._factor(*factor.as_base_exp())
            total = total + product
        return total

    def _factor(self, base: sp.Expr, power: sp.Expr) -> Series:
        if base.is_number:
            return self.ring.term(base**power)
        if base in self.background.constants:
            return self.ring.term(self.ring.field(self.background.constants[base]) ** int(power))
        if base == symbols.K or (isinstance(base, Component) and base.name == "K"):
            found = self.background.kernel
        elif isinstance(base, Bracket):
            found = self.background.bracket(base)
        elif isinstance(base, Component):
            found = self.solve(base.name)
        elif base in (symbols.lambda_b, symbols.lambda_W):
            found = self._rates[base]
        else:
            raise DeriveError(f"the recursion holds {base}, for which there is no series")
        exponent = int(power)
        return found**exponent if exponent >= 0 else inverse(found) ** (-exponent)

    def _order(self, name: str) -> float:
        """Where to stop if multiplier and source are exact."""
        if min(self.multipliers[name].order, self.sources[name].order) < inf:
            return inf
        lead = self.sources[name].lead if self.sources[name] else 1.0
        return min(lead - 1, 0.0) + self.background.corrections

    def solve(self, name: str) -> Series:
        """The series of a tensor; those it needs are solved first."""
        if name == "K":
            return self.background.kernel
        if name in self.missing:
            raise DivergentExpectation(f"{name} does not exist: {self.missing[name]}")
        if name not in self.solutions:
            equation = self.equations[name]
            self.multipliers[name] = self.evaluate(equation.multiplier)
            self.sources[name] = self.evaluate(equation.source)
            self.solutions[name] = solve_linear(
                self.multipliers[name], self.sources[name], constant_name(name), self._order(name), name
            )
        return self.solutions[name].series
