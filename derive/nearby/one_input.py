r"""One training and one nearby test input: robustness (10.57), (10.62), (10.65), (10.78), (10.81), (10.94), and
variance (10.63), (10.66), (10.95) of the trained infinite-width network against its depth, for every class."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.learning_rates import LearningRates
from derive.depth.result import exact_entry
from derive.layout import Block, Equation, Text
from derive.nearby.angle import finite_angle
from derive.nearby.behaviour import Behaviour, quotient
from derive.nearby.deviation import Deviation, on_signs
from derive.nearby.flow import flow_solution
from derive.nearby.kinked import kinked_flow
from derive.network.component import Component
from derive.results import Result
from derive.steps import Verbatim, Words, said
from derive.symbols import L, ell


@dataclass(frozen=True)
class Generalization(Result):
    """`robustness` is Theta_{-+}/Theta_{++} - 1, `variance` the posterior variance of the test output, for inputs of
    equal norm; delta^2 is the constant of (10.71), ddK_[2] = delta^2 l^(-p_perp)."""

    activation: str
    universality_class: str
    p_perp: sp.Expr | None
    rates: LearningRates
    robustness: Behaviour
    variance: Behaviour
    notes: tuple[Words, ...] = ()

    def to_json(self) -> dict[str, object]:
        bias, weight = self.rates.expressions
        return {
            "activation": self.activation,
            "class": self.universality_class,
            "p_perp": exact_entry(self.p_perp, self.robustness.digits),
            "learning_rates": {"rule": self.rates.rule, "lambda_b": str(bias), "lambda_W": str(weight)},
            "robustness": self.robustness.to_json(),
            "variance": self.variance.to_json(),
            "notes": [str(note) for note in self.notes],
        }

    def blocks(self) -> tuple[Block, ...]:
        return (
            Equation(rf"\Theta_{{-+}}/\Theta_{{++}} - 1 = {self.robustness.latex()}"),
            Equation(rf"\mathrm{{Var}} = {self.variance.latex()}"),
            *map(Text, self.notes),
        )

    def __str__(self) -> str:
        return f"{self.activation}: robustness {self.robustness}, variance {self.variance}"


def one_training_input(equal_norms: bool = False) -> tuple[sp.Expr, sp.Expr]:
    """Robustness and variance through second order in delta, from their definitions (10.57) and (10.41): (10.62) and
    (10.63) for equal norms, (10.65) and (10.66) for unequal ones.

    >>> one_training_input(True)
    (-2*ddTheta_2/Theta_00, 4*ddK_2)
    """
    order = sp.Symbol("o")
    names: dict[sp.Expr, sp.Dummy] = {}

    def component(tensor: str, first: int, second: int) -> sp.Expr:
        total = sp.Add(*(order**n * on_signs(tensor, (first, second), n) for n in range(3)))
        names.update({c: sp.Dummy() for c in total.atoms(Component) if c not in names})
        return total.xreplace(names)

    def cut(expression: sp.Expr) -> sp.Expr:
        return sp.series(expression, order, 0, 3).removeO()

    ratio = cut(component("Theta", -1, 1) / component("Theta", 1, 1))
    variance = component("K", -1, -1) - 2 * ratio * component("K", -1, 1) + ratio**2 * component("K", 1, 1)
    absent = {Deviation(t, 1, "1"): sp.S.Zero for t in ("K", "Theta")} if equal_norms else {}
    back = {dummy: absent.get(c, c) for c, dummy in names.items()}
    robustness, spread = (sp.expand(e.subs(order, 1)).xreplace(back) for e in (ratio - 1, cut(sp.expand(variance))))
    return sp.expand(robustness), sp.expand(spread)


def generalization(
    activation: Activation | str | sp.Expr, learning_rates: str | LearningRates = "equivalence", point: int = 0
) -> Generalization:
    """Robustness and variance at large depth.

    >>> print(generalization("tanh"))
    tanh: robustness -4*lambda_W/(lambda_W + 2*lambda_b) * delta^2, variance 4/L * delta^2
    """
    sigma = make_activation(activation)
    if sigma.scale_invariant is not None:
        angle = finite_angle(sigma, learning_rates)
        return Generalization(
            sigma.name, "scale-invariant", sp.S.Zero, angle.rates, angle.robustness, angle.variance, angle.notes
        )
    solved = flow_solution(sigma, learning_rates, point)
    separation = solved.tensor("ddTheta_2")
    if not separation.exists:
        kinked = kinked_flow(sigma, learning_rates, point)
        told = "The kink rules out the delta-expansion; this is at finite angle, which falls as {}."
        note = said(told, kinked.psi / ell)
        return Generalization(
            sigma.name,
            solved.problem.universality_class,
            kinked.p_perp,
            kinked.rates,
            kinked.robustness,
            kinked.variance,
            (note,),
        )
    robustness = quotient(separation, solved.tensor("Theta"), sp.Integer(-2))
    variance = quotient(solved.tensor("ddK_2"), None, sp.Integer(4))
    notes = []
    if solved.problem.universality_class == "half-stable":
        told = "Half-stable: these are statements about {} to infinity; {} says how far off they are before."
        notes.append(said(told, L, Verbatim("derive exponents")))
    return Generalization(
        sigma.name, solved.problem.universality_class, solved.p_perp, solved.rates, robustness, variance, tuple(notes)
    )
