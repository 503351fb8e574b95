"""The letters and words of a formula, and the canonical print of an expression in that same language.

A text is cut into tokens first: numbers, names and a few operators, with spaces between them. Whatever is not such a
token (a comment, a quote, a backslash, a line break, any other character) is refused, so that the parser behind it
only ever sees our own spelling of the tokens. `canonical` goes the other way: what is shown, stored or written into a
file is the print of the parsed expression, never the text that was typed.

>>> tokens("0.5*tanh( z )^2")
['0.5', '*', 'tanh', '(', 'z', ')', '**', '2']
>>> tokens("tanh(z) # and more")
Traceback (most recent call last):
...
derive.errors.FormulaError: The character '#' is not allowed in a formula: it may hold numbers, names, ...
"""

from __future__ import annotations

import keyword
import re

import sympy as sp
from sympy.logic.boolalg import And, Boolean, Or
from sympy.printing.str import StrPrinter

from derive.errors import FormulaError

MAX_LENGTH = 500
MAX_NESTING = 40
MAX_TOKENS = 300
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+(?![A-Za-z0-9_.]))?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<operator>\*\*|<=|>=|==|[-+*/^(),<>=])|(?P<space> +)"
)
_SIGNS = set("+-")


def tokens(text: str) -> list[str]:
    """The tokens of a formula, `^` spelled `**`; a FormulaError says which character or word is not one."""
    if not isinstance(text, str) or not text.strip(" "):
        raise FormulaError("The activation is empty: give a built-in name or a formula in z.")
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"The formula is longer than {MAX_LENGTH} characters.")
    found: list[str] = []
    place, depth, signs, kind = 0, 0, 0, None
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise FormulaError(
                f"The character {text[place]!a} is not allowed in a formula: it may hold numbers, names, "
                "+ - * / ** ^ ( ) , < > and =."
            )
        token, place = match.group(), match.end()
        if match.lastgroup == "space":
            continue
        before, kind = kind, match.lastgroup
        if kind == "name":
            _check_word(token)
        if kind in ("number", "name") and before in ("number", "name"):
            raise FormulaError(f"There is no operator between {found[-1]!r} and {token!r}: write {found[-1]}*{token}.")
        depth += (token == "(") - (token == ")")
        signs = signs + 1 if token in _SIGNS else 0
        if depth > MAX_NESTING:
            raise FormulaError(f"The formula is nested more than {MAX_NESTING} deep.")
        if signs > 11:
            raise FormulaError("The formula has too many operators in a row.")
        found.append("**" if token == "^" else token)
    if len(found) > MAX_TOKENS:
        raise FormulaError(f"The formula has more than {MAX_TOKENS} numbers, names and operators.")
    return found


def _check_word(word: str) -> None:
    if "__" in word:
        raise FormulaError("Names with double underscores are not allowed in a formula.")
    if keyword.iskeyword(word):
        raise FormulaError(f"The word {word!r} is not allowed in a formula: use numbers, z, + - * / ** and functions.")


class _Printer(StrPrinter):
    """SymPy's text form, in the words that the parser reads."""

    def _nested(self, name: str, arguments: list[sp.Expr]) -> str:
        first, *rest = arguments
        return f"{name}({self._print(first)}, {self._nested(name, rest)})" if rest else self._print(first)

    def _print_Max(self, e: sp.Max) -> str:
        return self._nested("max", sorted(e.args, key=sp.default_sort_key))

    def _print_Min(self, e: sp.Min) -> str:
        return self._nested("min", sorted(e.args, key=sp.default_sort_key))

    def _print_Abs(self, e: sp.Abs) -> str:
        return f"abs({self._print(e.args[0])})"

    def _print_Piecewise(self, e: sp.Piecewise) -> str:
        (value, condition), *rest = e.args
        text = self._print(value)
        if not rest:
            return text
        return self._where(condition, text, self._print(sp.Piecewise(*rest, evaluate=False)))

    def _where(self, condition: Boolean, yes: str, no: str) -> str:
        if isinstance(condition, And):
            first, *rest = condition.args
            return self._where(first, self._where(And(*rest, evaluate=False), yes, no) if rest else yes, no)
        if isinstance(condition, Or):
            first, *rest = condition.args
            return self._where(first, yes, self._where(Or(*rest, evaluate=False), yes, no) if rest else no)
        return f"where({self._print(condition)}, {yes}, {no})"


def canonical(expression: sp.Expr) -> str:
    """The text of an expression in the language that `tokens` cuts: what is shown wherever the activation is named.

    >>> from derive.symbols import z
    >>> canonical(sp.Max(z, 0) + sp.Piecewise((z, z < 0), (z**2, True)))
    'where(z < 0, z, z**2) + max(0, z)'
    """
    return _Printer({"order": None}).doprint(expression)
