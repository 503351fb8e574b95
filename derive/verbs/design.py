"""`derive.recommend`: how to initialize and train a network of a given depth, and how wide to make it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sympy as sp

from derive.activations import Activation
from derive.design import recommendation
from derive.design.recommendation import Recommendation
from derive.errors import DeriveError
from derive.verbs.tables import read_table


def recommend(
    activation: str | sp.Expr | Activation,
    depth: int,
    width: int | None = None,
    outputs: int = 1,
    input_norm: float | None = None,
    inputs: int | None = None,
    targets: float | None = None,
    s: float = 0.0,
    data: str | Path | None = None,
    point: int = 0,
) -> Recommendation:
    """Initialization, learning rates of every layer, 1/n corrections, width and aspect ratio, exact at this depth.

    `data` names a CSV file of inputs: the largest stable learning rate is then that of the data set, after each input
    has been normalized to the recommended norm.

    >>> recommend("tanh", 16).width
    94
    """
    if data is None:
        return recommendation.recommend(activation, depth, width, outputs, input_norm, inputs, targets, s, point)
    import numpy as np

    X = np.array(read_table(data)[1], dtype=float)
    norms = np.mean(X**2, axis=1, keepdims=True)
    if not norms.min() > 0:
        raise DeriveError(f"{data} holds an input that is zero, which cannot be normalized.")
    found = recommendation.recommend(
        activation, depth, width, outputs, input_norm, X.shape[1] if inputs is None else inputs, targets, s, point
    )
    from numeric import flow

    rates = [[rate / found.built_width**s for rate in own] for own in (found.lambda_b, found.lambda_W)]
    scaled = X * np.sqrt(found.input_norm / norms)
    bias, weight = float(found.C_b), float(found.C_W)
    theta = flow(found.activation, scaled, depth, 1, bias, weight, *rates, tensors="Theta", layers="last").Theta
    largest = float(np.linalg.eigvalsh(np.asarray(theta))[-1])
    note = (
        f"eta_max = {2 / largest:.4g}: 2 over the largest eigenvalue {largest:.4g} of Theta on the {len(X)} inputs of "
        f"{data}, each normalized to x.x/n_0 = {found.input_norm:.6g}."
    )
    notes = tuple(note if line.startswith("eta_max") else line for line in found.notes)
    return replace(found, eta_max=2 / largest, notes=notes)
