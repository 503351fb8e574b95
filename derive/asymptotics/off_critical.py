r"""Off criticality: exponential behaviour in depth, and its rates.

Near a fixed point K* = C_b + C_W <ss> with chi_parallel < 1 the kernel converges as chi_parallel^l. A tensor's
recursion then has a constant multiplier m, a product of susceptibilities, and a source that behaves as rho^l l^k; the
tensor follows the larger of m and rho, with one more power of l where they are equal. Learning rates are constant here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.asymptotics.expansion import FixedPoint
from derive.asymptotics.solve import network_equations
from derive.asymptotics.system import Admitted, admit
from derive.criticality import chi_parallel, chi_perp, kernel_step
from derive.errors import DeriveError
from derive.gaussian import Bracket, value
from derive.network.component import Component

DIGITS = 25
_EQUAL = 1e-12
VANISHED = 1e-14
"""Below this, relative to C_b + C_W, a fixed point counts as K* = 0."""


@dataclass(frozen=True)
class Exponential:
    """coefficient * factor^l * l^power; the coefficient is known only for limits (factor 1, power 0)."""

    factor: Any
    power: int = 0
    limit: Any | None = None

    @property
    def rate(self) -> Any:
        """log(factor): negative for decay; 1/|rate| is the depth scale."""
        return mpmath.log(self.factor)


@dataclass(frozen=True)
class OffCritical:
    """The fixed point, its susceptibilities and every tensor's exponential behaviour."""

    activation: str
    K_star: Any
    chi_parallel: Any
    chi_perp: Any
    tensors: Mapping[str, Exponential]
    missing: Mapping[str, str]

    def __str__(self) -> str:
        head = (
            f"{self.activation}: K* = {mpmath.nstr(self.K_star, 12)}, "
            f"chi_parallel = {mpmath.nstr(self.chi_parallel, 12)}, chi_perp = {mpmath.nstr(self.chi_perp, 12)}"
        )
        lines = []
        for name, e in self.tensors.items():
            if e.limit is not None:
                lines.append(f"  {name:6}-> {mpmath.nstr(e.limit, 12)}")
            else:
                tail = f" * l^{e.power}" if e.power else ""
                lines.append(f"  {name:6}~ {mpmath.nstr(e.factor, 12)}^l{tail}")
        return "\n".join([head, *lines, *(f"  {n:6}does not exist: {r}" for n, r in self.missing.items())])


def off_criticality(
    activation: Activation | str | sp.Expr,
    C_b: Any,
    C_W: Any,
    start: Any = 1,
    lambda_b: Any = 1,
    lambda_W: Any = 1,
) -> OffCritical:
    """The exponential behaviour of every tensor for an initialization that is not critical.

    `start` is the first layer's kernel: it decides which fixed point is reached. Numbers have about 20 digits.

    >>> found = off_criticality("tanh", 0, "1/2")
    >>> found.K_star, found.tensors["Theta"].limit
    (mpf('0.0'), mpf('2.0'))
    """
    sigma = make_activation(activation)
    constants = {symbols.C_b: sp.sympify(str(C_b)), symbols.C_W: sp.sympify(str(C_W))}
    if not all(c.is_number and c >= 0 for c in constants.values()) or constants[symbols.C_W] == 0:
        raise DeriveError("C_b is a number that is not negative, and C_W a positive one")
    star = _fixed_point(sigma, constants, start)
    at_star = _Evaluator(sigma, star, constants)
    parallel, perpendicular = at_star.number(chi_parallel()), at_star.number(chi_perp())
    if abs(parallel - 1) < 1e-9:
        raise DeriveError("chi_parallel = 1 at this fixed point: ask for derive exponents")
    admitted = admit(network_equations(), sigma)
    rates = {symbols.lambda_b: mpmath.mpf(str(lambda_b)), symbols.lambda_W: mpmath.mpf(str(lambda_W))}
    tensors = _tensors(admitted, at_star, rates, parallel)
    return OffCritical(sigma.name, star, parallel, perpendicular, tensors, admitted.missing)


def _fixed_point(sigma: Activation, constants: Mapping[sp.Symbol, sp.Expr], start: Any) -> Any:
    """The kernel's fixed point that is reached from `start`, by iteration and then by secants."""
    bracket = next(iter(kernel_step().atoms(Bracket)))
    b, w = (mpmath.mpf(str(sp.N(constants[c], DIGITS + 10))) for c in (symbols.C_b, symbols.C_W))
    with mpmath.workdps(DIGITS + 10):
        kernel = mpmath.mpf(str(start))
        for _ in range(400):
            following = b + w * value(bracket, sigma, kernel, 15)
            change = abs(following - kernel)
            kernel = following
            if kernel > 1e6:
                raise DeriveError("the kernel grows without bound for these C_b and C_W")
            if kernel < VANISHED:
                return mpmath.mpf(0)
            if change < 1e-9 * kernel:
                break
        else:
            raise DeriveError("the kernel does not settle within 400 layers: this is at or near criticality")
        found = mpmath.findroot(
            lambda k: b + w * value(bracket, sigma, k, DIGITS + 5) - k, (kernel, kernel * (1 + mpmath.mpf(10) ** -8))
        )
        return +found


class _Evaluator:
    """Expressions in brackets at the fixed point, as numbers or, at K* = 0, as the powers of K that they start with."""

    def __init__(self, sigma: Activation, star: Any, constants: Mapping[sp.Symbol, sp.Expr]) -> None:
        self.sigma, self.star, self.constants = sigma, star, constants
        self._known: dict[Bracket, tuple[Any, Any]] = {}

    def leading(self, bracket: Bracket) -> tuple[Any, Any]:
        """(coefficient, power of K): a bracket near the fixed point."""
        if bracket not in self._known:
            if self.star == 0:
                point = FixedPoint(self.sigma, sp.S.Zero)
                terms = point.expand(bracket, 8).coefficients
                power = min(terms) if terms else 0
                coefficient = mpmath.mpf(str(sp.N(terms[power], DIGITS))) if terms else mpmath.mpf(0)
                self._known[bracket] = coefficient, mpmath.mpf(str(power * point.step))
            else:
                self._known[bracket] = value(bracket, self.sigma, self.star, DIGITS), mpmath.mpf(0)
        return self._known[bracket]

    def number(self, expression: sp.Expr) -> Any:
        """A polynomial in brackets at K*."""
        total = mpmath.mpf(0)
        for term in sp.Add.make_args(sp.expand(expression)):
            product = mpmath.mpf(1)
            for base, power in term.as_powers_dict().items():
                if isinstance(base, Bracket):
                    coefficient, k = self.leading(base)
                    product *= (coefficient if k == 0 else mpmath.mpf(0)) ** int(power)
                else:
                    product *= mpmath.mpf(str(sp.N(self.constants.get(base, base), DIGITS + 5))) ** int(power)
            total += product
        return total


def _tensors(
    admitted: Admitted, at: _Evaluator, rates: Mapping[sp.Symbol, Any], parallel: Any
) -> dict[str, Exponential]:
    kernel = Exponential(parallel) if at.star == 0 else Exponential(mpmath.mpf(1), 0, at.star)
    step = FixedPoint(at.sigma, sp.S.Zero).step if at.star == 0 else sp.S.One
    correction = parallel ** mpmath.mpf(str(step.evalf(20)))
    found = {"K": kernel}
    for name, equation in admitted.equations.items():
        if name == "K":
            continue
        multiplier = at.number(equation.multiplier)
        terms = [_term(t, at, rates, found, parallel) for t in sp.Add.make_args(sp.expand(equation.source))]
        alive = [(e, c) for e, c in terms if c is None or c != 0]
        found[name] = _follow(multiplier, alive, correction)
    return found


def _term(
    term: sp.Expr, at: _Evaluator, rates: Mapping[sp.Symbol, Any], tensors: Mapping[str, Exponential], parallel: Any
) -> tuple[Exponential, Any]:
    """One source term: how it grows, and its number where everything in it tends to a limit."""
    growth, number = Exponential(mpmath.mpf(1)), mpmath.mpf(1)
    known = True
    for base, power in term.as_powers_dict().items():
        p = int(power)
        if isinstance(base, Bracket):
            coefficient, k = at.leading(base)
            growth = Exponential(growth.factor * parallel ** (k * p), growth.power)
            number *= coefficient**p
        elif isinstance(base, Component):
            tensor = tensors[base.name]
            growth = Exponential(growth.factor * tensor.factor**p, growth.power + tensor.power * p)
            known = known and tensor.limit is not None
            number *= tensor.limit**p if tensor.limit is not None else 1
        elif base in rates:
            number *= rates[base] ** p
        elif base == symbols.K:
            growth = Exponential(growth.factor * tensors["K"].factor ** p, growth.power)
            number *= at.star**p if at.star else 1
        else:
            number *= mpmath.mpf(str(sp.N(at.constants.get(base, base), DIGITS + 5))) ** p
    return growth, number if known or number == 0 else None


def _follow(multiplier: Any, source: list[tuple[Exponential, Any]], correction: Any) -> Exponential:
    """T' = m T + source. Where the leading source terms cancel, what is left of them is smaller by the factor by which
    the brackets' first corrections decay."""
    if not source:
        return Exponential(multiplier)
    top = max(e.factor for e, _ in source)
    leaders = [(e, c) for e, c in source if abs(e.factor / top - 1) < _EQUAL]
    power = max(e.power for e, _ in leaders)
    if power == 0 and all(c is not None for _, c in leaders):
        total = mpmath.fsum(c for _, c in leaders)
        if abs(total) < _EQUAL * mpmath.fsum(abs(c) for _, c in leaders):
            rest = [(e, c) for e, c in source if abs(e.factor / top - 1) >= _EQUAL]
            return _follow(multiplier, [*rest, (Exponential(top * correction), None)], correction)
        if abs(top - 1) < _EQUAL and multiplier < 1 - _EQUAL:
            return Exponential(mpmath.mpf(1), 0, total / (1 - multiplier))
    if abs(multiplier / top - 1) < _EQUAL:
        return Exponential(top, power + 1)
    return Exponential(multiplier) if multiplier > top else Exponential(top, power)
