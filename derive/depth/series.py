r"""Formal series sum_p sum_q c_{p,q} l^(-p) log^q(l) at large depth l, with exact coefficients and a tracked remainder.

Exponents are exact: linear combinations, with rational coefficients, of 1 and of the irrational (or symbolic)
numbers that a problem brings with it, such as p_perp = b_1/a_1. A coefficient is a polynomial in log(l), in the
learning rates and in the named free constants.

>>> ring = DepthRing(Field.containing([]), ["c"])
>>> x = ring.term(1, 1, order=4)                    # 1/l + O(l^-4)
>>> x.shift()                                       # l -> l + 1
l**(-1) - l**(-2) + l**(-3) + O(l**(-4))
>>> x * x + ring.log * x
log(l)*l**(-1) + l**(-2) + O(l**(-4))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any

import mpmath
import sympy as sp

from derive.depth.field import Field
from derive.symbols import ell

LOG = sp.Symbol("_log_ell", positive=True)
Exponent = tuple[Fraction, ...]
"""Coordinates over the basis (1, irrational numbers...) of a ring."""


class DepthRing:
    """Series with coefficients in `field`[log l, names...]; `irrationals` maps a symbol to its (exact, float) value."""

    def __init__(
        self,
        field: Field,
        names: Sequence[str] = (),
        irrationals: Mapping[sp.Symbol, tuple[sp.Expr, float]] | None = None,
    ) -> None:
        self.field = field
        self.names = tuple(names)
        self.irrationals = dict(irrationals or {})
        self.polynomials = sp.polys.rings.PolyRing(
            [LOG, *map(sp.Symbol, self.names)], field.domain, sp.polys.orderings.lex
        )
        self.log = self.polynomials.gens[0]
        self._values = [1.0, *(float(v) for _, v in self.irrationals.values())]
        self._elements = [field(1), *(field(e) for e, _ in self.irrationals.values())]
        self._shifts: dict[tuple[Exponent, int], list[list[Any]]] = {}

    # exponents ------------------------------------------------------------------------------------------------------
    def rational(self, number: Any) -> Exponent:
        return (Fraction(number), *(Fraction(0) for _ in self.irrationals))

    def exponent(self, number: Any) -> Exponent:
        """The coordinates of an exponent given as a fraction, a SymPy expression or an element of the field."""
        if isinstance(number, tuple):
            return number
        if isinstance(number, int | Fraction | sp.Rational):
            return self.rational(Fraction(int(number.p), int(number.q)) if isinstance(number, sp.Rational) else number)
        if isinstance(number, sp.Expr) and number.free_symbols & set(self.irrationals):
            poly = sp.Poly(number, *self.irrationals)
            coords = [poly.coeff_monomial(1), *(poly.coeff_monomial(s) for s in self.irrationals)]
            return tuple(Fraction(int(c.p), int(c.q)) for c in coords)
        element = self.field(number) if isinstance(number, sp.Expr) else number
        found = self.field.fraction(element)
        if found is not None:
            return self.rational(found)
        for place, unit in enumerate(self._elements[1:], start=1):
            for numerator in (1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6):
                for denominator in (1, 2):
                    multiple = Fraction(numerator, denominator)
                    found = self.field.fraction(element - self.field(multiple) * unit)
                    if found is not None:
                        coords = [found, *(Fraction(0) for _ in self.irrationals)]
                        coords[place] = multiple
                        return tuple(coords)
        raise ValueError(f"the exponent {self.field.to_sympy(element)} is not in the span of {list(self.irrationals)}")

    def value(self, exponent: Exponent) -> float:
        return sum(float(c) * v for c, v in zip(exponent, self._values))

    def element(self, exponent: Exponent) -> Any:
        total = self.field(0)
        for coordinate, unit in zip(exponent, self._elements):
            total += self.field(coordinate) * unit
        return total

    def exponent_expr(self, exponent: Exponent) -> sp.Expr:
        basis = [sp.S.One, *self.irrationals]
        return sp.Add(*(sp.Rational(c.numerator, c.denominator) * b for c, b in zip(exponent, basis)))

    # elements -------------------------------------------------------------------------------------------------------
    def coefficient(self, number: Any) -> Any:
        """A polynomial: from a name, a number, or a SymPy polynomial in the names."""
        if isinstance(number, str):
            return self.polynomials.gens[1 + self.names.index(number)]
        if isinstance(number, sp.polys.rings.PolyElement):
            return number
        return self.polynomials.ground_new(self.field(number))

    def term(self, coefficient: Any, exponent: Any = 0, order: float = inf) -> Series:
        return Series(self, {self.exponent(exponent): self.coefficient(coefficient)}, order)

    def zero(self, order: float = inf) -> Series:
        return Series(self, {}, order)

    def one(self) -> Series:
        return self.term(1)

    def clean(self, poly: Any) -> Any:
        """Without coefficients that are zero within the precision of the field."""
        if self.field.exact and not self.field.domain.is_EX:
            return poly
        kept = {m: c for m, c in poly.items() if not self.field.negligible(c)}
        return self.polynomials.from_dict(kept)

    def shift_weights(self, exponent: Exponent, depth: int) -> list[list[Any]]:
        """w[j][k]: the coefficient of t^k in (1+t)^(-p) log(1+t)^j / j!, for k <= depth."""
        key = (exponent, depth)
        if key not in self._shifts:
            field, p = self.field, self.element(exponent)
            power = [field(1)]
            for k in range(depth):
                power.append(power[-1] * (-p - field(k)) / field(k + 1))
            rows = [power]
            for j in range(1, depth + 1):
                previous = rows[-1]
                row = [field(0)] * (depth + 1)
                for a, c in enumerate(previous):
                    for k in range(1, depth + 1 - a):
                        row[a + k] += c * field(Fraction((-1) ** (k + 1), k * j))
                rows.append(row)
            self._shifts[key] = rows
        return self._shifts[key]


class Series:
    """{exponent: polynomial in log l and names} up to O(l^(-order)), powers of the logarithm implied."""

    def __init__(self, ring: DepthRing, terms: Mapping[Exponent, Any], order: float = inf) -> None:
        self.ring = ring
        self.order = order
        cleaned = ((p, ring.clean(c)) for p, c in terms.items() if ring.value(p) < order - 1e-9)
        self.terms: dict[Exponent, Any] = {p: c for p, c in cleaned if c}

    def __iter__(self) -> Iterator[tuple[Exponent, Any]]:
        """The terms, the largest at great depth first."""
        return iter(sorted(self.terms.items(), key=lambda item: self.ring.value(item[0])))

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def leading(self) -> tuple[Exponent, Any]:
        return next(iter(self))

    @property
    def lead(self) -> float:
        """The leading exponent's value; of a series without terms, the order of the remainder."""
        return min((self.ring.value(p) for p in self.terms), default=self.order)

    def _coerce(self, other: Any) -> Series:
        return other if isinstance(other, Series) else self.ring.term(other)

    def __add__(self, other: Any) -> Series:
        other = self._coerce(other)
        terms = dict(self.terms)
        for p, c in other.terms.items():
            terms[p] = terms[p] + c if p in terms else c
        return Series(self.ring, terms, min(self.order, other.order))

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series(self.ring, {p: -c for p, c in self.terms.items()}, self.order)

    def __sub__(self, other: Any) -> Series:
        return self + (-self._coerce(other))

    def __rsub__(self, other: Any) -> Series:
        return self._coerce(other) - self

    def __mul__(self, other: Any) -> Series:
        other = self._coerce(other)
        order = min(self.order + other.lead, other.order + self.lead)
        value = self.ring.value
        mine = [(value(p), p, c) for p, c in self.terms.items()]
        terms: dict[Exponent, Any] = {}
        for q, d in other.terms.items():
            limit = order - value(q) - 1e-9
            for v, p, c in mine:
                if v < limit:
                    exponent = tuple(a + b for a, b in zip(p, q))
                    product = c * d
                    terms[exponent] = terms[exponent] + product if exponent in terms else product
        return Series(self.ring, terms, order)

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Series:
        result, base = self.ring.one(), self
        while power:
            if power & 1:
                result = result * base
            power >>= 1
            if power:
                base = base * base
        return result

    def times_power(self, exponent: Exponent) -> Series:
        """l^(-exponent) times the series."""
        moved = {tuple(a + b for a, b in zip(p, exponent)): c for p, c in self.terms.items()}
        return Series(self.ring, moved, self.order + self.ring.value(exponent))

    def truncate(self, order: float) -> Series:
        return Series(self.ring, self.terms, min(order, self.order))

    def shift(self, order: float | None = None) -> Series:
        """l -> l + 1, kept below `order`: u(log l) l^(-p) becomes sum_jk w_jk l^(-p-k) u^(j)(log l)."""
        ring = self.ring
        order = self.order if order is None else min(order, self.order)
        if order == inf and self.terms:
            raise ValueError("a shift needs an order to stop at")
        terms: dict[Exponent, Any] = {}
        for p, u in self.terms.items():
            depth = max(0, int(-(-(order - ring.value(p) - 1e-9) // 1)) - 1)
            derivatives = [u]
            while derivatives[-1] and len(derivatives) <= depth:
                derivatives.append(derivatives[-1].diff(ring.log))
            weights = ring.shift_weights(p, depth)
            for k in range(depth + 1):
                total = ring.polynomials.zero
                for j, d in enumerate(derivatives[: k + 1]):
                    if d and weights[j][k]:
                        total += d * weights[j][k]
                if total:
                    exponent = (p[0] + k, *p[1:])
                    terms[exponent] = terms[exponent] + total if exponent in terms else total
        return Series(ring, terms, order)

    def power(self, exponent: Fraction, lead_power: Any) -> Series:
        """The series to a rational power, given its leading coefficient to that power; leading term free of names."""
        ring = self.ring
        p, c = self.leading
        if not c.is_ground:
            raise ValueError("a power of a series needs a leading coefficient without logarithms or names")
        inverse = ring.term(ring.polynomials.ground_new(ring.field(1) / c.coeff(1)), tuple(-x for x in p))
        rest = self * inverse - 1
        total, product, binomial, k = ring.one(), ring.one(), Fraction(1), 0
        while product := (product * rest).truncate(rest.order):
            binomial = binomial * (exponent - k) / (k + 1)
            if binomial == 0:
                break
            k += 1
            total = total + product * ring.coefficient(binomial)
        total = total.truncate(rest.order)
        return total * ring.term(ring.coefficient(lead_power), tuple(x * exponent for x in p))

    # reading --------------------------------------------------------------------------------------------------------
    def substitute(self, values: Mapping[str, Any]) -> Series:
        """Names replaced by numbers of the field."""
        pairs = [(self.ring.coefficient(name), self.ring.field(v)) for name, v in values.items()]
        terms = {}
        for p, c in self.terms.items():
            for gen, v in pairs:
                c = c.subs(gen, v)
            terms[p] = c
        return Series(self.ring, terms, self.order)

    def coefficient_expr(self, poly: Any, log: sp.Expr | None = None) -> sp.Expr:
        """A coefficient as a SymPy expression in log(ell) and the names' symbols."""
        ring = self.ring
        symbols = [sp.log(ell) if log is None else log, *(name_symbol(n) for n in ring.names)]
        total = sp.S.Zero
        for monomial, c in poly.items():
            total += ring.field.to_sympy(c) * sp.Mul(*(s**m for s, m in zip(symbols, monomial)))
        return total

    def to_sympy(self) -> sp.Expr:
        return sp.Add(*(self.coefficient_expr(c) * ell ** (-self.ring.exponent_expr(p)) for p, c in self))

    def evaluate(self, layer: Any, values: Mapping[str, Any] | None = None, digits: int = 30) -> Any:
        """The truncated sum at a layer as an mpmath number; every name that occurs needs a value."""
        ring = self.ring
        values = values or {}
        with mpmath.workdps(digits + 5):
            depth = mpmath.mpf(layer)
            numbers = [mpmath.log(depth), *(mpmath.mpf(values.get(n, mpmath.nan)) for n in ring.names)]
            units = [mpmath.mpf(1), *(_number(e, digits) for e, _ in ring.irrationals.values())]
            total = mpmath.mpf(0)
            for p, poly in self.terms.items():
                exponent = mpmath.fsum(u * c.numerator / c.denominator for c, u in zip(p, units))
                inner = mpmath.mpf(0)
                for monomial, c in poly.items():
                    product = _number(ring.field.to_sympy(c), digits)
                    for number, m in zip(numbers, monomial):
                        if m:
                            product *= number**m
                    inner += product
                total += inner * depth ** (-exponent)
            if mpmath.isnan(total):
                missing = {n for n in self.used_names() if n not in values}
                raise ValueError(f"evaluation needs a value for {', '.join(sorted(missing))}")
            return +total

    def used_names(self) -> tuple[str, ...]:
        used = {n for c in self.terms.values() for m in c for n, e in zip(self.ring.names, m[1:]) if e}
        return tuple(n for n in self.ring.names if n in used)

    def __repr__(self) -> str:
        log = sp.Symbol("log(l)")
        parts = []
        for p, c in self:
            coefficient = self.coefficient_expr(c, log)
            power = self.ring.exponent_expr(p)
            text = str(coefficient) if coefficient.is_Atom or coefficient.is_Mul else f"({coefficient})"
            if power != 0:
                text = (
                    f"l**({-power})" if text == "1" else f"-l**({-power})" if text == "-1" else f"{text}*l**({-power})"
                )
            parts.append(text)
        if self.order != inf:
            parts.append(f"O(l**({-self.order:g}))")
        return " + ".join(parts).replace("+ -", "- ") or "0"


def name_symbol(name: str) -> sp.Symbol:
    """The symbol of a named constant: the shared one where the package has it."""
    from derive import symbols

    shared = getattr(symbols, name, None)
    return shared if isinstance(shared, sp.Symbol) else sp.Symbol(name, real=True)


def _number(expr: sp.Expr, digits: int) -> Any:
    if expr.is_Rational:
        return mpmath.mpf(int(expr.p)) / int(expr.q)
    return mpmath.mpf(str(sp.N(expr, digits + 5)))
