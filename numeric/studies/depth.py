"""The mean test loss of a data set against depth: bias and variance (10.50)-(10.55), to first order in 1/n if asked.

Targets can be rescaled to the outputs' own scale at each depth, (infinity.26), which is the same as rescaling outputs,
(infinity.25): without it corrections of deep networks grow as L²/n instead of L/n. Losses are those of the targets as
given, so that depths can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.evaluation.results import Flow
from numeric.trained.algorithms import Algorithm
from numeric.trained.generalization import finite_test_loss, test_loss
from numeric.trained.losses import MSE, CrossEntropy
from numeric.trained.prediction import predict


@dataclass(frozen=True)
class FiniteRow:
    """n times what finite width adds to the mean test loss per test input, to first order, for one algorithm."""

    bias: float
    variance: float

    @property
    def total(self) -> float:
        return self.bias + self.variance


@dataclass(frozen=True)
class DepthRow:
    """The mean test loss per test input of one depth, as bias plus variance at infinite width.

    `finite` holds the coefficients of 1/n by algorithm; `scale` is what the targets were multiplied with for training.
    """

    depth: int
    bias: float
    variance: float
    scale: float = 1.0
    finite: Mapping[str, FiniteRow] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return self.bias + self.variance


def output_scale(f: Flow, train: Sequence[int]) -> float:
    """√(K at the output over K of the first layer), averaged over inputs: (1/L)^(p_0/2) of (infinity.26), exactly."""
    last, first = (np.diagonal(np.asarray(layer.K))[list(train)] for layer in (f, f.layer(1)))
    return float(np.sqrt(np.mean(last) / np.mean(first)))


def depth_study(
    activation: Any,
    X: Any,
    y: Any,
    train: Sequence[int],
    depths: Sequence[int],
    settings: Callable[[int], Any],
    *,
    loss: str = "mse",
    rcond: float | None = None,
    algorithms: Mapping[str, Callable[[float], Algorithm]] | None = None,
    rescale: bool = False,
) -> list[DepthRow]:
    """Train on the inputs `train` of X and test on the others; y (N, n_L) holds the targets of all of them.

    `settings(depth)` gives C_b, C_W, lambda_b, lambda_W as attributes (`derive.design.recommendation.plan`).
    `loss` is "mse", or "cross-entropy" with y as probabilities, none of them zero: training then ends at log p, up to a
    shift that the loss does not see, and bias and variance are those of the second-order expansion (10.55).
    `algorithms` asks for the coefficients of 1/n (MSE only): by name, what makes an algorithm of the training NTK's
    largest eigenvalue. `rescale` multiplies the targets with the outputs' scale at each depth.
    """
    targets = np.asarray(y, dtype=float).reshape(len(X), -1)
    chosen = list(train)
    test = [k for k in range(len(X)) if k not in set(chosen)]
    if not test or not chosen:
        raise NumericError("A study needs training inputs and test inputs.")
    if loss not in ("mse", "cross-entropy"):
        raise NumericError(f"The loss is 'mse' or 'cross-entropy', not {loss!r}.")
    if loss != "mse" and (algorithms or rescale):
        raise NumericError("Finite width and rescaled targets are for the MSE loss.")
    kind: type[MSE] | type[CrossEntropy] = MSE if loss == "mse" else CrossEntropy
    end = kind(targets[chosen]).minimum(np.zeros_like(targets[chosen]))  # where training ends, on average
    wanted = None if algorithms else ["K", "Theta"]
    rows = []
    for depth in depths:
        p = settings(depth)
        # tensors at width 1 are the coefficients of 1/n
        f = flow(activation, X, depth, 1 if algorithms else None, p.C_b, p.C_W, p.lambda_b, p.lambda_W, tensors=wanted)
        scale = output_scale(f, chosen) if rescale else 1.0
        found = predict(f, scale * end, chosen, rcond=rcond)
        result = test_loss(kind(scale * targets[test]), found.mean_infinite, found.covariance_infinite)
        unit, finite = len(test) * scale**2, {}
        for name, make in (algorithms or {}).items():
            own = predict(f, scale * end, chosen, make(float(found.kernel.modes.h[-1])), rcond=rcond)
            change = finite_test_loss(own, scale * targets[test])
            finite[name] = FiniteRow(change.bias_change / unit, change.variance_change / unit)
        rows.append(DepthRow(depth, result.bias / unit, result.variance / unit, scale, finite))
    return rows
