"""The NTK of a real network by the cheapest route, in batches within a memory budget, and without ever forming it.

Three routes (Novak et al. 2022). The structured one sums over layers (`numeric.empirical.structured`). The Jacobian
contraction computes the gradient of every output on every input, N O backward passes, and contracts them, 2 N^2 O^2 P
operations.
NTK-vector products push one unit vector back and forward again for every pair of inputs and every output: about
3 N^2 O passes, but no contraction. Inputs must not see each other in the model (no batch statistics), which is checked.
What is compiled for a model is kept for the next call with the same function and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from numeric.empirical.model import Apply, Params, flat_rates
from numeric.empirical.structured import StructuredModel
from numeric.errors import NumericError
from numeric.shapes import TangentKernel

Inputs = Array | np.ndarray
MEMORY = 1e9
"""Default budget in bytes for what is held at once besides the parameters and the answer."""
METHODS = ("structured", "jacobian", "products")
COPIES = 3
"""Arrays of the size of a block's gradients that are alive at once."""


def empirical_ntk(
    apply: Apply,
    params: Params,
    X: Inputs,
    rates: Params | None = None,
    *,
    X2: Inputs | None = None,
    method: str = "auto",
    memory: float = MEMORY,
) -> TangentKernel:
    """H[i1, i2, 1, 2] between the inputs X and X2 (X itself by default), or (inputs, inputs2) without an output axis.

    `apply(params, X)` returns (inputs,) or (inputs, outputs). `rates` is the diagonal of the learning-rate tensor: a
    tree like `params` of scalars or arrays (default: ones). `method` is "structured", "jacobian", "products" or "auto",
    the one with fewest operations. Accuracy is rounding error each way.

    >>> apply = lambda w, X: X @ w
    >>> empirical_ntk(apply, jnp.ones(2), jnp.array([[1.0, 0.0], [3.0, 4.0]])).tolist()
    [[1.0, 3.0], [3.0, 25.0]]
    """
    if method not in (*METHODS, "auto"):
        raise NumericError(f"the NTK is computed by 'structured', 'jacobian', 'products' or 'auto', not {method!r}")
    X = jnp.asarray(X)
    X2 = None if X2 is None else jnp.asarray(X2)
    if X.ndim < 1 or len(X) == 0 or (X2 is not None and len(X2) == 0):
        raise NumericError("the NTK needs at least one input on each side")
    model = sample_model(apply, params, X, rates)
    if method == "auto":
        method = cheapest(model, len(X), len(X if X2 is None else X2))
    if method == "products":
        H = model.product_blocks(params, rates, X, X2, memory)
    else:
        H = model.layer_blocks(method, params, rates, X, X2, memory)
    return H if model.has_output_axis else H[0, 0]


def ntk_vector_product(
    apply: Apply, params: Params, X: Inputs, vector: Array, rates: Params | None = None, *, X2: Inputs | None = None
) -> Array:
    """H(X, X2) times a vector in the shape of the outputs on X2, by one backward and one forward pass.

    Nothing larger than the parameters and the activations is held; the model may mix its inputs.
    """
    X = jnp.asarray(X)
    other = X if X2 is None else jnp.asarray(X2)
    out, pull = jax.vjp(lambda p: apply(p, other), params)
    if jnp.shape(vector) != out.shape:
        raise NumericError(f"the vector must have the shape of the outputs, {out.shape}, not {jnp.shape(vector)}")
    (gradient,) = pull(jnp.asarray(vector, out.dtype))
    flat, unravel = ravel_pytree(gradient)
    direction = unravel(flat_rates(params, rates) * flat)
    here = X
    return jax.jvp(lambda p: apply(p, here), (params,), (direction,))[1]


def pseudo_ntk(
    apply: Apply,
    params: Params,
    X: Inputs,
    rates: Params | None = None,
    *,
    X2: Inputs | None = None,
    memory: float = MEMORY,
) -> TangentKernel:
    """The NTK of the sum of all O outputs over sqrt(O): (inputs, inputs2), O^2 times smaller than the NTK.

    It stands for the NTK times the identity of outputs; the relative difference falls as 1/sqrt(width).
    """
    z = jax.eval_shape(apply, params, X)
    if len(z.shape) != 2:
        raise NumericError("the pseudo-NTK sums over outputs: apply(params, X) must return (inputs, outputs)")
    return empirical_ntk(_summed(apply, z.shape[1]), params, X, rates, X2=X2, memory=memory)


@lru_cache(maxsize=64)
def _summed(apply: Apply, outputs: int) -> Apply:
    """The sum of all outputs over the root of their number; one function object a model, so that it compiles once."""
    return lambda p, x: apply(p, x).sum(axis=1) / np.sqrt(outputs)


class SampleModel:
    """A model as a function of its parameters and one input, with what was compiled for it."""

    def __init__(self, apply: Apply, params: Params, X: Array, rates: Params | None) -> None:
        leaves, self.tree = jax.tree.flatten(params)
        self.leaves = [jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]
        self.point, unravel = ravel_pytree(params)
        flat_rates(params, rates)  # complains where they do not fit
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
        self.uniform = _uniform(self.leaves, params, rates)

        def function(point: Array, x: Array) -> Array:
            return apply(unravel(point), x[None]).reshape(self.outputs)

        def by_leaves(leaves: Sequence[Array], x: Array) -> Array:
            return apply(jax.tree.unflatten(self.tree, leaves), x[None])

        self.function = function
        _check_independent(apply, params, X, self)
        places = {"structured": self.uniform, "jacobian": (False,) * len(self.leaves)}  # no layer, all gradients
        self.by_layers = {
            name: StructuredModel(by_leaves, self.leaves, self.input, self.outputs, use) for name, use in places.items()
        }
        self._products = jax.jit(self._product_block)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            self.point = jnp.zeros(0)  # a tracer must not outlive its trace; only its size is needed later

    def operations(self) -> float:
        """Floating-point operations of a forward pass on one input, as XLA counts them."""
        point = jax.ShapeDtypeStruct((self.parameters,), self.point.dtype)
        compiled = jax.jit(self.function).lower(point, self.input).cost_analysis()
        analysis: Any = compiled[0] if isinstance(compiled, list) else compiled
        return float((analysis or {}).get("flops", 2 * self.parameters))

    def layer_blocks(
        self, method: str, params: Params, rates: Params | None, X: Array, X2: Array | None, memory: float
    ) -> Array:
        """By signals and gradients, which are held for all inputs if they fit, and made again for each block if not."""
        route, leaves = self.by_layers[method], jax.tree.leaves(params)
        weights = leaf_rates(leaves, rates)
        per_input = COPIES * self.itemsize * max(route.numbers_per_input(), 1)
        total = len(X) + (0 if X2 is None else len(X2))
        rows = max(1, int(memory / (2 * per_input)))
        hold = total * per_input <= memory
        if hold:  # some blocks all the same: those below the diagonal are not computed
            rows = -(-len(X) // 4) if X2 is None and len(X) >= 64 else total
        return _blocks(
            X, X2, rows, lambda x: route.features(leaves, x), lambda a, b: route.block(weights, a, b), hold=hold
        )

    def product_blocks(self, params: Params, rates: Params | None, X: Array, X2: Array | None, memory: float) -> Array:
        """By products of the NTK with unit vectors, which hold one gradient and the activations of a block."""
        rows = max(1, int(memory / (COPIES * self.itemsize * max(self.operations() / 2, self.parameters, 1))))
        point, lam = ravel_pytree(params)[0], flat_rates(params, rates)
        return _blocks(X, X2, rows, lambda x: x, lambda a, b: self._products(point, lam, a, b), hold=True)

    def _product_block(self, point: Array, lam: Array, a: Array, b: Array) -> Array:
        def column(x: Array) -> Array:
            _, pull = jax.vjp(lambda p: self.function(p, x), point)

            def one(unit: Array) -> Array:
                forward: Callable[[Array], Array] = lambda p: jax.vmap(self.function, (None, 0))(p, a)  # noqa: E731
                return jax.jvp(forward, (point,), (lam * pull(unit)[0],))[1]

            return jax.lax.map(one, jnp.eye(self.outputs, dtype=point.dtype))

        return jax.lax.map(column, b).transpose(3, 1, 2, 0)  # from [2, i2, 1, i1]


def _blocks(
    X: Array,
    X2: Array | None,
    rows: int,
    features: Callable[[Array], Any],
    block: Callable[[Any, Any], Array],
    hold: bool,
) -> Array:
    """Every block once; with itself on both sides, a block and its transpose are one computation."""
    left = [X[i : i + rows] for i in range(0, len(X), rows)]
    right = left if X2 is None else [X2[i : i + rows] for i in range(0, len(X2), rows)]
    held = [features(b) for b in right] if hold else None
    blocks: list[list[Array]] = []
    for i, a in enumerate(left):
        mine = held[i] if held is not None and X2 is None else features(a)
        done = [blocks[j][i].transpose(1, 0, 3, 2) for j in range(i)] if X2 is None else []
        fresh = []
        for j in range(len(done), len(right)):
            other = mine if X2 is None and j == i else held[j] if held is not None else features(right[j])
            fresh.append(block(mine, other))
        blocks.append(done + fresh)
    return jnp.concatenate([jnp.concatenate(row, axis=3) for row in blocks], axis=2)


def leaf_rates(leaves: Sequence[Array], rates: Params | None) -> list[Array]:
    """The learning rates of every leaf, as arrays."""
    given = [1.0] * len(leaves) if rates is None else jax.tree.leaves(rates)
    return [jnp.asarray(rate, jnp.result_type(leaf)) for leaf, rate in zip(leaves, given)]


def _uniform(shapes: Sequence[Any], params: Params, rates: Params | None) -> tuple[bool, ...]:
    """Which leaves have one learning rate for all their numbers, as far as can be seen before running."""
    if rates is None:
        return (True,) * len(shapes)
    found = []
    for rate in jax.tree.leaves(rates):
        if np.size(rate) == 1:
            found.append(True)
        else:
            found.append(not isinstance(rate, jax.core.Tracer) and bool(np.all(np.asarray(rate) == np.ravel(rate)[0])))
    return tuple(found)


def sample_model(apply: Apply, params: Params, X: Array, rates: Params | None) -> SampleModel:
    """The model of `apply`, from an earlier call with the same function, shapes and kind of rates if there was one."""
    leaves, tree = jax.tree.flatten(params)
    flat_rates(params, rates)  # complains where they do not fit
    shapes = tuple((np.shape(leaf), str(jnp.result_type(leaf))) for leaf in leaves)
    uniform = _uniform(shapes, params, rates)
    make = _Make(apply, params, X, rates)
    try:
        return _known(apply, tree, shapes, (X.shape[1:], str(X.dtype), min(len(X), 2)), uniform, make)
    except TypeError:  # a model that cannot be a key
        return make.model()


class _Make:
    """How to make a model that is not known yet; equal to every other, so that it does not count in the cache's key."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments: tuple[Any, ...] | None = arguments

    def model(self) -> SampleModel:
        assert self._arguments is not None
        arguments, self._arguments = self._arguments, None  # the cache keeps this object, and must not keep the arrays
        return SampleModel(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Make)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=16)
def _known(apply: Apply, tree: Any, shapes: Any, inputs: Any, uniform: Any, make: _Make) -> SampleModel:
    return make.model()


def cheapest(model: SampleModel, inputs: int, inputs2: int) -> str:
    """The route with fewest operations for an NTK of this size."""
    F, O = max(model.operations(), 1.0), model.outputs
    costs = {
        **{name: route.operations(F, inputs, inputs2) for name, route in model.by_layers.items()},
        "products": 3 * inputs2 * O * F + 3 * inputs * inputs2 * O * F,
    }
    return min(costs, key=lambda name: costs[name])


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
