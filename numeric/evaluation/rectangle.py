"""K or Theta of a network between two sets of inputs, for whoever needs a rectangle: kernel(X1, X2).

The hyperparameters are fixed once, from the inputs where defaults depend on them, so that every block belongs to the
same network. Blocks come from `numeric.evaluation.kernel_blocks` and stay within a memory budget.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from numeric.activations import Definition
from numeric.errors import NumericError
from numeric.evaluation.inputs import Inputs, Values
from numeric.evaluation.kernel_blocks import MEMORY, Blocks, at_each_input, network_run


class NetworkKernel:
    """kernel(X1, X2) of an infinitely wide network at its output layer, (N1, N2); only the pairs that are asked for.

    X are the (training) inputs from which hyperparameters follow that are not given, as in `numeric.kernel_matrices`.

    >>> kernel = NetworkKernel("erf", np.eye(3), depth=2, tensor="K", C_b=0.0, C_W=1.0)
    >>> kernel(np.eye(3)[:2], np.eye(3)).shape
    (2, 3)
    """

    def __init__(
        self,
        activation: Definition,
        X: Inputs,
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
        names = ("K",) if tensor == "K" else ("K", "Theta")
        self._run = network_run(activation, X, depth, C_b, C_W, lambda_b, lambda_W, tensors=names)
        own = self._run.parameters
        self.parameters = {name: np.asarray(getattr(own, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
        """What the network has, one value a layer."""

    def __call__(self, X1: Inputs, X2: Inputs, memory: float = MEMORY) -> np.ndarray:
        first, second = np.asarray(X1, float), np.asarray(X2, float)
        same = first.shape == second.shape and np.array_equal(first, second)
        found = np.empty((len(first), len(second)))
        for rows, columns, block in self.blocks(first, None if same else second, memory, progress=False):
            found[rows, columns] = block
            if same:
                found[columns, rows] = block.T
        return found

    def blocks(
        self, X: Inputs, against: Inputs | None = None, memory: float = MEMORY, progress: bool | None = None
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Rows, columns and values; without `against` the blocks on and above the diagonal."""
        for rows, columns, tensors in Blocks(self._run, X, against, memory).each(progress):
            yield rows, columns, tensors[self.tensor]

    def diagonal(self, X: Inputs) -> np.ndarray:
        """k(x, x) for every input."""
        return at_each_input(self._run, X)[self.tensor]
