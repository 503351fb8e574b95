"""The report's first section: what to do with this activation, from `derive.design`."""

from __future__ import annotations

from derive.activations import Activation
from derive.critical import Criticality
from derive.design.recommendation import recommend
from derive.errors import DeriveError
from derive.layout import Text
from derive.reports.document import Block, Code, Section
from derive.reports.tex import brief
from derive.steps import equal, listed, said
from derive.symbols import C_W, C_b

DEPTH = 8
"""Layers of the network that the recommendation is for."""


def recommendation_section(sigma: Activation, found: Criticality) -> Section:
    """Initialization, learning rates and width for one depth; without a critical point, why there is none."""
    if not found.points:
        return Section("Recommendation", (Text(said("None: {}", found.reason)),))
    point = found.points[0]
    start = listed([equal(C_b, brief(point.C_b).sides[0], digits=5), equal(C_W, brief(point.C_W).sides[0], digits=5)])
    blocks: list[Block] = [Text(said("Initialize critically: {}.", start))]
    try:
        advice = recommend(sigma, depth=DEPTH)
    except DeriveError as error:
        blocks.append(Text(error.args[0]))
        return Section("Recommendation", tuple(blocks))
    blocks += advice.blocks()
    blocks.append(Code(f"import derive\nprint(derive.recommend({sigma.name!r}, depth={DEPTH}).to_json())"))
    return Section("Recommendation", tuple(blocks))
