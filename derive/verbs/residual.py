"""What the verbs say of residual layers: the skip that a user gives, numbers at finite depth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import sympy as sp

from derive.depth import ExponentTable
from derive.depth.exact_flow import ExactFlow
from derive.depth.learning_rates import CONSTANT
from derive.design.residual import residual_criticality
from derive.design.residual_growth import BRANCHES, ResidualGrowth
from derive.errors import DeriveError
from derive.given import Number, number

SHOWN_LAYERS = (2, 4, 8, 12)
"""Hidden layers at which the ratios of a residual network are listed."""
DEPTHS = (4, 8)
"""Networks with a skip of one whose numbers are listed."""


def read_skip(layer: str, skip: Number | None, what: str) -> sp.Expr | None:
    """The strength of the skip connection; None for plain layers."""
    if layer not in ("mlp", "residual"):
        raise DeriveError(f"{what} are known for the layers mlp and residual, not {layer!r}.")
    if layer == "mlp":
        if skip is not None:
            raise DeriveError("--skip belongs to --layer residual.")
        return None
    if skip is None:
        raise DeriveError("A residual layer needs --skip, the strength of its skip connection, such as 0.8.")
    return number(skip, "skip")


def with_depth_numbers(table: ExponentTable, point: int = 0, layers: Iterable[int] = SHOWN_LAYERS) -> ExponentTable:
    """The ratios at finite depth, exact, where the solver has no coefficients for them."""
    if len(table.tensors) > 2 or table.skip is None:
        return table
    import numpy as np

    from numeric import flow

    chosen = residual_criticality(table.activation, table.skip).points[point]
    shown, factor = tuple(layers), float(1 - table.skip**2)
    C_b, C_W = float(chosen.C_b), float(chosen.C_W)
    depth = max(shown) + 1
    norm = 1.0 if chosen.K_star.free_symbols else (float(chosen.K_star) - C_b / factor) * factor / C_W
    f = flow(
        table.activation,
        [[norm**0.5]],
        depth,
        1,
        [C_b / factor, *[C_b] * (depth - 2), C_b / factor],
        [C_W / factor, *[C_W] * (depth - 2), C_W / factor],
        lambda_b=1.0,
        lambda_W=1.0,
        skip=float(table.skip),
        tolerance=1e-6,
    )
    tensors = {n: tuple(float(np.asarray(f.layer(l)[n]).ravel()[0]) for l in shown) for n in f.names}
    return replace(table, finite=ExactFlow(norm, shown, tensors, CONSTANT))


def with_growth_numbers(found: ResidualGrowth, depths: Iterable[int] = DEPTHS) -> ResidualGrowth:
    """K, Theta and V/K^2 at the last hidden layer of networks of these depths, for each scale of the branches."""
    import numpy as np

    from numeric import flow

    numbers = {}
    for branch, power in BRANCHES.items():
        rows = []
        for L in depths:
            C_W = [1.0, *[L ** -float(power)] * (L - 2), 1.0]
            skip, names = float(found.skip), ["Theta", "V"]
            f = flow(found.activation, [[1.0]], L, 1, 0.0, C_W, 1 / L, 1 / L, skip=skip, tensors=names, tolerance=1e-6)
            K, T, V = (float(np.asarray(f.layer(L - 1)[n]).ravel()[0]) for n in ("K", "Theta", "V"))
            rows.append((L, K, T, V / K**2))
        numbers[branch] = tuple(rows)
    return replace(found, numbers=numbers)
