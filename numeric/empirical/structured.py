"""The NTK as a sum over layers of (inputs of the layer) times (signals that come back to it): no Jacobian is formed.

A dense layer contributes rate * (a_1 . a_2) (dz_i/dy_1 . dz_j/dy_2), with a its input and y = a W (Novak et al. 2022:
structured derivatives). With p positions (convolutions, sequences) gradients are formed layer by layer, or the sum
over pairs of positions is taken, whichever is cheaper. Parameters that enter in another way (biases, norms, shared
matrices, rates that differ within a matrix) have their own gradients formed, and only theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.empirical.structure import Place, Structure


class Features(NamedTuple):
    """What a batch of inputs contributes: for every place its inputs (N, p, k) and signals (N, O, p, o); the gradients
    of the other leaves as (N, O, size)."""

    inputs: list[Array]
    signals: list[Array]
    gradients: list[Array]


class StructuredModel:
    """The structured route for one model and one arrangement of learning rates (uniform within a leaf, or not)."""

    def __init__(
        self,
        function: Callable[[Sequence[Array], Array], Array],
        leaves: Sequence[Any],
        x: Any,
        outputs: int,
        uniform: Sequence[bool],
    ) -> None:
        self.structure = Structure(function, leaves, x)
        self.outputs = outputs
        self.places = [place for place in self.structure.places if uniform[place.leaf]]
        kept = {place.leaf for place in self.places}
        biases = {key: bias for key, bias in self.structure.biases().items() if uniform[bias[0]]}
        self.biases = {p.key: biases[p.key] for p in self.places if p.key in biases}
        """The biases of these places: their gradients are the places' signals, so that one product does for both."""
        kept |= {leaf for leaf, _ in self.biases.values()}
        self.others = sorted({*self.structure.others, *(p.leaf for p in self.structure.places)} - kept)
        self.shapes = [leaf.shape for leaf in leaves]
        self.sizes = [int(np.prod(shape, dtype=int)) for shape in self.shapes]
        self.features = jax.jit(self._features)
        self.block = jax.jit(self._block)

    def numbers_per_input(self) -> int:
        """How many numbers `Features` holds for an input."""
        places = sum(p.positions * (p.inputs + self.outputs * p.outputs) for p in self.places)
        return places + self.outputs * sum(self.sizes[k] for k in self.others)

    def operations(self, forward: float, n: int, m: int) -> float:
        """Floating-point operations of an n by m block, features included; `forward` is those of one input."""
        pairs = sum(min(self._costs(p, n, m)) for p in self.places)
        rest = 2 * n * m * self.outputs**2 * sum(self.sizes[k] for k in self.others)
        return 3 * (n + m) * self.outputs * forward + pairs + rest

    def _costs(self, place: Place, n: int, m: int) -> tuple[float, float]:
        """By gradients of the layer, and by pairs of positions."""
        p, k, o, out = place.positions, place.inputs, place.outputs, self.outputs
        gradients = 2.0 * (n + m) * out * p * k * o + 2.0 * n * m * out**2 * k * o
        positions = 2.0 * n * m * p**2 * (k + out**2 * (o + 1))
        return gradients, positions

    def _features(self, leaves: Sequence[Array], X: Array) -> Features:
        def one(x: Array) -> Features:
            def outputs(added: dict, others: list[Array]) -> tuple[Array, dict]:
                every = list(leaves)
                for k, leaf in zip(self.others, others):
                    every[k] = leaf
                z, seen = self.structure.run(every, x, added)
                return z.reshape(self.outputs), seen

            start = self.structure.zeros(), [leaves[k] for k in self.others]
            z, pull, seen = jax.vjp(outputs, *start, has_aux=True)
            back, gradients = jax.vmap(pull)(jnp.eye(self.outputs, dtype=z.dtype))
            flat = [g.reshape(self.outputs, -1) for g in gradients]
            signals = [self.structure.signal(place, back[place.key]) for place in self.places]
            return Features([seen[place.key] for place in self.places], signals, flat)

        return jax.vmap(one)(X)

    def _block(self, rates: Sequence[Array], left: Features, right: Features) -> Array:
        n, m = (len((f.inputs or f.gradients)[0]) for f in (left, right))
        total = jnp.zeros((n, self.outputs, m, self.outputs), (left.signals or left.gradients)[0].dtype)
        for place, a, b, s, t in zip(self.places, left.inputs, right.inputs, left.signals, right.signals):
            by_gradients, by_positions = self._costs(place, n, m)
            weight = place.scale**2 * jnp.ravel(rates[place.leaf])[0]
            if place.positions == 1:
                inputs = weight * (a[:, 0] @ b[:, 0].T)
                if place.key in self.biases:
                    leaf, factor = self.biases[place.key]
                    inputs = inputs + factor**2 * jnp.ravel(rates[leaf])[0]
                total = total + _products(s[:, :, 0], t[:, :, 0]) * inputs[:, None, :, None]
                continue
            if by_gradients <= by_positions:
                part = _products(_gradients(a, s), _gradients(b, t))
            else:
                part = jax.lax.map(lambda pair, b=b, t=t: _over_positions(pair[0], pair[1], b, t), (a, s))
            total = total + weight * part
        for k, g, h in zip(self.others, left.gradients, right.gradients):
            total = total + _products(g * jnp.broadcast_to(rates[k], self.shapes[k]).reshape(1, 1, -1), h)
        return total.transpose(1, 3, 0, 2)


def _products(left: Array, right: Array) -> Array:
    """(n, i, k) and (m, j, k) to (n, i, m, j)."""
    (n, i, k), (m, j, _) = left.shape, right.shape
    return (left.reshape(n * i, k) @ right.reshape(m * j, k).T).reshape(n, i, m, j)


def _gradients(a: Array, s: Array) -> Array:
    """(n, p, k) and (n, i, p, o) to the gradients of the matrix, (n, i, k o)."""
    return jnp.einsum("npk,nipo->niko", a, s).reshape(*s.shape[:2], -1)


def _over_positions(a: Array, s: Array, b: Array, t: Array) -> Array:
    """One input of the left block against the right block, position by position."""
    grams = jnp.einsum("pk,mqk->mpq", a, b)
    return jnp.einsum("mpq,ipo,mjqo->imj", grams, s, t, optimize="optimal")
