r"""How the report writes mathematics: expressions with numbers short enough to read, tensors, ratios, and sentences of
the program, whose names of quantities become TeX."""

from __future__ import annotations

import re

import sympy as sp

from derive.asymptotics import Ratio
from derive.symbols import C_W, C_b, K

TENSORS = ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U")
SHOWN = {"Theta": r"\Theta", "G1": r"{G^{\{1\}}}", "H1": r"{H^{\{1\}}}"}
DIGITS = 8
"""Digits shown of a number that is not a short exact one."""
WIDEST = 80
"""Characters of LaTeX that still fit into a table's cell on a phone without a break."""
LONGEST = 10**7
"""Numerators and denominators beyond this are shown as decimals."""

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
    ">=": r"\ge",
}
_TOKEN = re.compile(
    r"(?P<ready>\$[^$]+\$|`[^`]+`)"
    r"|<(?P<bracket>s\d?'*(?: ?s\d?'*)*)>(?P<over>_K)?"
    rf"|(?P<quantity>{'|'.join(re.escape(q) for q in _QUANTITIES)})(?![\w'])"
    r"|(?P<sigma>\bsigma)(?P<primes>'*)(?P<of>\((?:z|0)\))?(?!\w)"
    r"|(?P<star>\bK\*)(?![\w(<*])"
    r"|\bK(?P<prime>')(?!\w)"
    r"|\bK(?:\*\*|\^)(?P<power>\d+|\(\d+/\d+\))(?!\w)"
    r"|\bK\^\((?P<layer>\d)\)"
    r"|\bell\^\((?P<exponent>[^()]*)\)"
    r"|\bkappa(?:\^(?P<kappa>\d))?(?!\w)"
    r"|\b(?P<letter>[ac])_(?P<index>\d|K|Theta)(?!\w)"
    r"|(?P<depth>\b(?:l|ell)\b)(?!')"
)
_FUNCTIONS = ("exp", "log", "sqrt", "erf", "erfc", "asin", "acos", "atan", "sin", "cos", "tanh")
_NAMES = {n: getattr(sp, n) for n in _FUNCTIONS} | {"pi": sp.pi, "K": K, "C_W": C_W, "C_b": C_b}
_FACTOR = re.compile(r"(?P<before>\()(?P<formula>(?:[^()=,$]|\((?:[^()=,$]|\([^()=,$]*\))*\))+)(?=\) K\^|\), so)")
_FORMULA = re.compile(r"(?P<before>= |leading term )(?P<formula>[^=<>;:,$]+?)(?=,? \+ \.\.\.|, |; |: | is | has |\.?$)")


def tex(expression: sp.Expr, digits: int = DIGITS) -> str:
    r"""LaTeX of an expression; floating-point numbers and long fractions are rounded for reading.

    >>> tex(sp.Rational(2, 3)), tex(sp.Rational(10**9 + 1, 10**9 * 3)), tex(sp.Float("1.0") * sp.Symbol("x"))
    ('\\frac{2}{3}', '0.33333333', 'x')
    """
    return sp.latex(short(expression, digits), ln_notation=False)


def cell(expression: sp.Expr) -> str:
    r"""LaTeX for a table's cell: what is long is written so that it can be broken at its plus signs.

    >>> x, y = sp.symbols("x y")
    >>> cell((x + y) ** 2 / (x - y)), cell((x + y) ** 2 * (x + sp.pi) / (x - y) / sp.Symbol("m" * 40)).count("+") > 4
    ('\\frac{\\left(x + y\\right)^{2}}{x - y}', True)
    """
    text = tex(expression)
    if len(text) <= WIDEST:
        return text
    if expression.is_number:
        return rf"\approx {tex(sp.N(expression, DIGITS))}"
    top, bottom = (expression, sp.S.One) if expression.is_Add else sp.fraction(expression)
    top = sp.expand(top)
    if bottom == 1:
        return tex(top)
    if len(tex(bottom)) > WIDEST // 2:
        bottom = sp.expand(bottom)  # a sum, which can be broken, where a product cannot
    divisor = tex(bottom) if bottom.is_Atom or (bottom.is_Pow and bottom.base.is_Atom) else f"({tex(bottom)})"
    return f"({tex(top)}) / {divisor}"


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


def sentence(text: str) -> str:
    r"""A sentence of the program in the report's markup: its names of quantities become inline TeX.

    >>> sentence("K* = 0 needs sigma(0) = 0; chi_perp = C_W*<s0' s0'>.")
    "$K^\\star$ = 0 needs $\\sigma(0)$ = 0; $\\chi_\\perp$ = $C_W\\,\\left\\langle\\sigma'\\sigma'\\right\\rangle$."
    """
    formulas = _FORMULA.sub(_formula, _FACTOR.sub(_formula, text.replace("$", "")))
    return _TOKEN.sub(_translated, formulas).replace("$*$", r"\,")


def _formula(found: re.Match[str]) -> str:
    """SymPy's text after an equals sign, as TeX; anything that is not a formula of known names stays as it is."""
    text = found["formula"]
    if not any(c in text for c in "*/(") or set(re.findall(r"[A-Za-z_]\w*", text)) - set(_NAMES):
        return found[0]
    try:
        return f"{found['before']}${tex(sp.sympify(text, locals=_NAMES))}$"
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
        return r"$K^\star$"
    if part["prime"]:
        return "$K'$"
    if part["power"]:
        return f"$K^{{{part['power'].strip('()')}}}$"
    if part["layer"]:
        return f"$K^{{({part['layer']})}}$"
    if part["exponent"]:
        exponent = re.sub(r"/1(?!\d)", "", part["exponent"])
        return rf"$\ell^{{{exponent}}}$"
    if part["letter"]:
        return f"${part['letter']}_{symbol(part['index'])}$"
    if part["depth"]:
        return r"$\ell$"
    return rf"$\kappa^{part['kappa']}$" if part["kappa"] else r"$\kappa$"
