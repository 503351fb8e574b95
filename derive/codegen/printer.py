"""Prints SymPy expressions as JAX source in the layout that `ruff format` gives, without needing it.

Numbers become correctly rounded floats, functions the names of `FUNCTIONS` (erf as jax.scipy.special.erf, which is what
`numeric.special_functions` hands on), atoms what the caller's table says. Long sums break at their terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

WIDTH = 120
FUNCTIONS = {
    "Tanh": "jnp.tanh",
    "Arctan": "jnp.arctan",
    "Arcsinh": "jnp.arcsinh",
    "Expm1": "jnp.expm1",
    "Log1p": "jnp.log1p",
    "Erf": "erf",
    "Erfc": "erfc",
    "Logistic": "logistic",
    "Softplus": "softplus",
    "Sech2": "sech2",
    "Sech": "sech",
    "LogCosh": "log_cosh",
    "Bell": "bell",
    "Ramp": "ramp",
    "Root": "root",
    "exp": "jnp.exp",
    "log": "jnp.log",
    "sin": "jnp.sin",
    "cos": "jnp.cos",
    "sinh": "jnp.sinh",
    "cosh": "jnp.cosh",
}
SPECIAL = (
    "bell",
    "beyond",
    "erf",
    "erfc",
    "log_cosh",
    "logistic",
    "ramp",
    "root",
    "sech",
    "sech2",
    "softplus",
    "taylor",
)
"""Names that generated code imports from `numeric.special_functions`."""

_ADD, _MUL, _POW, _ATOM = range(4)


def number(value: sp.Expr) -> str:
    """A number as Python source: whole ones as they are, others as the nearest float64."""
    return whole(int(value)) if value.is_Integer else repr(float(sp.N(value, 30)))


def whole(value: int) -> str:
    """A whole number; as a floating-point one where int64 does not hold it."""
    return str(value) if abs(value) < 2**53 else repr(float(value))


class Printer:
    """Source text of expressions; `names` maps atoms to their source, `order` is a sort key for factors and terms."""

    def __init__(
        self, names: Mapping[sp.Basic, str] | None = None, order: Callable[[sp.Expr], Any] | None = None
    ) -> None:
        self.names = dict(names or {})
        self.order = order

    def __call__(self, expression: sp.Expr) -> str:
        return self._print(expression)[0]

    def _print(self, e: sp.Expr) -> tuple[str, int]:
        if e in self.names:
            return self.names[e], _ATOM
        if e.is_number:
            text = number(e)
            return text, _ADD if text.startswith("-") else _ATOM
        if isinstance(e, sp.Add):
            return self.join(self.terms(e)), _ADD
        if isinstance(e, sp.Mul):
            return self._product(e), _MUL
        if isinstance(e, sp.Pow):
            return self._power(e)
        if isinstance(e, sp.Symbol):
            return e.name, _ATOM
        return f"{FUNCTIONS[type(e).__name__]}({', '.join(self(a) for a in e.args)})", _ATOM

    def _at(self, e: sp.Expr, level: int) -> str:
        text, own = self._print(e)
        return text if own >= level else f"({text})"

    def terms(self, e: sp.Expr) -> list[tuple[str, str]]:
        """(sign, source) of the terms of a sum, positive ones first."""
        out = []
        for term in sorted(sp.Add.make_args(e), key=self.order) if self.order else sp.Add.make_args(e):
            negative = term.as_coeff_Mul()[0].is_negative
            out.append(("-" if negative else "+", self._at(-term if negative else term, _MUL)))
        if out[0][0] == "-" and any(sign == "+" for sign, _ in out):
            out.sort(key=lambda pair: pair[0] == "-")
        return out

    @staticmethod
    def join(terms: list[tuple[str, str]]) -> str:
        first = ("-" if terms[0][0] == "-" else "") + terms[0][1]
        return first + "".join(f" {sign} {text}" for sign, text in terms[1:])

    def _product(self, e: sp.Mul) -> str:
        constants = [a for a in e.args if a.is_number]
        constant = sp.Mul(*constants)
        factors = [a for a in e.args if not a.is_number]
        if self.order:
            factors.sort(key=self.order)
        below = [a for a in factors if a.as_base_exp()[1].is_Integer and a.as_base_exp()[1].is_negative]
        above = [a for a in factors if a not in below]
        sign = "-" if constant.is_negative else ""
        constant = abs(constant)
        over, under = (constant.p, constant.q) if constant.is_Rational else (0, 1)
        if not constant.is_Rational or under >= 10**4:
            head, under = [repr(float(sp.N(constant, 30)))], 1
        else:
            head = [whole(int(over))] if over != 1 or not above else []
        if under & (under - 1) == 0 and under > 1 and under <= 2**10 and head:
            head, under = [repr(over / under)], 1
        texts = [*head, *(self._at(a, _POW if a.is_Pow else _MUL + 1) for a in above)]
        if sign and re.match(r"[A-Za-z_][\w.]*\*\*", texts[0]):
            texts[0] = f"({texts[0]})"
        text = " * ".join(texts)
        bottom = [str(under)] if under != 1 else []
        bottom += [self._at(1 / a, _POW) for a in below]
        return sign + text + "".join(f" / {b}" for b in bottom)

    def _power(self, e: sp.Pow) -> tuple[str, int]:
        base, power = e.args
        if power == sp.S.Half:
            return f"jnp.sqrt({self(base)})", _ATOM
        if power.is_number and power.is_negative:
            return f"1 / {self._at(1 / e, _POW)}", _MUL
        text = self._at(base, _ATOM)
        simple = re.fullmatch(r"[A-Za-z_][\w.]*", text) is not None
        return (f"{text}**{self(power)}" if simple else f"{text} ** {self(power)}"), _POW

    def statement(self, head: str, e: sp.Expr, indent: int = 4) -> list[str]:
        """`head expression` as lines no wider than WIDTH: a sum breaks at its terms, long factors get names first."""
        margin = " " * indent
        hoisted: list[str] = []
        names = dict(self.names)
        try:
            while True:
                if len(line := f"{margin}{head}{self(e)}") <= WIDTH:
                    return [*hoisted, line]
                terms = self.terms(e) if isinstance(e, sp.Add) else []
                if terms and max(len(text) for _, text in terms) + indent + 6 <= WIDTH:
                    return [*hoisted, *self._broken(margin, head, terms)]
                inner = [
                    a for a in sp.preorder_traversal(e) if isinstance(a, sp.Add) and a != e and a not in self.names
                ]
                if not inner:
                    return [*hoisted, line]
                chosen = max(inner, key=lambda a: (len(self(a)) <= WIDTH - indent - 8, len(self(a)), str(a)))
                name = f"y{len(hoisted_names(hoisted))}"
                hoisted += self.statement(f"{name} = ", chosen, indent)
                self.names[chosen] = name
        finally:
            self.names = names

    @staticmethod
    def _broken(margin: str, head: str, terms: list[tuple[str, str]]) -> list[str]:
        (sign, first), *rest = terms
        lines = [f"{margin}{head}(", f"{margin}    {'-' if sign == '-' else ''}{first}"]
        return [*lines, *(f"{margin}    {sign} {text}" for sign, text in rest), f"{margin})"]


def hoisted_names(lines: list[str]) -> set[str]:
    """The temporary names y0, y1, ... that lines assign."""
    return {match.group(1) for line in lines if (match := re.match(r"\s*(y\d+) = ", line))}


def special_names(text: str) -> list[str]:
    """Which names of `numeric.special_functions` a piece of source calls."""
    return [name for name in SPECIAL if re.search(rf"(?<![\w.]){name}\(", text)]
