"""What is proved of the critical points: the certificate, where the program has one."""

from __future__ import annotations

from importlib import import_module

from derive.activations import Activation
from derive.errors import DeriveError
from derive.layout import Text
from derive.steps import Words, said


def proved(sigma: Activation) -> list[Text]:
    """The line on what was proved, from `derive.certify`'s certificate (its `sentence()`); nothing without one."""
    try:
        certificate = import_module("derive.certify").certify(sigma)
        told = certificate.sentence()
    except (ImportError, AttributeError, DeriveError):
        return []
    return [Text(said("Proved: {}", told if isinstance(told, Words) else str(told)))]
