"""How the report writes mathematics: expressions with numbers short enough to read, table cells, tensors, ratios."""

from __future__ import annotations

import re

import sympy as sp

from derive.depth import Ratio

TENSORS = ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U")
SHOWN = {"Theta": r"\Theta", "G1": r"{G^{\{1\}}}", "H1": r"{H^{\{1\}}}"}
DIGITS = 8
"""Digits shown of a number that is not a short exact one."""
WIDEST = 34
"""Letters side by side that still fit into a table's cell on a phone without a break."""
LONGEST = 10**7
"""Numerators and denominators beyond this are shown as decimals."""

_ARGUMENT = re.compile(r"\{\\left\(\s*(\\?\w+)\s*\\right\)\}")
_COMMAND = re.compile(r"\\(?:left|right|cdot|,|;| )|[{}^_&\s]")


def tex(expression: sp.Expr, digits: int = DIGITS, ascending: bool = False) -> str:
    r"""LaTeX of an expression; floating-point numbers and long fractions are rounded for reading.

    `ascending`: a series by rising powers.

    >>> tex(sp.Rational(2, 3)), tex(sp.Rational(10**9 + 1, 10**9 * 3)), tex(sp.Float("1.0") * sp.Symbol("x"))
    ('\\frac{2}{3}', '0.33333333', 'x')
    >>> tex(sp.tanh(sp.Symbol("z"))), tex(1 + sp.Symbol("K"), ascending=True)
    ('\\tanh(z)', '1 + K')
    """
    order = "rev-lex" if ascending else None
    return _ARGUMENT.sub(r"(\1)", sp.latex(short(expression, digits), ln_notation=False, order=order))


def cell(expression: sp.Expr) -> str:
    r"""LaTeX for a table's cell: what is wide is written so that it can be broken at its plus signs.

    >>> x, y = sp.symbols("x y")
    >>> cell((x + y) ** 2 / (x - y)), cell((x + y) ** 2 * (x + sp.pi) / (x - y) / sp.Symbol("m" * 40)).count("+") > 4
    ('\\frac{(x + y)^{2}}{x - y}', True)
    """
    return _flat(expression).replace(r"\left(", "(").replace(r"\right)", ")")  # delimiters that grow never break


def brief(number: sp.Expr, digits: int = 5) -> str:
    r"""LaTeX of a number for an overview: exact where that is short.

    >>> brief(sp.Rational(3, 2)), brief((3 + sp.sqrt(17)) / 2)
    ('\\frac{3}{2}', '3.5616')
    """
    return tex(number) if _unbroken(number) <= digits else tex(sp.N(number, digits), digits)


def _unbroken(expression: sp.Expr) -> int:
    top, bottom = (expression, sp.S.One) if expression.is_Add else sp.fraction(expression)
    return max(_width(top), _width(bottom))


def _flat(expression: sp.Expr) -> str:
    if _unbroken(expression) <= WIDEST:
        return tex(expression)
    if expression.is_number:
        return rf"\approx {tex(sp.N(expression, DIGITS))}"
    top, bottom = (expression, sp.S.One) if expression.is_Add else sp.fraction(expression)
    if bottom == 1:
        return tex(expression if expression.is_Add else sp.expand(top))
    top = sp.expand(top)
    if _width(bottom) > WIDEST:
        bottom = sp.expand(bottom)  # a sum, which can be broken, where a product cannot
    divisor = tex(bottom) if bottom.is_Atom or (bottom.is_Pow and bottom.base.is_Atom) else f"({tex(bottom)})"
    return f"({tex(top)}) / {divisor}"


def _width(expression: sp.Expr) -> int:
    """Roughly the letters that an expression puts side by side."""
    return len(_COMMAND.sub("", re.sub(r"\\(?!left|right|cdot)[a-zA-Z]+", "x", tex(expression))))


def short(expression: sp.Expr, digits: int = DIGITS) -> sp.Expr:
    """The expression with its long numbers rounded; whole floating-point numbers become integers."""
    if any(max(abs(q.p), q.q) > LONGEST for q in expression.atoms(sp.Rational)):
        expression = sp.expand(expression)
    table: dict[sp.Expr, sp.Expr] = {f: _rounded(f, digits) for f in expression.atoms(sp.Float)}
    for q in expression.atoms(sp.Rational):
        if max(abs(q.p), q.q) > LONGEST:
            table[q] = sp.Float(q, digits)
    return expression.xreplace(table)


def _rounded(number: sp.Float, digits: int) -> sp.Expr:
    whole = sp.Integer(round(number))
    return whole if abs(number) < LONGEST and abs(number - whole) < 1e-25 else sp.Float(number, digits)


def was_rounded(expression: sp.Expr) -> bool:
    """Whether `tex` shows fewer digits than the expression holds."""
    return any(abs(f - sp.Float(f, DIGITS)) > 0 for f in expression.atoms(sp.Float)) or any(
        max(abs(q.p), q.q) > LONGEST for q in expression.atoms(sp.Rational)
    )


def symbol(name: str) -> str:
    """A tensor's letter in TeX."""
    return SHOWN.get(name, name)


def ratio_tex(ratio: Ratio) -> str:
    r"""A dimensionless ratio as a fraction.

    >>> ratio_tex(Ratio("R", sp.S.One, 0, sp.S.One))
    '\\frac{R\\,K}{n\\,\\Theta^3}'
    """
    top, bottom = ratio.name.rstrip(")").split("/(")

    def product(factors: str) -> str:
        parts = (factor.partition("^") for factor in factors.split())
        return r"\,".join(symbol(name) + hat + power for name, hat, power in parts)

    return rf"\frac{{{product(top)}}}{{{product(bottom)}}}"
