"""What users call the built-in activations: any case, other names, and what was probably meant.

>>> found("LeakyReLU").name, found("SiLU").name, found("tahn")
('leaky_relu', 'swish', None)
>>> meant("tahn", ["tanh", "relu"])
'did you mean tanh? '
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from derive.activations.builtin import ALIASES, BUILTIN, Definition


def _folded(name: str) -> str:
    return name.lower().replace("_", "")


_FOLDED = {_folded(name): name for name in (*ALIASES, *BUILTIN)}


def found(name: str) -> Definition | None:
    """The built-in activation of that name, in any case and with or without underscores; None where there is none."""
    own = name if name in BUILTIN or name in ALIASES else _FOLDED.get(_folded(name), name)
    return BUILTIN.get(ALIASES.get(own, own))


def meant(name: str, known: Iterable[str]) -> str:
    """A question for the reader who has mistyped a name, or nothing."""
    own = {_folded(word): word for word in known}
    close = difflib.get_close_matches(_folded(name), own, 1, 0.7)
    return f"did you mean {own[close[0]]}? " if close else ""


def built_in() -> str:
    """All names, with their other names in brackets.

    >>> built_in()[:32]
    'linear (identity), relu, leaky_r'
    """
    return ", ".join(d.name + (f" ({', '.join(d.aliases)})" if d.aliases else "") for d in BUILTIN.values())
