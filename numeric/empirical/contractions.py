r"""dNTK and ddNTKs of a given network: contractions of the learning-rate tensor with derivatives of its outputs.

With v_{i;d} = lambda grad z_{i;d} (PDLT (infinity.5) and (infinity.7)):

    H_{i1 i2; 12}         = grad z_1 . v_2
    dH_{i0 i1 i2; 012}    = v_1 Hess(z_0) v_2
    ddI_{i0 i1 i2 i3; ..} = D^3 z_0 [v_1, v_2, v_3]
    ddII_{i1 i2 i3 i4;..} = (Hess(z_1) v_3) lambda (Hess(z_2) v_4)

A model is any JAX function `apply(params, X)` of a batch of inputs that returns (inputs,) or (inputs, outputs). Results
have the neural axes first and the sample axes after them, each in the order of the subscripts; without an output axis
there are no neural axes. Derivatives are directional (jvp of jvp, and of one vjp): no Hessian is formed. Memory is
M P for dH and ddI and M^2 P for ddII, M being inputs times outputs and P the parameters. All functions can be
jitted and vmapped. Accuracy is rounding error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from numeric.errors import NumericError

Params = Any
Apply = Callable[[Params, Array], Array]


class _Flat:
    """A model as a function of one parameter vector to one vector of outputs, (outputs, inputs) flattened."""

    def __init__(self, apply: Apply, params: Params, X: Array, rates: Params | None) -> None:
        self.point, unravel = ravel_pytree(params)
        self.rates = flat_rates(params, rates)
        shape = jax.eval_shape(apply, params, X).shape
        if len(shape) not in (1, 2):
            raise NumericError(
                f"apply(params, X) must return (inputs,) or (inputs, outputs), not an array of shape {shape}"
            )
        self.samples = shape[0]
        self.neurons = shape[1] if len(shape) == 2 else None

        def function(point: Array) -> Array:
            z = apply(unravel(point), X)
            return z if self.neurons is None else z.T.ravel()

        self.function = function

    def vectors(self) -> Array:
        """v, the learning-rate tensor times the gradients, as (M, P)."""
        return self.rates[None] * jax.jacrev(self.function)(self.point)

    def along(self, *directions: Array) -> Array:
        """The directional derivative of every output along one or more parameter vectors."""

        def derivative(function: Callable[[Array], Array], direction: Array) -> Callable[[Array], Array]:
            return lambda point: jax.jvp(function, (point,), (direction,))[1]

        function: Callable[[Array], Array] = self.function
        for direction in directions:
            function = derivative(function, direction)
        return function(self.point)

    def arrange(self, tensor: Array) -> Array:
        """From axes that run over (neuron, sample) to neural axes, then sample axes."""
        if self.neurons is None:
            return tensor
        rank = tensor.ndim
        split = tensor.reshape((self.neurons, self.samples) * rank)
        return split.transpose(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))


def flat_rates(params: Params, rates: Params | None) -> Array:
    """The diagonal of the learning-rate tensor as one vector; ones by default."""
    if rates is None:
        return jnp.ones_like(ravel_pytree(params)[0])
    expected: object = jax.tree.structure(params)
    if expected != jax.tree.structure(rates):
        raise NumericError("the learning rates must be a tree of the same structure as the parameters")
    try:
        full = jax.tree.map(lambda p, rate: jnp.broadcast_to(jnp.asarray(rate, p.dtype), p.shape), params, rates)
    except ValueError as error:
        raise NumericError(f"a learning rate does not broadcast to its parameters: {error}") from None
    return ravel_pytree(full)[0]


def empirical_dntk(apply: Apply, params: Params, X: Array, rates: Params | None = None) -> Array:
    """dH, three neural axes and three sample axes.

    `rates` holds the diagonal of the learning-rate tensor: a tree like `params` of scalars or arrays (default: ones).
    """
    model = _Flat(apply, params, X, rates)
    v = model.vectors()
    return model.arrange(_symmetric(v, 2, lambda index: model.along(*(v[k] for k in index))))


def empirical_ddntk(apply: Apply, params: Params, X: Array, rates: Params | None = None) -> tuple[Array, Array]:
    """(ddI, ddII), four neural axes and four sample axes each."""
    model = _Flat(apply, params, X, rates)
    v = model.vectors()
    first = _symmetric(v, 3, lambda index: model.along(*(v[k] for k in index)))

    def hessian_times(direction: Array) -> Array:
        function = lambda point: jax.jvp(model.function, (point,), (direction,))[1]  # noqa: E731
        return jax.jacrev(function)(model.point)

    u = jax.lax.map(hessian_times, v)  # [direction, output, parameter]
    second = jnp.einsum("cap,dbp->abcd", u * model.rates[None, None], u)
    return model.arrange(first), model.arrange(second)


def _symmetric(v: Array, directions: int, derivative: Callable[[Array], Array]) -> Array:
    """All derivatives along `directions` of the vectors, each sorted choice evaluated once: [output, direction...]."""
    count = v.shape[0]
    every = np.indices((count,) * directions).reshape(directions, -1).T
    chosen, where = np.unique(np.sort(every, axis=1), axis=0, return_inverse=True)
    values = jax.lax.map(derivative, jnp.asarray(chosen))  # [choice, output]
    full = values[jnp.asarray(where.ravel())].reshape((count,) * directions + (count,))
    return jnp.moveaxis(full, -1, 0)
