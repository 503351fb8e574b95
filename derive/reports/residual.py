"""The report of residual layers: criticality with a skip, what closes, large depth, how far tensors alone are off."""

from __future__ import annotations

import json
from importlib.resources import files

import sympy as sp

from derive.activations import Activation
from derive.critical.points import class_name
from derive.depth import ExponentTable
from derive.design.residual import residual_criticality
from derive.design.residual_growth import ResidualGrowth
from derive.layout import Equation, Table, Text
from derive.network import RESIDUAL, functional_recursion, recursion
from derive.network.functional import SHAPES
from derive.notation import TensorSymbol
from derive.reports.document import Block, Code, Document, Section, Steps
from derive.reports.sections import activation_section
from derive.reports.tex import blocks_of, cell
from derive.steps import Notation, Words, equal, said, small
from derive.symbols import C_W, C_b, ell

SAMPLES = "residual_samples.json"
"""V of the first input at the output of sampled networks, by the functionals, and by tensors alone."""


def residual_report(sigma: Activation, skip: sp.Expr, depth: ExponentTable | ResidualGrowth) -> Document:
    """`depth` is what `derive.exponents(..., layer="residual")` says."""
    sections = [
        activation_section(sigma),
        criticality_section(sigma, skip),
        closure_section(),
        depth_section(sigma, skip, depth),
        truncation_section(),
    ]
    layer = Notation("z' = xi z + b + W sigma(z)", r"z' = \xi z + b + W\sigma(z)")
    subtitle = said("{} with {}. Derived, solved and checked by the program.", layer, equal(sp.Symbol("xi"), skip))
    return Document(f"Residual networks with {sigma.name}", subtitle, tuple(sections))


def criticality_section(sigma: Activation, skip: sp.Expr) -> Section:
    """Where xi^2 + C_W <s' s'> = 1 and its kin hold, or what happens instead."""
    found = residual_criticality(sigma, skip)
    blocks: list[Block] = [Text(said("Universality class: {}. {}", class_name(found.universality_class), found.reason))]
    blocks += [Equation(recursion(name, RESIDUAL).line_latex()) for name in ("K", "Theta")]
    if found.points:
        head = ("", *(f"point {i}" for i in range(len(found.points))))
        rows = tuple(
            (cell(s), *(cell(getattr(p, field)) for p in found.points)) for s, field in ((C_W, "C_W"), (C_b, "C_b"))
        )
        stars = (cell(TensorSymbol("K")), *(cell(p.K_star) for p in found.points))
        blocks.append(Table(head, (stars, *rows), "Critical initializations of layers with the skip."))
    blocks.append(Steps("How they were found", tuple(block for step in found.steps for block in blocks_of(step))))
    asked = f"derive.criticality({sigma.name!r}, layer='residual', skip={str(skip)!r})"
    blocks.append(Code(f"import derive\nfound = {asked}\nprint(*found.points, *found.steps, sep='\\n')"))
    return Section("Criticality", tuple(blocks))


def closure_section() -> Section:
    """The functionals' recursions, folded away."""
    told = (
        "A skip carries a neuron over, so that the covariance of any two functions of two neurons is of order 1/n: the "
        "tensors do not close. What closes are functionals of one-neuron functions f and h; the tensor is the "
        "functional at z's. (Pf)(z) is the mean of f at the new layer given the neuron's z at the old one, and a hat "
        "adds the neuron where the two coincide."
    )
    blocks: list[Block] = [Text(told)]
    for name in SHAPES:
        derived = functional_recursion(name, RESIDUAL)
        notes = tuple(Text(note) for note in derived.notes)
        own: tuple[Text | Equation, ...] = (Equation(derived.line_latex()), *notes)
        blocks.append(Steps(said("{}", TensorSymbol(name)), own, folded=True))
    blocks.append(Code('import derive\nprint(derive.recursion("V", layer="residual"))'))
    return Section("What closes", tuple(blocks))


def depth_section(sigma: Activation, skip: sp.Expr, found: ExponentTable | ResidualGrowth) -> Section:
    """Exponents, coefficients, ratios; numbers where the solver has none."""
    blocks: list[Block] = [*found.blocks()]
    if isinstance(found, ExponentTable) and found.finite is not None:
        flow = found.finite
        rows = tuple((name, *(Words(small(v, 4)) for v in values)) for name, values in flow.ratios.items())
        head = ("ratio of, times n", *(Words(equal(ell, layer)) for layer in flow.layers))
        blocks.append(Table(head, rows, "Exact at finite depth, by the functionals; learning rates are 1."))
    blocks.append(Code(f"import derive\nprint(derive.exponents({sigma.name!r}, layer='residual', skip={str(skip)!r}))"))
    return Section("Large depth", tuple(blocks))


def samples() -> list[dict]:
    """V of one input on each of the sampled networks: sampled, standard_error, functionals, tensors."""
    found: list[dict] = json.loads(files("derive.reports").joinpath(SAMPLES).read_text())
    return found


def truncation_section() -> Section:
    """Sampled networks against the functionals and against tensors alone."""
    rows = tuple(
        (
            f"{s['activation']}, skip {s['skip']:g}, L = {s['depth']}",
            f"{s['sampled']:.4g} ± {s['standard_error']:.1g}",
            f"{s['functionals']:.4g}",
            f"{(s['functionals'] - s['sampled']) / s['standard_error']:+.1f}",
            f"{s['tensors']:.4g} ({100 * (s['tensors'] / s['functionals'] - 1):+.0f} %)",
        )
        for s in samples()
    )
    head = ("network", "sampled", "functionals", "in standard errors", "tensors only")
    told = (
        "V of one input at the output of real networks, from samples of widths 32, 64 and 128 extrapolated in 1/n; by "
        "the functionals; and by a recursion of the tensors alone, which drops all but the lowest cumulants."
    )
    return Section("How far tensors alone are off", (Text(told), Table(head, rows)))
