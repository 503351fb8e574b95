r"""A derivation as data: sentences are words with mathematics in them, a step is such words with its equations.

The command line prints them as text, a report sets them as TeX, JSON holds both; nobody reads them back. A sentence is
written once, as a template with places for objects:

>>> from derive.notation import K_STAR
>>> s = said("There {} for {}.", equal(K_STAR, 0), sp.Symbol("lambda_b"))
>>> s
'There K* = 0 for lambda_b.'
>>> [part if isinstance(part, str) else part.latex() for part in s.parts]
['There ', 'K^\\star = 0', ' for ', '\\lambda_b', '.']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from string import Formatter
from typing import Any

import sympy as sp

from derive import notation

_SIGNS = {"=": "=", "<": "<", ">": ">", ">=": r"\ge", "<=": r"\le", "~": r"\sim"}


@dataclass(frozen=True)
class Formula:
    """Expressions joined by signs of relation; `open_ended`: "+ ..." follows; `order` as in `derive.notation`."""

    sides: tuple[sp.Expr, ...]
    signs: tuple[str, ...] = ()
    open_ended: bool = False
    order: notation.Order = None
    digits: int | None = None

    def text(self) -> str:
        shown = [notation.text(side, self.digits or 10, self.order) for side in self.sides]
        return self._joined(shown, self.signs) + (" + ..." if self.open_ended else "")

    def latex(self) -> str:
        shown = [notation.latex(side, self.digits or notation.DIGITS, self.order) for side in self.sides]
        return self._joined(shown, [_SIGNS[s] for s in self.signs]) + (r" + \dots" if self.open_ended else "")

    def __reduce__(self) -> tuple[Any, ...]:
        """SymPy sorts a sum when it is unpickled; one that is shown as written keeps its order."""
        kept = [side.args if self.order == "none" and side.is_Add else (side,) for side in self.sides]
        return _restored, (kept, self.signs, self.open_ended, self.order, self.digits)

    def _joined(self, shown: list[str], signs: Sequence[str]) -> str:
        return shown[0] + "".join(f" {sign} {side}" for sign, side in zip(signs, shown[1:]))

    def __str__(self) -> str:
        return self.text()


def _restored(terms: list[tuple[sp.Expr, ...]], *rest: Any) -> Formula:
    return Formula(tuple(as_written(*side) for side in terms), *rest)


@dataclass(frozen=True)
class Notation:
    """Mathematics that no expression of ours says (a layer's superscript, an average over a named law)."""

    plain: str
    tex: str

    def text(self) -> str:
        return self.plain

    def latex(self) -> str:
        return self.tex


@dataclass(frozen=True)
class Verbatim:
    """A name or a call as it is typed."""

    source: str


Part = str | Formula | Notation | Verbatim


def equal(*sides: Any, open_ended: bool = False, order: notation.Order = None, digits: int | None = None) -> Formula:
    """left = right = ..."""
    return relation("=", *sides, open_ended=open_ended, order=order, digits=digits)


def as_written(*terms: Any) -> sp.Expr:
    """A sum whose terms stay in this order (show it with order="none")."""
    kept = [sp.sympify(t, strict=True) for t in terms if t != 0]
    return sp.Add(*kept, evaluate=False) if len(kept) > 1 else sum(kept, sp.S.Zero)


def relation(sign: str, *sides: Any, **how: Any) -> Formula:
    """Sides joined by one sign: "=", "<", ">", ">=", "<=" or "~"."""
    return Formula(tuple(sp.sympify(side, strict=True) for side in sides), (sign,) * (len(sides) - 1), **how)


def formula(expression: Any, **how: Any) -> Formula:
    """An expression by itself."""
    return Formula((sp.sympify(expression, strict=True),), **how)


class Words(str):
    """A sentence: as a string it is its plain text, `parts` keeps the mathematics."""

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Words:
        made = super().__new__(cls, "".join(_plain(part) for part in parts))
        joined: list[Part] = []
        for part in parts:
            if isinstance(part, str) and joined and isinstance(joined[-1], str):
                joined[-1] += str(part)
            elif part != "":
                joined.append(str(part) if isinstance(part, str) else part)
        made.parts = tuple(joined)
        return made

    def __reduce__(self) -> tuple[type[Words], tuple[Part, ...]]:
        return Words, self.parts

    def render(self, plain: Callable[[str], str], code: Callable[[str], str], mathematics: Callable[[str], str]) -> str:
        """Each kind of part sent through its own function, mathematics as TeX."""
        written = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(plain(part))
            else:
                written.append(code(part.source) if isinstance(part, Verbatim) else mathematics(part.latex()))
        return "".join(written)

    def capitalized(self) -> Words:
        """With a capital letter, where it begins with a word."""
        head = self.parts[0] if self.parts else ""
        return Words(head[:1].upper() + head[1:], *self.parts[1:]) if isinstance(head, str) else self

    def uncapitalized(self) -> Words:
        head = self.parts[0] if self.parts else ""
        return Words(head[:1].lower() + head[1:], *self.parts[1:]) if isinstance(head, str) else self


def _plain(part: Part) -> str:
    if isinstance(part, str):
        return str(part)
    return part.source if isinstance(part, Verbatim) else part.text()


def said(template: str, *objects: Any) -> Words:
    """A sentence from a template whose {} are filled, in order, by formulas, expressions, words or sentences."""
    parts: list[Part] = []
    given = iter(objects)
    for literal, field, _, _ in Formatter().parse(template):
        if literal:
            parts.append(literal)
        if field is not None:
            parts += _parts(next(given))
    left = list(given)
    if left:
        raise ValueError(f"{template!r} has no place for {left}")
    return Words(*parts)


def _parts(item: Any) -> tuple[Part, ...]:
    if isinstance(item, Words):
        return item.parts
    if isinstance(item, str | Formula | Notation | Verbatim):
        return (item,)
    if isinstance(item, sp.Basic | int):
        return (formula(item),)
    raise TypeError(f"{item!r} is neither words nor mathematics")


def listed(items: Iterable[Any], separator: str = ", ") -> Words:
    """Sentences, formulas or words one after the other."""
    parts: list[Part] = []
    for item in items:
        parts += ([separator] if parts else []) + list(_parts(item))
    return Words(*parts)


def words(sentence: str) -> Words:
    """A plain string as a sentence; a sentence stays what it is."""
    return sentence if isinstance(sentence, Words) else Words(sentence)


def typeset(tex: str, plain: str | None = None) -> Words:
    r"""Notation as words of its own.

    >>> typeset(r"\\xi_\\perp", "xi_perp")
    'xi_perp'
    """
    return Words(Notation(tex if plain is None else plain, tex))


def small(number: Any, digits: int = 2) -> Notation:
    r"""A rough number, as people write them.

    >>> small(6.8e5).text(), small(6.8e5).latex(), small(12.0).latex(), small(1e-8, 1).latex()
    ('6.8e+5', '6.8\\times 10^{5}', '12', '10^{-8}')
    """
    plain = f"{Decimal(str(number)):.{digits}g}"
    mantissa, _, power = plain.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    if not power:
        return Notation(mantissa, mantissa)
    plain = f"{mantissa}e{power}"
    return Notation(plain, ("" if mantissa == "1" else rf"{mantissa}\times ") + f"10^{{{int(power)}}}")


@dataclass(frozen=True)
class Step:
    """One step of a derivation: words, then the equations they speak of (displayed in a report)."""

    words: Words
    equations: tuple[Formula | Notation, ...] = ()

    @property
    def text(self) -> str:
        shown = ", ".join(e.text() for e in self.equations)
        if not shown:
            return str(self.words)
        return f"{self.words}: {shown}" + ("" if shown.endswith("...") else ".")

    @property
    def latex(self) -> str:
        """The equations, and where there are none the sentence itself."""
        if self.equations:
            return r",\quad ".join(e.latex() for e in self.equations)
        return self.words.render(lambda t: rf"\text{{{t}}}", lambda c: rf"\texttt{{{c}}}", lambda m: m)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, str]:
        return {"text": self.text, "latex": self.latex}


__all__ = [
    "Formula",
    "Notation",
    "Step",
    "Verbatim",
    "Words",
    "as_written",
    "equal",
    "formula",
    "listed",
    "relation",
    "said",
    "small",
    "typeset",
    "words",
]
