r"""One training and one nearby test input: robustness (10.57), (10.62), (10.65), (10.78), (10.81), (10.94), and
variance (10.63), (10.66), (10.95) of the trained infinite-width network against its depth, for every class.

Where only the last layer learns, Theta = K, they are those of exact Bayesian inference (footnotes 31, 37).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.learning_rates import LAST_LAYER, LearningRates
from derive.depth.result import exact_entry
from derive.errors import DeriveError
from derive.layout import Block, Equation, Text
from derive.nearby.angle import finite_angle, psi_series
from derive.nearby.behaviour import Behaviour, quotient
from derive.nearby.deviation import Deviation, on_signs
from derive.nearby.flow import flow_solution
from derive.nearby.kinked import kinked_flow
from derive.nearby.plateau import Plateau, plateau
from derive.network.component import Component
from derive.notation import PSI
from derive.results import Result
from derive.steps import Verbatim, Words, said, words
from derive.symbols import K, L, ell


@dataclass(frozen=True)
class UnequalNorms:
    """Inputs of unequal norm: robustness and variance through second order in delta, and each deviation's behaviour.

    The first order is that of dTheta_[1]/Theta_00, (10.65); `deviations` are over K or Theta at the output, in units
    of the constants that the first layer fixes.
    """

    robustness: sp.Expr
    variance: sp.Expr
    deviations: Mapping[str, Behaviour]

    def to_json(self) -> dict[str, object]:
        return {
            "robustness": str(self.robustness),
            "variance": str(self.variance),
            "deviations": {name: behaviour.to_json() for name, behaviour in self.deviations.items()},
        }

    def blocks(self) -> tuple[Block, ...]:
        return (
            Equation(rf"\Theta_{{-+}}/\Theta_{{++}} - 1 = {sp.latex(self.robustness)}"),
            Equation(rf"\mathrm{{Var}} = {sp.latex(self.variance)}"),
        )


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
    unequal: UnequalNorms | None = None
    plateau: Plateau | None = None

    def to_json(self) -> dict[str, object]:
        bias, weight = self.rates.expressions
        found: dict[str, object] = {
            "activation": self.activation,
            "class": self.universality_class,
            "p_perp": exact_entry(self.p_perp, self.robustness.digits),
            "learning_rates": {"rule": self.rates.rule, "lambda_b": str(bias), "lambda_W": str(weight)},
            "robustness": self.robustness.to_json(),
            "variance": self.variance.to_json(),
            "notes": [str(note) for note in self.notes],
        }
        if self.plateau is not None:
            found["plateau"] = self.plateau.to_json()
        return found if self.unequal is None else {**found, "unequal_norms": self.unequal.to_json()}

    def blocks(self) -> tuple[Block, ...]:
        more = () if self.unequal is None else self.unequal.blocks()
        return (
            *(() if self.plateau is None else self.plateau.blocks()),
            Equation(rf"\Theta_{{-+}}/\Theta_{{++}} - 1 = {self.robustness.latex()}"),
            Equation(rf"\mathrm{{Var}} = {self.variance.latex()}"),
            *more,
            *map(Text, self.notes),
        )

    def __str__(self) -> str:
        large = f"robustness {self.robustness}, variance {self.variance}"
        return f"{self.activation}: {large}" if self.plateau is None else f"{self.activation}: {self.plateau} {large}"


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
    activation: Activation | str | sp.Expr,
    learning_rates: str | LearningRates = "equivalence",
    point: int = 0,
    unequal_norms: bool = False,
) -> Generalization:
    """Robustness and variance at large depth; "last-layer" learning rates are exact Bayesian inference.

    >>> print(generalization("tanh"))
    tanh: robustness -4*lambda_W/(lambda_W + 2*lambda_b) * delta^2, variance 4/L * delta^2
    >>> print(generalization("relu", "last-layer"))
    relu: robustness -9*pi**2/(2*L**2), variance 9*pi**2*K/L**2
    """
    sigma = make_activation(activation)
    found = _bayesian(sigma, point) if learning_rates == LAST_LAYER.rule else _trained(sigma, learning_rates, point)
    return replace(found, unequal=_unequal(sigma, learning_rates, point)) if unequal_norms else found


def _unequal(sigma: Activation, learning_rates: str | LearningRates, point: int) -> UnequalNorms | None:
    """None for scale-invariant activations, whose note has unequal norms at finite angle."""
    robustness, variance = one_training_input()
    if sigma.scale_invariant is not None:
        return None
    bayesian = learning_rates == LAST_LAYER.rule
    solved = flow_solution(sigma, "constant" if bayesian else learning_rates, point, equal_norms=False)
    if bayesian:
        same = {c: Deviation("K", c.order, c.part) for c in robustness.atoms(Deviation) if c.tensor == "Theta"}
        same |= {Deviation("Theta", n, part): Deviation("K", n, part) for n, part in ((1, "1"), (2, "0"), (2, "2"))}
        kernel = {Component("Theta", 0, 0): Component("K", 0, 0)} | same
        robustness, variance = (sp.expand(e.xreplace(kernel)) for e in (robustness, variance))
    deviations = {}
    for name in ("dK_1", "ddK_2", *(() if bayesian else ("dTheta_1", "ddTheta_2"))):
        tensor = solved.tensor(name)
        if not tensor.exists:
            raise DeriveError(f"the deviation {name} of {sigma.name} does not exist: {tensor.reason}")
        under = solved.tensor("Theta" if "Theta" in name else "K")
        deviations[name] = quotient(tensor, under, sp.S.One)
    return UnequalNorms(robustness, variance, deviations)


def _bayesian(sigma: Activation, point: int) -> Generalization:
    """Theta = K, (10.49): footnotes 31 and 37."""
    told = "Only the last layer learns: exact Bayesian inference, Theta = K."
    if sigma.scale_invariant is not None:
        if sigma.scale_invariant[0] == sigma.scale_invariant[1]:
            note = said("The angle {} is the same in every layer: these are exact at any depth.", PSI)
            robustness = Behaviour(sp.S.Zero, 0, sp.cos(PSI) - 1)
            variance = Behaviour(sp.S.Zero, 0, K * sp.sin(PSI) ** 2)
            return Generalization(
                sigma.name, "scale-invariant", sp.S.Zero, LAST_LAYER, robustness, variance, (words(told), note)
            )
        angle = sp.expand(psi_series(sigma, 1) * ell)
        return Generalization(
            sigma.name,
            "scale-invariant",
            sp.S.Zero,
            LAST_LAYER,
            Behaviour(sp.Integer(2), 0, -(angle**2) / 2),
            Behaviour(sp.Integer(2), 0, K * angle**2),
            (words(told),),
        )
    solved = flow_solution(sigma, "constant", point)
    separation, kernel = solved.tensor("ddK_2"), solved.tensor("K")
    if not solved.tensor("ddTheta_2").exists:  # the kink: an angle, however small, leaves the delta-expansion
        kinked = kinked_flow(sigma, "constant", point)
        assert kernel.coefficient is not None and kernel.exponent is not None
        spread = Behaviour(kernel.exponent + 2, kernel.log_power, sp.simplify(kernel.coefficient * kinked.psi**2))
        return Generalization(
            sigma.name,
            solved.problem.universality_class,
            kinked.p_perp,
            LAST_LAYER,
            Behaviour(sp.Integer(2), 0, sp.simplify(-(kinked.psi**2) / 2)),
            spread,
            (words(told),),
        )
    return Generalization(
        sigma.name,
        solved.problem.universality_class,
        solved.p_perp,
        LAST_LAYER,
        quotient(separation, kernel, sp.Integer(-2)),
        quotient(separation, None, sp.Integer(4)),
        (words(told),),
    )


def _trained(sigma: Activation, learning_rates: str | LearningRates, point: int) -> Generalization:
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
    flat = plateau(sigma, learning_rates, point, dict(zip(("robustness", "variance"), one_training_input(True))))
    notes = []
    if flat is not None:
        told = "Half-stable: these are statements about {} to infinity; {} says how far off they are before."
        notes.append(said(told, L, Verbatim("derive exponents")))
    return Generalization(
        sigma.name,
        solved.problem.universality_class,
        solved.p_perp,
        solved.rates,
        robustness,
        variance,
        tuple(notes),
        plateau=flat,
    )
