"""`derive.recommend`: how to initialize and train a network of a given depth, and how wide to make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations import Activation
from derive.design import recommendation
from derive.design.recommendation import Recommendation, Tensors
from derive.errors import DeriveError
from derive.given import Number
from derive.verbs.residual import read_skip
from derive.verbs.tables import read_table

if TYPE_CHECKING:
    import numpy as np

    from numeric.evaluation.results import Flow


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
    layer: str = "mlp",
    skip: Number | None = None,
) -> Recommendation:
    """Initialization, learning rates of every layer, 1/n corrections, width and aspect ratio, exact at this depth.

    `data` names a CSV file of inputs: the largest stable learning rate is then that of the data set, after each input
    has been normalized to the recommended norm. `layer="residual"` is for z' = skip z + b + W sigma(z) between hidden
    layers.

    >>> recommend("tanh", 16).width
    94
    """
    strength = read_skip(layer, skip, "Recommendations")
    X = None if data is None else _inputs(data)
    if X is not None and inputs is None:
        inputs = X.shape[1]
    found = recommendation.recommend(
        activation,
        depth,
        width,
        outputs,
        input_norm,
        inputs,
        targets,
        s,
        point,
        strength,
        None if strength is None or depth < 3 else _residual_tensors,
    )
    return found if X is None else _for_data(found, X, str(data))


def _flow(found: Recommendation, X: np.ndarray, rates: tuple[list[float], list[float]], tensors: str | None) -> Flow:
    """The theory on these inputs, with the recommendation's initialization."""
    from numeric import flow

    skip = None if found.skip is None or found.depth < 3 else float(found.skip)
    parameters = (found.C_b_layers, found.C_W_layers, *rates)
    return flow(found.activation, X, found.depth, 1, *parameters, skip=skip, tensors=tensors, layers="last")


def _residual_tensors(found: Recommendation) -> tuple[Tensors, Mapping[str, str]]:
    """Tensors of one input at the output, by the functionals that close where neurons persist."""
    import numpy as np

    x = np.array([[found.input_norm**0.5]])
    f = _flow(found, x, (list(found.lambda_b), list(found.lambda_W)), None)
    return {name: float(np.asarray(getattr(f, name)).ravel()[0]) for name in f.names}, f.missing


def _inputs(data: str | Path) -> np.ndarray:
    import numpy as np

    X = np.array(read_table(data)[1], dtype=float)
    if not np.mean(X**2, axis=1).min() > 0:
        raise DeriveError(f"{data} holds an input that is zero, which cannot be normalized.")
    return X


def _for_data(found: Recommendation, X: np.ndarray, name: str) -> Recommendation:
    """The recommendation with the largest stable learning rate of these inputs."""
    import numpy as np

    factor = found.built_width**found.s
    rates = ([rate / factor for rate in found.lambda_b], [rate / factor for rate in found.lambda_W])
    scaled = X * np.sqrt(found.input_norm / np.mean(X**2, axis=1, keepdims=True))
    largest = float(np.linalg.eigvalsh(np.asarray(_flow(found, scaled, rates, "Theta").Theta))[-1])
    note = (
        f"eta_max = {2 / largest:.4g}: 2 over the largest eigenvalue {largest:.4g} of Theta on the {len(X)} inputs of "
        f"{name}, each normalized to x.x/n_0 = {found.input_norm:.6g}."
    )
    notes = tuple(note if line.startswith("eta_max") else line for line in found.notes)
    return replace(found, eta_max=2 / largest, notes=notes, options=(*found.options, "--data FILE"))
