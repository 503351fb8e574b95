r"""The questions a user asks: the table of exponents, coefficients and ratios of every tensor, and one tensor's series.

>>> print(asymptotics("tanh", "K", order=2))
K = 1/(2*ell) + (-c_K/2 + ...
>>> exponents("tanh").tensors["U"].coefficient
(lambda_W + 2*lambda_b)**3/8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.critical import CriticalPoint, criticality
from derive.depth.balance import NoApproach
from derive.depth.critical_solution import ConstantSolution, FlowSolution, Problem, Solution, network_equations
from derive.depth.derivation import expanded
from derive.depth.exact_flow import ExactFlow, can_iterate, exact_flow, regime_note
from derive.depth.expansion import DIGITS, FixedPoint
from derive.depth.learning_rates import LearningRates, parse_rule
from derive.depth.ratios import Ratio, ratios
from derive.depth.result import Asymptotics, exact_entry
from derive.errors import DeriveError
from derive.gaussian import taylor_symbol
from derive.given import Number, not_negative
from derive.layout import Block, Table, Text
from derive.notation import CHI_PERP, K_STAR, P_PERP, SIGMA, SIGMA_0, TensorSymbol
from derive.results import Result, cell
from derive.steps import Words, equal, relation, said, words
from derive.symbols import K, ell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GENERIC = {"generic": False, "generic odd": True}
"""Names that stand for any smooth activation with sigma(0) = 0, its Taylor coefficients symbolic."""


@dataclass(frozen=True)
class ExponentTable(Result):
    """Exponents and leading coefficients of every tensor, and the dimensionless ratios.

    A half-stable activation's table also holds its `plateau` (K stays at K*: exact polynomials in l) and `finite`, the
    exact recursions at layers that networks have, since its large-depth regime begins beyond them.
    """

    activation: str
    universality_class: str
    p_perp: sp.Expr | None
    p_parallel: sp.Expr | None
    rates: LearningRates
    tensors: Mapping[str, Asymptotics]
    ratios: Mapping[str, Ratio]
    notes: tuple[Words, ...] = ()
    digits: int | None = None
    plateau: ExponentTable | None = None
    finite: ExactFlow | None = None
    p_perp_ball: tuple[str, str] | None = None
    skip: sp.Expr | None = None
    """Of residual layers."""

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
            "p_perp": exact_entry(self.p_perp, self.digits, self.p_perp_ball and {"1": self.p_perp_ball}),
            "p_parallel": exact_entry(self.p_parallel, self.digits),
            "learning_rates": {"rule": self.rates.rule, "lambda_b": str(bias), "lambda_W": str(weight)},
            "tensors": {name: tensor.row() for name, tensor in self.tensors.items()},
            "ratios": {name: ratio.to_json() for name, ratio in self.ratios.items()},
            "notes": [str(note) for note in self.notes],
            **({} if self.skip is None else {"skip": exact_entry(self.skip)}),
            **({} if self.plateau is None else {"plateau": self.plateau.to_json()}),
            **({} if self.finite is None else {"finite_depth": self.finite.to_json()}),
        }

    def blocks(self) -> tuple[Block, ...]:
        head = ("tensor", "exponent", "log power", "coefficient")
        rows: list[tuple[str, ...]] = []
        for t in self.tensors.values():
            if t.exists:
                rows.append((cell(TensorSymbol(t.tensor)), cell(t.exponent), str(t.log_power), cell(t.coefficient)))
            else:
                rows.append((cell(TensorSymbol(t.tensor)), "–", "–", said("does not exist: {}", t.reason)))
        law = ell ** -sp.Symbol("p") * sp.log(ell) ** sp.Symbol("q")
        caption = said("{}, {}: coefficient times {}", self.activation, self.universality_class, law)
        ratio_rows = tuple(
            (Words(r.formula), cell(r.exponent), str(r.log_power), cell(r.coefficient)) for r in self.ratios.values()
        )
        ratio_table = Table(("ratio times n", "exponent", "log power", "coefficient"), ratio_rows)
        tables, notes = (Table(head, tuple(rows), caption), ratio_table), tuple(map(Text, self.notes))
        if self.universality_class != "half-stable":
            return (*tables, *notes)
        first: tuple[Block, ...] = () if self.plateau is None else self.plateau.blocks()
        return (*first, *notes, *tables)  # which regime it is, before its formulas

    def plot(self, axes: Axes | None = None) -> Axes:
        """n times every dimensionless ratio against depth, on the given Matplotlib axes or new ones."""
        from derive.depth.exponent_picture import draw_exponents

        return draw_exponents(self, axes)

    def __str__(self) -> str:
        head = (
            f"{self.activation}: {self.universality_class}, p_perp = {self.p_perp if self.p_perp is not None else '-'}"
        )
        lines = [] if self.plateau is None else ["Plateau", str(self.plateau), "Large depth"]
        regime = [str(note) for note in self.notes] if self.universality_class == "half-stable" else []
        lines += [head, *regime]
        lines += [f"  {t.tensor:6}{t.leading if t.exists else t.reason}" for t in self.tensors.values()]
        lines += [
            f"  {r.name}: {r.coefficient} * ell**({-r.exponent if r.exponent is not None else 0})"
            for r in self.ratios.values()
        ]
        return "\n".join(lines if regime else [*lines, *self.notes])


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
    flat = finite = None
    chosen = _critical_point(task, point)
    if chosen is not None and chosen.universality_class == "half-stable" and not plateau:
        sigma = make_activation(activation)
        flat = exponents(activation, learning_rates, point, lambda_b, lambda_W, plateau=True)
        if can_iterate(sigma) and not chosen.K_star.free_symbols:
            finite = exact_flow(sigma, chosen, names=[n for n, t in tensors.items() if t.exists])
    return ExponentTable(
        activation if isinstance(activation, str) else make_activation(activation).name,
        task.universality_class,
        solved.p_perp,
        solved.p_parallel,
        solved.rates,
        tensors,
        ratios(tensors),
        _notes(solved, tensors, chosen),
        solved.digits,
        flat,
        finite,
    )


def _critical_point(task: Problem, point: int) -> CriticalPoint | None:
    return None if task.activation is None else criticality(task.activation).points[point]


def _leading(solved: Solution, name: str) -> Asymptotics:
    """The leading behaviour, or why there is no power law."""
    try:
        return solved.tensor(name)
    except NoApproach as reason:
        if name == "K":
            raise
        return Asymptotics(name, reason=str(reason))


def _notes(solved: Solution, tensors: Mapping[str, Asymptotics], point: CriticalPoint | None) -> tuple[Words, ...]:
    notes = []
    if isinstance(solved, ConstantSolution):
        if solved.problem.plateau:
            notes.append(
                said(
                    "Plateau: {}, where the kernel stays; polynomials in {}, exact for every {}. This is what a "
                    "half-stable activation shows up to the depth at which {} and its drift matter.",
                    equal(TensorSymbol("K", "1"), K_STAR),
                    ell,
                    relation(">=", ell, 1),
                    K - K_STAR,
                )
            )
            notes.append(_in_digits(solved.digits))
            return tuple(notes)
        told = "The kernel {} is the same in every layer; where series are polynomials they hold for every {}."
        return (said(told, K, relation(">=", ell, 1)),)
    task = solved.problem
    if solved.p_perp is None:
        notes.append(
            said(
                "{} does not exist: {}, so that its product over the layers is no power of the depth.",
                P_PERP,
                expanded(CHI_PERP, solved.chi_perp),
            )
        )
    if task.universality_class == "half-stable":
        side = "above" if solved.background.kappa > 0 else "below"
        told = "Half-stable: the large-depth terms are for kernels that approach {} from {}. {}"
        if point is not None and task.activation is not None:
            measured = regime_note(task.activation, point, tensors, solved.rates.with_exponent(solved.p_perp))
            notes.append(said(told, K_STAR, side, measured))
    elif task.activation is not None and point is not None and solved.enters_late:
        notes.append(regime_note(task.activation, point, tensors, solved.rates.with_exponent(solved.p_perp)))
    if solved.digits is not None:
        notes.append(_in_digits(solved.digits))
    if task.activation is None:
        told = "Generic {} with {} and {}; terms are ordered as for {} a little below 1."
        slope = relation("<", sp.Symbol("a_1"), 0)
        notes.append(said(told, SIGMA, equal(SIGMA_0, 0), slope, P_PERP))
    return tuple(notes)


def _in_digits(digits: int | None) -> Words:
    return words(f"Coefficients are numbers of {digits} digits, not closed forms.")


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
    task = problem(activation, learning_rates, point, lambda_b, lambda_W, plateau)
    found = solution(task).tensor(tensor, order, with_steps=True)
    if task.universality_class != "half-stable" or plateau:
        return found
    return replace(found, plateau=solution(replace(task, plateau=True)).tensor(tensor, order))
