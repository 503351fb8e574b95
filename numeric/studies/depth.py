"""The generalization error of a data set at infinite width against depth: bias and variance of (10.50)-(10.55)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.trained.generalization import test_loss
from numeric.trained.losses import MSE, CrossEntropy
from numeric.trained.prediction import predict


@dataclass(frozen=True)
class DepthRow:
    """The mean test loss per test input of one depth, as bias plus variance."""

    depth: int
    bias: float
    variance: float

    @property
    def total(self) -> float:
        return self.bias + self.variance


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
) -> list[DepthRow]:
    """Train on the inputs `train` of X and test on the others; y (N, n_L) holds the targets of all of them.

    `settings(depth)` gives C_b, C_W, lambda_b, lambda_W as attributes (`derive.design.recommendation.plan`).
    `loss` is "mse", or "cross-entropy" with y as probabilities, none of them zero: training then ends at log p, up to a
    shift that the loss does not see, and bias and variance are those of the second-order expansion (10.55).
    """
    targets = np.asarray(y, dtype=float).reshape(len(X), -1)
    chosen = list(train)
    test = [k for k in range(len(X)) if k not in set(chosen)]
    if not test or not chosen:
        raise NumericError("A study needs training inputs and test inputs.")
    if loss not in ("mse", "cross-entropy"):
        raise NumericError(f"The loss is 'mse' or 'cross-entropy', not {loss!r}.")
    kind: type[MSE] | type[CrossEntropy] = MSE if loss == "mse" else CrossEntropy
    end = kind(targets[chosen]).minimum(np.zeros_like(targets[chosen]))  # where training ends, on average
    rows = []
    for depth in depths:
        p = settings(depth)
        f = flow(activation, X, depth, None, p.C_b, p.C_W, p.lambda_b, p.lambda_W, tensors=["K", "Theta"])
        found = predict(f, end, chosen, rcond=rcond)
        result = test_loss(kind(targets[test]), found.mean_infinite, found.covariance_infinite)
        rows.append(DepthRow(depth, result.bias / len(test), result.variance / len(test)))
    return rows
