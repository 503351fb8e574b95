r"""<f>_K at one label as an exact power series in K, with half-integer powers where the activation has a kink at 0.

For analytic sigma, <f>_K = sum_m f^(2m)(0) (K/2)^m / m!: the heat flow of f. With a kink at 0 each side contributes its
own Taylor coefficients times the half-line moment E[z^n 1(z>0)] = 2^(n/2) Gamma((n+1)/2) K^(n/2) / (2 sqrt(pi)), and
delta functions at 0 give the powers K^(-1/2-m). Kinks elsewhere contribute exp(-x^2/(2K)), beyond all powers.
The series is asymptotic (sigma has poles), exact term by term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.errors import DeriveError
from derive.gaussian.bracket import Bracket, Sigma
from derive.gaussian.constants import Constant, from_constant, multiply_series, to_constant
from derive.gaussian.distribution import Distribution, monomial, product, sigma_distribution
from derive.symbols import K

MAX_ORDER = 200


@dataclass(frozen=True)
class KernelSeries:
    """sum_p coefficients[p] K^p + O(K^remainder); powers are SymPy integers or half-integers, zeros left out."""

    coefficients: Mapping[sp.Expr, sp.Expr]
    remainder: sp.Expr

    def coefficient(self, power: object) -> sp.Expr:
        """The coefficient of K^power; asking beyond the remainder is an error."""
        p = sp.sympify(power, strict=True)
        if p >= self.remainder:
            raise DeriveError(f"The series is known up to O(K^{self.remainder}): ask for a higher order.")
        return self.coefficients.get(p, sp.S.Zero)

    @property
    def leading(self) -> tuple[sp.Expr, sp.Expr] | None:
        """(power, coefficient) of the lowest term, None if all known terms vanish."""
        return min(self.coefficients.items(), key=lambda item: item[0], default=None)

    @property
    def has_half_integer_powers(self) -> bool:
        return any(not p.is_Integer for p in self.coefficients)

    def expression(self, kernel: sp.Expr = K) -> sp.Expr:
        """The sum as an expression, without the remainder."""
        return sp.Add(*(c * kernel**p for p, c in self.coefficients.items()))

    def __str__(self) -> str:
        terms = " + ".join(f"({c})*K^({p})" for p, c in self.coefficients.items()) or "0"
        return f"{terms} + O(K^({self.remainder}))"

    def latex(self) -> str:
        terms = [_latex_term(c, p) for p, c in self.coefficients.items()]
        return " + ".join([*terms, rf"O\left(K^{{{sp.latex(self.remainder)}}}\right)"]).replace("+ -", "- ")


def _latex_term(coefficient: sp.Expr, power: sp.Expr) -> str:
    return str(sp.latex(coefficient * K**power))


def taylor_symbol(order: int, function: str = "sigma") -> sp.Symbol:
    """sigma_p: the p-th derivative of a generic activation at 0."""
    return sp.Symbol(f"{function}_{order}", real=True)


def series(bracket: sp.Expr, activation: object = None, order: int = 4) -> KernelSeries:
    """The series of a one-label bracket up to K^order, exact; activation None leaves sigma_p symbolic.

    >>> from derive.gaussian.pattern import parse_bracket
    >>> print(series(parse_bracket("s0 s0"), "tanh", 3))
    (1)*K^(1) + (-2)*K^(2) + (17/3)*K^(3) + O(K^(4))
    >>> print(series(parse_bracket("s0' s0'"), None, 1))
    (sigma_1**2)*K^(0) + (sigma_1*sigma_3 + sigma_2**2)*K^(1) + O(K^(2))
    """
    if not isinstance(order, int) or not 0 <= order <= MAX_ORDER:
        raise DeriveError(f"The order of a series in K is a whole number from 0 to {MAX_ORDER}.")
    if bracket == 1:
        return KernelSeries({sp.S.Zero: sp.S.One}, sp.Integer(order + 1))
    if not isinstance(bracket, Bracket) or len(bracket.labels) != 1:
        raise DeriveError(f"A series in K is for brackets of one label; {bracket} is not.")
    return _series(bracket, _hashable(bracket, activation), order)


def _hashable(bracket: Bracket, activation: object) -> tuple[tuple[str, Activation | None], ...]:
    names = sorted({a.function for a in bracket.args if isinstance(a, Sigma)})
    pick = activation.get if isinstance(activation, Mapping) else (lambda name: activation)
    return tuple((name, None if pick(name) is None else make_activation(pick(name))) for name in names)


@lru_cache(maxsize=1024)
def _series(bracket: Bracket, named: tuple[tuple[str, Activation | None], ...], order: int) -> KernelSeries:
    table = dict(named)
    factors = [(a, table[a.function]) for a in bracket.args if isinstance(a, Sigma)]
    insertions = len(bracket.args) - len(factors)
    kinked = [a for _, a in factors if a is not None and not a.is_analytic_at_zero]
    length = 2 * order + (2 if kinked else 1)
    coefficients: dict[sp.Expr, sp.Expr] = {}
    sides = (1, -1) if kinked else (1,)
    for side in sides:
        for n, c in enumerate(_product_taylor(factors, insertions, side, length)):
            if not c or (not kinked and n % 2):
                continue
            half = sp.Rational(n, 2)
            moment = sp.factorial2(n - 1) if not kinked else _half_line_moment(n) * side**n
            coefficients[half] = coefficients.get(half, sp.S.Zero) + from_constant(c) * moment
    for power, c in _delta_terms(factors, insertions).items():
        coefficients[power] = coefficients.get(power, sp.S.Zero) + c
    tidy = {p: sp.expand(c) for p, c in sorted(coefficients.items()) if p <= order}
    remainder = sp.Integer(order) + (sp.S.Half if kinked else 1)
    return KernelSeries({p: c for p, c in tidy.items() if c != 0}, remainder)


@lru_cache(maxsize=256)
def _half_line_moment(n: int) -> sp.Expr:
    return 2 ** sp.Rational(n, 2) * sp.gamma(sp.Rational(n + 1, 2)) / (2 * sp.sqrt(sp.pi))


def _product_taylor(
    factors: list[tuple[Sigma, Activation | None]], insertions: int, side: int, length: int
) -> list[Constant]:
    """Taylor coefficients at 0 of the whole integrand, from one side, to z^(length - 1)."""
    one: list[Constant] = [to_constant(sp.S.One)] + [{} for _ in range(length - 1)]
    result: list[Constant] | None = None
    for atom, activation in factors:
        known = _derivative_taylor(atom.function, activation, atom.order, side, length)
        result = list(known) if result is None else multiply_series(result, known)
    return ([{} for _ in range(insertions)] + (result or one))[:length]


@lru_cache(maxsize=256)
def _derivative_taylor(
    function: str, activation: Activation | None, order: int, side: int, length: int
) -> tuple[Constant, ...]:
    if activation is None:
        sigma = [taylor_symbol(k, function) for k in range(order, order + length)]
        return tuple(to_constant(s / sp.factorial(k)) for k, s in enumerate(sigma))
    which = None if activation.is_analytic_at_zero else ("+" if side > 0 else "-")
    coefficients = activation.one_sided(order + length - 1, 0, which)
    return tuple(to_constant(coefficients[k + order] * sp.ff(k + order, order)) for k in range(length))


def _delta_terms(factors: list[tuple[Sigma, Activation | None]], insertions: int) -> dict[sp.Expr, sp.Expr]:
    """c delta^(k)(z) contributes c (-1)^k p^(k)(0): for even k = 2m, c (-1)^m (2m-1)!! K^(-m-1/2) / sqrt(2 pi)."""
    distributions: list[Distribution] = [sigma_distribution(a, s.order) for s, a in factors if a is not None]
    if all(d.is_regular for d in distributions):
        return {}
    if len(distributions) < len(factors):
        raise DeriveError("A generic activation cannot share a bracket with one that holds delta functions.")
    whole = product([*distributions, monomial(insertions)])
    terms: dict[sp.Expr, sp.Expr] = {}
    for delta in whole.deltas:
        if delta.at == 0 and delta.order % 2 == 0:
            m = delta.order // 2
            power = -sp.Rational(2 * m + 1, 2)
            value = delta.coefficient * (-1) ** m * sp.factorial2(2 * m - 1) / sp.sqrt(2 * sp.pi)
            terms[power] = terms.get(power, sp.S.Zero) + value
    return terms
