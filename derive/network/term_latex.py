r"""Recursions in the notation of PDLT: sample labels as deltas, summed ones as gammas, none for a single input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import sympy as sp

from derive import symbols
from derive.network.component import component_latex
from derive.network.definition import IDENTITY
from derive.network.terms import Atom, Average, Label, Term

_FUNCTIONS = {"sigma": r"\sigma", "tau": r"\tau", IDENTITY: "z"}
_WIDTH_RATIO = r"\left(\frac{n_\ell}{n_{\ell-1}}\right)"

Namer = Callable[[Label], str]


def label_latex(label: Label) -> str:
    """The name of a sample label; "g1" is the first summed one."""
    text = str(label)
    return rf"\gamma_{text[1:]}" if text.startswith("g") else rf"\delta_{text}"


def no_label(label: Label) -> str:
    """For a single input: nothing to tell apart."""
    return ""


def term_latex(term: Term, name: Namer = label_latex, covariance: bool = True) -> str:
    """One term: coefficient, sums, brackets (with their covariance K^(l), unless that is said elsewhere), tensors."""
    pieces = [] if term.coefficient == 1 else [coefficient_latex(term.coefficient)]
    if term.summed:
        pieces.append(rf"\sum_{{{','.join(map(name, term.summed))}}}")
    pieces += _powers(_average(average, name, covariance) for average in term.averages)
    pieces += _powers(component_latex(tensor, tuple(map(name, x)), r"(\ell)") for tensor, x in term.components)
    return " ".join(pieces) or "1"


def _powers(factors: Iterable[str]) -> list[str]:
    """Equal factors as one power."""
    return [f if count == 1 else rf"\left({f}\right)^{{{count}}}" for f, count in Counter(factors).items()]


def equation_latex(tensor: str, labels: tuple[int, ...], terms: tuple[Term, ...], name: Namer = label_latex) -> str:
    """A whole recursion, one line a term."""
    left = component_latex(tensor, tuple(map(name, labels)), r"(\ell+1)")
    lines = " \\\\\n&+ ".join(term_latex(t, name) for t in terms) or "0"
    return f"{left} &= {lines}".replace("&+ -", "&- ")


def line_latex(tensor: str, labels: tuple[int, ...], terms: tuple[Term, ...], name: Namer = label_latex) -> str:
    """A whole recursion as one line, for a renderer that wraps, brackets without their covariance."""
    line = component_latex(tensor, tuple(map(name, labels)), r"(\ell+1)") + " ="
    for place, term in enumerate(terms):
        sign = "-" if term.coefficient.could_extract_minus_sign() else "+" if place else ""
        positive = replace(term, coefficient=-term.coefficient) if sign == "-" else term
        line += f" {sign} {term_latex(positive, name, covariance=False)}"
    return line if terms else f"{line} 0"


def _average(average: Average, name: Namer, covariance: bool) -> str:
    derivative = " ".join(rf"\partial_{{{name(g)}}}" for g in average.derivatives)
    atoms = " ".join(activation_latex(atom, name) for atom in average.atoms)
    body = rf"{derivative} ({atoms})" if derivative else atoms
    return rf"\left\langle {body} \right\rangle" + (r"_{K^{(\ell)}}" if covariance else "")


def activation_latex(atom: Atom, name: Namer) -> str:
    """sigma'_delta."""
    label, order, function = atom
    symbol = _FUNCTIONS.get(function, rf"\mathrm{{{function}}}")
    primes = r"\prime" * order if order <= 3 else f"({order})"
    text = f"{symbol}^{{{primes}}}" if order else symbol
    subscript = name(label)
    return f"{text}_{{{subscript}}}" if subscript else text


def coefficient_latex(coefficient: sp.Expr) -> str:
    """Hyperparameters with their layer, the width ratio spelled out."""
    rational, rest = coefficient.as_coeff_Mul()
    text = [] if rational == 1 else ["-" if rational == -1 else sp.latex(rational)]
    powers = {base: power for base, power in rest.as_powers_dict().items() if base != 1}
    if symbols.r in powers:
        power = powers.pop(symbols.r)
        text.append(_WIDTH_RATIO if power == 1 else f"{_WIDTH_RATIO}^{{{power}}}")
    for base, power in sorted(powers.items(), key=str):
        symbol = sp.latex(base) + r"^{(\ell+1)}"
        text.append(symbol if power == 1 else rf"\left({symbol}\right)^{{{power}}}")
    return " ".join(text)
