"""Source of the adjoint recursions: how a contraction of a tensor is handed down, pair by pair, to a neuron.

PAIRS holds, for each kind of pair, what one neuron makes of it and how a layer carries it on (transposed: which
contractions of the layer below a matrix on the pair becomes); CONTRACTIONS holds each tensor's pairs and links.
MOMENTS spells the moments of training errors as products, for vectors instead of arrays over modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from derive.codegen.printer import WIDTH
from derive.codegen.terms import coefficient_source
from derive.network.pair_factors import FOUR, Weighed, pair_maps, pairs
from derive.training.moments import WickTerm, carried
from derive.training.solution import mean_contributions


def adjoint_source() -> str:
    """The tables, imports aside."""
    return "\n".join([*_pairs(), "", *_contractions(), "", *_moments()]) + "\n"


def _tuple(items: Sequence[object]) -> str:
    texts = [str(item) for item in items]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _listed(start: str, items: Sequence[str]) -> list[str]:
    """A tuple with one element a line, or one line, as the formatter lays it out."""
    if len(items) == 1 and len(start) + len(items[0]) + 4 <= WIDTH:
        return [f"{start}({items[0]},),"]
    inner = " " * (len(start) - len(start.lstrip()) + 4)
    return [f"{start}(", *(f"{inner}{item}," for item in items), f"{inner[4:]}),"]


def _pairs() -> list[str]:
    lines = ["PAIRS: dict[str, PairMap] = {"]
    for kind, found in pair_maps().items():
        lines.append(f'    "{kind}": PairMap(')
        lines += _listed("        sources=", [_source(source) for source in found.sources])
        lines += _listed("        steps=", [_step(step) for step in found.steps])
        lines.append("    ),")
    note = '"""By kind: H where an NTK joins the two labels, then how many links leave the first and the second."""'
    return [*lines, "}", note]


def _source(weighed: Weighed) -> str:
    piece = weighed.piece
    return f"PairSource({coefficient_source(weighed.coefficient)}, {piece.theta}, {_tuple(piece.orders)})"


def _step(weighed: Weighed) -> str:
    piece = weighed.piece
    start = f"PairStep({coefficient_source(weighed.coefficient)}, {piece.theta}, {_tuple(piece.orders)}"
    return f'{start}, "{piece.kind}", {_tuple(piece.at)})'


def _contractions() -> list[str]:
    lines = ["CONTRACTIONS: dict[str, Contraction] = {"]
    for name in FOUR:
        own = pairs(name)
        kinds = ", ".join(f'"{kind}"' for kind in own.kinds)
        lines.append(f'    "{name}": Contraction(({kinds}), {own.axes}, {_tuple(own.links)}, {own.centered}),')
    return [
        *lines,
        "}",
        '"""By tensor: kinds and axes of its two pairs, links (NTKs) between them, covariance or mean."""',
    ]


def _moments() -> list[str]:
    lines = ["MOMENTS: dict[str, tuple[tuple[MomentTerm, ...], ...]] = {"]
    for kinds in dict.fromkeys(c.kinds for c in mean_contributions()):
        lines.append(f'    "{"".join(kind[0] for kind in kinds)}": (')
        for carrier in range(3):
            lines += _listed("        ", [_moment(term) for term in carried(kinds, carrier)])
        lines.append("    ),")
    note = '"""By the kinds of the slots (e for an error, l for a leg) and the slot that carries the component."""'
    return [*lines, "}", note]


def _moment(term: WickTerm) -> str:
    """Slots a, b, c as 0, 1, 2; a target with the external component is marked."""
    slot = "abc".index
    targets = [f'({slot(mode)}, "{component}")' for component, mode in term.targets]
    kernels, deltas = ([_tuple([slot(x) for x in pair]) for pair in found] for found in (term.kernels, term.deltas))
    sign = float(sp.Integer(term.sign))
    return f"MomentTerm({sign}, {term.loops}, {_tuple(targets)}, {_tuple(kernels)}, {_tuple(deltas)})"
