r"""Where to initialize: the critical point, or the best there is for an activation without one, and the inputs' norm.

At a critical point with K* > 0 the inputs should have the norm that puts K^(1) at K*. Without a critical point: C_b = 0
and the C_W with which the product of chi_perp over the hidden layers is 1 at this depth, so that gradients are as large
at the first layer as at the last. This needs no fixed point; it is refused where K of the output then changes faster
than in proportion to the input's, as for exp or z^2: every layer would amplify what the layer before did.

With a skip xi between hidden layers, those layers have `branch` times C_b and C_W of the plain first and last layer:
1 - xi^2, which keeps the same critical point (`derive.design.residual`), or 1/L at |xi| = 1, where there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy as sp

from derive.activations import Activation
from derive.critical import criticality
from derive.critical.points import SCALE_INVARIANT, class_name
from derive.design.one_input import OneInput, one_input
from derive.errors import DeriveError
from derive.gaussian.one_input import OutOfRange
from derive.notation import CHI_PARALLEL, CHI_PERP, K_STAR
from derive.steps import Words, equal, relation, said, typeset, words
from derive.symbols import C_W, C_b

MOST_ELASTIC = 1.5
"""Largest d log K^(L) / d log K^(1) that is accepted without a critical point; a linear network has 1."""
NORM = sp.Symbol("x.x/n_0")
K_1 = typeset("K^{(1)}", "K^(1)")
_RANGE = (math.log(1e-6), math.log(1e6))


@dataclass(frozen=True)
class Initialization:
    """C_b and C_W (exact where they are known so) of layers without a skip, x.x/n_0 of the inputs, a sentence on each.

    Layers with a skip have `branch` times C_b and C_W.
    """

    C_b: sp.Expr
    C_W: sp.Expr
    input_norm: float
    best_norm: float | None
    critical: bool
    universality_class: str
    notes: tuple[Words, ...]
    branch: sp.Expr = sp.S.One

    def by_layer(self, depth: int) -> tuple[list[sp.Expr], list[sp.Expr]]:
        """C_b and C_W of every layer."""
        factors = branches(self.branch, depth)
        return [f * self.C_b for f in factors], [f * self.C_W for f in factors]


def branches(branch: sp.Expr, depth: int) -> list[sp.Expr]:
    """What multiplies C_b and C_W in each layer: 1 in the first and the last, which have no skip."""
    return [branch if 1 < layer < depth else sp.S.One for layer in range(1, depth + 1)]


def initialization(
    sigma: Activation, depth: int, input_norm: float | None = None, point: int = 0, skip: sp.Expr | None = None
) -> Initialization:
    """The critical initialization of an activation, or the best at this depth; DeriveError where there is none.

    `input_norm` is x.x/n_0 of the user's inputs; None leaves it to the recommendation (1 where any norm will do).
    `skip` is that of residual layers.

    >>> from derive.activations import activation
    >>> found = initialization(activation("relu"), 8)
    >>> found.C_W, found.input_norm
    (2, 1.0)
    """
    found = criticality(sigma)
    branch, told = _branch(skip, depth)
    if not found.points:
        norm = 1.0 if input_norm is None else input_norm
        return _without_critical_point(sigma, depth, norm, found.reason, skip, branch, told)
    if not 0 <= point < len(found.points):
        raise DeriveError(
            f"{sigma.name} has {len(found.points)} critical point(s), numbered from 0; there is no {point}"
        )
    chosen = found.points[point]
    kind = chosen.universality_class
    any_norm = words("every K is a fixed point")
    where = any_norm if kind == SCALE_INVARIANT else said("{} = {}", K_STAR, _short(chosen.K_star))
    notes = [
        said(
            "{} = {}, {} = {}: the critical point of {} ({}; class {}, {}), derived, not fitted.",
            C_b,
            _short(chosen.C_b),
            C_W,
            _short(chosen.C_W),
            sigma.name,
            equal(CHI_PARALLEL, CHI_PERP, 1),
            class_name(kind),
            where,
        )
    ]
    best = None
    if kind != SCALE_INVARIANT and chosen.K_star.is_positive:
        best = float((chosen.K_star - chosen.C_b) / chosen.C_W)
    norm = input_norm if input_norm is not None else 1.0 if best is None else best
    if best is None:
        flows = said("any norm flows to {}", equal(K_STAR, 0))
        why = words("any norm stays as it is") if kind == SCALE_INVARIANT else flows
        notes.append(said("Inputs: {} = {}; {}, but keep it the same for all inputs.", NORM, f"{norm:.6g}", why))
    elif math.isclose(norm, best, rel_tol=1e-9):
        notes.append(said("Inputs: normalize them to {} = {}, which puts {} at {}.", NORM, f"{best:.6g}", K_1, where))
    else:
        factor = math.sqrt(best / norm) if norm > 0 else math.inf
        notes.append(
            said(
                "Inputs: numbers are for {} = {}, as given; multiply the inputs by {} to put {} at {} ({} = {}).",
                NORM,
                f"{norm:.6g}",
                f"{factor:.6g}",
                K_1,
                where,
                NORM,
                f"{best:.6g}",
            )
        )
    notes[1:1] = told
    level = skip is None or bool(skip**2 < 1)
    return Initialization(chosen.C_b, chosen.C_W, float(norm), best, level, kind, tuple(notes), branch)


def _branch(skip: sp.Expr | None, depth: int) -> tuple[sp.Expr, list[Words]]:
    """What multiplies C_b and C_W of layers with a skip, and why."""
    if skip is None:
        return sp.S.One, []
    if skip**2 > 1:
        raise DeriveError(f"a skip of {skip} makes K grow as {skip**2}^L: recommendations are for skips from -1 to 1")
    if skip**2 == 1:
        branch = sp.Rational(1, depth)
        why = said(
            "no {} is critical with a skip of one, and branches with 1/L keep K and gradients finite at any depth "
            "(both grow, by a factor that does not depend on L)",
            relation(">", C_W, 0),
        )
    else:
        branch = 1 - skip**2
        why = said("with {} the critical point is that of a plain network", typeset(r"1 - \xi^2", "1 - skip^2"))
    told = (
        "Residual layers (between hidden layers): {} and {} there are {} times those of the first and last layer; {}."
    )
    return branch, [said(told, C_b, C_W, _short(branch), why)]


def _lower(reason: str) -> str:
    """A reason inside a sentence."""
    return reason[0].lower() + reason[1:] if reason.startswith("No ") else reason


def _short(number: sp.Expr) -> str:
    return str(number) if number.is_Rational and len(str(number)) < 12 else f"{float(number):.6g}"


def _without_critical_point(
    sigma: Activation,
    depth: int,
    norm: float,
    reason: str,
    skip: sp.Expr | None,
    branch: sp.Expr,
    told: list[Words],
) -> Initialization:
    if sigma.first_delta_order == 1:
        raise DeriveError(
            f"{sigma.name} has no critical initialization and gradients that do not exist: {_lower(reason)}"
        )
    trial = _Trial(sigma, depth, norm, skip, branch)
    weight = _level_gradients(trial)
    if weight is None:
        raise DeriveError(
            f"{sigma.name} has no critical initialization, and none that keeps gradients level: {_lower(reason)}"
        )
    if depth > 1 and (elasticity := _elasticity(trial, weight)) > MOST_ELASTIC:
        raise DeriveError(
            f"{sigma.name} has no critical initialization, nor a good one at depth {depth}: K^(L) goes as the power "
            f"{elasticity:.3g} of the input's norm; {_lower(reason)}"
        )
    notes = [
        said("{} has no critical point. {}", sigma.name, words(reason)),
        said(
            "{}, {} = {}: the best there is at depth {}, the product of {} over the hidden layers is 1, so gradients "
            "are as large at the first layer as at the last; other depths need other values.",
            equal(C_b, 0),
            C_W,
            f"{weight:.6g}",
            str(depth),
            CHI_PERP,
        ),
        *told,
        said("Inputs: {} = {}; {} depends on it.", NORM, f"{norm:.6g}", C_W),
    ]
    if (shifted := _shifted(sigma)) is not None:
        notes.append(shifted)
    return Initialization(sp.S.Zero, sp.Float(weight), float(norm), None, False, "none", tuple(notes), branch)


@dataclass(frozen=True)
class _Trial:
    """Networks with C_b = 0 that differ in C_W."""

    sigma: Activation
    depth: int
    norm: float
    skip: sp.Expr | None
    branch: sp.Expr

    def flow(self, weight: float, stretch: float = 1.0) -> OneInput:
        """K and Theta with this C_W, for an input whose x.x is `stretch` times as large."""
        weights = [weight * float(f) for f in branches(self.branch, self.depth)]
        skip = None if self.skip is None else float(self.skip)
        norm = self.norm * stretch
        return one_input(self.sigma, self.depth, 0.0, weights, norm, 1.0, 1.0, tensors=False, skip=skip)


def _level_gradients(trial: _Trial) -> float | None:
    """C_W with prod chi_perp = 1, by bisection in log C_W; None if there is none in range."""
    if trial.depth == 1:
        return 1.0

    def product(log_weight: float) -> float:
        try:
            found = trial.flow(math.exp(log_weight))
        except OutOfRange as error:
            return -math.inf if error.small else math.inf
        except DeriveError:
            return math.inf  # an expectation is not finite: K is far too large
        return sum(math.log(m) if m > 0 else -math.inf for m in found.multipliers)

    low, high = 0.0, 0.0
    while product(low) > 0:
        low -= 1.0
        if low < _RANGE[0]:
            return None
    while product(high) < 0:
        high += 1.0
        if high > _RANGE[1]:
            return None
    below, above = product(low), product(high)
    for turn in range(100):
        use_secant = turn % 3 and math.isfinite(below) and math.isfinite(above) and above > below
        middle = low - below * (high - low) / (above - below) if use_secant else (low + high) / 2
        value = product(middle)
        if value > 0:
            high, above = middle, value
        else:
            low, below = middle, value
        if abs(value) < 1e-10 or high - low < 1e-12:
            return math.exp(middle)
    return math.exp((low + high) / 2)


def _elasticity(trial: _Trial, weight: float) -> float:
    """d log K^(L) / d log(x.x)."""
    step = 1e-3
    try:
        ends = [trial.flow(weight, math.exp(sign * step)).tensors["K"][-1] for sign in (-1, 1)]
    except DeriveError:
        return math.inf
    return math.log(ends[1] / ends[0]) / (2 * step)


def _shifted(sigma: Activation) -> Words | None:
    """The advice to subtract sigma(0), where that has a stable critical point."""
    if sigma.kinks or sigma.taylor(0) == 0:
        return None
    value = sigma.taylor(0)
    other = criticality(sigma.expression - value)
    if not other.points or other.points[0].stability != "stable":
        return None
    first = other.points[0]
    return said(
        "{} - {} has a critical point, {} = {} and {} = {}: subtract the constant, and depth costs much less.",
        sigma.name,
        str(value),
        C_b,
        _short(first.C_b),
        C_W,
        _short(first.C_W),
    )
