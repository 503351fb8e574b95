r"""dNTK and ddNTKs of a given network, without ever holding a gradient of a matrix.

With v_{i;d} = lambda grad z_{i;d} (PDLT (infinity.5) and (infinity.7)):

    dH_{i0 i1 i2; 012}    = v_1 Hess(z_0) v_2
    ddI_{i0 i1 i2 i3; ..} = D^3 z_0 [v_1, v_2, v_3]
    ddII_{i1 i2 i3 i4;..} = (Hess(z_1) v_3) lambda (Hess(z_2) v_4)

A direction v moves a dense layer's y = a W by rate (a . a_v) s_v, with a_v and s_v the layer's input and signal on the
sample that v belongs to: moving along v costs no matrix. So z(eps), the outputs at w + sum_v eps_v v, is a function of
M = inputs times outputs numbers, of which dH and ddI are the second and third derivatives, M and M^2 backward passes
for an output. Hess(z_1) v_3 is, layer by layer, a sum of inputs times signals again, and so are products of two.
Parameters that enter in another way have their own gradients formed (`numeric.empirical.structured`).

A model is any JAX function `apply(params, X)` that treats each input by itself and returns (inputs,) or (inputs,
outputs). Results have the neural axes first and the sample axes after them, each in the order of the subscripts;
without an output axis there are no neural axes. Both functions can be jitted and vmapped. Accuracy is rounding error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numeric.empirical.model import Apply, Params
from numeric.empirical.ntk import leaf_rates, sample_model
from numeric.empirical.structure import Place
from numeric.empirical.structured import Features, StructuredModel
from numeric.errors import NumericError


def empirical_dntk(apply: Apply, params: Params, X: Array, rates: Params | None = None) -> Array:
    """dH, three neural axes and three sample axes.

    `rates` holds the diagonal of the learning-rate tensor: a tree like `params` of scalars or arrays (default: ones).
    """
    X = jnp.asarray(X)
    if X.ndim < 1 or len(X) == 0:
        raise NumericError("the dNTK needs at least one input")
    model = sample_model(apply, params, X, rates)
    found = _of(model.by_layers["structured"]).second(*_given(params, rates), X)
    dH = found.transpose(1, 2, 4, 0, 3, 5)  # from [0, i0, i1, 1, i2, 2]
    return dH if model.has_output_axis else dH[0, 0, 0]


def empirical_ddntk(apply: Apply, params: Params, X: Array, rates: Params | None = None) -> tuple[Array, Array]:
    """(ddI, ddII), four neural axes and four sample axes each."""
    X = jnp.asarray(X)
    if X.ndim < 1 or len(X) == 0:
        raise NumericError("the ddNTKs need at least one input")
    model = sample_model(apply, params, X, rates)
    route = _of(model.by_layers["structured"])
    first = route.third(*_given(params, rates), X).transpose(1, 2, 4, 6, 0, 3, 5, 7)  # from [0, i0, i1, 1, ...]
    second = route.products(*_given(params, rates), X).transpose(1, 5, 2, 6, 0, 4, 3, 7)  # from [1, i1, i3, 3, 2, ...]
    return (first, second) if model.has_output_axis else (first[0, 0, 0, 0], second[0, 0, 0, 0])


def _given(params: Params, rates: Params | None) -> tuple[list[Array], list[Array]]:
    leaves = jax.tree.leaves(params)
    return leaves, leaf_rates(leaves, rates)


@lru_cache(maxsize=16)
def _of(route: StructuredModel) -> _Differentials:
    """What was compiled for a model stays with it."""
    return _Differentials(route)


class _At(NamedTuple):
    """One input at w + sum_v eps_v v: the inputs (p, k) and signals (O, p, o) of the places, the other gradients."""

    inputs: list[Array]
    signals: list[Array]
    gradients: list[Array]


class _Differentials:
    """The derivatives along the gradients of all outputs on all inputs, for one model."""

    def __init__(self, route: StructuredModel) -> None:
        self.route, self.structure = route, route.structure
        self.second = jax.jit(self._second)
        self.third = jax.jit(self._third)
        self.products = jax.jit(self._products)

    def _second(self, leaves: Sequence[Array], rates: Sequence[Array], X: Array) -> Array:
        """[0, i0, i1, 1, i2, 2]."""
        return self._derivatives(leaves, rates, X, lambda z: jax.jacfwd(jax.jacrev(z)))

    def _third(self, leaves: Sequence[Array], rates: Sequence[Array], X: Array) -> Array:
        """[0, i0, i1, 1, i2, 2, i3, 3]."""
        return self._derivatives(leaves, rates, X, lambda z: jax.jacfwd(jax.jacfwd(jax.jacrev(z))))

    def _derivatives(
        self, leaves: Sequence[Array], rates: Sequence[Array], X: Array, derivative: Callable[..., Callable]
    ) -> Array:
        along = self.route.features(leaves, X)
        start = jnp.zeros((self.route.outputs, len(X)), X.dtype)

        def at(x: Array) -> Array:
            return derivative(lambda eps: self._run(leaves, rates, along, x, eps)[0])(start)

        return jax.lax.map(at, X)

    def _run(
        self,
        leaves: Sequence[Array],
        rates: Sequence[Array],
        along: Features,
        x: Array,
        eps: Array,
        added: dict | None = None,
        others: Sequence[Array] | None = None,
    ) -> tuple[Array, dict]:
        """z and the places' inputs on x at w + sum_v eps_v v, and `added` on top of the places' outputs."""
        every = self._moved(leaves, rates, along, eps)
        for k, leaf in zip(self.route.others, others or []):
            every[k] = leaf
        where = {place.key: n for n, place in enumerate(self.route.places)}

        def move(place: Place, a: Array) -> Array:
            if place.key not in where:  # its leaf has rates that differ: moved as a whole
                return jnp.zeros((place.positions, place.outputs), a.dtype)
            n = where[place.key]
            grams = jnp.einsum("npk,qk->npq", along.inputs[n], a)
            weighted = place.scale**2 * jnp.ravel(rates[place.leaf])[0] * grams + self._of_bias(place, rates)
            return jnp.einsum("npq,nipo,in->qo", weighted, along.signals[n], eps)

        z, seen = self.structure.run(every, x, added, move)
        return z.reshape(self.route.outputs), seen

    def _of_bias(self, place: Place, rates: Sequence[Array]) -> Array:
        """What the bias that shares a place adds to a product of the place's inputs: its gradient is c times the
        signal, and moving it moves the signal's y by c times as much; 0 without such a bias."""
        if place.key not in self.route.biases:
            return jnp.zeros((), rates[place.leaf].dtype)
        leaf, factor = self.route.biases[place.key]
        return factor**2 * jnp.ravel(rates[leaf])[0]

    def _moved(self, leaves: Sequence[Array], rates: Sequence[Array], along: Features, eps: Array) -> list[Array]:
        """All leaves, those without a place moved along the gradients."""
        every = list(leaves)
        for k, g in zip(self.route.others, along.gradients):
            own = jnp.einsum("nig,in->g", g, eps).reshape(self.route.shapes[k])
            every[k] = leaves[k] + jnp.broadcast_to(rates[k], self.route.shapes[k]) * own
        return every

    def _at(self, leaves: Sequence[Array], rates: Sequence[Array], along: Features, x: Array, eps: Array) -> _At:
        """Inputs, signals and gradients on x at w + sum_v eps_v v."""
        start = self._moved(leaves, rates, along, eps)

        def outputs(added: dict, others: list[Array]) -> tuple[Array, dict]:
            return self._run(leaves, rates, along, x, eps, added, others)

        z, pull, seen = jax.vjp(outputs, self.structure.zeros(), [start[k] for k in self.route.others], has_aux=True)
        back, gradients = jax.vmap(pull)(jnp.eye(self.route.outputs, dtype=z.dtype))
        places = self.route.places
        return _At(
            [seen[place.key] for place in places],
            [self.structure.signal(place, back[place.key]) for place in places],
            [g.reshape(self.route.outputs, -1) for g in gradients],
        )

    def _products(self, leaves: Sequence[Array], rates: Sequence[Array], X: Array) -> Array:
        """(Hess z_1 v_3) lambda (Hess z_2 v_4) as [1, i1, i3, 3, 2, i2, i4, 4]."""
        along = self.route.features(leaves, X)
        O, N = self.route.outputs, len(X)
        start = jnp.zeros((O, N), X.dtype)

        def derivative(x: Array) -> _At:
            return jax.jacfwd(lambda eps: self._at(leaves, rates, along, x, eps))(start)

        found = jax.lax.map(derivative, X)
        total = jnp.zeros((N, O, O * N, N, O, O * N), X.dtype)
        for n, place in enumerate(self.route.places):
            weight = place.scale**2 * jnp.ravel(rates[place.leaf])[0]
            a, s = along.inputs[n], along.signals[n]  # (N, p, k), (N, O, p, o)
            da = jnp.moveaxis(found.inputs[n].reshape(*a.shape, O * N), -1, 1)  # (N, v, p, k)
            ds = jnp.moveaxis(found.signals[n].reshape(*s.shape, O * N), -1, 2)  # (N, O, v, p, o)
            left = jnp.concatenate([jnp.broadcast_to(a[:, None], da.shape), da], axis=2)
            right = jnp.concatenate([ds, jnp.broadcast_to(s[:, :, None], ds.shape)], axis=3)
            total = total + weight * _inner(left, right)
            if place.key in self.route.biases:
                total = total + self._of_bias(place, rates) * jnp.einsum("niupo,mjwpo->niumjw", ds, ds)
        for k, dg in zip(self.route.others, found.gradients):
            own = jnp.moveaxis(dg.reshape(N, O, -1, O * N), -1, 2)  # (N, O, v, size)
            scaled = own * jnp.broadcast_to(rates[k], self.route.shapes[k]).reshape(1, 1, 1, -1)
            total = total + jnp.einsum("niug,mjwg->niumjw", scaled, own)
        return total.reshape(N, O, O, N, N, O, O, N)


def _inner(a: Array, s: Array) -> Array:
    """Products of sum_p a_p (x) s_p: a (N, v, p, k), s (N, O, v, p, o) to [n, i, v, m, j, w], by the cheaper way."""
    p, k, o = a.shape[2], a.shape[3], s.shape[4]
    if p**2 * (k + o) > k * o:
        whole = jnp.einsum("nvpk,nivpo->nivko", a, s).reshape(*s.shape[:3], -1)
        return jnp.einsum("niug,mjwg->niumjw", whole, whole)
    grams = jnp.einsum("nupk,mwqk->nupmwq", a, a)
    return jnp.einsum("nupmwq,niupo,mjwqo->niumjw", grams, s, s, optimize="optimal")
