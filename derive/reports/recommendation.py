"""The report's first section: what to do with this activation, from `derive.design`."""

from __future__ import annotations

import sympy as sp

from derive.activations import Activation
from derive.design.recommendation import Recommendation, recommend
from derive.errors import DeriveError
from derive.layout import Table, Text
from derive.reports.document import Code, Section, Steps
from derive.reports.tex import cell
from derive.steps import Verbatim, said, typeset
from derive.symbols import C_W, C_b, lambda_b, lambda_W

DEPTHS = (4, 16, 64)
"""Layers of the networks in the table."""
CODE_DEPTH = 16
"""Layers of the network whose code is shown."""


def recommendation_section(sigma: Activation) -> Section:
    """Initialization, learning rates and width at three depths, and code; without a good initialization, why not."""
    advice: dict[int, Recommendation] = {}
    refused: list[str] = []
    for depth in DEPTHS:
        try:
            advice[depth] = recommend(sigma, depth)
        except DeriveError as error:
            refused.append(error.args[0])
    if not advice:
        return Section("Recommendation", (Text(refused[-1]),))
    shown = advice.get(CODE_DEPTH) or next(iter(advice.values()))
    header = (said("depth {}", typeset("L")), *map(str, advice))
    rows = tuple((label, *cells) for label, *cells in zip(_LABELS, *(_column(own) for own in advice.values())))
    return Section(
        "Recommendation",
        (
            Table(header, rows, "Exact at each depth; no large-depth formula."),
            *(Text(note) for note in (*refused, *shown.notes)),
            Steps(
                said("The network of depth {} as a PyTorch module ({} prints others)", str(shown.depth), _COMMAND),
                (Code(shown.code("torch"), runs=False),),
                folded=True,
            ),
            Code(f"import derive\nprint(derive.recommend({sigma.name!r}, depth={shown.depth}).to_json())"),
        ),
    )


_COMMAND = Verbatim("derive recommend --format torch|flax|equinox|keras")


_LABELS = (
    cell(C_b),
    cell(C_W),
    cell(sp.Symbol("x.x/n_0")),
    said("{}, first and last layer", lambda_b),
    said("{}, first and last layer", lambda_W),
    "largest ratio, times n",
    "width for 10 %",
    said("best {}", typeset("L/n")),
)


def _column(own: Recommendation) -> tuple[str, ...]:
    name, value = own.largest
    return (
        f"{float(own.C_b):.6g}",
        f"{float(own.C_W):.6g}",
        f"{own.input_norm:.5g}",
        *(f"{rates[0]:.3g}, {rates[-1]:.3g}" for rates in (own.lambda_b, own.lambda_W)),
        said("{}: {}", name, f"{value:.4g}"),
        str(own.width),
        "–" if own.aspect_ratio is None else f"{own.aspect_ratio:.3g}",
    )
