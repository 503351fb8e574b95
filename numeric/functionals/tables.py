"""Which tables a set of tensors needs, and their evolution through the layers.

The state at layer l is one table for each instance: n times the functional of functions of the layers m >= l, for all
those m at once. `needed` finds the instances by expanding until nothing new turns up. `evolve` is written once, for
NumPy arrays (a loop) and for JAX tracers (`jax.lax.scan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.functionals.expansion import Expansion
from numeric.functionals.instances import Key, tensor_key
from numeric.generated.functionals import RULES
from numeric.subscripts import Values

Array = Any
Pair = tuple[int, int]


@dataclass(frozen=True)
class Needs:
    """Instances in an order of evaluation (any will do), and the brackets that they read."""

    keys: tuple[Key, ...]
    pairs: tuple[Pair, ...]
    own: tuple[tuple[Pair, Pair], ...]
    crossed: tuple[tuple[Pair, Pair], ...]


class Recorder:
    """A source of zeros that remembers what it was asked for."""

    xp: Any = np

    def __init__(self) -> None:
        self.keys: dict[Key, None] = {}
        self.pairs: set[Pair] = set()
        self.fours: dict[bool, set[tuple[Pair, Pair]]] = {True: set(), False: set()}

    def table(self, key: Key, own: tuple[bool, ...]) -> Array:
        self.keys.setdefault(key)
        return np.zeros((1,) * (own.count(False) + len(key.letters)))

    def pair(self, first: int, second: int, own: bool) -> Array:
        self.pairs.add((first, second))
        return np.zeros((1,) * (2 + (not own)))

    def four(self, upper: Pair, lower: Pair, own: bool) -> Array:
        self.fours[own].add((upper, lower))
        return np.zeros((1,) * (4 + (not own)))

    def kernel(self, own: bool) -> Array:
        return np.zeros((1,) * (2 + (not own)))

    def crossed(self) -> Array:
        return np.zeros((1, 1, 1))

    def theta(self) -> Array:
        return np.zeros((1, 1))

    def carry(self) -> Array:
        return np.zeros(1)

    def values(self) -> Mapping[str, Any]:
        return dict.fromkeys(("C_b", "C_W", "lambda_b", "lambda_W", "r", "xi"), 0.0)


@lru_cache(maxsize=64)
def needed(tensors: tuple[str, ...]) -> Needs:
    """What the tensors (V, ..., U) need."""
    recorder = Recorder()
    queue = [tensor_key(name, RULES)[0] for name in tensors]
    done: dict[Key, None] = {}
    while queue:
        key = queue.pop()
        if key in done:
            continue
        done[key] = None
        Expansion(recorder, RULES, key).total()
        queue += [other for other in recorder.keys if other not in done]
    pairs = {(0, 0), (1, 1)} | {(min(p), max(p)) for p in recorder.pairs}
    return Needs(
        tuple(done), tuple(sorted(pairs)), tuple(sorted(recorder.fours[True])), tuple(sorted(recorder.fours[False]))
    )


@dataclass(frozen=True)
class Media:
    """All that the tables evolve in, over layers 1 to L (index 0 to L - 1): arrays with a layer axis in front.

    `pairs` of the hidden layers (padded by zeros at the output), `own` four-point brackets of each layer, `crossed`
    those of two activations at layer m and two at layer l, axes (m, l, ...), zero unless m > l.
    """

    K: Array
    Theta: Array
    skips: Array
    """(m, l): the product of the skips from layer l to layer m; zero below."""
    values: Mapping[str, Array]
    pairs: Mapping[Pair, Array]
    own: Mapping[tuple[Pair, Pair], Array]
    crossed: Mapping[tuple[Pair, Pair], Array]


class Layer:
    """The source of one step, from layer `l` (an index) to the next."""

    def __init__(self, xp: Any, media: Media, tables: Mapping[Key, Array], l: Any) -> None:
        self.xp, self.media, self.tables, self.l = xp, media, tables, l

    def table(self, key: Key, own: tuple[bool, ...]) -> Array:
        array = self.tables[key]
        for axis in reversed(range(len(own))):
            if own[axis]:
                index = self.l if key.functions[axis] else 0
                array = self.xp.take(array, index, axis=axis)
        return array

    def pair(self, first: int, second: int, own: bool) -> Array:
        flip = first > second
        array = self.media.pairs[(second, first) if flip else (first, second)]
        array = array[self.l] if own else array
        return self.xp.swapaxes(array, -1, -2) if flip else array

    def four(self, upper: Pair, lower: Pair, own: bool) -> Array:
        if own:
            return self.media.own[upper, lower][self.l]
        return self.xp.take(self.media.crossed[upper, lower], self.l, axis=1)

    def kernel(self, own: bool) -> Array:
        return self.media.K[self.l] if own else self.media.K

    def crossed(self) -> Array:
        return self.xp.take(self.media.skips, self.l, axis=1)[:, None, None] * self.media.K[self.l][None]

    def theta(self) -> Array:
        return self.media.Theta[self.l]

    def carry(self) -> Array:
        return self.xp.take(self.media.skips, self.l + 1, axis=1)

    def values(self) -> Values:
        return {name: array[self.l + 1] for name, array in self.media.values.items()}


def evolve(xp: Any, media: Media, tensors: tuple[str, ...]) -> dict[str, Array]:
    """{tensor: (L, N, ...)}: every layer's tensors, in their subscript order."""
    need = needed(tensors)
    depth, size = media.K.shape[0], media.K.shape[1]
    dtype = media.K.dtype

    def shape(key: Key) -> tuple[int, ...]:
        return tuple(depth if f else 1 for f in key.functions) + (size,) * len(key.letters)

    def step(tables: dict[Key, Array], l: Any) -> tuple[dict[Key, Array], dict[str, Array]]:
        source = Layer(xp, media, tables, l)
        new = {
            key: xp.broadcast_to(Expansion(source, RULES, key).total(), shape(key)).astype(dtype) for key in need.keys
        }
        out = {}
        for name in tensors:
            key, axes = tensor_key(name, RULES)
            array = new[key]
            for axis in reversed(range(len(key.functions))):
                array = xp.take(array, l + 1 if key.functions[axis] else 0, axis=axis)
            out[name] = xp.transpose(array, [key.letters.index(x) for x in axes])
        return new, out

    tables = {key: xp.zeros(shape(key), dtype) for key in need.keys}
    if xp is np:
        found = []
        for l in range(depth - 1):
            tables, out = step(tables, l)
            found.append(out)
        zero = {name: np.zeros_like(x) for name, x in found[0].items()}
        return {name: np.stack([zero[name], *(out[name] for out in found)]) for name in tensors}
    return _scan(step, tables, depth)


def _scan(
    step: Callable[[dict[Key, Array], Any], tuple[dict[Key, Array], dict[str, Array]]],
    tables: dict[Key, Array],
    depth: int,
) -> dict[str, Array]:
    """The same loop as one compiled program (keys as numbers: they have no order of their own)."""
    keys = list(tables)

    def body(carry: list[Array], l: Array) -> tuple[list[Array], dict[str, Array]]:
        new, out = step(dict(zip(keys, carry)), l)
        return [new[key] for key in keys], out

    _, found = jax.lax.scan(body, [tables[key] for key in keys], jnp.arange(depth - 1))
    return {name: jnp.concatenate([jnp.zeros_like(x[:1]), x]) for name, x in found.items()}
