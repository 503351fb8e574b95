"""The report's inline markup: splits text into plain runs, `code` and $TeX$."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_RUN = re.compile(r"(\$[^$]+\$|`[^`]+`)")


def runs(text: str) -> Iterator[tuple[str, str]]:
    """Pairs (kind, content) with kind one of "text", "code", "math".

    >>> list(runs("the slope $p$ of `tanh`"))
    [('text', 'the slope '), ('math', 'p'), ('text', ' of '), ('code', 'tanh')]
    """
    for piece in _RUN.split(text):
        if not piece:
            continue
        if piece[0] == piece[-1] == "$" and len(piece) > 2:
            yield "math", piece[1:-1]
        elif piece[0] == piece[-1] == "`" and len(piece) > 2:
            yield "code", piece[1:-1]
        else:
            yield "text", piece


def render(text: str, plain: Callable[[str], str], code: Callable[[str], str], math: Callable[[str], str]) -> str:
    """The text with each kind of run sent through its own function."""
    writers = {"text": plain, "code": code, "math": math}
    return "".join(writers[kind](content) for kind, content in runs(text))
