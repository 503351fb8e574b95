"""The derivation, told: criticality, the kernel's flow, the learning rates, each linear recursion's balance."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from derive.depth.background import FlowingKernel
from derive.depth.series import Series
from derive.depth.tensor_recursions import Equation, System, constant_name
from derive.notation import K_STAR, KAPPA, Y_NEXT, TensorSymbol, Y
from derive.steps import Formula, Notation, Step, as_written, equal, formula, said
from derive.symbols import C_W, C_b, K, ell

LAYER_RATES = (sp.Symbol("lambda_b^(l)"), sp.Symbol("lambda_W^(l)"))


def first_terms(series: Series, count: int = 2) -> sp.Expr:
    """The leading terms, in their order."""
    ring = series.ring
    known = {symbol: value for symbol, (value, _) in ring.irrationals.items() if not value.free_symbols}
    parts = [series.coefficient_expr(c) * ell ** (-ring.exponent_expr(p)) for p, c in list(series)[:count]]
    return as_written(*(part.xreplace(known) for part in parts))


def expanded(left: sp.Expr, series: Series, count: int = 2) -> Formula:
    """left = leading terms + ..."""
    return equal(left, first_terms(series, count), open_ended=True, order="none")


def kernel_steps(background: FlowingKernel) -> list[Step]:
    """Criticality, the flow and its solution."""
    m, point = background.leading_power, background.point
    star = point.K_star
    values = tuple(
        equal(s, v) for s, v in ((K_STAR, star), (C_b, background.constants[C_b]), (C_W, background.constants[C_W]))
    )
    variable = equal(Y, sp.sqrt(K) if point.step != 1 else K if point.at_zero else K - K_STAR)
    shown = list(background.flow.items())[:3]
    flow = equal(Y_NEXT, as_written(Y, *(a * Y ** (j + 1) for j, a in shown)), open_ended=True, order="none")
    ansatz = equal(Y, KAPPA * ell ** -sp.Rational(1, m))
    matched = ell ** -(sp.Rational(1, m) + 1)
    scale = equal(KAPPA**m, -1 / (m * sp.Symbol(f"a_{m}")), -1 / (m * background.flow[m]))
    root = () if m == 1 else (equal(KAPPA, background.kappa),)
    return [
        Step(said("Criticality"), values),
        Step(said("The kernel's recursion near the fixed point, with {}", variable), (flow,)),
        Step(said("The ansatz {}: matching {} gives", ansatz, matched), (scale, *root)),
        Step(
            said(
                "The perturbation {} of {} is resonant (it is {} of the leading term): a logarithm and the free "
                "constant {} enter there, and",
                matched,
                Y,
                Notation("d/dell", r"\tfrac{d}{d\ell}"),
                sp.Symbol(constant_name("K")),
            ),
            (expanded(TensorSymbol("K", "ell"), background.kernel, 3),),
        ),
    ]


def rate_equations(b: sp.Expr, w: sp.Expr) -> tuple[Formula, Formula]:
    """lambda_b^(l) and lambda_W^(l)."""
    return equal(LAYER_RATES[0], b), equal(LAYER_RATES[1], w)


def rate_step(rule: str, b: sp.Expr, w: sp.Expr) -> Step:
    """The learning rates, and for the equivalence principle why."""
    if rule != "equivalence":
        return Step(said("Learning rates ({})", rule), rate_equations(b, w))
    told = (
        "Equivalence principle: layer {} contributes {} to the NTK; all layers contribute equally, and O(1) in all, for"
    )
    share = Notation(
        "(lambda_b^(l) + lambda_W^(l) <s s>) (l/L)^(p_perp)",
        r"\left(\lambda_b^{(\ell)} + \lambda_W^{(\ell)} \left\langle\sigma\sigma\right\rangle\right)"
        r"\left(\ell/L\right)^{p_\perp}",
    )
    return Step(said(told, ell, share), rate_equations(b, w))


def tensor_step(system: System, name: str) -> Step:
    """One linear recursion: multiplier, source, homogeneous exponent, solution."""
    solution = system.solutions[name]
    here, following = TensorSymbol(name, "ell"), TensorSymbol(name, "ell+1")
    multiplier, source = sp.Symbol("m"), sp.Symbol("S")
    growth = solution.homogeneous
    if growth.exponent is None:
        alone = said("the homogeneous solution decays exponentially (rate {})", growth.rate)
    else:
        power = ell ** -system.ring.exponent_expr(growth.exponent)
        alone = said("the homogeneous solution is {}", sp.Symbol(constant_name(name)) * power)
    resonance = ", and at its power the source is resonant: a logarithm appears" if solution.resonant else ""
    values = [expanded(multiplier, system.multipliers[name])]
    values.append(expanded(source, system.sources[name], 1) if system.sources[name] else equal(source, 0))
    values.append(expanded(here, solution.series, 1) if solution.series else equal(here, 0))
    balance = equal(following, as_written(multiplier * here, source), order="none")
    return Step(said("{}; {}{}", balance, alone, resonance), tuple(values))


def exact_step(name: str, polynomial: sp.Expr) -> Step:
    """A tensor over a kernel that stays: its increments summed."""
    here, following = TensorSymbol(name, "ell"), TensorSymbol(name, "ell+1")
    increment = formula(as_written(following, -here), order="none")
    told = said("{} is a polynomial in the layer; summed from the first layer on", increment)
    return Step(told, (equal(here, polynomial),))


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
