"""The sections of a report on large depth: exponents and ratios, the solution's steps, generalization, the check."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sympy as sp

from derive.activations import Activation
from derive.depth import Asymptotics, ExponentTable, asymptotics
from derive.errors import DeriveError
from derive.nearby import Behaviour, generalization
from derive.reports.document import Block, Code, Equation, Section, Steps, Table, Text
from derive.reports.figures import flow_gallery
from derive.reports.flow_check import FlowCheck
from derive.reports.sections import ROUNDED
from derive.reports.sentences import sentence
from derive.reports.tex import TENSORS, cell, ratio_tex, symbol, tex, was_rounded
from derive.symbols import L, ell

_FORMULAS = re.compile(r": y' = |\. K = |\.$")
"""Where a step's words end and the formula begins that its LaTeX shows."""
_ONE = re.compile(r"(?<![\d.])1\.0 (?=\\lambda|\\ell|\\log)")
_WHOLE = re.compile(r"(?<![\d.])(\d+)\.0(?!\d)")
HEADER = ("tensor", "$p$", "$q$", "coefficient")


def tensor_rows(table: ExponentTable) -> tuple[tuple[str, ...], ...]:
    """Exponent, power of the logarithm and coefficient of every tensor, or why there is none."""
    rows = []
    for name in TENSORS:
        tensor = table.tensors[name]
        if not tensor.exists or tensor.coefficient is None:
            rows.append((f"${symbol(name)}$", "–", "–", f"does not exist: {sentence(_lower(tensor.reason or ''))}"))
        elif tensor.exponent is None:
            rows.append((f"${symbol(name)}$", "–", "–", "vanishes"))
        else:
            rows.append(
                (
                    f"${symbol(name)}$",
                    f"${tex(tensor.exponent)}$",
                    f"${tensor.log_power}$",
                    f"${cell(tensor.coefficient)}$",
                )
            )
    return tuple(rows)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def table_section(table: ExponentTable, constant: ExponentTable, plateau: ExponentTable | None) -> Section:
    """Exponents, coefficients and ratios for both learning rates, and on the plateau of half-stable activations."""
    ratios = tuple(
        (f"${ratio_tex(ratio)}$", f"${tex(ratio.exponent)}$", f"${ratio.log_power}$", f"${cell(ratio.coefficient)}$")
        for ratio in table.ratios.values()
        if ratio.exponent is not None
    )
    notes = [Text(sentence(note)) for note in table.notes]
    if any(t.coefficient is not None and was_rounded(t.coefficient) for t in table.tensors.values()):
        notes.append(Text(ROUNDED))
    blocks: list[Block] = [
        Text(
            "A tensor behaves as coefficient $\\cdot\\, \\ell^{-p} \\log^q \\ell$. "
            f"$p_\\perp = {tex(table.p_perp)}$ is the power of $\\ell$ with which $\\prod\\chi_\\perp$ falls."
        ),
        *notes,
        Table(HEADER, tensor_rows(table), "Learning rates by the equivalence principle."),
        Table(
            ("ratio", "$p$", "$q$", "$n\\,\\times$ coefficient"),
            ratios,
            "Dimensionless ratios; $p = -1$ is growth as $\\ell/n$.",
        ),
        Table(HEADER, tensor_rows(constant), "Layer-independent learning rates."),
    ]
    code = 'table = a.exponents()\nprint(table)\nprint(a.exponents(learning_rates="constant"))'
    if plateau is not None:
        caption = "On the plateau, where the kernel stays at $K^\\star$: leading terms of polynomials in $\\ell$."
        blocks += [Text(sentence(plateau.notes[0])), Table(HEADER, tensor_rows(plateau), caption)]
        code += "\nprint(a.exponents(plateau=True))"
    return Section("Exponents, coefficients, ratios", (*blocks, Code(code)))


def solution_section(sigma: Activation, point: int, table: ExponentTable) -> Section:
    """The scaling ansatz and each balance of the solution, with two powers of every series."""
    bias, weight = table.rates.expressions
    blocks: list[Block] = [
        Text("The large-depth solution at the recommended critical point, by a scaling ansatz, order by order."),
        Equation(rf"\lambda_b^{{(\ell)}} = {tex(bias)}"),
        Equation(rf"\lambda_W^{{(\ell)}} = {tex(weight)}"),
    ]
    solved: list[Steps] = []
    free: dict[str, str] = {}
    for name in TENSORS:
        if not table.tensors[name].exists:
            continue
        full = asymptotics(sigma, name, order=2, point=point)
        own = full.steps if name == "K" else full.steps[-1:]
        balance: list[Text | Equation | Table] = []
        for step in own:
            balance += [Text(sentence(_FORMULAS.split(step.text)[0] + "."))] if name == "K" else []
            balance += _equations(step.latex)
        if full.remainder is None and full.series is not None:
            balance = [Equation(rf"{symbol(name)}^{{(\ell)}} = {tex(full.series)}")]
        solved.append(Steps(f"${symbol(name)}$", (*balance, *series_blocks(full))))
        free |= full.free_constants
    if free:
        meaning = "; ".join(f"${tex(sp.Symbol(n))}$ is {sentence(_lower(text))}" for n, text in free.items())
        blocks.append(Text(f"Free constants of the series: {meaning}."))
    blocks += solved
    for reason, names in _absent(table):
        blocks.append(Text(f"Without a solution: {', '.join(f'${symbol(n)}$' for n in names)}. {sentence(reason)}"))
    shown = next(name for name in reversed(TENSORS) if table.tensors[name].exists)
    blocks.append(Code(f'series = a.asymptotics("{shown}", order=3)\nprint(series)\nprint(*series.steps, sep="\\n")'))
    return Section("Large depth: the solution, step by step", tuple(blocks))


def _equations(latex: str) -> Iterable[Equation]:
    """A step's formulas, each displayed by itself; whole floating-point numbers lose their point."""
    tidy = _WHOLE.sub(r"\1", _ONE.sub("", latex.replace("+ -", "- ")))
    for part in re.split(r",\s*\\q?quad|\\;(?=\\Rightarrow)", tidy):
        yield Equation(part.strip())


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
    by_power: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(tensor.series)):
        coefficient, power = term.as_independent(ell)
        logs = sp.Mul(*(f for f in sp.Mul.make_args(power) if f.has(sp.log)))
        by_power[power / logs] = by_power.get(power / logs, sp.S.Zero) + coefficient * logs
    order = sorted(by_power, key=lambda p: -float(sp.log(p).diff(ell).subs(ell, 1)))
    left = rf"{symbol(tensor.tensor)}^{{(\ell)}}"
    equations = [Equation(rf"\left.{left}\right|_{{{tex(power)}}} = {tex(by_power[power])}") for power in order[1:]]
    return (*equations, Text(f"Remainder: ${tex(ell**-tensor.remainder)}$, times logs."))


def generalization_section(sigma: Activation) -> Section:
    """Robustness and variance of a trained network on a nearby input (10.57), (10.71)."""
    rows: list[Text | Equation] = []
    notes: list[str] = []
    for rule in ("equivalence", "constant"):
        try:
            found = generalization(sigma, rule)
        except DeriveError as error:
            notes.append(f"Learning rates {rule}: {error}")
            continue
        rows += [
            Text(f"Learning rates: {rule}."),
            Equation(rf"\text{{robustness}} = {_behaviour(found.robustness)}"),
            Equation(rf"\text{{variance}} = {_behaviour(found.variance)}"),
        ]
        notes += [note for note in found.notes if note not in notes]
    return Section(
        "Generalization to a nearby input",
        (
            Text(
                "A network of depth $L$ trained on one input, asked for the output of a nearby one of equal norm. "
                "Robustness is $\\Theta_{-+}/\\Theta_{++} - 1$, how far the prediction follows the training output; "
                "the variance is that of the output after training. $\\delta^2$ is the separation that survives "
                "to depth, $\\delta\\delta K_{[2]} = \\delta^2 \\ell^{-p_\\perp}$."
            ),
            *rows,
            *(Text(sentence(note)) for note in notes),
            Code(
                "from derive.nearby import generalization\n"
                'for rule in ("equivalence", "constant"):\n    print(generalization(a, rule))'
            ),
        ),
    )


def _behaviour(found: Behaviour) -> str:
    name = found.unit.replace("_", r"\_")
    unit = {"": "", "delta^2": r"\,\delta^2"}.get(found.unit, rf"\,\mathrm{{{name}}}")
    coefficient = cell(found.coefficient)
    if unit and coefficient.count("+") and not coefficient.startswith(("(", "\\frac")):
        coefficient = f"({coefficient})"
    power = tex(L**-found.exponent) if found.exponent != 0 else ""
    logs = rf"\log^{{{found.log_power}}} L" if found.log_power else ""
    return rf"{coefficient}{unit}\,{power}{logs}"


def check_section(check: FlowCheck | None) -> Section:
    """The iteration beside the asymptotics, with the deviations as numbers."""
    if check is None:
        return Section(
            "How it was checked", (Text("Kinks away from the origin: no single-input iteration was made here."),)
        )
    depth, compared = check.layers[-1], check.compared
    leading, series = check.leading_deviation, check.series_deviation
    rows = tuple(
        (f"${symbol(n)}$", _number(leading[n]), _number(series[n]) if n in series else "–") for n in check.exact
    )
    start = (
        "This class reaches its asymptotic regime only at depths beyond any practical network (see the note at the "
        "exponents), so the check is made on the plateau: the input has the norm for which $K^{(1)} = K^\\star$."
        if check.plateau
        else f"The input has $x\\cdot x/n_0 = {check.gram:.6g}$."
    )
    if check.constants:
        used = ", ".join(
            f"${tex(sp.Symbol(n))} = {check.constants[n]:.6g}$" for n in ("c_K", "c_Theta") if n in check.constants
        )
        fitted = f"The free constants of the series are fitted to layer {depth} ({used}); it is compared elsewhere."
    else:
        fitted = "The series has no constant to fit."
    return Section(
        "How it was checked",
        (
            Text(
                f"For this report the exact single-input recursions were iterated through {depth} layers in extended "
                "precision, with brackets integrated at every layer, $\\lambda_b = \\lambda_W = 1$ and $L = 1$ in the "
                f"learning rates' common factor; nothing in that iteration shares code with the series. {start} "
                f"{fitted}"
            ),
            flow_gallery(check),
            Table(
                (
                    "tensor",
                    f"$|\\text{{exact}}/\\text{{leading}} - 1|$ at $\\ell = {depth}$",
                    f"$|\\text{{exact}}/\\text{{series}} - 1|$ at $\\ell = {compared}$",
                ),
                rows,
                "Where a leading coefficient is small because contributions nearly cancel, its term takes over late.",
            ),
            Text(
                "The recursions themselves are compared with tensors sampled from real finite-width networks, and the "
                "series with iterations to $\\ell = 10^5$, in the project's tests (`make test`, `make verify`)."
            ),
            Code(
                "from derive.reports.flow_check import flow_check\n"
                "check = flow_check(a)\nprint(check.leading_deviation)\nprint(check.series_deviation)"
            ),
        ),
    )


def _number(deviation: float) -> str:
    if deviation < 1e-12:
        return "below $10^{-12}$"
    digits, power = f"{deviation:.1e}".split("e")
    return rf"${digits}\times 10^{{{int(power)}}}$"
