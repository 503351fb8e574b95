"""What is proved of the critical points, as a line of the report."""

from __future__ import annotations

from derive.activations import Activation
from derive.errors import DeriveError
from derive.layout import Text
from derive.steps import said, words

DIGITS = 15
"""Of the enclosures that a report proves."""


def proved(sigma: Activation) -> list[Text]:
    """The certificate's own sentence; what could not be proved is said to be open."""
    try:
        from derive.certificates import certify_points  # needs FLINT, without which all else works

        found = certify_points(sigma, DIGITS)
    except (ImportError, DeriveError):
        return []
    return [Text(said("{}: {}", "Proved" if found.proved else "Not all is proved", words(found.reason)))]
