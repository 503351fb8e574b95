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
from derive.critical import chi_parallel, chi_perp, kernel_step
from derive.depth.critical_solution import network_equations
from derive.depth.expansion import FixedPoint
from derive.depth.exponential import ORDER, Exponentials, compose, solve_kernel, solve_linear
from derive.depth.powers import binomial_power
from derive.depth.tensor_recursions import Admitted, admit
from derive.errors import DeriveError
from derive.gaussian import Bracket, value
from derive.given import Number, not_negative
from derive.layout import Block, Equation, Table
from derive.network.component import Component
from derive.notation import TensorSymbol
from derive.results import Result, cell
from derive.steps import typeset

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
class OffCritical(Result):
    """The fixed point, its susceptibilities and every tensor's exponential behaviour."""

    activation: str
    K_star: Any
    chi_parallel: Any
    chi_perp: Any
    tensors: Mapping[str, Exponential]
    missing: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        """Numbers as floats: a tensor tends to `limit`, or behaves as factor^l l^power."""
        tensors = {
            name: {
                "factor": float(e.factor),
                "power": e.power,
                "limit": None if e.limit is None else float(e.limit),
            }
            for name, e in self.tensors.items()
        }
        return {
            "activation": self.activation,
            "class": "off critical",
            "K_star": float(self.K_star),
            "chi_parallel": float(self.chi_parallel),
            "chi_perp": float(self.chi_perp),
            "tensors": tensors,
            "missing": dict(self.missing),
            "text": str(self),
        }

    def blocks(self) -> tuple[Block, ...]:
        def shown(x: mpmath.mpf) -> str:
            return mpmath.nstr(x, 10)

        point = (
            rf"K^* = {shown(self.K_star)}, \quad \chi_\parallel = {shown(self.chi_parallel)}, "
            rf"\quad \chi_\perp = {shown(self.chi_perp)}"
        )
        rows: list[tuple[str, ...]] = []
        for name, e in self.tensors.items():
            power = rf"\,\ell^{{{e.power}}}" if e.power else ""
            behaviour = rf"\to {shown(e.limit)}" if e.limit is not None else rf"\sim {shown(e.factor)}^\ell{power}"
            rows.append((cell(TensorSymbol(name)), typeset(behaviour)))
        rows += [(cell(TensorSymbol(name)), reason) for name, reason in self.missing.items()]
        return Equation(point), Table(("tensor", f"{self.activation}, large depth"), tuple(rows))

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
        return "\n".join([head, *lines, *(f"  {n:6}{r}" for n, r in self.missing.items())])


def off_criticality(
    activation: Activation | str | sp.Expr,
    C_b: Number,
    C_W: Number,
    start: Number = 1,
    lambda_b: Number = 1,
    lambda_W: Number = 1,
) -> OffCritical:
    """The exponential behaviour of every tensor for an initialization that is not critical.

    `start` is the first layer's kernel: it decides which fixed point is reached. Numbers have about 20 digits.

    >>> found = off_criticality("tanh", 0, "1/2")
    >>> found.K_star, found.tensors["Theta"].limit
    (mpf('0.0'), mpf('2.0'))
    """
    sigma = make_activation(activation)
    constants = {symbols.C_b: not_negative(C_b, "C_b"), symbols.C_W: not_negative(C_W, "C_W")}
    if constants[symbols.C_W] == 0:
        raise DeriveError("C_b is a number that is not negative, and C_W a positive one")
    star = _fixed_point(sigma, constants, start)
    admitted = admit(network_equations(), sigma)
    rates = {
        symbols.lambda_b: _mpf(not_negative(lambda_b, "lambda_b")),
        symbols.lambda_W: _mpf(not_negative(lambda_W, "lambda_W")),
    }
    with mpmath.workdps(DIGITS + 10):
        if star == 0:
            tensors, missing, parallel = _near_zero(admitted, sigma, constants, rates)
            perpendicular = parallel
        else:
            at_star = _Evaluator(sigma, star, constants)
            parallel, perpendicular = at_star.number(chi_parallel()), at_star.number(chi_perp())
            if abs(parallel - 1) < 1e-9:
                raise DeriveError("chi_parallel = 1 at this fixed point: ask for derive exponents")
            tensors, missing = _near_positive(admitted, at_star, rates, parallel), dict(admitted.missing)
    return OffCritical(sigma.name, star, parallel, perpendicular, tensors, missing)


def _mpf(number: sp.Expr) -> mpmath.mpf:
    return mpmath.mpf(str(sp.N(number, DIGITS + 10)))


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
    """Expressions in brackets at a fixed point K* > 0, as numbers."""

    def __init__(self, sigma: Activation, star: Any, constants: Mapping[sp.Symbol, sp.Expr]) -> None:
        self.sigma, self.star, self.constants = sigma, star, constants
        self._known: dict[Bracket, Any] = {}

    def bracket(self, bracket: Bracket) -> Any:
        if bracket not in self._known:
            self._known[bracket] = value(bracket, self.sigma, self.star, DIGITS)
        return self._known[bracket]

    def number(self, expression: sp.Expr) -> Any:
        """A polynomial in brackets at K*."""
        total = mpmath.mpf(0)
        for term in sp.Add.make_args(sp.expand(expression)):
            product = mpmath.mpf(1)
            for base, power in term.as_powers_dict().items():
                if isinstance(base, Bracket):
                    product *= self.bracket(base) ** int(power)
                elif base == symbols.K:
                    product *= self.star ** (mpmath.mpf(int(power.p)) / int(power.q))
                else:
                    product *= mpmath.mpf(str(sp.N(self.constants.get(base, base), DIGITS + 5))) ** int(power)
            total += product
        return total


def _near_positive(
    admitted: Admitted, at: _Evaluator, rates: Mapping[sp.Symbol, Any], parallel: Any
) -> dict[str, Exponential]:
    """K* > 0: brackets tend to numbers, and their corrections decay as chi_parallel^l."""
    found = {"K": Exponential(mpmath.mpf(1), 0, at.star)}
    for name, equation in admitted.equations.items():
        if name != "K":
            multiplier = at.number(equation.multiplier)
            terms = [_term(t, at, rates, found) for t in sp.Add.make_args(sp.expand(equation.source))]
            found[name] = _follow(multiplier, [(e, c) for e, c in terms if c is None or c != 0], parallel)
    return found


def _term(
    term: sp.Expr, at: _Evaluator, rates: Mapping[sp.Symbol, Any], tensors: Mapping[str, Exponential]
) -> tuple[Exponential, Any]:
    """One source term: how it grows, and its number where everything in it tends to a limit."""
    growth, number = Exponential(mpmath.mpf(1)), mpmath.mpf(1)
    known = True
    for base, power in term.as_powers_dict().items():
        p = int(power)
        if isinstance(base, Bracket):
            number *= at.bracket(base) ** p
        elif isinstance(base, Component):
            tensor = tensors[base.name]
            growth = Exponential(growth.factor * tensor.factor**p, growth.power + tensor.power * p)
            known = known and tensor.limit is not None
            number *= tensor.limit**p if tensor.limit is not None else 1
        elif base in rates:
            number *= rates[base] ** p
        elif base == symbols.K:
            number *= at.star**p
        else:
            number *= mpmath.mpf(str(sp.N(at.constants.get(base, base), DIGITS + 5))) ** p
    return growth, number if known or number == 0 else None


def _follow(multiplier: Any, source: list[tuple[Exponential, Any]], correction: Any) -> Exponential:
    """T' = m T + source. Where leading source terms cancel, what is left is taken to decay with the brackets' first
    corrections."""
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


def _near_zero(
    admitted: Admitted, sigma: Activation, constants: Mapping[sp.Symbol, sp.Expr], rates: Mapping[sp.Symbol, Any]
) -> tuple[dict[str, Exponential], dict[str, str], Any]:
    """K* = 0: everything is a series in powers of chi^l with polynomials in l, leading cancellations included."""
    point = FixedPoint(sigma, sp.S.Zero)
    numbers = {s: mpmath.mpf(str(sp.N(c, DIGITS + 5))) for s, c in constants.items()}
    expansions = {
        b: {j: mpmath.mpf(str(sp.N(c, DIGITS + 5))) for j, c in point.expand(b, ORDER).coefficients.items()}
        for b in admitted.brackets
    }
    q = int(1 / point.step)
    bracket = next(iter(kernel_step().atoms(Bracket)))
    slope = numbers[symbols.C_W] * expansions[bracket][q]
    ratio = {j - q: numbers[symbols.C_W] * c / slope for j, c in expansions[bracket].items() if j > q}
    chi = slope ** (mpmath.mpf(1) / q)
    flow = {j + 1: chi * c for j, c in binomial_power(ratio, sp.Rational(1, q), ORDER).items()}
    y = solve_kernel({j: mpmath.mpf(str(c)) for j, c in flow.items()}, chi)
    series = {b: compose(c, y) for b, c in expansions.items() if not c or min(c) >= 0}
    solved: dict[str, Exponentials] = {"K": y**q}

    def evaluate(expression: sp.Expr) -> Exponentials:
        total, size = Exponentials({}), mpmath.mpf(1)
        for term in sp.Add.make_args(sp.expand(expression)):
            product = Exponentials.number(1)
            for base, power in term.as_powers_dict().items():
                if isinstance(base, Bracket):
                    factor = series[base]
                elif isinstance(base, Component):
                    factor = solved[base.name]
                else:
                    known = rates.get(base, numbers.get(base))
                    factor = Exponentials.number(mpmath.mpf(str(sp.N(base, DIGITS))) if known is None else known)
                product = product * factor ** int(power)
            total = total + product
            size = max([size, *(abs(c) for u in product.terms.values() for c in u)])
        return total.cleaned(size)

    found = {"K": Exponential(slope)}
    missing = dict(admitted.missing)
    for name, equation in admitted.equations.items():
        singular = sorted((str(b) for b in equation.brackets - set(series)), key=str)
        absent = sorted(equation.depends_on & set(missing))
        if singular or absent:
            missing[name] = f"{(singular or absent)[0]} is singular at K* = 0, where its rates are not worked out."
        if name == "K" or name in missing:
            continue
        series_of, resonance = solve_linear(evaluate(equation.multiplier), evaluate(equation.source), chi)
        solved[name] = series_of.cleaned(mpmath.mpf(1))
        first = min(solved[name].terms, default=ORDER)
        if resonance is not None and resonance < first:
            found[name] = Exponential(chi**resonance)
        else:
            u = solved[name].terms.get(first, (mpmath.mpf(0),))
            limit = u[0] if first == 0 and len(u) == 1 else None
            found[name] = Exponential(chi**first, len(u) - 1, limit)
    return found, missing, slope
