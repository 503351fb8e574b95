"""The sections of an activation's report, each made from the objects that the library itself computes with."""

from __future__ import annotations

import sympy as sp

from derive.activations import Activation
from derive.asymptotics import Asymptotics, ExponentTable, asymptotics
from derive.criticality import Criticality, CriticalPoint
from derive.errors import DeriveError
from derive.gaussian import Sigma, exact, expect, series
from derive.network import recursion
from derive.report.document import Block, Code, Equation, Section, Steps, Table, Text
from derive.report.figures import activation_figure, flow_figure, phase_figure
from derive.report.flow_check import FlowCheck
from derive.symbols import K, ell

TENSORS = ["K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U"]
SHOWN = {"Theta": r"\Theta", "G1": r"{G^{\{1\}}}", "H1": r"{H^{\{1\}}}"}
SERIES_TERMS = 4


def tex(expression: sp.Expr, digits: int = 12) -> str:
    """LaTeX of an expression, floating-point numbers rounded for reading."""
    short = expression.xreplace({f: sp.Float(f, digits) for f in expression.atoms(sp.Float)})
    return sp.latex(short, ln_notation=False)


def symbol(name: str) -> str:
    return SHOWN.get(name, name)


def activation_section(sigma: Activation) -> Section:
    blocks: list[Block] = [Equation(rf"\sigma(z) = {tex(sigma.expression)}"), activation_figure(sigma)]
    facts = []
    if sigma.kinks:
        places = ", ".join(f"${tex(kink)}$" for kink in sigma.kinks)
        order = sigma.first_delta_order
        facts.append(f"Kinks at {places}; derivative number {order} is the first that holds a delta function.")
    else:
        facts.append("Smooth on the whole real line.")
    if sigma.is_odd:
        facts.append("Odd.")
    if sigma.is_analytic_at_zero:
        coefficients = ",\\; ".join(rf"\sigma_{{{k}}} = {tex(sigma.taylor(k))}" for k in range(6))
        facts.append(f"Taylor coefficients at the origin: ${coefficients}$.")
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
    for left, (integrand, pattern) in brackets.items():
        bracket = expect(integrand)
        closed = exact(bracket, sigma, K)
        if closed is not None:
            blocks.append(Equation(rf"{left} = {tex(closed)}", "Exact, by a closed form."))
            continue
        try:
            expansion = series(bracket, sigma, SERIES_TERMS)
        except DeriveError as error:
            blocks.append(Text(f"${left}$ has no closed form here and no series at $K = 0$: {error}"))
            continue
        blocks.append(
            Equation(
                rf"{left} = {tex(expansion.expression(K))} + \dots",
                f'No closed form; exact series in $K$. `derive expect "{pattern}" {sigma.name} --K 1/2` gives numbers.',
            )
        )
    return Section("Gaussian calculus", tuple(blocks))


def criticality_section(sigma: Activation, found: Criticality) -> Section:
    blocks: list[Block] = [
        Text(f"Universality class: {found.universality_class}. {found.reason}"),
        Equation(
            r"\chi_\perp = C_W \left\langle\sigma'\sigma'\right\rangle_K,\qquad "
            r"\chi_\parallel = C_W\left(\left\langle\sigma'\sigma'\right\rangle_K + "
            r"\left\langle\sigma\sigma''\right\rangle_K\right)"
        ),
    ]
    if found.points:
        rows = tuple(
            (str(i), f"${tex(p.K_star)}$", f"${tex(p.C_W)}$", f"${tex(p.C_b)}$", p.universality_class, p.stability)
            for i, p in enumerate(found.points)
        )
        header = ("point", "$K^\\star$", "$C_W$", "$C_b$", "class", "stability")
        blocks.append(Table(header, rows, "Critical initializations, the recommended one first."))
    blocks.append(Steps("How they were found", tuple(Text(step) for step in found.steps)))
    if (picture := phase_figure(sigma, found)) is not None:
        blocks.append(picture)
    blocks.append(Code(f"derive.activation({sigma.name!r}).criticality()"))
    return Section("Criticality", tuple(blocks))


def recursion_section() -> Section:
    blocks: list[Block] = [
        Text(
            "Derived by the program from $z' = b + W\\sigma(z)$ and the definitions of the NTK and its differentials. "
            "They hold for every activation; sums run over the sample labels that occur in the bracket after them."
        )
    ]
    for name in TENSORS:
        derived = recursion(name)
        equations = tuple(Equation(_one_line(r.latex())) for r in (derived, derived.single_input().equal_widths()))
        blocks.append(
            Steps(
                f"${symbol(name)}$: many inputs, then a single input at equal widths (depends on "
                f"{', '.join(derived.depends_on)})",
                equations,
            )
        )
    blocks.append(Code('derive.recursion("R").latex(); derive.recursion("R").single_input()'))
    return Section("The recursions", tuple(blocks))


def _one_line(latex: str) -> str:
    """An aligned equation as one that the renderer wraps by itself."""
    return latex.replace(r"\\", " ").replace("&", "")


def solution_section(sigma: Activation, point: int, table: ExponentTable) -> Section:
    bias, weight = table.rates.expressions
    blocks: list[Block] = [
        Text("The large-depth solution at the recommended critical point, by a scaling ansatz, order by order."),
        Equation(rf"\lambda_b^{{(\ell)}} = {tex(bias)},\qquad \lambda_W^{{(\ell)}} = {tex(weight)}"),
        *(Text(note) for note in table.notes),
    ]
    for name in TENSORS:
        tensor = table.tensors[name]
        if not tensor.exists:
            blocks.append(Text(f"${symbol(name)}$ does not exist: {tensor.reason}"))
            continue
        full = asymptotics(sigma, name, order=2, point=point)
        own = full.steps if name == "K" else full.steps[-1:]
        balance = tuple(Equation(step.latex) for step in own)
        blocks.append(Steps(f"${symbol(name)}$", (*balance, *series_blocks(full))))
    blocks.append(Code(f'derive.activation({sigma.name!r}).asymptotics("R", order=3)'))
    return Section("Large depth: the solution, step by step", tuple(blocks))


def series_blocks(tensor: Asymptotics) -> tuple[Block, ...]:
    """The series, one power of the depth after another, and what its free constants are."""
    if tensor.series is None or tensor.exponent is None:
        return ()
    by_power: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(tensor.series)):
        coefficient, power = term.as_independent(ell)
        logs = sp.Mul(*(f for f in sp.Mul.make_args(power) if f.has(sp.log)))
        by_power[power / logs] = by_power.get(power / logs, sp.S.Zero) + coefficient * logs
    order = sorted(by_power, key=lambda p: -float(sp.log(p).diff(ell).subs(ell, 1)))
    left = rf"{symbol(tensor.tensor)}^{{(\ell)}}"
    equations = [
        Equation(
            rf"\left.{left}\right|_{{{tex(power)}}} = {tex(by_power[power])}"
            if place
            else rf"{left} = {tex(by_power[power] * power)} + \dots"
        )
        for place, power in enumerate(order)
    ]
    exact = tensor.remainder is None
    tail = "The series ends here: it is exact." if exact else f"Remainder: ${tex(ell**-tensor.remainder)}$, times logs."
    free = "; ".join(f"`{name}` is {meaning}" for name, meaning in tensor.free_constants.items())
    return (*equations, Text(f"{tail} {free}"))


def table_section(table: ExponentTable, constant: ExponentTable) -> Section:
    def rows(which: ExponentTable) -> tuple[tuple[str, ...], ...]:
        found = []
        for name in TENSORS:
            tensor = which.tensors[name]
            if not tensor.exists or tensor.coefficient is None:
                found.append((f"${symbol(name)}$", "does not exist", "", tensor.reason or ""))
            elif tensor.exponent is None:
                found.append((f"${symbol(name)}$", "vanishes", "", "$0$"))
            else:
                logs = str(tensor.log_power)
                found.append((f"${symbol(name)}$", f"${tex(tensor.exponent)}$", logs, f"${tex(tensor.coefficient)}$"))
        return tuple(found)

    header = ("tensor", "exponent $p$", "power of $\\log\\ell$", "coefficient")
    ratio_rows = tuple(
        (ratio.name, f"${tex(ratio.exponent)}$", f"${tex(ratio.coefficient)}$")
        for ratio in table.ratios.values()
        if ratio.exponent is not None
    )
    return Section(
        "Exponents, coefficients, ratios",
        (
            Text(
                "A tensor behaves as coefficient $\\cdot\\, \\ell^{-p} \\log^q \\ell$. "
                f"$p_\\perp = {tex(table.p_perp)}$."
            ),
            Table(header, rows(table), "Learning rates by the equivalence principle."),
            Table(
                ("ratio", "exponent", "coefficient"),
                ratio_rows,
                "Dimensionless ratios; exponent $-1$ is growth as $\\ell/n$.",
            ),
            Table(header, rows(constant), "Layer-independent learning rates."),
        ),
    )


def check_section(sigma: Activation, point: CriticalPoint, check: FlowCheck | None, half_stable: bool) -> Section:
    if check is None:
        return Section(
            "How it was checked", (Text("Kinks away from the origin: no single-input iteration was made here."),)
        )
    depth = check.layers[-1]
    rows = tuple((f"${symbol(name)}$", f"{deviation:.1e}") for name, deviation in check.deviation.items())
    note = (
        "This class reaches its asymptotic regime only at great depth (see the notes above): the deviation is expected."
        if half_stable
        else "The leading terms' relative error falls as a power of $\\ell$, with logarithms."
    )
    return Section(
        "How it was checked",
        (
            Text(
                f"For this report the exact single-input recursions were iterated through {depth} layers in extended "
                "precision, with brackets integrated at every layer and $\\lambda_b = \\lambda_W = 1$, "
                f"$x\\cdot x/n_0 = 1$; nothing in that iteration shares code with the series. {note}"
            ),
            flow_figure(check.layers, {name: (check.exact[name], check.leading[name]) for name in check.exact}),
            Table(("tensor", f"$|$exact / leading term $- 1|$ at $\\ell = {depth}$"), rows),
            Text(
                "The recursions themselves are compared with tensors sampled from real finite-width networks, and the "
                "series with iterations to $\\ell = 10^5$, in the project's tests (`make test`, `make verify`)."
            ),
        ),
    )
