"""The `Activation`: an immutable sigma(z) that knows its kinks, delta functions, parity, Taylor data and growth.

>>> a = activation("leaky_relu(slope=1/10)")
>>> a.kinks, a.scale_invariant, a.first_delta_order
((0,), (1, 1/10), 2)
>>> activation("tanh").taylor(3)
-2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp

from derive.activations.builtin import ALIASES, BUILTIN
from derive.activations.domain import check_pieces
from derive.activations.names import built_in, found, meant
from derive.activations.parser import MAX_DEGREE, check_nodes, parse_call, parse_formula, parse_number
from derive.activations.pieces import identically_zero, split, vanishes
from derive.activations.roots import Root
from derive.activations.syntax import canonical
from derive.activations.taylor import taylor_coefficients
from derive.errors import FormulaError
from derive.symbols import z


@dataclass(frozen=True)
class Delta:
    """coefficient * delta^(order)(z - at): one term of the singular part of a derivative of sigma."""

    at: sp.Expr
    order: int
    coefficient: sp.Expr


@dataclass(frozen=True, eq=False)
class Activation:
    """sigma(z), given by analytic `pieces` between exact `kinks` (none of them for a smooth activation)."""

    name: str
    kinks: tuple[sp.Expr, ...]
    pieces: tuple[sp.Expr, ...]

    @cached_property
    def expression(self) -> sp.Expr:
        """sigma(z) in `derive.symbols.z`; a Piecewise where there are kinks."""
        return self._join(self.pieces)

    @property
    def definition(self) -> str:
        """The definition as text: what a cache or a generated file is keyed by."""
        return str(self.expression)

    def _join(self, pieces: tuple[sp.Expr, ...]) -> sp.Expr:
        if not self.kinks:
            return pieces[0]
        branches = [(piece, z < kink) for piece, kink in zip(pieces, self.kinks)]
        return sp.Piecewise(*branches, (pieces[-1], True), evaluate=False)

    @lru_cache(maxsize=64)  # noqa: B019 - activations are few and small
    def derivative_pieces(self, order: int) -> tuple[sp.Expr, ...]:
        """sigma^(order) on each piece, without the delta functions at the kinks."""
        if order == 0:
            return self.pieces
        return tuple(sp.diff(piece, z) for piece in self.derivative_pieces(order - 1))

    def derivative(self, order: int = 1) -> sp.Expr:
        """The regular part of sigma^(order); `deltas(order)` is its singular part."""
        return self._join(self.derivative_pieces(order))

    @lru_cache(maxsize=256)  # noqa: B019
    def jump(self, order: int, kink: sp.Expr) -> sp.Expr:
        """sigma^(order)(kink+) - sigma^(order)(kink-), exact."""
        left, right = (self.one_sided(order, kink, side)[order] for side in ("-", "+"))
        jump = (right - left) * sp.factorial(order)
        return sp.S.Zero if vanishes(jump) else jump if jump.atoms(Root) else sp.simplify(jump)

    def deltas(self, order: int) -> tuple[Delta, ...]:
        """The delta functions in sigma^(order): a jump of sigma^(j) gives delta^(order - 1 - j)."""
        return tuple(
            Delta(kink, order - 1 - j, self.jump(j, kink))
            for kink in self.kinks
            for j in range(order)
            if self.jump(j, kink) != 0
        )

    @cached_property
    def first_delta_order(self) -> int | None:
        """The lowest order of a derivative that holds a delta function; None for a smooth activation."""
        orders = (j + 1 for j in range(2 * MAX_DEGREE) for kink in self.kinks if self.jump(j, kink) != 0)
        return next(orders, None)

    def _piece(self, point: sp.Expr, side: str | None) -> sp.Expr:
        index = sum(1 for kink in self.kinks if kink < point or (kink == point and side == "+"))
        if side is None and point in self.kinks:
            raise FormulaError(f"{self.name} has a kink at z = {point}: ask for one side, '+' or '-'.")
        return self.pieces[index]

    def one_sided(self, order: int, at: sp.Expr | int = 0, side: str | None = None) -> tuple[sp.Expr, ...]:
        """Taylor coefficients c_0 ... c_order at a point, from one side where it is a kink."""
        rounded = max(8, 1 << max(order - 1, 0).bit_length())  # to a power of two, so that few orders are computed
        return self._taylor(rounded, _exact(at), side)[: order + 1]

    @lru_cache(maxsize=256)  # noqa: B019
    def _taylor(self, order: int, at: sp.Expr, side: str | None) -> tuple[sp.Expr, ...]:
        return tuple(taylor_coefficients(self._piece(at, side), z, at, order))

    def taylor_coefficients(self, order: int) -> tuple[sp.Expr, ...]:
        """c_0 ... c_order of sigma at 0, exact (sigma_k / k!)."""
        return self.one_sided(order, 0, None)

    def taylor(self, order: int, side: str | None = None) -> sp.Expr:
        """sigma_k: the k-th derivative at 0, exact; `side` is needed where 0 is a kink."""
        return sp.expand(self.one_sided(order, 0, side)[order] * sp.factorial(order))

    @property
    def is_smooth(self) -> bool:
        return not self.kinks

    @property
    def is_analytic_at_zero(self) -> bool:
        return sp.S.Zero not in self.kinks

    def _parity(self, sign: int) -> bool:
        if any(not vanishes(a + b) for a, b in zip(self.kinks, reversed(self.kinks))):
            return False
        mirrored = (piece.xreplace({z: -z}) for piece in reversed(self.pieces))
        return all(identically_zero(a - sign * b) for a, b in zip(self.pieces, mirrored))

    @cached_property
    def is_odd(self) -> bool:
        return self._parity(-1)

    @cached_property
    def is_even(self) -> bool:
        return self._parity(1)

    @property
    def is_polynomial(self) -> bool:
        return not self.kinks and bool(self.pieces[0].is_polynomial(z))

    @cached_property
    def scale_invariant(self) -> tuple[sp.Expr, sp.Expr] | None:
        """(a_plus, a_minus) where sigma(z) = a_plus z for z > 0 and a_minus z for z < 0, else None."""
        if any(kink != 0 for kink in self.kinks):
            return None
        slopes = [piece.xreplace({z: sp.Integer(side)}) * side for piece, side in zip(self.pieces, (-1, 1))]
        if len(self.pieces) == 1:
            slopes = [self.pieces[0].xreplace({z: sp.S.One})]
        if any(not identically_zero(piece - slope * z) for piece, slope in zip(self.pieces, slopes)):
            return None
        return slopes[-1], slopes[0]

    def __call__(self, value: Any) -> sp.Expr:
        """sigma(value), exact for exact values.

        >>> activation("relu")(-3), activation("tanh")(0)
        (0, 0)
        """
        value = _exact(value)
        if value.free_symbols:
            return self.expression.xreplace({z: value})
        return self.pieces[sum(1 for kink in self.kinks if kink <= value)].xreplace({z: value})

    def __eq__(self, other: object) -> bool:
        """By name and definition: an activation with more methods is the same activation."""
        if not isinstance(other, Activation):
            return NotImplemented
        return (self.name, self.kinks, self.pieces) == (other.name, other.kinks, other.pieces)

    def __hash__(self) -> int:
        return hash((self.name, self.kinks, self.pieces))

    def __repr__(self) -> str:
        return f"Activation({self.name}: {self.definition})"


def _exact(value: Any) -> sp.Expr:
    """A point of the line: text is read by the whitelist parser, and nothing but numbers and expressions is taken."""
    if isinstance(value, str):
        return parse_number(value)
    try:
        point = sp.sympify(value, strict=True)
    except sp.SympifyError:
        point = None
    if not isinstance(point, sp.Expr):
        raise FormulaError(f"An activation takes a number or a SymPy expression, not {type(value).__name__}.")
    return point


def _from_expression(name: str, expression: sp.Expr) -> Activation:
    expression = expression.replace(sp.erfc, lambda u: 1 - sp.erf(u)).replace(sp.sech, lambda u: 1 / sp.cosh(u))
    try:
        kinks, pieces = split(expression)
        if not kinks and not pieces[0].has(z):
            raise FormulaError(f"The formula {name!r} is a constant: it does not depend on z.")
        check_pieces(kinks, pieces)
    except (ArithmeticError, RecursionError, MemoryError):
        raise FormulaError(f"The formula {name!r} cannot be analysed: numbers in it leave every range.") from None
    return Activation(name, kinks, pieces)


@lru_cache(maxsize=256)
def _from_text(text: str) -> Activation:
    key = text.strip(" ")
    call = (ALIASES[key], {}) if key in ALIASES else parse_call(key)
    if call is not None:
        name, parameters = call
        definition = found(name)
        if definition is not None:
            return _from_expression(*definition.expression(parameters))
        if parameters or (key == name and key != "z"):
            likely = meant(name, ["z", *BUILTIN, *ALIASES])
            raise FormulaError(
                f"Unknown activation {key!a}: {likely}built in are {built_in()}; or give a formula in z."
            )
    expression = parse_formula(key)
    return _from_expression(canonical(expression), expression)


def activation(definition: str | sp.Expr | Activation) -> Activation:
    """An activation from a built-in name, a name with parameters, a formula in z or a SymPy expression in one symbol.

    >>> activation("silu").name, activation("monomial(k=3)").expression
    ('swish', z**3)
    """
    if isinstance(definition, Activation):
        return definition
    if isinstance(definition, str):
        return _from_text(definition)
    if isinstance(definition, sp.Expr):
        symbols = definition.free_symbols
        if len(symbols) != 1 or next(iter(symbols)).name != "z":
            found = ", ".join(sorted(map(str, symbols))) or "none"
            raise FormulaError(f"An activation must be a formula in z alone; its free symbols are: {found}.")
        expression = definition.xreplace({next(iter(symbols)): z})
        check_nodes(expression)
        return _from_expression(canonical(expression), expression)
    raise FormulaError(
        f"An activation is a name, a formula in z or a SymPy expression, not {type(definition).__name__}."
    )
