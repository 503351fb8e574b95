"""Certified expectations: a ball that contains the bracket, from the formula alone.

Delta functions and perfectly correlated labels are integrated exactly first (`derive.gaussian.support`). What is left
are integrals over one variable (FLINT's rigorous integration plus a bound on the tails), groups of two to four
correlated labels (`derive.gaussian.common_factors`) and products of uncorrelated groups. Five correlated labels, and
labels so close to perfectly correlated that it would take minutes, are refused in a sentence that says the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.activations.enclosure import available, constant_ball, require
from derive.errors import DeriveError
from derive.gaussian import Bracket, exact
from derive.gaussian.balls import precision
from derive.gaussian.common_factors import terms_ball
from derive.gaussian.covariance import covariance
from derive.gaussian.support import regular_integrals

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

MOST_DIGITS = 200


def bracket_ball(
    bracket: sp.Expr,
    activation: str | sp.Expr | Activation,
    K: object,
    digits: int = 15,
    closed_forms: bool = True,
) -> arb:
    """A ball that contains the bracket, to about `digits` digits (wider where terms cancel, never wrong).

    Where several labels have a closed form, that is what is enclosed (not with `closed_forms=False`).

    >>> from derive.gaussian import parse_bracket
    >>> bracket_ball(parse_bracket("s0 s0"), "relu", 1, 20).contains(flint.arb(1) / 2)
    True
    """
    require()
    if not isinstance(digits, int) or not 1 <= digits <= MOST_DIGITS:
        raise DeriveError(f"A certificate has from 1 to {MOST_DIGITS} digits.")
    if bracket == 1:
        return flint.arb(1)
    if not isinstance(bracket, Bracket):
        raise TypeError(f"A bracket is certified, not {bracket}.")
    matrix = covariance(K, bracket.labels)
    if not matrix.is_numeric:
        raise DeriveError("A certificate needs a numeric K.")
    sigma = make_activation(activation)
    terms = regular_integrals(bracket, sigma, matrix)
    if not terms:
        return flint.arb(0)
    if closed_forms and any(len(t.factors) > 1 for t in terms):
        form = exact(bracket, sigma, matrix.as_mapping())
        if form is not None and not form.has(sp.I):
            return _enclosed(form, digits)
    return terms_ball(terms, digits)


def _enclosed(form: sp.Expr, digits: int) -> arb:
    """A closed form to that many digits, or as many as four times the precision gives."""
    for factor in (1, 2, 4):
        with precision(int(digits * 3.33 * factor) + 40):
            ball = constant_ball(form)
            if ball.rad() * flint.arb(10) ** digits <= abs(ball.mid()):
                break
    return ball
