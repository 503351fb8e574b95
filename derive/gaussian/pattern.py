"""Brackets typed as text: "s0 s1'' s2' s2' z0" is <sigma_0 sigma''_1 sigma'_2 sigma'_2 z_0>.

A factor is `s` or `z`, a label of one or two digits, primes or `^(k)` for the order of the derivative, and optionally a
power `**n`. A bracket of one input may leave all labels out. Nothing else is read, and nothing is evaluated.

>>> parse_bracket("s0 s1'' z0")
<s0 s1'' z0>
>>> parse_bracket("s0'**2 s1^(5)")
<s0' s0' s1^(5)>
>>> parse_bracket("<s s''>")
<s0 s0''>
"""

from __future__ import annotations

import re

import sympy as sp

from derive.errors import FormulaError
from derive.gaussian.bracket import Bracket, Sigma, Z

MAX_ORDER = 12
MAX_FACTORS = 32
_FACTOR = re.compile(
    r"(?P<kind>[sz])(?P<label>\d{0,2})(?P<primes>'*)(?:\^\((?P<order>\d{1,3})\))?(?:\*\*(?P<power>\d{1,2}))?"
)


def parse_bracket(pattern: str) -> sp.Expr:
    """The bracket of a pattern; anything but the grammar above is refused with one sentence."""
    text = pattern.strip().removeprefix("<").removesuffix(">")
    if len(text) > 400:
        raise FormulaError("The bracket's pattern is longer than 400 characters.")
    words = [word for word in re.split(r"\s+|(?<!\*)\*(?!\*)", text) if word]
    if not words:
        raise FormulaError("The bracket's pattern is empty: write for example \"s0 s1'' z0\".")
    atoms: list[Sigma | Z] = []
    bare = {not word[1:2].isdigit() for word in words}
    for word in words:
        found = _FACTOR.fullmatch(word) if len(bare) == 1 or word[1:2].isdigit() else None
        if found is None:
            raise FormulaError(
                f"Cannot read {word!r} in a bracket: a factor looks like s0, s1'', s2^(5), z0 or s0'**2, or, "
                "all of them for one input, like s, s''."
            )
        primes, order = len(found["primes"]), int(found["order"] or 0)
        if primes and order:
            raise FormulaError(f"{word!r} has both primes and an order: give one of them.")
        if primes + order > MAX_ORDER:
            raise FormulaError(f"{word!r} asks for more than {MAX_ORDER} derivatives.")
        if found["kind"] == "z" and (primes or order):
            raise FormulaError(f"{word!r}: z insertions have no derivatives.")
        if found["power"] is not None and int(found["power"]) == 0:
            raise FormulaError(f"{word!r} is 1: a power is at least 1.")
        label = int(found["label"] or 0)
        atom = Sigma(label, primes + order) if found["kind"] == "s" else Z(label)
        atoms += [atom] * int(found["power"] or 1)
    if len(atoms) > MAX_FACTORS:
        raise FormulaError(f"A bracket may have at most {MAX_FACTORS} factors.")
    return Bracket(*atoms)
