"""The sections of a report on large depth: exponents and ratios, the solution's steps, generalization, the check."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.activations import Activation
from derive.depth import Asymptotics, ExponentTable, asymptotics
from derive.depth.derivation import rate_equations
from derive.errors import DeriveError
from derive.layout import Equation, Table, Text
from derive.nearby import Behaviour, generalization
from derive.notation import CHI_PERP, DELTA_2, K_STAR, P_PERP, TensorSymbol, latex, was_rounded
from derive.reports.document import Block, Code, Section, Steps
from derive.reports.figures import flow_gallery, ratio_figure
from derive.reports.flow_check import FlowCheck
from derive.reports.sections import ROUNDED
from derive.reports.tex import TENSORS, blocks_of, breakable, cell
from derive.steps import Notation, Verbatim, Words, equal, formula, listed, said, small, typeset, words
from derive.symbols import L, ell, lambda_b, lambda_W

P, Q = sp.symbols("p q")
HEADER: tuple[str, ...] = ("tensor", cell(P), cell(Q), "coefficient")
INPUT_NORM = sp.Symbol("x.x/n_0")
LAW = formula(ell**-P * sp.log(ell) ** Q)


def tensor_rows(table: ExponentTable) -> tuple[tuple[str, ...], ...]:
    """Exponent, power of the logarithm and coefficient of every tensor, or why there is none."""
    rows: list[tuple[str, ...]] = []
    for name in TENSORS:
        tensor, shown = table.tensors[name], cell(TensorSymbol(name))
        if not tensor.exists or tensor.coefficient is None:
            rows.append((shown, "–", "–", said("does not exist: {}", words(tensor.reason or "").uncapitalized())))
        elif tensor.exponent is None:
            rows.append((shown, "–", "–", "vanishes"))
        else:
            rows.append((shown, cell(tensor.exponent), str(tensor.log_power), cell(tensor.coefficient)))
    return tuple(rows)


def finite_section(table: ExponentTable) -> Section:
    """Half-stable activations: what networks of real depth show, before any statement about infinite depth."""
    assert table.plateau is not None
    caption = said("On the plateau, where the kernel stays at {}: leading terms of polynomials in {}.", K_STAR, ell)
    blocks: list[Block] = [
        Text(
            said(
                "The kernel leaves the neighbourhood of {} so slowly that networks of practical depth live on a "
                "plateau. These numbers hold there; the large-depth terms of the next section begin beyond them.",
                K_STAR,
            )
        ),
        *(Text(note) for note in table.plateau.notes),
        Table(HEADER, tensor_rows(table.plateau), caption),
    ]
    if table.finite is not None:
        flow = table.finite
        rows = tuple(
            (Words(table.ratios[name].formula), *(Words(small(v, 4)) for v in values))
            for name, values in flow.ratios.items()
            if name in table.ratios
        )
        head = ("ratio, times n", *(Words(equal(ell, layer)) for layer in flow.layers))
        start = said(
            "Exact at finite depth: the recursions iterated from {}, with {} in every layer.",
            equal(INPUT_NORM, sp.Float(flow.gram, 6)),
            equal(lambda_b, lambda_W, 1),
        )
        blocks += [Table(head, rows, start), ratio_figure(flow.layers, flow.ratios, "finite")]
    blocks.append(Code("table = a.exponents()\nprint(table.plateau)\nprint(table.finite)"))
    return Section("Plateau and finite depth", tuple(blocks))


def table_section(table: ExponentTable, constant: ExponentTable) -> Section:
    """Exponents, coefficients and ratios for both learning rates; what is known of their regime comes first."""
    ratios = tuple(
        (Words(ratio.formula), cell(ratio.exponent), str(ratio.log_power), cell(ratio.coefficient))
        for ratio in table.ratios.values()
        if ratio.exponent is not None
    )
    notes = [Text(note) for note in table.notes]
    if any(t.coefficient is not None and was_rounded(t.coefficient) for t in table.tensors.values()):
        notes.append(Text(ROUNDED))
    power = words("")
    if table.p_perp is not None:
        told = "{} is the power of {} with which the product of {} over the layers falls."
        power = said(told, equal(P_PERP, table.p_perp), ell, CHI_PERP)
    blocks: list[Block] = [
        *notes,
        Text(said("A tensor behaves as coefficient times {}. {}", LAW, power)),
        Table(HEADER, tensor_rows(table), "Learning rates by the equivalence principle."),
        Table(
            ("ratio", cell(P), cell(Q), said("{} times coefficient", sp.Symbol("n"))),
            ratios,
            said("Dimensionless ratios; {} is growth as {}.", equal(P, -1), ell / sp.Symbol("n")),
        ),
        Table(HEADER, tensor_rows(constant), "Layer-independent learning rates."),
    ]
    code = 'table = a.exponents()\nprint(table)\nprint(a.exponents(learning_rates="constant"))'
    return Section("Exponents, coefficients, ratios", (*blocks, Code(code)))


def solution_section(sigma: Activation, point: int, table: ExponentTable) -> Section:
    """The scaling ansatz and each balance of the solution, with two powers of every series."""
    blocks: list[Block] = [
        Text("The large-depth solution at the recommended critical point, by a scaling ansatz, order by order."),
        *(Equation(e.latex()) for e in rate_equations(*table.rates.expressions)),
    ]
    solved: list[Steps] = []
    free: dict[str, Words] = {}
    for name in TENSORS:
        if not table.tensors[name].exists:
            continue
        full = asymptotics(sigma, name, order=2, point=point)
        own = full.steps if name == "K" else full.steps[-1:]
        balance: list[Text | Equation | Table] = [block for step in own for block in blocks_of(step)]
        if full.remainder is None and full.series is not None:
            balance = [Equation(equal(TensorSymbol(name, "ell"), full.series).latex())]
        solved.append(Steps(cell(TensorSymbol(name)), (*balance, *series_blocks(full)), folded=name != "K"))
        free |= full.free_constants
    if free:
        meanings = [said("{} is {}", sp.Symbol(n), told) for n, told in free.items()]
        blocks.append(Text(said("Free constants of the series: {}.", listed(meanings, "; "))))
    blocks += solved
    for reason, names in _absent(table):
        blocks.append(Text(said("Without a solution: {}. {}", listed(TensorSymbol(n) for n in names), words(reason))))
    shown = next(name for name in reversed(TENSORS) if table.tensors[name].exists)
    blocks.append(Code(f'series = a.asymptotics("{shown}", order=3)\nprint(series)\nprint(*series.steps, sep="\\n")'))
    return Section("Large depth: the solution, step by step", tuple(blocks))


def _absent(table: ExponentTable) -> Iterable[tuple[str, list[str]]]:
    """Tensors that do not exist, grouped by the reason."""
    groups: dict[str, list[str]] = {}
    for name in TENSORS:
        if not table.tensors[name].exists:
            groups.setdefault(table.tensors[name].reason or "It does not exist.", []).append(name)
    return groups.items()


def series_blocks(tensor: Asymptotics) -> tuple[Text | Equation, ...]:
    """The series beyond its leading term, one power of the depth after another."""
    if tensor.series is None or tensor.exponent is None:
        return ()
    if tensor.remainder is None:
        return (Text("This is exact at every layer."),)
    left = latex(TensorSymbol(tensor.tensor, "ell"))
    equations = [
        Equation(rf"\left.{left}\right|_{{\ell^{{{latex(-power)}}}}} = {latex(coefficient)}")
        for power, coefficient in tensor.powers[1:]
    ]
    return (*equations, Text(said("Remainder: {}, times logs.", ell**-tensor.remainder)))


def generalization_section(sigma: Activation) -> Section:
    """Robustness and variance of a trained network on a nearby input (10.57), (10.71)."""
    rows: list[Text | Equation] = []
    notes: list[Words] = []
    for rule in ("equivalence", "constant"):
        try:
            found = generalization(sigma, rule)
        except DeriveError as error:
            notes.append(said("Learning rates {}: {}", rule, words(error.args[0])))
            continue
        rows += [
            Text(f"Learning rates: {rule}."),
            Equation(rf"\text{{robustness}} = {behaviour_tex(found.robustness)}"),
            Equation(rf"\text{{variance}} = {behaviour_tex(found.variance)}"),
        ]
        notes += [note for note in found.notes if note not in notes]
    told = (
        "A network of depth {} trained on one input, asked for the output of a nearby one of equal norm. Robustness is "
        "{}, how far the prediction follows the training output; the variance is that of the output after training. "
        "{} is the separation that survives to depth, {}."
    )
    off = typeset(r"\Theta_{-+}/\Theta_{++} - 1", "Theta_(-+)/Theta_(++) - 1")
    separation = typeset(r"\delta\delta K_{[2]} = \delta^2 \ell^{-p_\perp}", "ddK_[2] = delta^2 l^(-p_perp)")
    return Section(
        "Generalization to a nearby input",
        (
            Text(said(told, L, off, DELTA_2, separation)),
            *rows,
            *(Text(note) for note in notes),
            Code(
                "from derive.nearby import generalization\n"
                'for rule in ("equivalence", "constant"):\n    print(generalization(a, rule))'
            ),
        ),
    )


def behaviour_tex(found: Behaviour) -> str:
    """coefficient times unit times its power of the depth and of its logarithm."""
    law = found.unit_expression * L**-found.exponent * sp.log(L) ** found.log_power
    if law == 1:
        return breakable(found.coefficient)
    coefficient = breakable(found.coefficient)
    if found.coefficient.is_Add:
        coefficient = f"({coefficient})"
    return latex(law) if found.coefficient == 1 else rf"{coefficient}\,{latex(law)}"


def check_section(check: FlowCheck | None) -> Section:
    """The iteration beside the asymptotics, with the deviations as numbers."""
    if check is None:
        return Section(
            "How it was checked", (Text("Kinks away from the origin: no single-input iteration was made here."),)
        )
    depth, compared = check.layers[-1], check.compared
    leading, series = check.leading_deviation, check.series_deviation
    rows = tuple(
        (cell(TensorSymbol(n)), _number(leading[n]), _number(series[n]) if n in series else "–") for n in check.exact
    )
    start = (
        said(
            "This class reaches its asymptotic regime only at depths beyond any practical network (see the note at the "
            "exponents), so the check is made on the plateau: the input has the norm for which {}.",
            equal(TensorSymbol("K", "1"), K_STAR),
        )
        if check.plateau
        else said("The input has {}.", equal(INPUT_NORM, sp.Float(check.gram, 6)))
    )
    if check.constants:
        used = listed(
            equal(sp.Symbol(n), sp.Float(check.constants[n], 6)) for n in ("c_K", "c_Theta") if n in check.constants
        )
        told = "The free constants of the series are fitted to layer {} ({}); it is compared elsewhere."
        fitted = said(told, str(depth), used)
    else:
        fitted = words("The series has no constant to fit.")
    told = (
        "For this report the exact single-input recursions were iterated through {} layers in extended precision, with "
        "brackets integrated at every layer, {} and {} in the learning rates' common factor; nothing in that iteration "
        "shares code with the series. {} {}"
    )
    exact_over = Notation("|exact/leading - 1|", r"|\text{exact}/\text{leading} - 1|")
    exact_series = Notation("|exact/series - 1|", r"|\text{exact}/\text{series} - 1|")
    return Section(
        "How it was checked",
        (
            Text(said(told, str(depth), equal(lambda_b, lambda_W, 1), equal(L, 1), start, fitted)),
            flow_gallery(check),
            ratio_figure(check.layers, check.ratios, "check"),
            Table(
                (
                    "tensor",
                    said("{} at {}", exact_over, equal(ell, depth)),
                    said("{} at {}", exact_series, equal(ell, compared)),
                ),
                rows,
                "Where a leading coefficient is small because contributions nearly cancel, its term takes over late.",
            ),
            Text(
                said(
                    "The recursions themselves are compared with tensors sampled from real finite-width networks, and "
                    "the series with iterations to {}, in the project's tests ({}, {}).",
                    typeset(r"\ell = 10^5", "ell = 10^5"),
                    Verbatim("make test"),
                    Verbatim("make verify"),
                )
            ),
            Code(
                "from derive.reports.flow_check import flow_check\n"
                "check = flow_check(a)\nprint(check.leading_deviation)\nprint(check.series_deviation)"
            ),
        ),
    )


def _number(deviation: float) -> Words:
    if deviation < 1e-12:
        return said("below {}", small(1e-12, 1))
    return Words(small(deviation))
