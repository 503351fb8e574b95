"""What the tables of functionals evolve in: kernels of all layers, brackets within a layer and between two layers.

A neuron's whole path z^(1), ..., z^(L) is Gaussian at infinite width, with covariance K^(l, m)_ab = (product of the
skips from l to m) K^(l)_ab, so that a bracket of activations of two layers is one of 2N labels. Each pair of layers
takes one evaluation of four-point brackets: (L - 1)(L - 2)/2 in all, beside the L - 1 of single layers. Where a
calculus has a way of its own between layers (`QuadruplePlan.between_layers`), numbers are computed by that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import (
    Functions,
    Pattern,
    Plan,
    arrangements,
    entries,
    make_plan,
    pair_brackets,
    sorted_quadruples,
    unique_quadruples,
)
from numeric.errors import NumericError
from numeric.evaluation.host import host_pairs, host_unique, on_host
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters
from numeric.functionals.tables import Media, Needs, Pair
from numeric.generated.functionals import step_K, step_Theta
from numeric.generated.layer import first_K, first_Theta
from numeric.subscripts import Values, View, views

Array = jax.Array


def values(parameters: Parameters, skip: Array, widths: tuple[int, ...]) -> dict[str, Array]:
    """C_b, C_W, lambda_b, lambda_W, r, xi as arrays of L values."""
    ratios = [1.0, *(new / old for old, new in pairwise(widths))]
    found = {name: getattr(parameters, name) for name in HYPERPARAMETERS}
    return found | {"r": jnp.asarray(ratios, skip.dtype), "xi": skip}


def first_kernels(X: Array, own: dict[str, Array]) -> tuple[Array, Array]:
    gram = View(X @ X.T / X.shape[1], 2)
    start = {name: array[0] for name, array in own.items()}
    return first_K(start, gram), first_Theta(start, gram)


def next_kernels(functions: Functions, plan: Plan, K: Array, Theta: Array, own: Values) -> tuple[Array, Array]:
    """K and Theta of the next layer, as derived."""
    found = pair_brackets(functions, K, [(0, 0), (1, 1)], plan.pairs)
    s, t = views(found, 2), views({"K": K, "Theta": Theta}, 2)
    return step_K(own, s, {}, t), step_Theta(own, s, {}, t)


def skip_products(skip: Array) -> Array:
    """(m, l): the product of the skips into the layers l+1, ..., m; one for m = l, zero for m < l."""
    depth = skip.shape[0]
    inside = jnp.arange(depth)[:, None] > jnp.arange(depth)[None, :]  # (k, l): the skip into k > l counts
    factors = jnp.where(inside, skip[:, None], 1.0)
    return jnp.where(inside | jnp.eye(depth, dtype=bool), jnp.cumprod(factors, axis=0), 0.0)


def layer_pairs(depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (m, l) of the pairs of hidden layers, m > l."""
    return np.tril_indices(depth - 1, -1)


def joint(K: Array, products: Array) -> Array:
    """The covariances (pair, 2N, 2N) of two layers: labels of l first, then those of m."""
    upper, lower = layer_pairs(K.shape[0])
    between = products[upper, lower][:, None, None] * K[lower]
    return jnp.concatenate(
        [
            jnp.concatenate([K[lower], between], axis=2),
            jnp.concatenate([between, K[upper]], axis=2),
        ],
        axis=1,
    )


def patterns(fours: tuple[tuple[Pair, Pair], ...]) -> tuple[Pattern, ...]:
    """The derivative patterns that the bracket engine has to provide, each sorted."""
    found = set()
    for a, b in fours:
        i, j, k, l = sorted(a + b)
        found.add((i, j, k, l))
    return tuple(sorted(found))


def kernels(functions: Functions, plan: Plan, X: Array, own: dict[str, Array]) -> tuple[Array, Array]:
    """K and Theta of all layers, (L, N, N), with one plan for the pairs of all of them."""
    start = first_kernels(X, own)
    later = {name: array[1:] for name, array in own.items()}

    def step(carry: tuple[Array, Array], here: Values) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        new = next_kernels(functions, plan, *carry, here)
        return new, new

    _, (K, Theta) = jax.lax.scan(step, start, later)
    return jnp.concatenate([start[0][None], K]), jnp.concatenate([start[1][None], Theta])


def media(
    functions: Functions,
    need: Needs,
    plans: tuple[Plan, Plan],
    X: Array,
    own: dict[str, Array],
    tick: Callable[[float], None] | None = None,
) -> Media:
    """Everything. Without `tick` a pure function, for JAX to transform; with it numbers, part by part, as NumPy arrays.

    `tick` hears of the share of the work that is done.
    """
    few = tick is not None and on_host(X)
    run: Callable[..., tuple[Array, Array]] = _host_kernels if few else _kernels if tick else kernels
    K, Theta = run(functions, plans[0], X, own)
    depth, size = K.shape[0], K.shape[1]
    products = skip_products(own["xi"])
    hidden, between = K[:-1], joint(K, products)
    steps = len(hidden) * bool(need.own) + len(between) * bool(need.crossed)

    def each(plan: Plan, wanted: tuple[Pattern, ...], stack: Array) -> Any:
        if tick is None:
            return jax.lax.map(partial(_unique, functions, plan, wanted), stack)
        found = []
        for kernel in stack:
            compute = host_unique if few else _compiled_unique
            found.append(compute(functions, plan, np.asarray(kernel), wanted))
            tick(1 / max(steps, 1))
        return np.stack(found)

    xp: Any = jnp if tick is None else np
    pairs: Any
    if few:
        rows = [host_pairs(functions, plans[0], k, need.pairs) for k in np.asarray(hidden)]
        pairs = [np.stack([row[p] for row in rows]) for p in need.pairs]
    else:
        pairs = (_pairs if tick else layer_brackets)(functions, plans[0], need.pairs, hidden)
    two = {p: _padded(xp, x) for p, x in zip(need.pairs, pairs)}
    within: dict[tuple[Pair, Pair], Any] = {}
    if need.own:
        wanted = patterns(need.own)
        unique = each(plans[0], wanted, hidden).reshape(len(hidden), -1)
        for a, b in need.own:
            within[a, b] = _padded(xp, unique[:, addresses(wanted, a + b, size, size)])
    crossed: dict[tuple[Pair, Pair], Any] = {}
    if need.crossed and len(between):
        apart = None
        if tick is not None and K.dtype == np.float64 and plans[1].quadruples is not None:
            share = len(between) / steps
            own_way = plans[1].quadruples.between_layers
            apart = own_way(
                functions, need.crossed, np.asarray(hidden), np.asarray(products)[:-1, :-1], lambda x: tick(share * x)
            )
        if apart is not None:
            edge = ((0, 1), (0, 1), *[(0, 0)] * 4)
            crossed = {four: np.pad(x, edge) for four, x in apart.items()}
        else:
            wanted = patterns(need.crossed)
            unique = each(plans[1], wanted, between).reshape(len(between), -1)
            place = np.full((depth, depth), len(between))  # the last row: pairs that do not occur
            place[layer_pairs(depth)] = np.arange(len(between))
            for a, b in need.crossed:
                found = unique[:, addresses(wanted, a + b, size, 2 * size)]
                crossed[a, b] = _padded(xp, found)[place]
    elif need.crossed:
        crossed = dict.fromkeys(need.crossed, xp.zeros((depth, depth, *[size] * 4), K.dtype))
    if tick is None:
        return Media(K, Theta, products, own, two, within, crossed)
    host = {name: np.asarray(x) for name, x in own.items()}
    return Media(np.asarray(K), np.asarray(Theta), np.asarray(products), host, two, within, crossed)


def _padded(xp: Any, x: Any) -> Any:
    """With zeros at the end: the output has no activations."""
    return xp.concatenate([xp.asarray(x), xp.zeros_like(xp.asarray(x[:1]))])


def layer_brackets(functions: Functions, plan: Plan, pairs: tuple[Pair, ...], hidden: Array) -> list[Array]:
    """The pair brackets of every hidden layer."""
    found = jax.lax.map(lambda k: pair_brackets(functions, k, pairs, plan.pairs), hidden)
    return [found[p] for p in pairs]


@lru_cache(maxsize=256)
def addresses(wanted: tuple[Pattern, ...], pattern: Pattern, size: int, labels: int) -> np.ndarray:
    """Where the brackets of two labels of the upper layer and two of the lower one stand in a flat list of uniques.

    `labels` is `size` if both are the same layer, else twice that, the lower layer's first.
    """
    count, columns = len(sorted_quadruples(labels)), len(arrangements(wanted))
    numbers: Any = np.arange(count * columns).reshape(count, columns)
    at: list[Any] = [
        (np.arange(size) + (labels - size if place < 2 else 0)).reshape([-1 if k == place else 1 for k in range(4)])
        for place in range(4)
    ]
    return np.asarray(entries(numbers, wanted, pattern, labels, at))


def _unique(functions: Functions, plan: Plan, wanted: tuple[Pattern, ...], K: Array) -> Array:
    assert plan.quadruples is not None
    return unique_quadruples(functions, K, plan.quadruples, wanted)


_compiled = jax.jit(_unique, static_argnums=(0, 2))
_kernels = jax.jit(kernels, static_argnums=0)
_pairs = jax.jit(layer_brackets, static_argnums=(0, 2))


def make_plans(
    functions: Functions, need: Needs, X: Array, own: dict[str, Array], tolerance: float
) -> tuple[Plan, Plan]:
    """Plans for all layers and for all pairs of layers, from concrete numbers: the kernel is run through first."""
    highest = max((k for pair in need.pairs for k in pair), default=1)
    K, Theta = first_kernels(X, own)
    found = [np.asarray(K)]
    depth = len(own["xi"])
    for layer in range(1, depth):
        try:
            plan = make_plan(functions, found[-1], min(tolerance, 1e-10), highest, ())
        except NumericError as error:
            raise type(error)(f"At layer {layer + 1}: {error}") from None
        here = {name: array[layer] for name, array in own.items()}
        K, Theta = (_host_step if on_host(K) else _step)(functions, plan, K, Theta, here)
        if not bool(jnp.isfinite(K).all() & (jnp.abs(K) < 1e70).all()):
            raise NumericError(
                f"K overflows at layer {layer + 1} of {depth}: with a skip of one the kernel grows with every layer; "
                "scale the branches (C_W) down or use fewer layers."
            )
        found.append(np.asarray(K))
    hidden = np.stack(found[:-1])
    within = make_plan(functions, hidden, tolerance, highest, patterns(need.own))
    pairs = np.asarray(joint(jnp.asarray(np.stack(found)), skip_products(own["xi"])))
    if len(pairs) and need.crossed:
        mixed = (sorted_quadruples(2 * hidden.shape[1]) < hidden.shape[1]).sum(axis=1) == 2  # two labels of each layer
        return within, make_plan(functions, pairs, tolerance, 1, patterns(need.crossed), wanted=mixed)
    return within, replace(within, quadruples=None)


_step = jax.jit(next_kernels, static_argnums=0)


def _host_step(functions: Functions, plan: Plan, K: Array, Theta: Array, own: Values) -> tuple[Array, Array]:
    """`next_kernels` of a few inputs: the same formulas on NumPy arrays, and nothing to compile."""
    found = host_pairs(functions, plan, np.asarray(K), ((0, 0), (1, 1)))
    here: dict[str, Any] = {name: np.asarray(x) for name, x in own.items()}
    below: dict[str, Any] = {"K": np.asarray(K), "Theta": np.asarray(Theta)}
    s, t = views(found, 2), views(below, 2)
    return jnp.asarray(step_K(here, s, {}, t)), jnp.asarray(step_Theta(here, s, {}, t))


def _host_kernels(functions: Functions, plan: Plan, X: Array, own: dict[str, Array]) -> tuple[Array, Array]:
    """`kernels` of a few inputs."""
    found = [first_kernels(X, own)]
    for layer in range(1, len(own["xi"])):
        found.append(_host_step(functions, plan, *found[-1], {name: array[layer] for name, array in own.items()}))
    K, Theta = zip(*found, strict=True)
    return jnp.stack(K), jnp.stack(Theta)


def _compiled_unique(functions: Functions, plan: Plan, K: Any, wanted: tuple[Pattern, ...]) -> np.ndarray:
    return np.asarray(_compiled(functions, plan, wanted, K))
