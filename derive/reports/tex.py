"""What reports add to the notation: table cells that can be broken, numbers for an overview, sentences as blocks."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.layout import Equation, Text
from derive.network.trees import TENSORS as TENSOR_DEFINITIONS
from derive.notation import DIGITS, latex, width
from derive.steps import Formula, Notation, Part, Step, Words, formula

TENSORS = tuple(TENSOR_DEFINITIONS)
WIDEST = 34
"""Letters side by side that still fit into a table's cell on a phone without a break."""
WIDEST_INLINE = 40
"""Letters side by side beyond which a formula is not left in a line of text."""


def cell(expression: sp.Expr) -> Words:
    r"""A table's cell: what is wide is written so that it can be broken at its plus signs.

    >>> x, y = sp.symbols("x y")
    >>> cell((x + y) ** 2 / (x - y)).parts[0].latex()
    '\\frac{(x + y)^{2}}{x - y}'
    >>> wide = sp.Mul(*((x + k) ** 2 for k in range(2, 20))) / (x - y)
    >>> cell(wide).parts[0].latex().startswith("(")
    True
    """
    plain = formula(expression).text()
    return Words(Notation(plain, breakable(expression)))


def breakable(expression: sp.Expr) -> str:
    """TeX whose delimiters do not grow, since those never break."""
    return _flat(expression).replace(r"\left(", "(").replace(r"\right)", ")")


def brief(number: sp.Expr, digits: int = 5) -> Formula:
    r"""A number for an overview: exact where that is short.

    >>> brief(sp.Rational(3, 2)).latex(), brief((3 + sp.sqrt(17)) / 2).latex()
    ('\\frac{3}{2}', '3.5616')
    """
    return formula(number) if _unbroken(number) <= digits else formula(sp.N(number, digits), digits=digits)


def is_wide(expression: sp.Expr) -> bool:
    """Whether a table's cell shows it as a number."""
    return bool(expression.is_number and _unbroken(expression) > WIDEST)


def _unbroken(expression: sp.Expr) -> int:
    top, bottom = (expression, sp.S.One) if expression.is_Add else sp.fraction(expression)
    return max(width(top), width(bottom))


def _flat(expression: sp.Expr) -> str:
    if _unbroken(expression) <= WIDEST:
        return latex(expression)
    if expression.is_number:
        return rf"\approx {latex(sp.N(expression, DIGITS))}"
    top, bottom = (expression, sp.S.One) if expression.is_Add else sp.fraction(expression)
    if bottom == 1:
        return latex(expression if expression.is_Add else sp.expand(top))
    top = sp.expand(top)
    if width(bottom) > WIDEST:
        bottom = sp.expand(bottom)  # a sum, which can be broken, where a product cannot
    divisor = latex(bottom) if bottom.is_Atom or (bottom.is_Pow and bottom.base.is_Atom) else f"({latex(bottom)})"
    return f"({latex(top)}) / {divisor}"


def blocks_of(step: Step) -> Iterator[Text | Equation]:
    """A step as blocks: its words, then its equations; a formula too wide for a line of text is displayed too."""
    line: list[Part] = []
    for part in step.words.parts:
        if isinstance(part, Formula) and sum(width(side) for side in part.sides) > WIDEST_INLINE:
            if line:
                yield Text(Words(*line))
            yield Equation(part.latex())
            line = []
        else:
            line.append(part)
    rest = Words(*line)
    if rest.strip(" ,."):
        yield Text(Words(*line, ":") if step.equations else rest)
    for equation in step.equations:
        yield Equation(equation.latex())
