"""Real networks: MLPs of section 1 of the theory with tensorial learning rates, sampled and run in batches (JAX).

A batch of networks is one pytree of parameters with a leading axis; everything runs on JAX's default device. The
parametrization is the theory's: variances C_b, C_W/n, learning rates λ_b, λ_W/n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.activations import Definition, load
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.evaluation.inputs import Values, read_skip

Params = list[tuple[jax.Array, jax.Array]]


@dataclass(frozen=True, init=False)
class Networks:
    """An ensemble's definition: widths (n_0, n_1, ..., n_L) and hyperparameters, one value or L values each.

    `skip` makes residual networks of them, z' = skip z + b + W sigma(z) between hidden layers, as in `numeric.flow`.

    Hyperparameters have the defaults of `numeric.flow`: critical, and equivalent learning rates for inputs with
    x.x = n_0.

    >>> nets = Networks("tanh", (3, 8, 8, 2), C_b=0.1, C_W=1.2, lambda_b=0.3, lambda_W=1.0)
    >>> nets.outputs(nets.sample(jax.random.key(0), 5), jnp.ones((4, 3))).shape
    (5, 2, 4)
    """

    activation: Definition
    widths: tuple[int, ...]
    C_b: tuple[float, ...]
    C_W: tuple[float, ...]
    lambda_b: tuple[float, ...]
    lambda_W: tuple[float, ...]
    skip: tuple[float, ...]

    def __init__(
        self,
        activation: Definition,
        widths: Sequence[int],
        C_b: Values | str | None = None,
        C_W: Values | str | None = None,
        lambda_b: Values | str | None = None,
        lambda_W: Values | str | None = None,
        skip: Values | None = None,
    ) -> None:
        if len(widths) < 2 or min(widths) < 1:
            raise NumericError("widths are (n_0, n_1, ..., n_L): the input dimension, the hidden widths, the outputs.")
        object.__setattr__(self, "activation", activation)
        object.__setattr__(self, "widths", tuple(widths))
        given = {"C_b": C_b, "C_W": C_W, "lambda_b": lambda_b, "lambda_W": lambda_W}
        if any(value is None or isinstance(value, str) for value in given.values()):
            one = np.ones((1, self.widths[0]))
            own = (C_b, C_W, lambda_b, lambda_W)
            found = flow(activation, one, self.depth, None, *own, skip=skip, layers="last").parameters
            given = {name: np.asarray(getattr(found, name)) for name in given}
        for name, value in given.items():
            object.__setattr__(self, name, self._per_layer(name, value))
        steps = read_skip(skip, self.depth, self.widths[:-1], jnp.result_type(float))
        into = [0.0] * self.depth if steps is None else np.asarray(steps).tolist()
        object.__setattr__(self, "skip", tuple(into))

    def _per_layer(self, name: str, given: Values | str | None) -> tuple[float, ...]:
        value = np.asarray(given, dtype=float)
        if value.shape not in ((), (self.depth,)):
            raise NumericError(f"{name} is one number or {self.depth} numbers, one for each layer.")
        return tuple(float(x) for x in np.broadcast_to(value, (self.depth,)))

    @classmethod
    def of_flow(cls, flow: Any, outputs: int) -> Networks:
        """The real networks that a flow describes, with n_L outputs."""
        p = {name: np.asarray(getattr(flow.parameters, name)) for name in ("C_b", "C_W", "lambda_b", "lambda_W")}
        skip = None if flow.skip is None else np.asarray(flow.skip).tolist()
        return cls(flow.activation, (*flow.widths, outputs), **{name: tuple(v) for name, v in p.items()}, skip=skip)

    @property
    def depth(self) -> int:
        return len(self.widths) - 1

    @cached_property
    def sigma(self) -> Callable[[jax.Array], jax.Array]:
        derivatives = load(self.activation).FUNCTIONS.derivatives
        return lambda z: derivatives(z, 0)

    def sample_one(self, key: jax.Array) -> Params:
        """One network's (weight, bias) pairs."""
        params = []
        for layer, layer_key in enumerate(jax.random.split(key, self.depth)):
            weight_key, bias_key = jax.random.split(layer_key)
            fan_in, fan_out = self.widths[layer], self.widths[layer + 1]
            weight = jax.random.normal(weight_key, (fan_out, fan_in)) * np.sqrt(self.C_W[layer] / fan_in)
            params.append((weight, jax.random.normal(bias_key, (fan_out,)) * np.sqrt(self.C_b[layer])))
        return params

    @partial(jax.jit, static_argnums=(0, 2))
    def sample(self, key: jax.Array, count: int) -> Params:
        """`count` networks, reproducible from the key."""
        return jax.vmap(self.sample_one)(jax.random.split(key, count))

    def rates(self) -> list[tuple[float, float]]:
        """λ_W/n_{l-1} and λ_b for each layer's (weight, bias)."""
        return [(w / n, b) for w, b, n in zip(self.lambda_W, self.lambda_b, self.widths)]

    def output_one(self, params: Params, X: jax.Array) -> jax.Array:
        """The outputs of one network, (n_L, N)."""
        z = X.T
        for layer, (weight, bias) in enumerate(params):
            branch = weight @ (z if layer == 0 else self.sigma(z)) + bias[:, None]
            z = branch + self.skip[layer] * z if self.skip[layer] else branch
        return z

    @partial(jax.jit, static_argnums=0)
    def outputs(self, params: Params, X: jax.Array) -> jax.Array:
        """The outputs of a batch, (count, n_L, N)."""
        return jax.vmap(self.output_one, in_axes=(0, None))(params, X)

    def ntk_one(self, params: Params, X: jax.Array) -> jax.Array:
        """One network's NTK, [i1, i2, δ1, δ2]: layer by layer (inputs)·(inputs) times (signals)·(signals)."""
        inputs, slopes, z = [], [], X.T
        for layer, (weight, bias) in enumerate(params):
            below = z
            if layer > 0:
                z, slope = jax.jvp(self.sigma, (z,), (jnp.ones_like(z),))
                slopes.append(slope)
            inputs.append(z)
            z = weight @ z + bias[:, None]
            if self.skip[layer]:
                z = z + self.skip[layer] * below
        signals = jnp.broadcast_to(jnp.eye(len(z), dtype=z.dtype)[:, :, None], (len(z), *z.shape))  # [i, n, δ]
        total = jnp.zeros((), z.dtype)
        for layer, (rate_w, rate_b) in reversed(list(enumerate(self.rates()))):
            grams = rate_w * inputs[layer].T @ inputs[layer] + rate_b
            total = total + grams[None, None] * jnp.einsum("ina,jnb->ijab", signals, signals)
            if layer > 0:
                kept = self.skip[layer] * signals if self.skip[layer] else None
                signals = jnp.einsum("nm,ina->ima", params[layer][0], signals) * slopes[layer - 1][None]
                signals = signals if kept is None else signals + kept
        return total

    @partial(jax.jit, static_argnums=0)
    def ntk(self, params: Params, X: jax.Array) -> jax.Array:
        """The NTKs of a batch, (count, n_L, n_L, N, N)."""
        return jax.vmap(self.ntk_one, in_axes=(0, None))(params, X)


def flip_last_layer(params: Params) -> Params:
    """The partner with (W, b) of the last layer negated: z and dH change sign, H and the ddNTKs do not."""
    weight, bias = params[-1]
    return [*params[:-1], (-weight, -bias)]


def check_data(X: Any, y: Any, train: Sequence[int], outputs: int) -> tuple[jax.Array, jax.Array, tuple[int, ...]]:
    """X (N, n_0), y (N_train, n_L), train as JAX arrays and a tuple, or a clear complaint."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    y = y[:, None] if y.ndim == 1 else y
    if X.ndim != 2 or y.shape != (len(train), outputs):
        raise NumericError(
            f"X must be (N, n_0) and y (N_train, n_L) = ({len(train)}, {outputs}); they are {X.shape} and {y.shape}."
        )
    return jnp.asarray(X), jnp.asarray(y), tuple(int(k) for k in train)
