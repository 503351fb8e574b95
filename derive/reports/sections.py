"""The sections of a report on the activation itself: its calculus, its criticality, and the recursions of all networks.

Every equation comes from the objects that the program itself computes with.
"""

from __future__ import annotations

import sympy as sp

from derive.activations import Activation
from derive.critical import Criticality, chi_parallel, chi_perp
from derive.critical.points import class_name
from derive.errors import DeriveError
from derive.gaussian import Sigma, exact, expect, series
from derive.layout import Equation, Table, Text
from derive.network import recursion
from derive.notation import CHI_PARALLEL, CHI_PERP, K_STAR, SIGMA_Z, TensorSymbol, was_rounded
from derive.reports.document import Block, Code, Section, Steps
from derive.reports.figures import activation_figure, phase_figure
from derive.reports.proof import proved
from derive.reports.susceptible import in_susceptibilities
from derive.reports.tex import TENSORS, blocks_of, cell, is_wide
from derive.steps import Notation, Words, equal, listed, said
from derive.symbols import C_W, C_b, K

SERIES_TERMS = 4
ROUNDED = "Numbers are rounded to eight digits for reading; the Python below gives all of them."


def activation_section(sigma: Activation) -> Section:
    blocks: list[Block] = [Equation(equal(SIGMA_Z, sigma.expression).latex()), activation_figure(sigma)]
    facts: list[Words] = []
    if sigma.kinks:
        told = "{} at {}; derivative number {} is the first that holds a delta function."
        noun = "Kinks" if len(sigma.kinks) > 1 else "A kink"
        facts.append(said(told, noun, listed(sigma.kinks), str(sigma.first_delta_order)))
    else:
        facts.append(said("Smooth on the whole real line."))
    if sigma.is_odd:
        facts.append(said("Odd."))
    if sigma.is_analytic_at_zero:
        coefficients = listed(equal(sp.Symbol(f"sigma_{k}"), sigma.taylor(k)) for k in range(6))
        facts.append(said("Taylor coefficients at the origin: {}.", coefficients))
    if was_rounded(sigma.expression):
        facts.append(said(ROUNDED))
    blocks.append(Text(listed(facts, " ")))
    blocks.append(Code(f"import derive\na = derive.activation({sigma.name!r})\nprint(a.expression, a.kinks, a.is_odd)"))
    return Section("The activation", tuple(blocks))


def gaussian_section(sigma: Activation) -> Section:
    s, s1, s2 = Sigma(0), Sigma(0, 1), Sigma(0, 2)
    brackets = {"s0 s0": expect(s * s), "s0' s0'": expect(s1 * s1), "s0 s0''": expect(s * s2)}
    law = Notation("z ~ N(0, K)", r"z \sim N(0, K)")
    blocks: list[Block] = [Text(said("The single-input Gaussian expectations that decide criticality, over {}.", law))]
    for bracket in brackets.values():
        closed = exact(bracket, sigma, K)
        if closed is not None:
            blocks.append(Equation(equal(bracket, closed).latex(), "Exact, by a closed form."))
            continue
        try:
            expansion = series(bracket, sigma, SERIES_TERMS)
        except DeriveError as error:
            told = "{} has no closed form here and no series at {}: {}"
            blocks.append(Text(said(told, bracket, equal(K, 0), error.args[0])))
            continue
        shown = equal(bracket, expansion.expression(K), open_ended=True, order="rev-lex")
        blocks.append(Equation(shown.latex(), said("No closed form; exact series in {}.", K)))
    patterns = ", ".join(f'"{pattern}"' for pattern in brackets)
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
        Text(said("Universality class: {}. {}", class_name(found.universality_class), found.reason)),
        Equation(equal(CHI_PERP, chi_perp()).latex()),
        Equation(equal(CHI_PARALLEL, sp.collect(chi_parallel(), C_W)).latex()),
    ]
    if found.points:
        fields = {K_STAR: "K_star", C_W: "C_W", C_b: "C_b"}
        rows: list[tuple[str, ...]] = [
            (cell(symbol), *(cell(getattr(p, field)) for p in found.points)) for symbol, field in fields.items()
        ]
        rows.append(("class", *(class_name(p.universality_class) for p in found.points)))
        rows.append(("stability", *(p.stability for p in found.points)))
        header = ("", *(f"point {i}" for i in range(len(found.points))))
        blocks.append(Table(header, tuple(rows), "Critical initializations, the recommended one first."))
        for symbol, field in fields.items():
            number = getattr(found.points[0], field)
            if is_wide(number):
                blocks.append(Equation(equal(symbol, number).latex(), "Exact."))
    blocks += proved(sigma)
    blocks.append(Steps("How they were found", tuple(block for step in found.steps for block in blocks_of(step))))
    if (picture := phase_figure(found)) is not None:
        blocks.append(picture)
    blocks.append(Code("found = a.criticality()\nprint(*found.points, *found.steps, sep='\\n')"))
    return Section("Criticality", tuple(blocks))


def recursion_section() -> Section:
    layer = Notation("z' = b + W sigma(z)", r"z' = b + W\sigma(z)")
    here = Notation("ell", r"\ell")
    told = (
        "Derived by the program from {} and the definitions of the NTK and its differentials. They hold for every "
        "activation. Brackets are over the Gaussian preactivations of layer {}, with covariance {}; sums run over the "
        "sample labels that occur in the bracket after them. Each is folded away: many inputs, a single input at equal "
        "widths, and the same in terms of {} and {}, obtained by substitution."
    )
    blocks: list[Block] = [Text(said(told, layer, here, TensorSymbol("K", "ell"), CHI_PARALLEL, CHI_PERP))]
    for name in TENSORS:
        derived = recursion(name)
        single = derived.single_input().equal_widths()
        equations = [Equation(r.line_latex()) for r in (derived, single)]
        shown = in_susceptibilities(single)
        if shown.has(CHI_PARALLEL, CHI_PERP):
            equations.append(Equation(equal(TensorSymbol(name, "ell+1"), shown).latex()))
        depends = listed(TensorSymbol(other) for other in derived.depends_on)
        blocks.append(Steps(said("{} (depends on {})", TensorSymbol(name), depends), tuple(equations), folded=True))
    blocks.append(
        Code('R = derive.recursion("R")\nprint(R.latex())\nprint(R.single_input().equal_widths().expression)')
    )
    return Section("The recursions", tuple(blocks))
