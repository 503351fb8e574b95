r"""The questions a user asks: the table of exponents, coefficients and ratios of every tensor, and one tensor's series.

>>> print(asymptotics("tanh", "K", order=2))
K = 1/(2*ell) + (-c_K/2 + ...
>>> exponents("tanh").tensors["U"].coefficient
(lambda_W + 2*lambda_b)**3/8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import criticality
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import ConstantSolution, FlowSolution, Problem, Solution, network_equations
from derive.depth.expansion import DIGITS, FixedPoint
from derive.depth.learning_rates import LearningRates, parse_rule
from derive.depth.ratios import Ratio, ratios
from derive.depth.result import Asymptotics, exact_entry, tensor_tex
from derive.errors import DeriveError
from derive.gaussian import taylor_symbol
from derive.given import Number, not_negative
from derive.layout import Block, Table, Text
from derive.results import Result, cell

GENERIC = {"generic": False, "generic odd": True}
"""Names that stand for any smooth activation with sigma(0) = 0, its Taylor coefficients symbolic."""


@dataclass(frozen=True)
class ExponentTable(Result):
    """Exponents and leading coefficients of every tensor, and the dimensionless ratios."""

    activation: str
    universality_class: str
    p_perp: sp.Expr
    p_parallel: sp.Expr | None
    rates: LearningRates
    tensors: Mapping[str, Asymptotics]
    ratios: Mapping[str, Ratio]
    notes: tuple[str, ...] = ()
    digits: int | None = None

    @property
    def p_0(self) -> sp.Expr | None:
        return self.tensors["K"].exponent

    def to_json(self) -> dict[str, object]:
        """The data of `derive exponents --json`."""
        bias, weight = self.rates.expressions
        return {
            "activation": self.activation,
            "class": self.universality_class,
            "p_0": exact_entry(self.p_0, self.digits),
            "p_perp": exact_entry(self.p_perp, self.digits),
            "p_parallel": exact_entry(self.p_parallel, self.digits),
            "learning_rates": {"rule": self.rates.rule, "lambda_b": str(bias), "lambda_W": str(weight)},
            "tensors": {name: tensor.row() for name, tensor in self.tensors.items()},
            "ratios": {name: ratio.to_json() for name, ratio in self.ratios.items()},
            "notes": list(self.notes),
        }

    def blocks(self) -> tuple[Block, ...]:
        head = ("tensor", "exponent", "log power", "coefficient")
        rows: list[tuple[str, ...]] = []
        for t in self.tensors.values():
            if t.exists:
                rows.append((f"${tensor_tex(t.tensor)}$", cell(t.exponent), str(t.log_power), cell(t.coefficient)))
            else:
                rows.append((f"${tensor_tex(t.tensor)}$", "–", "–", f"does not exist: {t.reason}"))
        caption = f"{self.activation}, {self.universality_class}: coefficient $\\ell^{{-p}} (\\log \\ell)^q$"
        ratio_rows = tuple(
            (r.name, cell(r.exponent), str(r.log_power), cell(r.coefficient)) for r in self.ratios.values()
        )
        ratio_table = Table(("ratio times n", "exponent", "log power", "coefficient"), ratio_rows)
        return (Table(head, tuple(rows), caption), ratio_table, *map(Text, self.notes))

    def __str__(self) -> str:
        lines = [f"{self.activation}: {self.universality_class}, p_perp = {self.p_perp}"]
        lines += [f"  {t.tensor:6}{t.leading if t.exists else t.reason}" for t in self.tensors.values()]
        lines += [
            f"  {r.name}: {r.coefficient} * ell**({-r.exponent if r.exponent is not None else 0})"
            for r in self.ratios.values()
        ]
        return "\n".join([*lines, *self.notes])


def problem(
    activation: Activation | str | sp.Expr,
    learning_rates: str | LearningRates = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
    plateau: bool = False,
) -> Problem:
    """What is to be solved: the critical point of that index, the learning rates, numbers for rates that are given."""
    rates = parse_rule(learning_rates)
    given = (("lambda_b", lambda_b), ("lambda_W", lambda_W))
    fixed = tuple((name, _rate(name, value)) for name, value in given if value is not None)
    if isinstance(activation, str) and activation in GENERIC:
        weight = 1 / taylor_symbol(1) ** 2
        return Problem(FixedPoint(None, sp.S.Zero, GENERIC[activation]), sp.S.Zero, weight, "K*=0", rates, fixed)
    sigma = make_activation(activation)
    found = criticality(sigma)
    if not found.points:
        raise DeriveError(f"{sigma.name} has no critical initialization, hence no exponents: {found.reason}")
    if not 0 <= point < len(found.points):
        raise DeriveError(
            f"{sigma.name} has {len(found.points)} critical point(s), numbered from 0; {point} is not one."
        )
    chosen = found.points[point]
    star, bias, weight = chosen.K_star, chosen.C_b, chosen.C_W
    if star.is_number and star != 0:
        star, bias, weight = (sp.N(x, DIGITS + 5) for x in (star, bias, weight))
    if plateau and chosen.universality_class != "half-stable":
        raise DeriveError(
            f"a plateau is where K stays at K* > 0; {sigma.name} is of the class {chosen.universality_class}"
        )
    return Problem(FixedPoint(sigma, star), bias, weight, chosen.universality_class, rates, fixed, plateau)


def _rate(name: str, value: Number) -> sp.Expr:
    return not_negative(value, name)


@lru_cache(maxsize=64)
def solution(task: Problem) -> Solution:
    """The solved problem; kept, because tables and series of one activation share it."""
    if task.universality_class == "scale-invariant" or task.plateau:
        return ConstantSolution(task)
    return FlowSolution(task)


def exponents(
    activation: Activation | str | sp.Expr,
    learning_rates: str | LearningRates = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
    plateau: bool = False,
) -> ExponentTable:
    """Exponents and exact leading coefficients of all tensors, with the dimensionless ratios.

    `activation` may also be "generic" or "generic odd": formulas in sigma_1, sigma_2, ... . `learning_rates` is
    "equivalence", "constant" or "power(p_b,p_W)"; lambda_b and lambda_W may be given as numbers (0 among them).
    `plateau` is for half-stable activations: K^(1) = K*, where the kernel stays and everything is a polynomial in l.
    """
    task = problem(activation, learning_rates, point, lambda_b, lambda_W, plateau)
    solved = solution(task)
    tensors = {name: _leading(solved, name) for name in network_equations()}
    return ExponentTable(
        activation if isinstance(activation, str) else make_activation(activation).name,
        task.universality_class,
        solved.p_perp,
        solved.p_parallel,
        solved.rates,
        tensors,
        ratios(tensors),
        _notes(solved),
        solved.digits,
    )


def _leading(solved: Solution, name: str) -> Asymptotics:
    """The leading behaviour, or why there is no power law."""
    try:
        return solved.tensor(name)
    except NoApproach as reason:
        if name == "K":
            raise
        return Asymptotics(name, reason=str(reason))


def _notes(solved: Solution) -> tuple[str, ...]:
    if isinstance(solved, ConstantSolution):
        if solved.problem.plateau:
            return (
                "Plateau: K^(1) = K*, where the kernel stays; polynomials in l, exact for every l >= 1. This is what a "
                "half-stable activation shows up to the depth at which K - K* and its drift matter.",
                f"Coefficients are numbers of {solved.digits} digits, not closed forms.",
            )
        return ("The kernel K is the same in every layer; where series are polynomials they hold for every l >= 1.",)
    notes = []
    task = solved.problem
    onset = solved.onset if task.activation is not None else None
    if task.universality_class == "half-stable" and onset is not None:
        side = "above" if solved.background.kappa > 0 else "below"
        notes.append(
            f"Half-stable: this holds for kernels that approach K* from {side}, and only at depths well beyond "
            f"l ~ {onset:.2g} (where the quadratic term of the kernel's flow takes over), for tensors that carry "
            f"powers of chi_perp beyond l ~ {onset * max(1.0, abs(float(solved.p_perp))):.2g}. Shallower networks are "
            "not in this regime: iterate the exact recursions, or see the plateau, where K stays at K*."
        )
    elif onset is not None and onset > 10:
        notes.append(f"The leading terms dominate at depths well beyond l ~ {onset:.2g}.")
    if solved.digits is not None:
        notes.append(f"Coefficients are numbers of {solved.digits} digits, not closed forms.")
    if task.activation is None:
        notes.append("Generic sigma with sigma(0) = 0 and a_1 < 0; terms are ordered as for p_perp a little below 1.")
    return tuple(notes)


def asymptotics(
    activation: Activation | str | sp.Expr,
    tensor: str,
    order: int = 2,
    learning_rates: str | LearningRates = "equivalence",
    point: int = 0,
    lambda_b: Number | None = None,
    lambda_W: Number | None = None,
    plateau: bool = False,
) -> Asymptotics:
    """One tensor's series through `order` powers of 1/l, the leading one included, with the steps of its derivation."""
    names = tuple(network_equations())
    if tensor not in names:
        raise DeriveError(f"there is no tensor {tensor!r}; choose one of {' '.join(names)}")
    if not isinstance(order, int) or not 1 <= order <= 6:
        raise DeriveError("the order is the number of powers of 1/l to keep, a whole number from 1 to 6")
    return solution(problem(activation, learning_rates, point, lambda_b, lambda_W, plateau)).tensor(
        tensor, order, with_steps=True
    )
