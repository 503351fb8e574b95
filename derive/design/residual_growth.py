r"""Residual layers with a skip of one: no critical point, so K grows; how, for branches of 1, 1/sqrt(L) and 1/L.

K' = K + C_b + C_W <s s>_K. What <s s>_K does for large K decides: if sigma has limits it goes to their mean square, if
it grows linearly to K times the mean square of its slopes. With <s' s'>_K -> (integral of s'^2) / sqrt(2 pi K) in the
first case the NTK grows as the exponential of a root of the depth.

>>> found = residual_growth("tanh", sp.Integer(1))
>>> found.kind, found.level, found.laws[0].kernel
('saturating', 1, L*(C_W + C_b))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mpmath as mp
import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.result import exact_entry
from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.results import Result, cell
from derive.steps import Words, said, words
from derive.symbols import L

BRANCHES = {"1": sp.S.Zero, "1/sqrt(L)": sp.Rational(1, 2), "1/L": sp.S.One}
"""The powers of 1/L with which C_b and C_W of the branches are scaled."""
FAR = (30, 300)
"""Where a limit is read off numerically, if SymPy does not know it."""


@dataclass(frozen=True)
class Law:
    """K and log Theta at leading order in the depth L, for branches C_b/L^power, C_W/L^power; None: a finite limit."""

    branch: str
    kernel: sp.Expr | None
    log_theta: sp.Expr | None

    def to_json(self) -> dict[str, object]:
        return {"branch": self.branch, "K": exact_entry(self.kernel), "log_Theta": exact_entry(self.log_theta)}


@dataclass(frozen=True)
class ResidualGrowth(Result):
    """How K and Theta of networks with a skip of one grow; `level` is lim <s s>_K, `slope` lim <s s>_K / K."""

    activation: str
    skip: sp.Expr
    kind: str
    level: sp.Expr | None
    slope: sp.Expr | None
    laws: tuple[Law, ...]
    numbers: Mapping[str, tuple[tuple[int, float, float, float], ...]] = field(default_factory=dict)
    """{branch: (L, K, Theta, V/K^2)} at the last hidden layer, for C_b = 0, C_W = 1 and an input of norm one."""

    @property
    def notes(self) -> tuple[Words, ...]:
        first = {
            "saturating": "{} has limits: {} goes to {}, and K grows linearly in the number of layers.",
            "linear": "{} grows linearly: {} goes to {} times K, and K grows exponentially in the number of layers.",
            "between": "{} has neither limits nor slopes at infinity, so that {} and K follow no such law.",
        }[self.kind]
        bracket = sp.Symbol("<s s>")
        limit = self.level if self.kind == "saturating" else self.slope
        told = [said(first, self.activation, bracket, *([] if limit is None else [limit]))]
        told.append(
            words(
                "With branches of 1/L, K and Theta have limits at infinite depth: dK/dt = C_b + C_W <s s>_K from t = 0 "
                "to 1, and V/(n K^2) has one too: width alone decides."
            )
        )
        return tuple(told)

    def to_json(self) -> dict[str, object]:
        rows = {
            branch: [dict(zip(("depth", "K", "Theta", "V/(n K^2) times n"), row)) for row in own]
            for branch, own in self.numbers.items()
        }
        return {
            "activation": self.activation,
            "skip": exact_entry(self.skip),
            "class": self.kind,
            "laws": [law.to_json() for law in self.laws],
            "numbers": rows,
            "notes": [str(note) for note in self.notes],
            "text": str(self),
        }

    def blocks(self) -> tuple[Block, ...]:
        none = "a finite limit"
        rows = tuple(
            (law.branch, *(none if e is None else cell(e) for e in (law.kernel, law.log_theta))) for law in self.laws
        )
        found: list[Block] = [Text(note) for note in self.notes[:1]]
        if self.kind != "between":
            found.append(Table(("branch", "K", "log Theta"), rows, "Leading terms at depth L."))
        if self.numbers:
            table = tuple((b, *(f"{x:.4g}" for x in row)) for b, own in self.numbers.items() for row in own)
            caption = "At the last hidden layer: one input of norm one, C_b = 0, C_W = 1, lambda_b = lambda_W = 1/L."
            found.append(Table(("branch", "L", "K", "Theta", "V/(n K^2), times n"), table, caption))
        return (*found, *(Text(note) for note in self.notes[1:]))

    def __str__(self) -> str:
        lines = [f"{self.activation}, skip {self.skip}: no critical point. {self.notes[0]}"]
        if self.kind != "between":
            lines.append("Leading terms at depth L, branches C_b and C_W times:")
            for law in self.laws:
                kernel, theta = ("finite" if e is None else str(e) for e in (law.kernel, law.log_theta))
                lines.append(f"  {law.branch:10} K: {kernel:28} log Theta: {theta}")
        for branch, own in self.numbers.items():
            for depth, K, T, V in own:
                lines.append(f"  {branch:10} L = {depth:<4} K = {K:<10.5g} Theta = {T:<10.5g} n V/(n K^2) = {V:.4g}")
        return "\n".join([*lines, *map(str, self.notes[1:])])


def residual_growth(activation: str | sp.Expr | Activation, skip: sp.Expr) -> ResidualGrowth:
    """The laws at |skip| = 1."""
    if abs(skip) != 1:
        raise DeriveError(f"K grows by a law of its own at a skip of 1 or -1, not {skip}.")
    sigma = make_activation(activation)
    level = _mean_square([_limit(sigma, side, 0) for side in (-1, 1)])
    slope = _mean_square([_limit(sigma, side, 1) for side in (-1, 1)])
    if level is not None and level != 0:
        return ResidualGrowth(sigma.name, skip, "saturating", level, sp.S.Zero, _saturating(sigma, level))
    if slope is not None and slope != 0:
        return ResidualGrowth(sigma.name, skip, "linear", None, slope, _linear(slope))
    return ResidualGrowth(sigma.name, skip, "between", level, slope, ())


def _saturating(sigma: Activation, level: sp.Expr) -> tuple[Law, ...]:
    """K = a l with a = C_b + C_W level; each layer adds C_W <s' s'> = C_W I / sqrt(2 pi K) to log Theta."""
    rate = symbols.C_b + symbols.C_W * level
    slope = sp.lambdify(symbols.z, sigma.derivative(1), "mpmath")
    number = sp.Float(str(mp.quad(lambda x: slope(x) ** 2, [-mp.inf, -1, 0, 1, mp.inf])), 15)
    integral = sp.nsimplify(number, rational=True, tolerance=1e-12)
    integral = integral if integral.q < 1000 else sp.Float(number, 10)
    laws = []
    for branch, power in BRANCHES.items():
        # K_l = a l / L^p and the sum over l of C_W L^-p I / sqrt(2 pi a l L^-p)
        grown = 2 * symbols.C_W * integral / sp.sqrt(2 * sp.pi * rate) * L ** ((1 - power) / 2)
        laws.append(Law(branch, *((None, None) if power == 1 else (rate * L ** (1 - power), grown))))
    return tuple(laws)


def _linear(slope: sp.Expr) -> tuple[Law, ...]:
    """K' = (1 + C_W slope) K, Theta' the same with a source proportional to K."""
    factor = symbols.C_W * slope
    half = factor * sp.sqrt(L)
    return (
        Law("1", (1 + factor) ** L, L * sp.log(1 + factor)),
        Law("1/sqrt(L)", sp.exp(half), half),
        Law("1/L", None, None),
    )


def _mean_square(values: list[sp.Expr | None]) -> sp.Expr | None:
    known = [v for v in values if v is not None]
    return sp.Add(*(v**2 for v in known)) / 2 if len(known) == len(values) else None


def _limit(sigma: Activation, side: int, order: int) -> sp.Expr | None:
    """lim sigma(z) (order 0) or sigma(z)/z (order 1) at side * infinity; None if there is none."""
    piece = sigma.pieces[0 if side < 0 else -1] / symbols.z**order
    near, far = (mp.mpf(str(sp.N(piece.subs(symbols.z, side * x), 20))) for x in FAR)
    if abs(near - far) > 0.2 * (abs(far) + mp.mpf("1e-6")) and abs(far) > mp.mpf("1e-2"):
        return None  # still on its way: it grows, or swings
    try:
        found = sp.limit(piece, symbols.z, side * sp.oo)
    except (NotImplementedError, ValueError, TypeError):
        found = sp.nsimplify(sp.Float(str(far), 12), rational=True, tolerance=1e-6)
    return found if found.is_number and found.is_finite else None
