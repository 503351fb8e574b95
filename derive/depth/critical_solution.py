"""From a critical point to solved tensors: the class decides the background, the question the order of expansion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.critical import chi_parallel
from derive.depth.background import ConstantKernel, FlowingKernel, layer_parameters
from derive.depth.balance import NoApproach
from derive.depth.constant_kernel import solve_exactly
from derive.depth.derivation import exact_step, kernel_steps, needed, rate_step, tensor_step
from derive.depth.expansion import DIGITS, FixedPoint
from derive.depth.learning_rates import LearningRates, equivalence
from derive.depth.ratios import tidy
from derive.depth.result import Asymptotics
from derive.depth.series import Series
from derive.depth.tensor_recursions import Admitted, System, admit, constant_name
from derive.errors import DeriveError
from derive.gaussian import Bracket, exact
from derive.network.component import GRAM, Component
from derive.notation import TensorSymbol
from derive.steps import Step, Verbatim, Words, equal, said
from derive.symbols import L, ell

HIGHEST_CORRECTIONS = 8
LATE = 10
"""Layers beyond which the leading terms are compared with the exact recursions before they are shown."""
SAMPLE = 0.83
"""Where a generic activation's p_perp lies when exponents that contain it are compared: below 1, as for every
non-odd activation of the K* = 0 class."""


@lru_cache(maxsize=1)
def network_equations() -> Mapping[str, sp.Expr]:
    """The single-input recursions of equal widths, in dependency order."""
    from derive.network.tensor_recursion import recursions

    return {name: r.single_input().equal_widths().expression for name, r in recursions().items()}


@lru_cache(maxsize=1)
def first_layer() -> Mapping[str, sp.Expr]:
    """Every tensor at the first layer; Gram is x.x/n_0."""
    from derive.network.tensor_recursion import initial

    return {name: initial(name).single_input().expression for name in network_equations()}


@dataclass(frozen=True)
class Problem:
    """A critical point with learning rates: `point` is a fixed point, `rates` None the equivalence principle."""

    point: FixedPoint
    C_b: sp.Expr
    C_W: sp.Expr
    universality_class: str
    rates: LearningRates | None
    fixed: tuple[tuple[str, sp.Expr], ...] = ()
    plateau: bool = False

    @property
    def activation(self) -> Activation | None:
        return self.point.activation


class FlowSolution:
    """A problem whose kernel flows: tensors as truncated series, recomputed to a higher order where one needs it."""

    def __init__(self, problem: Problem, equations: Mapping[str, sp.Expr] | None = None) -> None:
        self.problem = problem
        self.admitted: Admitted = admit(equations or network_equations(), problem.activation)
        self._systems: dict[int, System] = {}

    def system(self, corrections: int) -> System:
        if corrections not in self._systems:
            equations, fixed = self.admitted.equations, dict(self.problem.fixed)
            names = ["lambda_b", "lambda_W", *(constant_name(n) for n in equations)]
            background = FlowingKernel(
                self.problem.point,
                equations["K"].expression,
                equations["Theta"].multiplier,
                self.admitted.brackets,
                layer_parameters(self.problem.C_b, self.problem.C_W),
                names,
                corrections,
                fixed.values(),
                SAMPLE if self.problem.activation is None else None,
            )
            self._systems[corrections] = System(self.admitted, background, self.problem.rates, fixed)
        return self._systems[corrections]

    @property
    def background(self) -> FlowingKernel:
        system = self._systems[max(self._systems)] if self._systems else self.system(1)
        assert isinstance(system.background, FlowingKernel)
        return system.background

    @property
    def digits(self) -> int | None:
        return self.background.ring.field.digits

    @property
    def rates(self) -> LearningRates:
        return self.system(1).rates

    @property
    def p_perp(self) -> sp.Expr | None:
        """The exponent of prod chi_perp; None where that is no power of the depth."""
        return self.background.p_perp

    @property
    def p_parallel(self) -> sp.Expr:
        """The exponent of prod chi_parallel."""
        return self.system(1).homogeneous_exponent(chi_parallel())

    @property
    def chi_perp(self) -> Series:
        """chi_perp as a series in depth."""
        system = self.system(1)
        return system.evaluate(system.equations["Theta"].multiplier)

    @property
    def enters_late(self) -> bool:
        """Whether a glance at the kernel's flow says that its leading term needs more than some ten layers to dominate:
        where the next power, a_(m+1) y, is not small there. A reason to measure, not a measurement."""
        flow = self.system(2).background
        assert isinstance(flow, FlowingKernel)
        m = flow.leading_power
        following = [j for j in flow.flow if j > m]
        if not following or flow.flow[m].free_symbols or flow.kappa.free_symbols:
            return False
        j = following[0]
        ratio = abs(float(flow.flow[j] / flow.flow[m])) ** (1 / (j - m)) * abs(float(flow.kappa))
        return bool(ratio**m > LATE)

    def series(self, name: str, order: int) -> tuple[System, Series]:
        """The tensor known for `order` powers of 1/l, its leading one included."""
        for corrections in range(order, HIGHEST_CORRECTIONS + order):
            system = self.system(corrections)
            found = system.solve(name)
            if found and found.order >= found.lead + order - 1e-9:
                return system, found
        raise NoApproach(
            f"{name} vanishes to every order that was looked at (l^(-{found.order:g})); it may be zero identically"
        )

    def tensor(self, name: str, order: int = 1, with_steps: bool = False) -> Asymptotics:
        if name in self.admitted.missing:
            return Asymptotics(name, reason=self.admitted.missing[name])
        system, found = self.series(name, order)
        kept = found.truncate(found.lead + order)
        return _result(system, name, kept, order, with_steps)


def _result(system: System, name: str, found: Series, order: int, with_steps: bool) -> Asymptotics:
    ring = system.ring
    rates = [s for s in (symbols.lambda_b, symbols.lambda_W) if s.name in found.used_names()]
    restore = {s: s * L**-system.rates.depth for s in rates}
    known = {symbol: value for symbol, (value, _) in ring.irrationals.items() if not value.free_symbols}

    def final(expression: sp.Expr) -> sp.Expr:
        return expression.subs(restore, simultaneous=True).subs(known)

    p, poly = found.leading
    logs = max(m[0] for m in poly)
    top = ring.polynomials.from_dict({(0, *m[1:]): c for m, c in poly.items() if m[0] == logs})
    powers = []
    for exponent, c in found:
        inner = sp.collect(final(found.coefficient_expr(c)), sp.log(ell), tidy)
        powers.append((final(ring.exponent_expr(exponent)), inner))
    terms = [inner * ell**-exponent for exponent, inner in powers]
    lead = ring.exponent_expr(p)
    steps: list[Step] = []
    if with_steps:
        assert isinstance(system.background, FlowingKernel)
        steps = kernel_steps(system.background)
        if name != "K":
            steps.append(rate_step(system.rates.rule, *system.rates.expressions))
            steps += [tensor_step(system, n) for n in needed(system.equations, name)]
    return Asymptotics(
        tensor=name,
        exponent=final(lead),
        log_power=logs,
        coefficient=tidy(final(found.coefficient_expr(top))),
        series=sp.Add(*terms, evaluate=False) if len(terms) > 1 else terms[0],
        powers=tuple(powers),
        remainder=final(lead + order),
        free_constants={n: meaning(n) for n in found.used_names() if n.startswith("c_")},
        steps=tuple(steps),
        digits=ring.field.digits,
    )


def meaning(constant: str) -> Words:
    """What fixes a free constant."""
    tensor = TensorSymbol(constant.removeprefix("c_"))
    return said("fixed by the initial data of {}; fit it with {}", tensor, Verbatim("derive.depth.fit_constants"))


class ConstantSolution:
    """A kernel that stays: exact polynomials in l, or series where the learning rates are no polynomials.

    `equations` are those of the network unless others are given, with their values at the first layer.
    """

    def __init__(
        self,
        problem: Problem,
        equations: Mapping[str, sp.Expr] | None = None,
        start: Mapping[str, sp.Expr] | None = None,
    ) -> None:
        assert problem.activation is not None
        self.problem = problem
        self.admitted = admit(equations or network_equations(), problem.activation)
        self.kernel = symbols.K if problem.universality_class == "scale-invariant" else problem.point.K_star
        self.values = {b: self._value(b) for b in self.admitted.brackets}
        self.constants = layer_parameters(problem.C_b, problem.C_W)
        self.rates = problem.rates if problem.rates is not None else equivalence(sp.S.Zero, sp.S.Zero)
        self.p_perp = self.p_parallel = sp.S.Zero
        self.digits = None if self.kernel.free_symbols else DIGITS
        self._exact: dict[str, sp.Expr] | None = None
        if all(e.is_Integer and e <= 0 for e in (self.rates.bias, self.rates.weight)):
            gram = Component(GRAM, 0, 0)
            norm = (self.kernel - problem.C_b) / problem.C_W
            first = {n: e.xreplace({gram: norm}) for n, e in {**first_layer(), **(start or {})}.items()}
            self._exact = solve_exactly(
                self.admitted, self.values, self.constants, self.kernel, first, self.rates, dict(problem.fixed)
            )

    def _value(self, bracket: Bracket) -> sp.Expr:
        assert self.problem.activation is not None
        if not self.kernel.free_symbols:
            return self.problem.point.expand(bracket, 0).coefficients[0]
        found = exact(bracket, self.problem.activation, self.kernel)
        if found is None:
            raise DeriveError(f"{bracket} has no closed form for {self.problem.activation.name}")
        return found

    @property
    def polynomials(self) -> Mapping[str, sp.Expr] | None:
        """Every tensor that exists as a polynomial in l; None where the learning rates are none."""
        return self._exact

    def tensor(self, name: str, order: int = 1, with_steps: bool = False) -> Asymptotics:
        if name in self.admitted.missing:
            return Asymptotics(name, reason=self.admitted.missing[name])
        if self._exact is None:
            return self._as_series(name, order)
        value = self._exact[name]
        steps = self._steps(name) if with_steps else ()
        if value == 0:
            return Asymptotics(name, None, 0, sp.S.Zero, sp.S.Zero, steps=steps)
        polynomial = sp.Poly(value, ell)
        return Asymptotics(
            name,
            sp.Integer(-polynomial.degree()),
            0,
            tidy(polynomial.LC()),
            value if value.has(sp.Float) else sp.factor(value),
            None,
            steps=steps,
            digits=self.digits,
        )

    def _as_series(self, name: str, order: int) -> Asymptotics:
        names = ["lambda_b", "lambda_W", *(constant_name(n) for n in self.admitted.equations)]
        fixed = dict(self.problem.fixed)
        background = ConstantKernel(self.kernel, self.values, self.constants, names, order + 4, fixed.values())
        system = System(self.admitted, background, self.rates, fixed)
        found = system.solve(name)
        if not found:
            return Asymptotics(name, None, 0, sp.S.Zero, sp.S.Zero)
        return _result(system, name, found.truncate(found.lead + order), order, False)

    def _steps(self, name: str) -> tuple[Step, ...]:
        assert self._exact is not None
        stays = equal(TensorSymbol("K", "ell"), self.kernel)
        given = (equal(symbols.C_b, self.problem.C_b), equal(symbols.C_W, self.problem.C_W), stays)
        steps = [
            Step(said("Criticality; the kernel is the same in every layer, every multiplier is 1"), given),
            rate_step(self.rates.rule, *self.rates.expressions),
        ]
        for n in needed(self.admitted.equations, name):
            steps.append(exact_step(n, self._exact[n] if self.digits else sp.factor(self._exact[n])))
        return tuple(steps)


Solution = FlowSolution | ConstantSolution
