r"""Two training inputs x_± and a test input on the line through them, x_0 + (2s-1) delta x/2: (10.99)-(10.117).

The formula is derived, not typed: the NTK is expanded along the line, (10.110) and one order beyond, the two-by-two
training NTK inverted, and the kernel prediction (10.39) collected. For inputs of unequal norm the third order counts,
because the weights of the two training inputs are of opposite sign and O(1/delta); for equal norms the curvature
ddTheta_[0]/Theta_00 decides.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.learning_rates import LearningRates
from derive.errors import DeriveError
from derive.layout import Block, Equation, Text
from derive.nearby.angle import K_MINUS, finite_angle
from derive.nearby.behaviour import Behaviour, quotient
from derive.nearby.deviation import Deviation, line_coefficients
from derive.nearby.deviation import on_line as along_line
from derive.nearby.flow import flow_solution
from derive.nearby.plateau import Plateau, plateau
from derive.network.component import Component
from derive.notation import PSI
from derive.results import Result, table_of
from derive.steps import Words, equal, said, words
from derive.symbols import K

s = sp.Symbol("s", real=True)
"""Where the test input is: s = 1 at x_+, s = 0 at x_-."""
y_plus, y_minus = sp.symbols("y_+ y_-", real=True)
THETA = Component("Theta", 0, 0)
FIRST, ZEROTH, SECOND = Deviation("Theta", 1, "1"), Deviation("Theta", 2, "0"), Deviation("Theta", 2, "2")
CUBIC, MIXED = Deviation("Theta", 3, "30"), Deviation("Theta", 3, "21")


def on_line(first: Any, second: Any, third_order: bool = False) -> sp.Expr:
    """The NTK between inputs x_0 + e dx/2: through second order the unique form that is symmetric, has the right powers
    of e and agrees with the two training inputs, (10.110); the third order has coefficients of its own."""
    places = (sp.sympify(first, strict=True), sp.sympify(second, strict=True))
    known = line_coefficients("Theta", 1) | line_coefficients("Theta", 2)
    return sp.Add(*(along_line("Theta", places, n).xreplace(known) for n in range(4 if third_order else 3)))


@lru_cache(maxsize=2)
def interpolation_mean(equal_norms: bool = False) -> sp.Expr:
    """The mean prediction at s through O(delta^2) where ``y_+ - y_-`` is O(delta): (10.113), (10.115), derived.

    >>> interpolation_mean(True)
    s*y_+ + s*(s - 1)*(y_+ + y_-)*ddTheta_0/Theta_00 + y_-*(1 - s)
    """
    order = sp.Symbol("o")
    names = {c: sp.Symbol(c.name) for c in (THETA, FIRST, ZEROTH, SECOND, CUBIC, MIXED)}
    weight = {names[c]: names[c] * order**c.order for c in names if isinstance(c, Deviation)}
    if equal_norms:  # K_{++} = K_{--}: everything is even in delta
        weight |= {names[c]: sp.S.Zero for c in (FIRST, CUBIC, MIXED)}

    def ntk(first: Any, second: Any) -> sp.Expr:
        return on_line(first, second, third_order=True).xreplace(names).subs(weight)

    e = 2 * s - 1
    train = sp.Matrix(2, 2, lambda i, j: ntk(1 - 2 * i, 1 - 2 * j))
    test = sp.Matrix([[ntk(e, 1), ntk(e, -1)]])
    curved = (test - (s * train[0, :] + (1 - s) * train[1, :])).expand()  # what is not linear in s
    middle, gap = (y_plus + y_minus) / 2, (y_plus - y_minus) / 2
    targets = sp.Matrix([middle + order * gap, middle - order * gap])
    top, bottom = (sp.expand(x) for x in ((curved * train.adjugate() * targets)[0], train.det()))
    lowest = [min(sp.Poly(x, order).monoms())[0] for x in (top, bottom)]
    if lowest[0] - lowest[1] != 2:
        raise DeriveError("the curvature of the interpolation does not start at second order in delta")
    part = sp.factor(top.coeff(order, lowest[0]) / bottom.coeff(order, lowest[1]))
    return s * y_plus + (1 - s) * y_minus + part.xreplace({name: c for c, name in names.items()})


z_plus, z_minus, z_test = sp.symbols("z_+ z_- z_s", real=True)
"""One network's initial outputs on the two training inputs and at s."""


def interpolation_output(equal_norms: bool = False) -> sp.Expr:
    """One trained network at s, (10.113), (10.114): what training adds to its initial output, linear in z - y.

    >>> interpolation_output(True).subs({z_plus: 0, z_minus: 0, z_test: 0}) == interpolation_mean(True)
    True
    """
    return z_test + interpolation_mean(equal_norms).subs({y_plus: y_plus - z_plus, y_minus: y_minus - z_minus})


@lru_cache(maxsize=1)
def interpolation_variance() -> sp.Expr:
    """The variance at s for inputs of equal norm, sharper than (10.117): its leading order is delta^4.

    What fluctuates is the part of the initial output that is not linear along the line, so that the kernel's fourth
    order counts: K = Σ K_mn e_1^m e_2^n between inputs x_0 + e dx/2.

    >>> interpolation_variance()
    4*s**2*(s - 1)**2*(K_00*ddTheta_0**2 + 4*Theta_00**2*ddddK_22 - 2*Theta_00*ddK_0*ddTheta_0)/Theta_00**2
    """
    order, e = sp.Symbol("o"), 2 * s - 1
    gradient = [sp.diff(interpolation_mean(True), y) for y in (y_plus, y_minus)]
    scaled = {ZEROTH: order**2 * sp.Symbol("t")}
    weights = [1, *(-g.xreplace(scaled) for g in gradient)]
    known = line_coefficients("K", 2)  # in the basis of (10.58)-(10.61); odd orders vanish at equal norms
    places, total = (e, 1, -1), sp.S.Zero
    for i, j in itertools.product(range(3), repeat=2):
        kernel = sp.Add(
            *(
                order**n * along_line("K", (sp.sympify(places[i], strict=True), sp.sympify(places[j], strict=True)), n)
                for n in (0, 2, 4)
            )
        )
        total += weights[i] * weights[j] * kernel.xreplace(known)
    names = {c: sp.Dummy() for c in sp.expand(total).atoms(Component)}
    series = sp.Poly(sp.expand(total.xreplace(names)), order)
    lowest = min(m[0] for m, c in series.terms() if sp.simplify(c) != 0)
    if lowest != 4:
        raise DeriveError("the variance of the interpolation does not start at fourth order in delta")
    back = {dummy: c for c, dummy in names.items()}
    return sp.factor(series.coeff_monomial(order**4)).xreplace(back).subs(sp.Symbol("t"), ZEROTH)


@dataclass(frozen=True)
class CurvePoint:
    """Trained networks of one depth at s: mean and standard deviation, and the mean to second order in the angle."""

    s: float
    mean: float
    deviation: float
    second_order: float


@dataclass(frozen=True)
class Starpolation(Result):
    """Interpolation (0 <= s <= 1) and extrapolation between two nearby training inputs of equal norm.

    mean = s y_+ + (1-s) y_- - s(1-s) curvature (y_+ + y_-), curvature = ddTheta_[0]/Theta_00 at the output.
    `curve` has the numbers of one depth, where it was asked for.
    """

    activation: str
    universality_class: str
    rates: LearningRates | None
    curvature: Behaviour | None
    mean: sp.Expr
    notes: tuple[Words, ...] = ()
    variance: sp.Expr | None = None
    plateau: Plateau | None = None
    curve: tuple[CurvePoint, ...] = ()

    def rows(self) -> list[dict[str, float]]:
        """The curve, one row a place; none without a depth."""
        names = ("s", "mean", "standard_deviation", "mean_to_second_order")
        return [dict(zip(names, (p.s, p.mean, p.deviation, p.second_order))) for p in self.curve]

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            **({} if self.plateau is None else {"plateau": self.plateau.to_json()}),
            "activation": self.activation,
            "class": self.universality_class,
            "mean": str(self.mean),
            "mean_latex": sp.latex(self.mean),
            "variance": None if self.variance is None else str(self.variance),
            "curvature": None if self.curvature is None else self.curvature.to_json(),
            "learning_rates": None if self.rates is None else self.rates.rule,
            "notes": [str(note) for note in self.notes],
        }
        return {**found, "curve": self.rows()} if self.curve else found

    def blocks(self) -> tuple[Block, ...]:
        shown: list[Block] = [Equation(rf"\bar z(s x_+ + (1-s) x_-) = {sp.latex(self.mean)}")]
        if self.variance is not None:
            shown.append(Equation(rf"\mathrm{{Var}}[z(s x_+ + (1-s) x_-)] = {sp.latex(self.variance)}"))
        if self.plateau is not None:
            shown += self.plateau.blocks()
        if self.curvature is not None:
            shown.append(Equation(rf"\delta\delta\Theta_{{[0]}}/\Theta_{{00}} = {self.curvature.latex()}"))
        return (*shown, *table_of(self.rows()), *map(Text, self.notes))


def starpolation(
    activation: Activation | str | sp.Expr, learning_rates: str | LearningRates = "equivalence", point: int = 0
) -> Starpolation:
    """The curvature of interpolation at large depth.

    >>> starpolation("tanh").curvature.coefficient
    -2*lambda_W/(lambda_W + 2*lambda_b)
    """
    sigma = make_activation(activation)
    if sigma.scale_invariant is not None:
        if sigma.scale_invariant[0] == sigma.scale_invariant[1]:
            note = words("Deep linear networks interpolate linearly, exactly and at every depth: (10.104).")
            line = s * y_plus + (1 - s) * y_minus
            return Starpolation(sigma.name, "scale-invariant", None, None, line, (note,), sp.S.Zero)
        return _at_finite_angle(sigma, learning_rates)
    solved = flow_solution(sigma, learning_rates, point)
    zeroth, ntk = solved.tensor("ddTheta_0"), solved.tensor("Theta")
    if not zeroth.exists:
        raise DeriveError(f"the curvature of {sigma.name} does not exist: {zeroth.reason}")
    curvature = quotient(zeroth, ntk, sp.S.One)
    mean, variance = interpolation_mean(True), interpolation_variance()
    flat = plateau(sigma, learning_rates, point, {"curvature": ZEROTH / THETA})
    kind = solved.problem.universality_class
    return Starpolation(sigma.name, kind, solved.rates, curvature, mean, (), variance, flat)


def _at_finite_angle(sigma: Activation, learning_rates: Any) -> Starpolation:
    """Kinked scale-invariant activations, by the finite-angle route, unequal norms included.

    At great depth every NTK between different inputs tends to the same multiple of its source, whatever their angle:
    the test input sees both training inputs alike, and only its norm tells where on the line it is.
    """
    angle = finite_angle(sigma, learning_rates)
    training = sp.Matrix([[1, angle.cos_zeta], [angle.cos_zeta, 1]])
    test = angle.ratio.xreplace({K_MINUS: sp.Symbol("K_s", positive=True)}) * sp.ones(1, 2)
    mean = sp.factor((test * training.inv() * sp.Matrix([y_plus, y_minus]))[0])
    K_s = sp.Symbol("K_s", positive=True)
    told = (
        "At finite angle and great depth, for a test input that is not one of the training inputs: {} is their kernel, "
        "{} that of the test input, {} with {} the angle of the training inputs."
    )
    between = equal(K_s, K * (1 - 2 * s * (1 - s) * (1 - sp.cos(PSI))))
    notes = (said(told, K, K_s, between, PSI),)
    return Starpolation(sigma.name, "scale-invariant", angle.rates, None, mean, notes)
