"""Balls as pairs of decimal numbers that are rounded outward: the interval between the strings contains the ball."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import arb

Interval = tuple[str, str]
MARGIN = 3
"""Digits that are shown beyond those in which the two ends agree."""


def exact_fraction(number: arb) -> Fraction:
    """An exact ball (radius zero) as a fraction."""
    mantissa, exponent = (int(x) for x in number.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    """The two ends of a ball, exactly."""
    middle, radius = exact_fraction(ball.mid()), exact_fraction(ball.rad())
    return middle - radius, middle + radius


def decimals(ball: arb) -> Interval:
    """[lo, hi] around a finite ball.

    >>> import flint
    >>> decimals(flint.arb("0.5", "1e-5"))
    ('0.49998999', '0.50001001')
    """
    low, high = ends(ball)
    spread = high - low or max(abs(low), abs(high)) * Fraction(1, 10**40)
    if not spread:
        return "0", "0"
    places = _magnitude(spread)
    return _text(low, places, False), _text(high, places, True)


def _magnitude(spread: Fraction) -> int:
    """How many decimal places show the spread with some digits."""
    places = MARGIN - (len(str(spread.numerator)) - len(str(spread.denominator)))
    return max(0, places)


def _text(value: Fraction, places: int, upward: bool) -> str:
    scaled = value * Fraction(10) ** places
    whole = -((-scaled.numerator) // scaled.denominator) if upward else scaled.numerator // scaled.denominator
    sign, digits = "-" if whole < 0 else "", str(abs(whole))
    if whole and places > 30 and len(digits) < places - 5:  # tiny numbers with an exponent
        body = digits.rstrip("0")
        rest = f".{body[1:]}" if len(body) > 1 else ""
        return f"{sign}{body[0]}{rest}e-{places - len(digits) + 1}"
    digits = digits.rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".") if places else digits
    return sign + text
