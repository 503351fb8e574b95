r"""A layer's definition as data: what z' is a sum of. The engine takes any of them; none has code of its own.

>>> print(TWO_MATRICES)
z'_i = b_i + sum_j W_ij sigma(z_j) + sum_j X_ij tau(z_j)
>>> print(INPUT_SKIP)
z'_i = b_i + sum_j W_ij sigma(z_j) + sum_j Y_ij x_j
>>> [term.name for term in RESIDUAL.terms if term.persistent]
['skip']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from derive import symbols
from derive.errors import DeriveError

IDENTITY = "identity"
"""The activation phi(z) = z: a linear layer, and what a skip connection passes on."""


@dataclass(frozen=True)
class Bias:
    """b_i: E[b b] = variance, learning rate `rate`; it meets a constant, so a pair of biases gives the factor 1."""

    variance: sp.Expr = symbols.C_b
    rate: sp.Expr = symbols.lambda_b
    name: str = "b"
    persistent: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.name}_i"


@dataclass(frozen=True)
class Weights:
    """sum_j M_ij phi(z_j) over the layer below: E[M M] = variance / n_l, learning rate `rate` / n_l."""

    name: str = "W"
    activation: str = "sigma"
    variance: sp.Expr = symbols.C_W
    rate: sp.Expr = symbols.lambda_W
    persistent: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"sum_j {self.name}_ij {self.activation}(z_j)"


@dataclass(frozen=True)
class InputWeights:
    """sum_j M_ij x_j over the network's input: E[M M] = variance / n_0, learning rate `rate` / n_0."""

    name: str = "W"
    variance: sp.Expr = symbols.C_W
    rate: sp.Expr = symbols.lambda_W
    persistent: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"sum_j {self.name}_ij x_j"


@dataclass(frozen=True)
class Skip:
    """strength * z_i, the neuron itself carried over. `persistent`: a neuron's z' knows its own z at O(1)."""

    strength: sp.Expr
    name: str = "skip"
    persistent: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{self.strength} z_i"


Term = Bias | Weights | InputWeights | Skip


@dataclass(frozen=True)
class Layer:
    """z'_i as a sum of terms with independent parameters."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        names = [term.name for term in self.terms]
        if len(set(names)) < len(names):
            raise DeriveError(f"the terms of a layer need different names, not {', '.join(names)}")
        if sum(isinstance(term, Skip) for term in self.terms) > 1:
            raise DeriveError("write several skip connections as one with the sum of their strengths")

    def __str__(self) -> str:
        return "z'_i = " + " + ".join(map(str, self.terms))


def _hyperparameters(name: str) -> tuple[sp.Symbol, sp.Symbol]:
    return sp.Symbol(f"C_{name}", positive=True), sp.Symbol(f"lambda_{name}", nonnegative=True)


C_X, lambda_X = _hyperparameters("X")
C_Y, lambda_Y = _hyperparameters("Y")
xi = sp.Symbol("xi", real=True)

FIRST = Layer((Bias(), InputWeights()))
"""The first layer of every network here: z = b + W x."""
MLP = Layer((Bias(), Weights()))
TWO_MATRICES = Layer((Bias(), Weights(), Weights("X", "tau", C_X, lambda_X)))
INPUT_SKIP = Layer((Bias(), Weights(), InputWeights("Y", C_Y, lambda_Y)))
RESIDUAL = Layer((Skip(xi), Bias(), Weights()))
FROZEN_WEIGHTS = Layer((Bias(), Weights(rate=sp.S.Zero)))
"""Weights without a learning rate: only biases and the layers below learn."""

LAYERS = {
    "mlp": MLP,
    "two-matrices": TWO_MATRICES,
    "input-skip": INPUT_SKIP,
    "residual": RESIDUAL,
    "frozen-weights": FROZEN_WEIGHTS,
}
"""Definitions by name, for the command line."""
