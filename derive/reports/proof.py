"""What is proved of the critical points, as a line of the report."""

from __future__ import annotations

from derive.activations import Activation
from derive.errors import DeriveError
from derive.layout import Text
from derive.notation import K_STAR
from derive.steps import Verbatim, said, words
from derive.symbols import C_W, C_b

DIGITS = 15
"""Of the enclosures that a report proves."""


def proved(sigma: Activation) -> list[Text]:
    """The certificate's own sentence and the intervals of its points; what could not be proved is said to be open."""
    from derive.certificates import certify_points

    try:
        found = certify_points(sigma, DIGITS)
    except DeriveError as error:  # FLINT is not installed, or a ball is too wide
        return [Text(said("Not proved: {}", words(str(error))))]
    lines = [Text(said("{}: {}", "Proved" if found.proved else "Not all is proved", words(found.reason)))]
    for point in found.points:
        spans = [(K_STAR, point.K_star), (C_W, point.C_W), (C_b, point.C_b)]
        if all(low != high for _, (low, high) in spans[1:]):  # exact points are in the table
            parts = [x for symbol, (low, high) in spans for x in (symbol, Verbatim(low), Verbatim(high))]
            lines.append(Text(said("Proved: {} in [{}, {}], {} in [{}, {}] and {} in [{}, {}].", *parts)))
    return lines
