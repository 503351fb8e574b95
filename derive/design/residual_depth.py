r"""Residual layers at large depth, |xi| < 1: exponents and coefficients by the solver, over such layers' recursions.

K and Theta have closed recursions, and the solver takes them as it takes the plain ones. The tensors of order 1/n have
none of their own, but where K flows to zero the activation is linear in the end, and there the recursions of tensors
alone (`derive.network.truncation`) are exact: what they drop is smaller by K^2 and is forgotten, as xi^2, in a few
layers. At K* > 0 and for scale-invariant activations that is not so, and numbers stand in for coefficients.

>>> residual_exponents("tanh", sp.Rational(3, 5)).tensors["K"].coefficient
25/32
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import chi_parallel
from derive.depth import Asymptotics, ExponentTable
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import ConstantSolution, FlowSolution, Problem
from derive.depth.exponent_table import problem
from derive.depth.ratios import ratios
from derive.design.residual import residual_criticality, scaling
from derive.errors import DeriveError
from derive.gaussian import Bracket, Z
from derive.given import Number
from derive.network import RESIDUAL, Component
from derive.network.definition import xi
from derive.network.truncation import truncated_recursions
from derive.steps import Words, said, words

CLOSED = ("K", "Theta")
"""What has a recursion of its own."""


class ResidualSolution(FlowSolution):
    """A kernel that flows, in a network with skips."""

    def __init__(self, task: Problem, skip: sp.Expr, names: tuple[str, ...]) -> None:
        super().__init__(task, equations(skip, names))
        self.skip = skip

    @property
    def p_parallel(self) -> sp.Expr:
        return self.system(1).homogeneous_exponent(self.skip**2 + chi_parallel())


def equations(skip: sp.Expr, names: tuple[str, ...]) -> Mapping[str, sp.Expr]:
    """Single-input recursions at this skip; K is the bracket <z z>, which the solver expands as any other."""
    found = {name: e.subs(xi, skip) for name, e in truncated_recursions(RESIDUAL).items() if name in names}
    return found | {"K": found["K"].xreplace({Component("K", 0, 0): Bracket(Z(0), Z(0))})}


def residual_exponents(
    activation: str | sp.Expr | Activation,
    skip: sp.Expr,
    learning_rates: str = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
) -> ExponentTable:
    """Exponents and leading coefficients of a residual network at its critical point; |skip| < 1."""
    found = residual_criticality(activation, skip)
    if not found.points:
        raise DeriveError(str(found.reason))
    plain = problem(activation, learning_rates, point, lambda_b, lambda_W)
    factor = scaling(skip)
    task = replace(plain, C_b=factor * plain.C_b, C_W=factor * plain.C_W)
    flows = task.universality_class == "K*=0"
    names = tuple(truncated_recursions(RESIDUAL)) if flows else CLOSED
    solved: FlowSolution | ConstantSolution
    if task.universality_class == "scale-invariant":
        solved = ConstantSolution(task, equations(skip, names))
    else:
        solved = ResidualSolution(task, skip, names)
    tensors = {name: _leading(solved, name) for name in names}
    return ExponentTable(
        make_activation(activation).name,
        task.universality_class,
        solved.p_perp,
        solved.p_parallel,
        solved.rates,
        tensors,
        ratios(tensors),
        _notes(solved, flows, skip),
        solved.digits,
        skip=skip,
    )


def _leading(solved: FlowSolution | ConstantSolution, name: str) -> Asymptotics:
    try:
        return solved.tensor(name)
    except NoApproach as reason:
        if name == "K":
            raise
        return Asymptotics(name, reason=str(reason))


def _notes(solved: FlowSolution | ConstantSolution, flows: bool, skip: sp.Expr) -> tuple[Words, ...]:
    notes = [
        said(
            "Residual layers with a skip of {}: {} and {} are the plain network's times {}.",
            skip,
            symbols.C_b,
            symbols.C_W,
            sp.expand(scaling(skip)),
        )
    ]
    if flows:
        notes.append(
            words(
                "The recursions of the tensors alone are exact at leading order here, where K flows to zero and the "
                "activation is linear in the end; at finite depth functionals replace them (numeric.flow with skip)."
            )
        )
    else:
        notes.append(
            words(
                "The tensors of order 1/n do not close and K does not flow to zero: numbers at finite depth take the "
                "place of their coefficients."
            )
        )
    if solved.digits is not None:
        notes.append(words(f"Coefficients are numbers of {solved.digits} digits, not closed forms."))
    return tuple(notes)
