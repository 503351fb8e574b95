"""Sentences of the program in the report's markup: their names of quantities and their formulas become inline TeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import sympy as sp

from derive.layout import runs
from derive.reports.document import Equation, Text
from derive.reports.tex import symbol, tex
from derive.symbols import C_W, C_b, K

_QUANTITIES = {
    "chi_parallel": r"\chi_\parallel",
    "chi_perp": r"\chi_\perp",
    "p_perp": r"p_\perp",
    "C_W": "C_W",
    "C_b": "C_b",
    "lambda_W": r"\lambda_W",
    "lambda_b": r"\lambda_b",
    "dK'/dK": "dK'/dK",
    "delta^2": r"\delta^2",
    "Theta": r"\Theta",
    "psi": r"\psi",
    ">=": r"\ge",
}
_TOKEN = re.compile(
    r"(?P<ready>\$[^$]+\$|`[^`]+`)"
    r"|<(?P<bracket>s\d?'*(?: ?s\d?'*)*)>(?P<over>_K)?"
    rf"|(?P<quantity>{'|'.join(re.escape(q) for q in _QUANTITIES)})(?![\w'])"
    r"|(?P<sigma>\bsigma)(?P<primes>'*)(?P<of>\((?:z|0)\))?(?!\w)"
    r"|(?P<star>\bK\*)(?P<zero>=0)?(?![\w(<*])"
    r"|\bK(?P<prime>')(?!\w)"
    r"|\bK(?:\*\*|\^)(?P<power>\d+|\(\d+/\d+\))(?!\w)"
    r"|\bK\^\((?P<layer>\d)\)"
    r"|\bell\^\((?P<exponent>[^()]*)\)"
    r"|\bkappa(?:\^(?P<kappa>\d))?(?!\w)"
    r"|\b(?P<letter>[ac])_(?P<index>\d|K|Theta)(?!\w)"
    r"|(?P<depth>\b(?:l|ell)\b)(?!')"
    r"|(?<![\w*/+^.-])(?P<variable>[Kyz])(?![\w'*^()/+-])"
)
WIDEST_INLINE = 110
"""Characters of LaTeX beyond which a formula is not left in a line of text."""
_FUNCTIONS = ("exp", "log", "sqrt", "erf", "erfc", "asin", "acos", "atan", "sin", "cos", "tanh")
_NAMES = {n: getattr(sp, n) for n in _FUNCTIONS} | {"pi": sp.pi, "K": K, "C_W": C_W, "C_b": C_b}
_FACTOR = re.compile(r"(?P<before>\()(?P<formula>(?:[^()=,$]|\((?:[^()=,$]|\([^()=,$]*\))*\))+)(?=\) K\^|\), so)")
_FORMULA = re.compile(
    r"(?P<before>= |leading term |falls as )(?P<formula>[^=<>;:,$]+?)"
    r"(?=,? \+ \.\.\.|, |; |: | is | has | every |\. |/l\.|\.?$)"
)
_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?(?:/\d+)?"


def _power(found: re.Match[str]) -> str:
    mantissa = "" if found[1] == "1" else rf"{found[1]}\times "
    return f"${mantissa}10^{{{found[2].replace('+', '')}{found[3]}}}$"


_JOINS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<![\w.$])(\d(?:\.\d+)?)e([+-])0*(\d+)", _power),
        (r"\(\$([^$]+)\$\) \(\$([^$]+)\$\)\^2", r"$(\1)\\,(\2)^2$"),
        (r"(?<![\w/$])1/\$", "$1/"),
        (r"(?<![\w/])1/\(1 \$(a_1)\$\)", r"$1/\1$"),
        (r"(?<![\w/])1/\((\d) \$(a_\d)\$\)", r"$1/(\1 \2)$"),
        (r"\$/\$", "/"),
        (r"(?<=[\s(])-\$", "$-"),
        (r"\$\^(\d)", r"^\1$"),
        (rf"\(({_NUMBER})\) \(\$([^$]+)\$\)\^2", r"$(\1)\,(\2)^2$"),
        (rf"\(({_NUMBER})\) \$", r"$(\1)\,"),
        (r"\(\$([^$]+)\$\) \$", r"$\\left(\1\\right)\\,"),
        (r"\$ \(\$([^$]+)\$\)", r"\\,\\left(\1\\right)$"),
        (rf"\$ \(({_NUMBER})\)", r"\\,(\1)$"),
        (r"\$(C_W|\\sigma|\\kappa)\$ \$(?=\\left|\\sigma|\\ell)", r"$\1\\,"),
        (rf"\$ ([=<>]) ({_NUMBER})(?=[\s,;:.)]|$)(?!\.\d)", r" \1 \2$"),
        (rf"\$ ~ ({_NUMBER})(?=[\s,;:.)]|$)(?!\.\d)", r" \\sim \1$"),
        (r"\$ ~ \$", r" \\sim "),
        (r"(?<=\$) \+ \.\.\.", r" + $\\dots$"),
        (r"\$ ([=<>+-]|\$\\ge\$) \$", r" \1 "),
    )
)
"""Pieces of one formula that stand beside each other, made one."""


def sentence(text: str) -> str:
    r"""A sentence of the program in the report's markup: its names of quantities become inline TeX.

    >>> sentence("K* = 0 needs sigma(0) = 0; chi_perp = C_W*<s0' s0'>.")
    "$K^\\star = 0$ needs $\\sigma(0) = 0$; $\\chi_\\perp = C_W\\,\\left\\langle\\sigma'\\sigma'\\right\\rangle$."
    """
    formulas = _FORMULA.sub(_formula, _FACTOR.sub(_formula, text.replace("$", "")))
    joined = _TOKEN.sub(_translated, formulas).replace("$*$", r"\,")
    for pattern, replacement in _JOINS * 2:  # what one pass joins stands beside another piece in the next
        joined = pattern.sub(replacement, joined)
    return joined


def paragraph(text: str) -> Iterator[Text | Equation]:
    """A sentence of the program as blocks: formulas too wide for a line of text are displayed."""
    line = ""
    for kind, content in runs(sentence(text)):
        if kind == "math" and len(content) > WIDEST_INLINE and r"\frac" in content:
            yield from [Text(line)] if line.strip(" ,.") else []
            yield Equation(content)
            line = ""
        else:
            line += {"text": content, "code": f"`{content}`", "math": f"${content}$"}[kind]
    if line.strip(" ,."):
        yield Text(line.lstrip(" ,"))


def _formula(found: re.Match[str]) -> str:
    """SymPy's text after an equals sign, as TeX; anything that is not a formula of known names stays as it is."""
    text = found["formula"]
    if not any(c in text for c in "*/(") or set(re.findall(r"[A-Za-z_]\w*", text)) - set(_NAMES):
        return found[0]
    try:
        formula = sp.sympify(text, locals=_NAMES)
        return f"{found['before']}${tex(formula, ascending=formula.free_symbols == {K} and formula.is_Add)}$"
    except (sp.SympifyError, TypeError, SyntaxError):
        return found[0]


def _translated(found: re.Match[str]) -> str:
    part = found.groupdict()
    if part["ready"]:
        return found[0]
    if part["bracket"]:
        factors = re.sub(r"s\d?('*) ?", r"\\sigma\1", part["bracket"])
        return rf"$\left\langle{factors}\right\rangle{part['over'] or ''}$"
    if part["quantity"]:
        return f"${_QUANTITIES[part['quantity']]}$"
    if part["sigma"]:
        return rf"$\sigma{part['primes']}{part['of'] or ''}$"
    if part["star"]:
        return r"$K^\star = 0$" if part["zero"] else r"$K^\star$"
    if part["prime"]:
        return "$K'$"
    if part["power"]:
        return f"$K^{{{part['power'].strip('()')}}}$"
    if part["layer"]:
        return f"$K^{{({part['layer']})}}$"
    if part["exponent"]:
        return rf"$\ell^{{{sp.sympify(part['exponent'], rational=True)}}}$"
    if part["letter"]:
        return f"${part['letter']}_{symbol(part['index'])}$"
    if part["depth"]:
        return r"$\ell$"
    if part["variable"]:
        return f"${part['variable']}$"
    return rf"$\kappa^{part['kappa']}$" if part["kappa"] not in (None, "1") else r"$\kappa$"
