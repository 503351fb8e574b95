"""Source of the training theory: weights of trees, projectors, update equations, moments, tables of cumulants.

Everything comes from `derive.training` (the expansion over trees, its expectation) and from the pairings of the
network's cumulants (`derive.network.trees`). Letters: components i, j, k, l, external inputs x, y, z, training
samples or modes a, b, c. `net.dH(1)` is the dNTK with the input in slot 1 and modes in its other slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from derive.codegen.printer import WIDTH
from derive.network.trees import insertions, parse
from derive.training.moments import WickTerm, carried, wick
from derive.training.projectors import NAMES
from derive.training.solution import (
    PARTS,
    TEST,
    WEIGHTS,
    Contribution,
    cross_contributions,
    first_contribution,
    leaves_only,
    mean_contributions,
    ntk_contributions,
    ntk_terms,
    output_terms,
    square_contribution,
)
from derive.training.tangents import (
    TangentTerm,
    carried_with_output,
    carried_with_tangent,
    tied_ntk,
    update_mean,
    update_square,
)
from derive.training.trees import Term, Tree, count, expansion, symmetry

CUMULANTS = ("z.z.H", "H.H", "dH.z", "ddI", "ddII")
"""The products whose cumulants enter a trained network's mean, covariance and NTK."""
COMPONENTS = "ijkl"


def training_source() -> str:
    """The whole body of the module, imports aside."""
    parts = [_tree_weights(), _projectors(), _network_terms(), _steps(), _moments(), _tangents(), _tables()]
    return "\n\n".join(parts)


def _number(value: sp.Rational) -> str:
    return repr(float(value))


def _function(head: str, doc: str, terms: Sequence[str]) -> str:
    """A function that returns a sum of terms, laid out as the formatter does."""
    body = " + ".join(terms).replace("+ -", "- ")
    if len(f"    return {body}") > WIDTH:
        lines = "\n".join(f"        {'' if k == 0 else '+ '}{term}" for k, term in enumerate(terms))
        body = f"(\n{lines}\n    )".replace("+ -", "- ")
    return f'def {head}:\n    """{doc}"""\n    return {body}\n'


# ---------------------------------------------------------------- weights of trees and projectors


def _call(tree: Tree, labels: Sequence[str]) -> str:
    return f"weight_{WEIGHTS[tree]}(k, {', '.join(labels)})"


def _tree_weights() -> str:
    sources = []
    for tree, name in WEIGHTS.items():
        labels = "abc"[: count(tree)]
        branches, position = [], 1
        for branch in tree:
            branches.append(_call(branch, labels[position : position + count(branch)]))
            position += count(branch)
        head = (
            f"weight_{name}(k: Calculus[Signal, Product], {', '.join(f'{label}: Label' for label in labels)}) -> Signal"
        )
        doc = f"The tree {_drawn(tree, list(labels))}, unit errors, without the 1/k! of equal branches."
        sources.append(_function(head, doc, [f"k.accumulate({', '.join([labels[0], *branches])})"]))
    return "\n\n".join(sources)


def _drawn(tree: Tree, labels: list[str]) -> str:
    root = labels.pop(0)
    return root + (f"({', '.join(_drawn(branch, labels) for branch in tree)})" if tree else "")


def _inner_symmetry(tree: Tree) -> int:
    return symmetry(tree) * sp.prod([_inner_symmetry(branch) for branch in tree])


def _weight(term: Term) -> tuple[sp.Rational, list[str]]:
    """The coefficient and the factors of the weight that multiplies a term's tensor."""
    coefficient = term.coefficient / sp.prod([_inner_symmetry(tree) for tree, _ in term.branches])
    return coefficient, [_call(tree, labels) for tree, labels in term.branches]


def _projectors() -> str:
    sources = []
    for name, term in output_terms():
        letters = [s for s in sorted(term.subscripts) if s != TEST]
        coefficient, factors = _weight(term)
        head = f"{name}(k: Calculus[Signal, Product], {', '.join(f'{s}: Label' for s in letters)}) -> Product"
        doc = f"What multiplies {term.tensor}_{''.join(term.subscripts)} and the errors of {', '.join(letters)}."
        sources.append(_function(head, doc, [f"k.product({_number(coefficient)}, {', '.join(factors)})"]))
    (first,) = expansion((TEST,), 1)
    coefficient, factors = _weight(first)
    doc = "What multiplies the fluctuation of H_xa and the error of a."
    sources.append(
        _function(
            "force(k: Calculus[Signal, Product], a: Label) -> Product",
            doc,
            [f"k.product({_number(coefficient)}, {', '.join(factors)})"],
        )
    )
    (tree, _), doc = first.branches[0], "What multiplies two fluctuations H_xa H_ab and the error of b."
    inner = f"k.respond(a, {_call(tree, 'b')})"
    sources.append(
        _function(
            "response(k: Calculus[Signal, Product], a: Label, b: Label) -> Product",
            doc,
            [f"k.product({_number(coefficient**2)}, {inner})"],
        )
    )
    table = (
        ["WEIGHTS: dict[str, Weigh] = {"]
        + [f'    "{name}": {name},' for name in (*NAMES.values(), "force", "response")]
        + ["}"]
    )
    return "\n\n".join([*sources, "\n".join([*table, '"""By name."""']) + "\n"])


# ---------------------------------------------------------------- one network


def _letters(term: Term) -> dict[str, str]:
    """A component letter for each subscript: external inputs first, then the modes in order."""
    order = sorted(term.subscripts, key=lambda s: (s not in "xyz", s))
    return dict(zip(order, COMPONENTS))


def _einsum(term: Term, weights: Sequence[tuple[str, str]], kept: str = "", coefficient: sp.Rational = sp.S.One) -> str:
    """coefficient * einsum of the tensor, weights and errors; a label in `kept` loses its error and stays."""
    names = _letters(term)
    tensor = "".join(names[s] for s in term.subscripts) + "".join(term.subscripts)
    errors = [names[s] + s for s in sorted(term.subscripts) if s not in "xyz" and s not in kept]
    outside = [s for s in sorted(term.subscripts) if s in "xyz"] + list(kept)
    result = "".join(names[s] for s in outside) + "".join(outside)
    external = ", ".join(str(term.subscripts.index(s)) for s in sorted(term.subscripts) if s in "xyz")
    inputs = ",".join([tensor, *(subscript for subscript, _ in weights), *errors])
    operands = ", ".join([f"net.{term.tensor}({external})", *(name for _, name in weights), *["e"] * len(errors)])
    text = f'einsum("{inputs}->{result}", {operands})'
    return text if coefficient == 1 else f"-{text}" if coefficient == -1 else f"{_number(coefficient)} * {text}"


def _tree_operands(term: Term) -> tuple[sp.Rational, list[tuple[str, str]]]:
    coefficient, _ = _weight(term)
    return coefficient, [("".join(labels), f"w.{WEIGHTS[tree]}") for tree, labels in term.branches]


def _network_terms() -> str:
    lines = ["def output_change(net: Tensors, Z: Projected, e: Array) -> dict[str, Array]:"]
    lines += ['    """The force of the differentials on the outputs by projector, [i, x]; e is [component, mode]."""']
    lines += ["    return {"]
    for name, term in output_terms():
        letters = "".join(s for s in sorted(term.subscripts) if s != TEST)
        lines.append(f'        "{name}": {_einsum(term, [(letters, f"Z.{name}")])},')
    sources = ["\n".join([*lines, "    }"]) + "\n"]
    terms = []
    for term in ntk_terms():
        coefficient, weights = _tree_operands(term)
        terms.append(_einsum(term, weights, coefficient=coefficient))
    sources.append(
        _function("ntk_change(net: Tensors, w: Weighted, e: Array) -> Array", "H(t) - H(0), [i, j, x, y].", terms)
    )
    terms = []
    for term in expansion(("x", "y", "z"), 1):
        coefficient, weights = _tree_operands(term)
        terms.append(_einsum(term, weights, coefficient=coefficient))
    doc = "dH(t) - dH(0), [i, j, k, x, y, z]."
    sources.append(_function("dntk_change(net: Tensors, w: Weighted, e: Array) -> Array", doc, terms))
    terms = []
    for name, term in output_terms():
        letters = "".join(s for s in sorted(term.subscripts) if s != TEST)
        terms.append(_einsum(term, [(letters, f"Z.{name}")], kept=letters[-1]))
    doc = (
        "The force with the last error of each term stripped, [i, j, x, mode]: minus the trained NTK's change times h."
    )
    sources.append(_function("stripped_change(net: Tensors, Z: Projected, e: Array) -> Array", doc, terms))
    return "\n\n".join(sources)


def _steps() -> str:
    """The updates (infinity.81)-(infinity.83): samples attached to the marked vertices only."""
    sources = []
    for name, marked, what in (("z", "x", "z"), ("H", "xy", "H"), ("dH", "xyz", "dH")):
        terms = []
        for order in range(1, 5 - len(marked)):
            for term in expansion(tuple(marked), order):
                if leaves_only(term):
                    terms.append(_einsum(term, [], coefficient=term.coefficient))
        subscripts = ", ".join([*COMPONENTS[: len(marked)], *marked])
        head = f"step_{name}(net: Tensors, e: Array) -> Array"
        sources.append(
            _function(head, f"The change of {what} in one step, [{subscripts}]; e is rate times error.", terms)
        )
    return "\n\n".join(sources)


# ---------------------------------------------------------------- moments and tables


def _wick_term(term: WickTerm, result: str, moved: int | None = None) -> str:
    """One term; the target `moved` is replaced by the direction v of a derivative, whose rows come first."""
    operands = [("".join(target), "y") for target in term.targets]
    if moved is not None:
        operands[moved] = ("r" + operands[moved][0], "v")
    operands += [(pair, "K") for pair in term.kernels] + [(pair, "one") for pair in term.deltas]
    operands += [(pair, "same") for pair in term.components]
    inputs, names = ",".join(s for s, _ in operands), ", ".join(name for _, name in operands)
    factor = "-" * (term.sign < 0) + "len(y) * " * term.loops
    return f'{factor}einsum("{inputs}->{result}", {names})'


def _short(kinds: Sequence[str]) -> str:
    return "".join(kind[0] for kind in kinds)


def _moments() -> str:
    sources, table, slopes = [], ["MOMENTS = {"], ["SLOPES = {"]
    arguments = "y: Array, K: Array, one: Array, same: Array"
    for kinds in dict.fromkeys(c.kinds for c in mean_contributions()):
        names = []
        for carrier in range(3):
            name = f"moment_{_short(kinds)}_{carrier}"
            terms = [_wick_term(term, "iabc") for term in carried(kinds, carrier)]
            doc = f"E of {', '.join(kinds)} in slots a, b, c: the component is that of slot {'abc'[carrier]}."
            sources.append(_function(f"{name}({arguments}) -> Array", doc, terms))
            terms = [
                _wick_term(term, "riabc", moved)
                for term in carried(kinds, carrier)
                for moved in range(len(term.targets))
            ]
            doc = f"The derivative of {name} along the rows of v, [r, component, mode]."
            sources.append(_function(f"d{name}(v: Array, {arguments}) -> Array", doc, terms))
            names.append(name)
        table.append(f'    "{_short(kinds)}": ({", ".join(names)}),')
        slopes.append(f'    "{_short(kinds)}": ({", ".join(f"d{name}" for name in names)}),')
    kinds = first_contribution().kinds
    sources.append(
        _function(
            f"moment_e({arguments}) -> Array", "E of error: [i, a].", [_wick_term(t, "ia") for t in wick(kinds, "i")]
        )
    )
    table.append('    "e": (moment_e,),')
    pairs = [c.kinds for c in cross_contributions()] + [c.kinds for _, c in ntk_contributions()]
    for kinds in dict.fromkeys(pairs):
        name = f"moment_{_short(kinds)}"
        terms = [_wick_term(term, "ijab") for term in wick(kinds, "ij")]
        sources.append(_function(f"{name}({arguments}) -> Array", f"E of {', '.join(kinds)}: [i, j, a, b].", terms))
        table.append(f'    "{_short(kinds)}": ({name},),')
    note = '"""By the kinds of the slots, e for an error and l for a leg; three slots: by the component\'s carrier."""'
    both = [*table, "}", note, "", *slopes, "}", '"""Derivatives of the moments along changes of the targets."""']
    return "\n\n".join([*sources, "\n".join(both) + "\n"])


def _tangent_term(term: TangentTerm, result: str) -> str:
    j, k = term.orders
    pair, orders = ("ab", (j, k)) if j >= k else ("ba", (k, j))
    inputs = ",".join([*(subscripts for _, subscripts in term.covariances), pair])
    names = ", ".join([*(name for name, _ in term.covariances), f"b[{orders[0]}, {orders[1]}]"])
    return f'{f"{term.number} * " * (term.number != 1)}einsum("{inputs}->{result}", {names})'


def _tangents() -> str:
    """Tangents carried through a layer, and the first update of the penultimate layer."""
    sources = []
    for name, terms, result, what in (
        ("carried_z", carried_with_output(), "gab", "E[q'_a z'_b]/C_W from z = E[q_a z_b]"),
        ("carried_q", carried_with_tangent(), "ghab", "E[q'_a q'_b]/C_W from z = E[q_a z_b] and q = E[q_a q_b]"),
    ):
        arguments = "z: Array, b: Brackets" if name == "carried_z" else "z: Array, q: Array, b: Brackets"
        body = [_tangent_term(term, result) for term in terms]
        sources.append(_function(f"{name}({arguments}) -> Array", f"{what}, by group.", body))
    means = [f'-{"len(y) * " * t.loops}einsum("da,ab,ab->d", theta, kappa, b[1, 0])' for t in update_mean()]
    doc = "E of the first update of a penultimate neuron, over eta C_W/n: [d]; y is [component, sample]."
    head = "penultimate_mean(theta: Array, y: Array, kappa: Array, b: Brackets) -> Array"
    sources.append(_function(head, doc, means))
    errors = []
    for term in update_square():
        operands = [("ac", "kappa"), ("bd", "kappa"), *(("".join(target), "y") for target in term.targets)]
        operands += [(pair, "K") for pair in term.kernels]
        inputs, names = ",".join(s for s, _ in operands), ", ".join(name for _, name in operands)
        errors.append(f'{"-" * (term.sign < 0)}{"len(y) * " * term.loops}einsum("{inputs}->ab", {names})')
    doc = "The errors that drive its square, summed over components: [a, b]."
    sources.append(_function("penultimate_errors(y: Array, K: Array, kappa: Array) -> Array", doc, errors))
    doc = "The square of the update over eta^2 C_W/n, by the neuron's own NTK: [d, e]."
    head = "penultimate_own(theta: Array, errors: Array, b: Brackets) -> Array"
    sources.append(_function(head, doc, ['einsum("da,eb,ab,ab->de", theta, theta, errors, b[1, 1])']))
    tensor, subscripts = tied_ntk()
    doc = f"The same over eta^2 C_W/n of the layer below, by the NTK with all other neurons, through {tensor}: [d, e]."
    head = f"penultimate_others({tensor}: Array, errors: Array, b: Brackets) -> Array"
    sources.append(_function(head, doc, [f'einsum("{subscripts},ab,ab->de", {tensor}, errors, b[1, 1])']))
    return "\n\n".join(sources)


def _tuple(values: Sequence[object]) -> str:
    inner = ", ".join(str(value) for value in values)
    return f"({inner}{',' if len(values) == 1 else ''})"


def _contribution(c: Contribution, coefficient: sp.Rational = sp.S.One) -> str:
    fields = [f'"{c.part}"', f'"{c.product}"', _tuple(c.external), _tuple(c.internal), f'"{_short(c.kinds)}"']
    fields += [f'"{c.weight}"', _tuple(c.modes)] + ([] if coefficient == 1 else [_number(coefficient)])
    return f"    Contribution({', '.join(fields)}),"


def _tables() -> str:
    lines = ["CUMULANTS = {"]
    for product in CUMULANTS:
        position = {vertex: k for k, vertex in enumerate(parse(product).vertices)}
        lines.append(f'    "{product}": (')
        for insertion in insertions(product):
            pairs = tuple(tuple(position[v] for v in pair) for pair in insertion.pairing)
            order = tuple(position[v] for v in insertion.subscripts)
            lines.append(f'        Pairing("{insertion.tensor}", {pairs}, {order}),')
        lines.append("    ),")
    lines += [
        "}",
        '"""Joint cumulants at order 1/n: tensors with Kronecker deltas of paired slots, axes in `order`."""',
        "",
    ]
    lines += [f"FIRST = {_contribution(first_contribution()).strip(', ')}", '"""The NTK\'s mean at order 1/n."""', ""]
    lines += [f"SQUARE = {_contribution(square_contribution()).strip(', ')}"]
    lines += ['"""The NTK\'s fluctuation with itself: the weight acts on each mode."""', ""]
    lines += ["MEAN = (", *map(_contribution, mean_contributions()), ")", '"""The mean output."""', ""]
    lines += ["CROSS = (", *map(_contribution, cross_contributions()), ")", '"""The output with a z outside."""', ""]
    lines += ["NTK = (", *(_contribution(c, factor) for factor, c in ntk_contributions()), ")"]
    lines += ['"""The mean change of the NTK; a product of weights is written by its letters."""', ""]
    parts = dict.fromkeys(["NTK", "H1", *(c.part for c in mean_contributions()), *PARTS.values()])
    return "\n".join([*lines, f"PARTS = ({', '.join(f'{chr(34)}{part}{chr(34)}' for part in parts)})"]) + "\n"
