r"""The recursions of one input, layer by layer to any depth, with learning rates by the equivalence principle or given.

Nothing here is a large-depth formula: the recursions are those that `derive.network` derives, their brackets are
integrated at every layer's own K (`derive.gaussian.one_input`), and the learning rates solve the equivalence principle
at this depth (`derive.design.equivalence`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.critical_solution import first_layer, network_equations
from derive.depth.tensor_recursions import Admitted, admit
from derive.design.equivalence import equal_shares
from derive.errors import DeriveError
from derive.gaussian.one_input import OneInputBrackets, OutOfRange, Real
from derive.network import RESIDUAL, recursion
from derive.network.component import Component
from derive.network.definition import xi
from derive.symbols import C_W, C_b, K, lambda_b, lambda_W

DEEPEST = 100_000


@dataclass(frozen=True)
class OneInput:
    """Every tensor of one input at every layer; entry l - 1 belongs to layer l.

    `multipliers` and `sources` are those of Theta' = lambda_b + source lambda_W + multiplier Theta: chi_perp of layer l
    and <ss> of the layer below. `missing` says why tensors do not exist; `error` is the brackets' relative error.
    """

    activation: str
    C_b: tuple[float, ...]
    C_W: tuple[float, ...]
    input_norm: float
    lambda_b: tuple[float, ...]
    lambda_W: tuple[float, ...]
    multipliers: tuple[float, ...]
    sources: tuple[float, ...]
    tensors: Mapping[str, tuple[float, ...]]
    missing: Mapping[str, str]
    error: float

    @property
    def depth(self) -> int:
        return len(self.C_W)

    @property
    def contributions(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What each layer's biases and weights add to the output's NTK."""
        carried = np.append(np.cumprod(np.array(self.multipliers)[::-1])[::-1], 1.0)
        biases, weights = np.array(self.lambda_b) * carried, np.array(self.lambda_W) * self.sources * carried
        return tuple(biases.tolist()), tuple(weights.tolist())


def one_input(
    activation: Activation | str,
    depth: int,
    C_b: float | Sequence[float],
    C_W: float | Sequence[float],
    input_norm: float = 1.0,
    lambda_b: float | Sequence[float] | None = None,
    lambda_W: float | Sequence[float] | None = None,
    tensors: bool = True,
    skip: float | Sequence[float] | None = None,
) -> OneInput:
    """K, Theta and all other tensors that exist (with `tensors`) at layers 1 to `depth`, for x.x/n_0 = `input_norm`.

    Without learning rates: those with which every layer contributes the same to the output's NTK, which is then 1.
    `skip` makes the steps between hidden layers residual, z' = skip z + b + W sigma(z); then there are K and Theta,
    the tensors of order 1/n do not close by themselves (docs/residual.md).

    >>> found = one_input("relu", 4, 0, 2, tensors=False)
    >>> found.lambda_b, found.lambda_W, found.tensors["Theta"][-1]
    ((0.125, 0.125, 0.125, 0.125), (0.125, 0.125, 0.125, 0.125), 1.0)
    """
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or not 1 <= depth <= DEEPEST:
        raise DeriveError(f"the depth is the number of weight layers, from 1 to {DEEPEST}, not {depth!r}")
    sigma = make_activation(activation)
    bias, weight = _per_layer("C_b", C_b, depth), _per_layer("C_W", C_W, depth)
    if not (np.isfinite(input_norm) and input_norm >= 0):
        raise DeriveError(f"the input's x.x/n_0 is a number from 0 on, not {input_norm!r}")
    system = _residual_system(sigma) if skip is not None else _system(sigma, tensors)
    skips = _skips(skip, depth)
    values, sources, multipliers = _kernel(system, bias, weight, skips, input_norm)
    if lambda_b is None or lambda_W is None:
        ones = [np.ones(1)] * depth
        shares = equal_shares([np.array([m]) for m in multipliers], ones, [np.array([s]) for s in sources])
        rates = [np.array(own, dtype=float) for own in shares]
    rate_b = rates[0] if lambda_b is None else np.array(_per_layer("lambda_b", lambda_b, depth))
    rate_W = rates[1] if lambda_W is None else np.array(_per_layer("lambda_W", lambda_W, depth))
    if not (np.isfinite(rate_b).all() and np.isfinite(rate_W).all()):
        raise DeriveError(
            f"no learning rates make the layers of {sigma.name} equivalent at depth {depth}: a layer's contribution to "
            "the NTK vanishes"
        )
    states = [system.start(Real(input_norm), bias[0], weight[0], rate_b[0], rate_W[0])]
    for layer in range(1, depth):
        here = (bias[layer], weight[layer], Real(rate_b[layer]), Real(rate_W[layer]), skips[layer])
        states.append(system.step(here, states[-1], values[layer - 1]))
    table = {name: tuple(float(s[i]) for s in states) for i, name in enumerate(system.names)}
    wrong = next((name for name, own in table.items() if not np.isfinite(own).all()), None)
    if wrong is not None:
        raise DeriveError(f"{wrong} of {sigma.name} leaves the range of numbers before layer {depth}")
    return OneInput(
        sigma.name,
        tuple(float(x) for x in bias),
        tuple(float(x) for x in weight),
        float(input_norm),
        tuple(rate_b.tolist()),
        tuple(rate_W.tolist()),
        tuple(float(m) for m in multipliers),
        tuple(float(s) for s in sources),
        table,
        dict(system.missing),
        system.brackets.error,
    )


def _kernel(
    system: _System,
    bias: list[np.longdouble],
    weight: list[np.longdouble],
    skips: list[np.longdouble],
    norm: float,
) -> tuple[list[list[np.longdouble]], list[np.longdouble], list[np.longdouble]]:
    """The brackets of every layer, and the NTK's sources of lambda_W and multipliers."""
    kernel = system.first_kernel(Real(norm), bias[0], weight[0])
    values, sources, multipliers = [], [Real(norm)], []
    for layer in range(1, len(weight)):
        try:
            own = system.brackets(kernel)
        except OutOfRange as error:
            raise OutOfRange(f"layer {layer} of {system.activation.name}: {error}", error.small) from None
        values.append(own)
        kernel, source, multiplier = system.kernel_step(kernel, bias[layer], weight[layer], skips[layer], own)
        sources.append(source)
        multipliers.append(multiplier)
    return values, sources, multipliers


def _skips(skip: float | Sequence[float] | None, depth: int) -> list[np.longdouble]:
    """The skip into each layer: none into the first and the last."""
    inner = max(depth - 2, 0)
    given = [skip or 0.0] * inner if not isinstance(skip, Sequence) else list(skip)
    if len(given) != inner or not all(np.isfinite(float(x)) for x in given):
        raise DeriveError(f"the skip is one number or {inner} numbers, one for each step between hidden layers")
    return [Real(0), *(Real(float(x)) for x in given), *[Real(0)] * (depth > 1)]


def _per_layer(name: str, value: float | Sequence[float], depth: int) -> list[np.longdouble]:
    """One number or one a layer, as extended-precision numbers; SymPy numbers keep their digits."""
    given = list(value) if isinstance(value, Sequence | np.ndarray) else [value] * depth
    if len(given) != depth:
        raise DeriveError(f"{name} is one number or {depth} numbers, one a layer, not {len(given)}")
    numbers = [Real(str(sp.N(x, 25))) if isinstance(x, sp.Expr) else Real(x) for x in given]
    if not all(np.isfinite(x) and x >= 0 for x in numbers):
        raise DeriveError(f"{name} holds a number that is negative or not finite")
    return numbers


class _System:
    """The compiled recursions of one activation."""

    def __init__(self, activation: Activation, admitted: Admitted) -> None:
        self.activation = activation
        self.missing = admitted.missing
        self.names = list(admitted.equations)
        self.brackets = OneInputBrackets(activation, admitted.brackets)
        equations = {name: e.expression for name, e in admitted.equations.items()}
        dummies = {b: sp.Symbol(f"b{i}") for i, b in enumerate(self.brackets.wanted)}
        known = {c: sp.Symbol(f"t_{c.name}") for e in equations.values() for c in e.atoms(Component)}
        theta = admitted.equations["Theta"]
        assert theta.source.coeff(lambda_b) == 1  # what `equal_shares` is told about biases
        active = [equations["K"], theta.source.coeff(lambda_W), theta.multiplier]
        state = [sp.Symbol(f"t_{name}") for name in self.names]
        kernel = sp.Symbol("t_K")
        replaced = {**dummies, **known, K: kernel}
        self._active = _function([kernel, C_b, C_W, xi, *dummies.values()], [e.xreplace(replaced) for e in active])
        rates = [C_b, C_W, lambda_b, lambda_W]
        right = [equations[name].xreplace(replaced) for name in self.names]
        self._step = _function([*rates, xi, *state, *dummies.values()], right)
        gram = sp.Symbol("gram")
        first = [_with_gram(first_layer()[name], gram) for name in self.names]
        self._start = _function([gram, *rates], first)
        self._first_kernel = _function([gram, C_b, C_W], [_with_gram(first_layer()["K"], gram)])

    def first_kernel(self, gram: np.longdouble, bias: np.longdouble, weight: np.longdouble) -> np.longdouble:
        return self._first_kernel(gram, bias, weight)[0]

    def kernel_step(
        self,
        kernel: np.longdouble,
        bias: np.longdouble,
        weight: np.longdouble,
        skip: np.longdouble,
        values: list[np.longdouble],
    ) -> list[np.longdouble]:
        """K of the next layer, and what multiplies lambda_W and Theta in its NTK."""
        return self._active(kernel, bias, weight, skip, *values)

    def start(self, gram: np.longdouble, *parameters: float | np.longdouble) -> list[np.longdouble]:
        return [Real(x) for x in self._start(gram, *parameters)]

    def step(
        self, parameters: Sequence[np.longdouble], state: list[np.longdouble], values: list[np.longdouble]
    ) -> list[np.longdouble]:
        """Every tensor of the next layer, whose parameters are C_b, C_W, lambda_b, lambda_W and the skip into it."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._step(*parameters, *state, *values)


def _with_gram(expression: sp.Expr, gram: sp.Symbol) -> sp.Expr:
    return expression.xreplace({c: gram for c in expression.atoms(Component)})


def _function(arguments: list[sp.Symbol], expressions: list[sp.Expr]) -> Callable[..., list[np.longdouble]]:
    return sp.lambdify(arguments, expressions, modules="numpy", cse=True)


@lru_cache(maxsize=32)
def _system(activation: Activation, tensors: bool) -> _System:
    equations = network_equations() if tensors else {name: network_equations()[name] for name in ("K", "Theta")}
    admitted = admit(equations, activation)
    for name in ("K", "Theta"):
        if name in admitted.missing:
            raise DeriveError(f"{activation.name} has no {name} at large width: {admitted.missing[name]}")
    return _System(activation, admitted)


@lru_cache(maxsize=32)
def _residual_system(activation: Activation) -> _System:
    """K and Theta of layers with a skip; a skip of 0 is a plain layer."""
    expressions = {name: recursion(name, RESIDUAL).single_input().expression for name in ("K", "Theta")}
    return _System(activation, admit(expressions, activation))
