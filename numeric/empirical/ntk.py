"""The NTK of a real network by the cheapest route, in batches within a memory budget, and without ever forming it.

Two routes (Novak et al. 2022). Jacobian contraction computes the gradient of every output on every input, N O backward
passes, and contracts them, 2 N^2 O^2 P operations. NTK-vector products push one unit vector back and forward again for
every pair of inputs and every output: about 3 N^2 O passes, but no contraction. With P parameters and a forward pass
of F operations an input, the second is cheaper when O P is large against F: many outputs, few shared parameters.
Inputs must not see each other in the model (no batch statistics), which is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from numeric.empirical.contractions import Apply, Params, flat_rates
from numeric.errors import NumericError

MEMORY = 1e9
"""Default budget in bytes for what is held at once besides the parameters and the answer."""


def empirical_ntk(
    apply: Apply,
    params: Params,
    X: Array,
    rates: Params | None = None,
    *,
    X2: Array | None = None,
    method: str = "auto",
    memory: float = MEMORY,
) -> Array:
    """H[i1, i2, 1, 2] between the inputs X and X2 (X itself by default), or (inputs, inputs2) without an output axis.

    `apply(params, X)` returns (inputs,) or (inputs, outputs). `rates` is the diagonal of the learning-rate tensor: a
    tree like `params` of scalars or arrays (default: ones). `method` is "jacobian", "products" or "auto", the one with
    fewer operations. Accuracy is rounding error either way.

    >>> apply = lambda w, X: X @ w
    >>> empirical_ntk(apply, jnp.ones(2), jnp.array([[1.0, 0.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [3.0, 25.0]]
    """
    model = SampleModel(apply, params, X, rates)
    if method == "auto":
        method = cheapest(model, len(X), len(X if X2 is None else X2))
    if method not in ("jacobian", "products"):
        raise NumericError(f"the NTK is computed by 'jacobian', 'products' or 'auto', not {method!r}")
    block = _jacobian_block if method == "jacobian" else _product_block
    rows = max(1, int(memory / (2 * model.itemsize * model.outputs * max(model.parameters, 1))))
    left = [X[i : i + rows] for i in range(0, len(X), rows)]
    right = left if X2 is None else [X2[i : i + rows] for i in range(0, len(X2), rows)]
    step = jax.jit(partial(block, model))
    blocks: list[list[Array]] = []
    for i, a in enumerate(left):
        # a block and its transpose are one computation
        done = [blocks[j][i].transpose(1, 0, 3, 2) for j in range(i)] if X2 is None else []
        blocks.append(done + [step(a, b) for b in right[len(done) :]])
    H = jnp.concatenate([jnp.concatenate(row, axis=3) for row in blocks], axis=2)
    return H if model.has_output_axis else H[0, 0]


def ntk_vector_product(
    apply: Apply, params: Params, X: Array, vector: Array, rates: Params | None = None, *, X2: Array | None = None
) -> Array:
    """H(X, X2) times a vector in the shape of the outputs on X2, by one backward and one forward pass.

    Nothing larger than the parameters and the activations is held; the model may mix its inputs.
    """
    other = X if X2 is None else X2
    out, pull = jax.vjp(lambda p: apply(p, other), params)
    if jnp.shape(vector) != out.shape:
        raise NumericError(f"the vector must have the shape of the outputs, {out.shape}, not {jnp.shape(vector)}")
    (gradient,) = pull(jnp.asarray(vector, out.dtype))
    flat, unravel = ravel_pytree(gradient)
    direction = unravel(flat_rates(params, rates) * flat)
    return jax.jvp(lambda p: apply(p, X), (params,), (direction,))[1]


def pseudo_ntk(
    apply: Apply,
    params: Params,
    X: Array,
    rates: Params | None = None,
    *,
    X2: Array | None = None,
    memory: float = MEMORY,
) -> Array:
    """The NTK of the sum of all O outputs over sqrt(O): (inputs, inputs2), O^2 times smaller than the NTK (seed 001).

    It stands for the NTK times the identity of outputs; the relative difference falls as 1/sqrt(width).
    """
    z = jax.eval_shape(apply, params, X)
    if len(z.shape) != 2:
        raise NumericError("the pseudo-NTK sums over outputs: apply(params, X) must return (inputs, outputs)")
    scale = 1 / np.sqrt(z.shape[1])
    return empirical_ntk(lambda p, x: scale * apply(p, x).sum(axis=1), params, X, rates, X2=X2, memory=memory)


class SampleModel:
    """A model as a function of one parameter vector and one input to a vector of outputs."""

    def __init__(self, apply: Apply, params: Params, X: Array, rates: Params | None) -> None:
        self.point, unravel = ravel_pytree(params)
        self.rates = flat_rates(params, rates)
        shape = jax.eval_shape(apply, params, X).shape
        if len(shape) not in (1, 2) or shape[0] != len(X):
            raise NumericError(
                f"apply(params, X) must return (inputs,) or (inputs, outputs), not an array of shape {shape}"
            )
        self.has_output_axis = len(shape) == 2
        self.outputs = shape[1] if self.has_output_axis else 1
        self.parameters = self.point.size
        self.itemsize = self.point.dtype.itemsize
        self.input = jax.ShapeDtypeStruct(X.shape[1:], X.dtype)

        def function(point: Array, x: Array) -> Array:
            return apply(unravel(point), x[None]).reshape(self.outputs)

        self.function = function
        _check_independent(apply, params, X, self)

    def gradients(self, X: Array) -> Array:
        """dz/dtheta as (inputs, outputs, parameters)."""
        return jax.vmap(jax.jacrev(self.function), in_axes=(None, 0))(self.point, X)

    def operations(self) -> float:
        """Floating-point operations of a forward pass on one input, as XLA counts them."""
        compiled = jax.jit(self.function).lower(self.point, self.input).cost_analysis()
        analysis: Any = compiled[0] if isinstance(compiled, list) else compiled
        return float((analysis or {}).get("flops", 2 * self.parameters))


def cheapest(model: SampleModel, inputs: int, inputs2: int) -> str:
    """'jacobian' or 'products', whichever takes fewer operations for an NTK of this size."""
    F, P, O = max(model.operations(), 1.0), model.parameters, model.outputs
    jacobian = 3 * (inputs + inputs2) * O * F + 2 * inputs * inputs2 * O**2 * P
    products = 3 * inputs2 * O * F + 3 * inputs * inputs2 * O * F
    return "jacobian" if jacobian <= products else "products"


def _jacobian_block(model: SampleModel, a: Array, b: Array) -> Array:
    return jnp.einsum("nip,p,mjp->ijnm", model.gradients(a), model.rates, model.gradients(b), optimize="optimal")


def _product_block(model: SampleModel, a: Array, b: Array) -> Array:
    def column(x: Array) -> Array:
        _, pull = jax.vjp(lambda point: model.function(point, x), model.point)

        def one(unit: Array) -> Array:
            direction = model.rates * pull(unit)[0]
            forward: Callable[[Array], Array] = lambda point: jax.vmap(model.function, (None, 0))(point, a)  # noqa: E731
            return jax.jvp(forward, (model.point,), (direction,))[1]

        return jax.lax.map(one, jnp.eye(model.outputs, dtype=model.point.dtype))

    return jax.lax.map(column, b).transpose(3, 1, 2, 0)  # from [2, i2, 1, i1]


def _check_independent(apply: Apply, params: Params, X: Array, model: SampleModel) -> None:
    """Refuse a model whose output on one input depends on the rest of the batch."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((params, X))) or len(X) < 2:
        return
    together = np.asarray(apply(params, X[:2])).reshape(2, -1)
    alone = np.asarray(jax.vmap(model.function, (None, 0))(model.point, X[:2]))
    tolerance = 1e3 * float(jnp.finfo(model.point.dtype).eps)
    if not np.allclose(together, alone, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(alone).max()))):
        raise NumericError(
            "this model's output on one input depends on the other inputs (batch statistics?): freeze them first"
        )
