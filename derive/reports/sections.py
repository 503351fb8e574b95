"""The sections of a report on the activation itself: its calculus, its criticality, and the recursions of all networks.

Every equation comes from the objects that the program itself computes with.
"""

from __future__ import annotations

import re

from derive.activations import Activation
from derive.critical import Criticality
from derive.errors import DeriveError
from derive.gaussian import Sigma, exact, expect, series
from derive.network import recursion
from derive.reports.document import Block, Code, Equation, Section, Steps, Table, Text
from derive.reports.figures import activation_figure, phase_figure
from derive.reports.sentences import paragraph, sentence
from derive.reports.tex import TENSORS, cell, symbol, tex, was_rounded
from derive.symbols import K

SERIES_TERMS = 4
_COVARIANCE = re.compile(r"(?<=\\rangle)_\{K\^\{\(\\ell\)\}\}")
ROUNDED = "Numbers are rounded to eight digits for reading; the Python below gives all of them."


def activation_section(sigma: Activation) -> Section:
    blocks: list[Block] = [Equation(rf"\sigma(z) = {tex(sigma.expression)}"), activation_figure(sigma)]
    facts = []
    if sigma.kinks:
        places = ", ".join(f"${tex(kink)}$" for kink in sigma.kinks)
        order = sigma.first_delta_order
        noun = "Kinks" if len(sigma.kinks) > 1 else "A kink"
        facts.append(f"{noun} at {places}; derivative number {order} is the first that holds a delta function.")
    else:
        facts.append("Smooth on the whole real line.")
    if sigma.is_odd:
        facts.append("Odd.")
    if sigma.is_analytic_at_zero:
        coefficients = ", ".join(rf"$\sigma_{{{k}}} = {tex(sigma.taylor(k))}$" for k in range(6))
        facts.append(f"Taylor coefficients at the origin: {coefficients}.")
    if was_rounded(sigma.expression):
        facts.append(ROUNDED)
    blocks.append(Text(" ".join(facts)))
    blocks.append(Code(f"import derive\na = derive.activation({sigma.name!r})\nprint(a.expression, a.kinks, a.is_odd)"))
    return Section("The activation", tuple(blocks))


def gaussian_section(sigma: Activation) -> Section:
    s, s1, s2 = Sigma(0), Sigma(0, 1), Sigma(0, 2)
    brackets = {
        r"\left\langle\sigma\sigma\right\rangle_K": (s * s, "s0 s0"),
        r"\left\langle\sigma'\sigma'\right\rangle_K": (s1 * s1, "s0' s0'"),
        r"\left\langle\sigma\sigma''\right\rangle_K": (s * s2, "s0 s0''"),
    }
    blocks: list[Block] = [
        Text("The single-input Gaussian expectations that decide criticality, over $z \\sim N(0, K)$.")
    ]
    for left, (integrand, _) in brackets.items():
        bracket = expect(integrand)
        closed = exact(bracket, sigma, K)
        if closed is not None:
            blocks.append(Equation(rf"{left} = {tex(closed)}", "Exact, by a closed form."))
            continue
        try:
            expansion = series(bracket, sigma, SERIES_TERMS)
        except DeriveError as error:
            blocks.append(Text(f"${left}$ has no closed form here and no series at $K = 0$: {sentence(str(error))}"))
            continue
        blocks.append(
            Equation(
                rf"{left} = {tex(expansion.expression(K), ascending=True)} + \dots",
                "No closed form; exact series in $K$.",
            )
        )
    patterns = ", ".join(f'"{pattern}"' for _, pattern in brackets.values())
    blocks.append(
        Code(
            "from derive.gaussian import exact, parse_bracket, value\n"
            "from derive.symbols import K\n"
            f"for pattern in ({patterns}):\n"
            "    bracket = parse_bracket(pattern)\n"
            "    print(pattern, exact(bracket, a, K))  # a closed form, or None\n"
            "    print(value(bracket, a, 1, 30))  # 30 digits at K = 1"
        )
    )
    return Section("Gaussian calculus", tuple(blocks))


def criticality_section(sigma: Activation, found: Criticality) -> Section:
    blocks: list[Block] = [
        Text(sentence(f"Universality class: {found.universality_class}. {found.reason}")),
        Equation(r"\chi_\perp = C_W \left\langle\sigma'\sigma'\right\rangle_K"),
        Equation(
            r"\chi_\parallel = C_W\left(\left\langle\sigma'\sigma'\right\rangle_K + "
            r"\left\langle\sigma\sigma''\right\rangle_K\right)"
        ),
    ]
    if found.points:
        fields = {"$K^\\star$": "K_star", "$C_W$": "C_W", "$C_b$": "C_b"}
        rows = [(title, *(f"${cell(getattr(p, field))}$" for p in found.points)) for title, field in fields.items()]
        rows.append(("class", *(sentence(p.universality_class) for p in found.points)))
        rows.append(("stability", *(p.stability for p in found.points)))
        header = ("", *(f"point {i}" for i in range(len(found.points))))
        blocks.append(Table(header, tuple(rows), "Critical initializations, the recommended one first."))
        best = found.points[0]
        for left, number in ((r"K^\star", best.K_star), ("C_W", best.C_W), ("C_b", best.C_b)):
            if cell(number).startswith(r"\approx"):
                blocks.append(Equation(f"{left} = {tex(number)}", "Exact."))
    blocks.append(Steps("How they were found", tuple(block for step in found.steps for block in paragraph(step.text))))
    if (picture := phase_figure(sigma, found)) is not None:
        blocks.append(picture)
    blocks.append(Code("found = a.criticality()\nprint(*found.points, *found.steps, sep='\\n')"))
    return Section("Criticality", tuple(blocks))


def recursion_section() -> Section:
    blocks: list[Block] = [
        Text(
            "Derived by the program from $z' = b + W\\sigma(z)$ and the definitions of the NTK and its differentials. "
            "They hold for every activation. Brackets are over the Gaussian preactivations of layer $\\ell$, with "
            "covariance $K^{(\\ell)}$; sums run over the sample labels that occur in the bracket after them."
        )
    ]
    for name in TENSORS:
        derived = recursion(name)
        equations = tuple(
            Equation(_one_line(r.equation_latex())) for r in (derived, derived.single_input().equal_widths())
        )
        blocks.append(
            Steps(
                f"${symbol(name)}$: many inputs, then a single input at equal widths (depends on "
                f"${', '.join(symbol(other) for other in derived.depends_on)}$)",
                equations,
            )
        )
    blocks.append(
        Code('R = derive.recursion("R")\nprint(R.latex())\nprint(R.single_input().equal_widths().expression)')
    )
    return Section("The recursions", tuple(blocks))


def _one_line(latex: str) -> str:
    """An aligned equation as one that the renderer wraps by itself, brackets without their covariance."""
    return _COVARIANCE.sub("", latex.replace(r"\\", " ").replace("&", ""))
