"""The report's first section: what to do with this activation, from `derive.design`."""

from __future__ import annotations

from importlib import import_module

from derive.activations import Activation
from derive.critical import Criticality
from derive.errors import DeriveError
from derive.layout import Table, Text
from derive.reports.document import Block, Code, Section
from derive.reports.tex import brief
from derive.steps import equal, listed, said
from derive.symbols import C_W, C_b

DEPTH = 8
"""Layers of the network that the recommendation is for."""
PER_LAYER = {
    "bias learning rates": "lambda_b",
    "weight learning rates": "lambda_W",
    "standard deviation of weights": "weight_std",
}
OVERALL = {"Largest learning rate": "eta_max", "Width": "width", "Depth over width": "aspect_ratio"}


def recommendation_section(sigma: Activation, found: Criticality) -> Section:
    """Initialization, learning rates and width for one depth; without a critical point, why there is none."""
    if not found.points:
        return Section("Recommendation", (Text(said("None: {}", found.reason)),))
    point = found.points[0]
    start = listed([equal(C_b, brief(point.C_b).sides[0], digits=5), equal(C_W, brief(point.C_W).sides[0], digits=5)])
    blocks: list[Block] = [Text(said("Initialize critically: {}.", start))]
    recommend = getattr(import_module("derive.design"), "recommend", None)
    if recommend is None:
        return Section("Recommendation", tuple(blocks))
    try:
        advice = recommend(sigma, depth=DEPTH)
    except DeriveError as error:
        blocks.append(Text(error.args[0]))
        return Section("Recommendation", tuple(blocks))
    data = advice.to_json()
    rows = tuple((name, listed(map(_shown, data[key]))) for name, key in PER_LAYER.items() if data.get(key))
    blocks.append(Table(("quantity", f"layers 1 to {DEPTH}"), rows, f"For a network of {DEPTH} layers."))
    if data.get("corrections"):
        ratios = tuple((str(name), _shown(value)) for name, value in data["corrections"].items())
        blocks.append(Table(("ratio", "n times its value"), ratios, "The size of finite-width corrections there."))
    blocks += [Text(f"{name}: {_shown(data[key])}.") for name, key in OVERALL.items() if data.get(key) is not None]
    blocks += [Text(note) for note in data.get("notes", [])]
    blocks.append(Code(f"print(derive.recommend({sigma.name!r}, depth={DEPTH}).to_json())"))
    return Section("Recommendation", tuple(blocks))


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
