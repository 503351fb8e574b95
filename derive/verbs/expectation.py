"""`derive.expect`: one Gaussian expectation, in closed form where there is one, and as a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.certificates import Interval, bracket_ball, decimals
from derive.errors import DeriveError
from derive.gaussian import Evaluation, evaluate, exact, parse_bracket
from derive.given import Number, number
from derive.layout import Block, Equation
from derive.results import Result


def finite_or_none(value: float) -> float | None:
    """None where a number leaves the range of float64: its digits say it all the same."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Expectation(Result):
    """<pattern>: `form` is the closed form or None; `number` the evaluation where K was given, to `digits` digits."""

    activation: Activation
    bracket: sp.Expr
    form: sp.Expr | None
    number: Evaluation | None
    digits: int
    ball: Interval | None = None

    @property
    def value(self) -> float | None:
        """The number in double precision."""
        return None if self.number is None else finite_or_none(float(self.number.value))

    def to_json(self) -> dict[str, object]:
        shown = None
        if self.number is not None:
            with mpmath.workdps(self.digits + 10):
                shown = mpmath.nstr(self.number.value, self.digits)
        return {
            "latex": sp.latex(self.bracket),
            "activation": self.activation.name,
            "exact": None if self.form is None else str(self.form),
            "exact_latex": None if self.form is None else sp.latex(self.form),
            "value": self.value,
            "digits": shown,
            "error": None if self.number is None else finite_or_none(float(self.number.error)),
            **({} if self.ball is None else {"ball": list(self.ball)}),
        }

    def blocks(self) -> tuple[Block, ...]:
        sides = [sp.latex(self.bracket)]
        if self.form is not None:
            sides.append(f"= {sp.latex(self.form)}")
        if self.number is not None:
            with mpmath.workdps(self.digits + 10):
                sides.append(rf"\approx {mpmath.nstr(self.number.value, self.digits)}")
        return (Equation(" ".join(sides)),)


def expect(
    pattern: str,
    activation: str | sp.Expr | Activation,
    K: Number | Sequence[Number] | None = None,
    digits: int = 15,
    certify: bool = False,
) -> Expectation:
    """Evaluate <pattern>: "s0 s1'' z1" is sigma(z_0) sigma''(z_1) z_1.

    K is the upper triangle of the covariance, row by row (one number for one input); without it only the closed form.
    With `certify` the answer has a `ball`: two decimal numbers between which the expectation is proved to lie.

    >>> expect("s0 s0", "relu").form, expect("s0 s1", "relu", K=[1, 0, 1]).form
    (K/2, 1/(2*pi))
    """
    bracket, sigma = parse_bracket(pattern), make_activation(activation)
    covariance = _covariance(sorted(bracket.labels, key=int), K)
    form = exact(bracket, sigma, covariance)
    found = None if covariance is None else evaluate(bracket, sigma, covariance, digits)
    ball = None
    if certify:
        if covariance is None:
            raise DeriveError("A certificate needs numbers: give --K.")
        ball = decimals(bracket_ball(bracket, sigma, covariance, digits))
    return Expectation(sigma, bracket, form, found, digits, ball)


def _covariance(labels: list[int], entries: Number | Sequence[Number] | None) -> dict[tuple[int, int], sp.Expr] | None:
    if entries is None:
        return None
    if isinstance(entries, str):
        values: list[Number] = [part for part in entries.replace(",", " ").split() if part]
    elif isinstance(entries, Sequence):
        values = list(entries)
    else:
        values = [entries]
    if not values:
        return None
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i:]]
    if len(values) != len(pairs):
        order = " ".join(f"K_{a}{b}" for a, b in pairs)
        raise DeriveError(f"--K needs {len(pairs)} number{'s' * (len(pairs) > 1)} here, in the order {order}.")
    found = {pair: number(text, "an entry of K") for pair, text in zip(pairs, values)}
    return found | {(b, a): value for (a, b), value in found.items()}
