"""K or Theta of a network between two sets of inputs, for whoever needs a rectangle: kernel(X1, X2).

The hyperparameters are fixed once, from a sample of the inputs where defaults depend on them, so that every block
belongs to the same network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numeric.activations import Definition
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.evaluation.inputs import Values

SAMPLE = 64
"""Inputs from whose norms the learning rates follow where they are not given."""


class NetworkKernel:
    """kernel(X1, X2) of an infinitely wide network at its output layer, (N1, N2).

    >>> kernel = NetworkKernel("erf", np.eye(3), depth=2, tensor="K", C_b=0.0, C_W=1.0)
    >>> kernel(np.eye(3)[:2], np.eye(3)).shape
    (2, 3)
    """

    copies = 64
    """Arrays of a block's size that its evaluation may hold: a cautious guess, not a measurement."""

    def __init__(
        self,
        activation: Definition,
        X: Any,
        depth: int,
        tensor: str = "Theta",
        *,
        C_b: Values | str | None = None,
        C_W: Values | str | None = None,
        lambda_b: Values | str | None = None,
        lambda_W: Values | str | None = None,
    ) -> None:
        if tensor not in ("K", "Theta"):
            raise NumericError(f"the kernel of a network is 'K' or 'Theta', not {tensor!r}")
        self.activation, self.depth, self.tensor = activation, depth, tensor
        sample = np.asarray(X)[:SAMPLE]
        found = flow(
            activation, sample, depth, None, C_b, C_W, lambda_b, lambda_W, tensors=tensor, layers="last", progress=False
        )
        own = found.parameters
        self.parameters = {name: np.asarray(getattr(own, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
        """What the network has, one value a layer."""

    def __call__(self, X1: Any, X2: Any) -> np.ndarray:
        first, second = np.asarray(X1, float), np.asarray(X2, float)
        same = first.shape == second.shape and np.array_equal(first, second)
        inputs = first if same else np.concatenate([first, second])
        own = {name: tuple(map(float, value)) for name, value in self.parameters.items()}
        found = flow(
            self.activation,
            inputs,
            self.depth,
            None,
            own["C_b"],
            own["C_W"],
            own["lambda_b"],
            own["lambda_W"],
            tensors=self.tensor,
            layers="last",
            progress=False,
        )
        values = np.asarray(getattr(found, self.tensor))
        return values if same else values[: len(first), len(first) :]

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) for every input."""
        inputs = np.asarray(X, float)
        parts = [
            np.diagonal(self(inputs[i : i + SAMPLE], inputs[i : i + SAMPLE])) for i in range(0, len(inputs), SAMPLE)
        ]
        return np.concatenate(parts)
