"""The derivation, told: criticality, the kernel's flow, the learning rates, each linear recursion's balance."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from derive.depth.background import FlowingKernel
from derive.depth.result import Step
from derive.depth.series import Series
from derive.depth.tensor_recursions import Equation, System, constant_name
from derive.symbols import C_W, C_b, ell

SYMBOL = {"Theta": r"\Theta", "G1": r"{G^{\{1\}}}", "H1": r"{H^{\{1\}}}"}


def short(expression: sp.Expr) -> sp.Expr:
    """Floating-point numbers rounded for reading."""
    return expression.xreplace({f: sp.Float(f, 10) for f in expression.atoms(sp.Float)})


def first_terms(series: Series, count: int = 2) -> sp.Expr:
    """The leading terms, for display."""
    parts = [series.coefficient_expr(c) * ell ** (-series.ring.exponent_expr(p)) for p, c in list(series)[:count]]
    return short(sp.Add(*parts))


def kernel_steps(background: FlowingKernel) -> list[Step]:
    """Criticality, the flow and its solution."""
    b, w = (short(background.constants[c]) for c in (C_b, C_W))
    y = sp.Symbol("y")
    star = short(background.point.K_star)
    m = background.leading_power
    shown = dict(list(background.flow.items())[:3])
    flow = y + sp.Add(*(short(a) * y ** (j + 1) for j, a in shown.items()))
    variable, variable_latex = {
        (True, 1): ("y = K", "y = K"),
        (False, 1): ("y = K - K*", r"y = K - K^\star"),
        (True, 2): ("y = K^(1/2)", "y = K^{1/2}"),
    }[(background.point.at_zero, int(1 / background.point.step))]
    kernel = first_terms(background.kernel, 3)
    resonance = sp.Rational(1, m) + 1
    return [
        Step(
            f"Criticality: K* = {star}, C_b = {b}, C_W = {w}.",
            rf"K^\star = {sp.latex(star)},\quad C_b = {sp.latex(b)},\quad C_W = {sp.latex(w)}",
        ),
        Step(
            f"The kernel's recursion near the fixed point, with {variable}: y' = {flow} + ...",
            rf"y^{{(\ell+1)}} = {sp.latex(flow)} + \dots,\qquad {variable_latex}",
        ),
        Step(
            f"Ansatz y = kappa ell^(-1/{m}): matching ell^(-1/{m}-1) gives kappa^{m} = -1/({m} a_{m}), kappa = "
            f"{short(background.kappa)}. The perturbation ell^(-{resonance}) is resonant (d/dell of the leading term): "
            f"a logarithm and the free constant c_K enter there. K = {kernel} + ...",
            rf"K^{{(\ell)}} = {sp.latex(kernel)} + \dots",
        ),
    ]


def rate_step(system: System) -> Step:
    b, w = system.rates.expressions
    if system.rates.rule == "equivalence":
        text = (
            f"Equivalence principle: layer l contributes (lambda_b^(l) + lambda_W^(l) <ss>) (l/L)^(p_perp) to the NTK; "
            f"all layers contribute equally, and O(1) in all, for lambda_b^(l) = {b}, lambda_W^(l) = {w}."
        )
    else:
        text = f"Learning rates ({system.rates.rule}): lambda_b^(l) = {b}, lambda_W^(l) = {w}."
    return Step(text, rf"\lambda_b^{{(\ell)}} = {sp.latex(b)},\quad \lambda_W^{{(\ell)}} = {sp.latex(w)}")


def tensor_step(system: System, name: str) -> Step:
    """One linear recursion: multiplier, source, homogeneous exponent, solution."""
    solution = system.solutions[name]
    symbol = SYMBOL.get(name, name)
    multiplier, source = first_terms(system.multipliers[name]), first_terms(system.sources[name], 1)
    growth = solution.homogeneous
    if growth.exponent is None:
        alone = f"the homogeneous solution decays exponentially (rate {growth.rate})"
    else:
        h = system.ring.exponent_expr(growth.exponent)
        alone = f"the homogeneous solution is {constant_name(name)} * ell^(-({h}))"
    resonance = ", and at its power the source is resonant: a logarithm appears" if solution.resonant else ""
    result = first_terms(solution.series, 1)
    return Step(
        f"{name}' = m {name} + S with m = {multiplier} + ..., S = {source} + ...; {alone}{resonance}. "
        f"{name} = {result} + ...",
        rf"{symbol}^{{(\ell+1)}} = \left({sp.latex(multiplier)} + \dots\right) {symbol}^{{(\ell)}} + "
        rf"{sp.latex(source)} + \dots \;\Rightarrow\; {symbol}^{{(\ell)}} = {sp.latex(result)} + \dots",
    )


def needed(equations: Mapping[str, Equation], name: str) -> list[str]:
    """The tensors that a tensor's solution needs, itself last, in the order of the equations."""
    found: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        if current not in found and current != "K":
            found.add(current)
            pending += equations[current].depends_on
    return [n for n in equations if n in found]


def onset_depth(background: FlowingKernel) -> float | None:
    """The depth beyond which the leading term dominates: where the next power in the kernel's flow, a_(m+1) y, has
    become smaller than the leading one; None where coefficients are symbols or the flow has one term only."""
    m = background.leading_power
    following = [j for j in background.flow if j > m]
    if not following or background.flow[m].free_symbols or background.kappa.free_symbols:
        return None
    j = following[0]
    small = abs(float(background.flow[j] / background.flow[m])) ** (1 / (j - m)) * abs(float(background.kappa))
    return float(max(1.0, small**m))
