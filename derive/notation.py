r"""How mathematics is written, once: the names of tensors and quantities, numbers short enough to read, TeX and text.

Everything that shows a formula (steps, command line, reports) asks here; a symbol's own name is how it reads as text,
`LATEX` is how it is set.

>>> from derive.symbols import lambda_b
>>> latex(K_STAR + lambda_b / 2), text(K_STAR + lambda_b / 2)
('K^\\star + \\frac{\\lambda_b}{2}', 'K* + lambda_b/2')
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

DIGITS = 8
"""Digits shown of a number that is not a short exact one."""
LONGEST = 10**7
"""Numerators and denominators beyond this are shown as decimals."""

K_STAR = sp.Symbol("K*", nonnegative=True)
K_NEXT = sp.Symbol("K'", nonnegative=True)
CHI_PARALLEL = sp.Symbol("chi_parallel", real=True)
CHI_PERP = sp.Symbol("chi_perp", real=True)
P_PERP = sp.Symbol("p_perp", real=True)
KAPPA = sp.Symbol("kappa", real=True)
Y = sp.Symbol("y", real=True)
Y_NEXT = sp.Symbol("y'", real=True)
DELTA_2 = sp.Symbol("delta^2", positive=True)
PSI = sp.Symbol("psi", positive=True)
SLOPE = sp.Symbol("dK'/dK", real=True)
SIGMA = sp.Symbol("sigma", real=True)
CURVED = sp.Symbol("sigma sigma''", real=True)
SIGMA_0 = sp.Symbol("sigma(0)", real=True)
SIGMA_0_SQUARED = sp.Symbol("sigma(0)^2", nonnegative=True)
SLOPE_0 = sp.Symbol("sigma'(0)", real=True)
SIGMA_Z = sp.Symbol("sigma(z)", real=True)
WIDTH = sp.Symbol("n", positive=True)

TENSOR_LATEX = {"Theta": (r"\Theta", ""), "G1": ("G", r"\{1\}"), "H1": ("H", r"\{1\}")}
"""A tensor's letter and the superscript that belongs to it, where they are not the name itself."""

LATEX = {
    "K*": r"K^\star",
    "K'": "K'",
    "y'": "y'",
    "chi_parallel": r"\chi_\parallel",
    "chi_perp": r"\chi_\perp",
    "p_perp": r"p_\perp",
    "p_parallel": r"p_\parallel",
    "lambda_b": r"\lambda_b",
    "lambda_W": r"\lambda_W",
    "lambda_b^(l)": r"\lambda_b^{(\ell)}",
    "lambda_W^(l)": r"\lambda_W^{(\ell)}",
    "C_b": "C_b",
    "C_W": "C_W",
    "delta^2": r"\delta^2",
    "dK'/dK": "dK'/dK",
    "sigma sigma''": r"\sigma\,\sigma''",
    "sigma(0)": r"\sigma(0)",
    "sigma(0)^2": r"\sigma(0)^2",
    "sigma'(0)": r"\sigma'(0)",
    "sigma(z)": r"\sigma(z)",
    "Theta": r"\Theta",
    "x.x/n_0": r"x \cdot x/n_0",
}
"""TeX of symbols that SymPy's own rule for names would not set right."""


def tensor_latex(name: str, layer: str = "") -> str:
    r"""A tensor's letter, with a layer as its superscript.

    >>> tensor_latex("Theta"), tensor_latex("G1", r"\ell")
    ('\\Theta', 'G^{\\{1\\}(\\ell)}')
    """
    letter, order = TENSOR_LATEX.get(name, (name, ""))
    above = order + (f"({layer})" if layer else "")
    return f"{letter}^{{{above}}}" if above else letter


class TensorSymbol(sp.Symbol):
    r"""A single-input tensor as a symbol; `layer` is "", "ell" or "ell+1".

    >>> theta = TensorSymbol("Theta", "ell")
    >>> theta, latex(theta), latex(TensorSymbol("G1", "ell+1") ** 2)
    (Theta^(ell), '\\Theta^{(\\ell)}', '\\left(G^{\\{1\\}(\\ell+1)}\\right)^{2}')
    """

    tensor: str
    layer: str

    def __new__(cls, tensor: str, layer: str = "") -> TensorSymbol:
        made = super().__new__(cls, f"{tensor}^({layer})" if layer else tensor, real=True)
        made.tensor, made.layer = tensor, layer
        return made

    def __reduce__(self) -> tuple[type[TensorSymbol], tuple[str, str]]:
        return TensorSymbol, (self.tensor, self.layer)


class _Text(StrPrinter):
    single_input = True


class _Latex(LatexPrinter):
    r"""Function of a single symbol without growing parentheses, \log^2 \ell, and our names."""

    single_input = True  # the single input's label, 0, is not written

    def __init__(self, order: Order = None) -> None:
        super().__init__({"ln_notation": False, "order": order})

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        return LATEX[expr.name] if expr.name in LATEX else self._constant(expr, style)

    def _print_TensorSymbol(self, expr: TensorSymbol) -> str:
        return tensor_latex(expr.tensor, expr.layer.replace("ell", r"\ell"))

    def _print_Pow(self, expr: Any) -> str:
        if isinstance(expr.base, TensorSymbol) and "^" in self._print(expr.base):
            return rf"\left({self._print(expr.base)}\right)^{{{self._print(expr.exp)}}}"
        return str(super()._print_Pow(expr))

    def _constant(self, expr: Any, style: str) -> str:
        """c_K, c_ddTheta_2: the free constant of a tensor's recursion carries the tensor's name as its subscript."""
        head, _, rest = expr.name.partition("_")
        if head == "c" and rest:
            name, _, place = rest.lstrip("d").partition("_")
            deltas = r"\delta" * (len(rest) - len(rest.lstrip("d"))) + " " if rest.startswith("d") else ""
            order = f"_{{[{place}]}}" if place else ""
            return rf"c_{{{deltas}{LATEX.get(name, tensor_latex(name))}{order}}}"
        return str(super()._print_Symbol(expr, style))

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        printed = str(super()._print_Function(expr, exp))
        if len(expr.args) == 1 and expr.args[0].is_Symbol:
            inner = self._print(expr.args[0])
            growing = rf"{{\left({inner} \right)}}"
            if printed.endswith(growing):
                return f"{printed.removesuffix(growing)}({inner})"
        return printed

    def _print_log(self, expr: Any, exp: Any = None) -> str:
        inner = self._print(expr.args[0])
        inner = inner if expr.args[0].is_Symbol else rf"\left({inner}\right)"
        return rf"\log^{{{exp}}} {inner}" if exp is not None else rf"\log {inner}"


Order = Literal["rev-lex", "none"] | None
"""Of a sum's terms: by rising powers, as they were written, or by falling powers."""


def latex(expression: sp.Expr, digits: int = DIGITS, order: Order = None) -> str:
    r"""TeX of an expression; floating-point numbers and long fractions are rounded for reading.

    >>> latex(sp.Rational(2, 3)), latex(sp.Rational(10**9 + 1, 10**9 * 3)), latex(sp.Float("1.0") * sp.Symbol("x"))
    ('\\frac{2}{3}', '0.33333333', 'x')
    >>> from derive.symbols import K, ell
    >>> latex(sp.tanh(sp.Symbol("z"))), latex(1 + K, order="rev-lex"), latex(sp.log(ell) ** 2)
    ('\\tanh(z)', '1 + K', '\\log^{2} \\ell')
    """
    return str(_Latex(order).doprint(short(sp.sympify(expression, strict=True), digits)))


def text(expression: sp.Expr, digits: int = 10, order: Order = None) -> str:
    """One line of plain text, rounded like `latex`, in a form that SymPy and Python read.

    >>> text(sp.Float("0.3333333333333333333", 20) * sp.Symbol("x"))
    '0.3333333333*x'
    """
    return str(_Text({"order": order}).doprint(short(sp.sympify(expression, strict=True), digits)))


def short(expression: sp.Expr, digits: int = DIGITS) -> sp.Expr:
    """The expression with its long numbers rounded; whole floating-point numbers become integers."""
    if any(max(abs(q.p), q.q) > LONGEST for q in expression.atoms(sp.Rational)):
        expression = sp.expand(expression)
    table: dict[sp.Expr, sp.Expr] = {f: rounded(f, digits) for f in expression.atoms(sp.Float)}
    for q in expression.atoms(sp.Rational):
        if max(abs(q.p), q.q) > LONGEST:
            table[q] = sp.Float(q, digits)
    return expression.xreplace(table)


def rounded(number: sp.Float, digits: int) -> sp.Expr:
    """For reading, with so many digits; one that is then whole is an integer.

    >>> rounded(sp.Float("221231.0004", 30), 8), rounded(sp.Float("1.0000001", 30), 8)
    (221231, 1.0000001)
    """
    shown = Decimal(f"{Decimal(str(number)):.{digits - 1}e}")
    whole = shown == shown.to_integral_value() and abs(shown) < 10**digits
    return sp.Integer(int(shown)) if whole else sp.Float(number, digits)


def was_rounded(expression: sp.Expr) -> bool:
    """Whether `latex` shows fewer digits than the expression holds."""
    return any(abs(f - sp.Float(f, DIGITS)) > 0 for f in expression.atoms(sp.Float)) or any(
        max(abs(q.p), q.q) > LONGEST for q in expression.atoms(sp.Rational)
    )


def width(expression: sp.Expr) -> int:
    """Roughly the letters that an expression puts side by side when it is set."""
    names = {s: sp.Symbol(s.name[0] if "_" not in s.name else s.name[0] + s.name[-1]) for s in expression.free_symbols}
    line = str(short(expression).xreplace(names))
    return len(line.translate({ord(c): None for c in "* ()"}).replace("sqrt", "r"))


__all__ = [
    "CHI_PARALLEL",
    "CHI_PERP",
    "DELTA_2",
    "DIGITS",
    "KAPPA",
    "K_NEXT",
    "K_STAR",
    "LATEX",
    "LONGEST",
    "PSI",
    "P_PERP",
    "TENSOR_LATEX",
    "WIDTH",
    "Y_NEXT",
    "TensorSymbol",
    "Y",
    "latex",
    "rounded",
    "short",
    "tensor_latex",
    "text",
    "was_rounded",
    "width",
]
