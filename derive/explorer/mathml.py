r"""Formulas for a page that loads nothing: MathML, which browsers set themselves.

>>> from derive.symbols import lambda_W
>>> mathml(lambda_W / 2)
'<math><mfrac><msub><mi>&#955;</mi><mi>W</mi></msub><mn>2</mn></mfrac></math>'
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp
from sympy.printing.mathml import mathml as printed

from derive.notation import DIGITS, TENSOR_LATEX, short

_LETTERS = {"<mi>ell</mi>": "<mi>&#8467;</mi>", "<mi>K*</mi>": "<msup><mi>K</mi><mo>*</mo></msup>"}


@lru_cache(maxsize=4096)
def mathml(expression: sp.Expr, digits: int = DIGITS) -> str:
    """An expression as MathML; floating-point numbers are rounded for reading."""
    text = str(
        printed(
            short(sp.sympify(expression, strict=True), digits), printer="presentation", mul_symbol_mathml_numbers="·"
        )
    )
    for name, letter in _LETTERS.items():
        text = text.replace(name, letter)
    return f"<math>{text.removeprefix('<mrow>').removesuffix('</mrow>') if _is_one_row(text) else text}</math>"


def _is_one_row(text: str) -> bool:
    """Whether the whole is one <mrow> (its first tag closes at the end)."""
    if not text.startswith("<mrow>") or not text.endswith("</mrow>"):
        return False
    level = 0
    for place in range(len(text)):
        level += text.startswith("<mrow>", place) - text.startswith("</mrow>", place)
        if level == 0:
            return place == len(text) - len("</mrow>")
    return False


def tensor_mathml(name: str) -> str:
    """A tensor's letter.

    >>> tensor_mathml("G1")
    '<math><msup><mi>G</mi><mn>{1}</mn></msup></math>'
    """
    letter, order = TENSOR_LATEX.get(name, (name, ""))
    plain = "&#920;" if name == "Theta" else letter
    body = f"<msup><mi>{plain}</mi><mn>{{1}}</mn></msup>" if order else f"<mi>{plain}</mi>"
    return f"<math>{body}</math>"
