"""Sums of exponentials (sin, cos, exp, ...): brackets from the Gaussian moment generating function.

With sigma = sum_t c_t exp(r_t z): <prod_i exp(r_i z_i)> = exp(sum_ij r_i r_j K_ij / 2). For pairs the factor
exp(r r' K_ab) is written as 1 + expm1, so that weakly correlated inputs lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.calculus import (
    Calculus,
    Order,
    PairPlan,
    PairQuestion,
    QuadruplePlan,
    QuadrupleQuestion,
    Rectangle,
)
from numeric.brackets.closed import elementwise
from numeric.brackets.functions import Functions
from numeric.brackets.patterns import Pattern
from numeric.brackets.storage import each_quadruple

EXACT = 4.0  # variance above which sums of exponentials do not cancel; below, the series are better

Terms = tuple[tuple[complex, complex], ...]


@dataclass(frozen=True)
class Exponentials(Calculus):
    """sigma(z) = sum of c exp(r z) over `terms` ((c, r), ...), complex numbers allowed as long as the sum is real
    (sin: ((-0.5j, 1j), (0.5j, -1j))).
    """

    terms: Terms

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan | None:
        return ExponentialPairs(jnp.asarray(1e-15), self.terms) if question.variance > EXACT else None

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan | None:
        if question.variance <= EXACT:
            return None
        return ExponentialQuadruples(jnp.asarray(1e-14), question.size, self.terms)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ExponentialPairs(PairPlan):
    """Nothing but the terms."""

    tail: Array
    terms: Terms = field(metadata={"static": True})

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        def closed(orders: tuple[Order, ...], a: Array, b: Array, c: Array, same: Array) -> list[Array]:
            a, b = (jnp.broadcast_to(x, c.shape) for x in (a, b))
            blocks = jnp.stack([jnp.stack([a.ravel(), c.ravel()]), jnp.stack([c.ravel(), b.ravel()])])
            return [value.reshape(c.shape) for value in exponential_brackets(self.terms, orders, blocks)]

        return elementwise(closed, orders, pairs, symmetric)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ExponentialQuadruples(QuadruplePlan):
    """Nothing but the terms."""

    error: Array
    size: int = field(metadata={"static": True})
    terms: Terms = field(metadata={"static": True})
    only_route = True  # series do not reach these variances

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        return each_quadruple(lambda piece: exponential_brackets(self.terms, components, piece), K, self.size)

    def rounding(self, variance: float) -> float:
        return 1 + 8 * variance  # exact, but for exponents as large as K


def exponential_brackets(terms: Terms, patterns: tuple[tuple[int, ...], ...], K: Array) -> Array:
    """<product of sigma^(k_i)(z_i)> for each pattern: (patterns, B), from covariances (d, d, B)."""
    size = K.shape[0]
    rates = np.array([r for _, r in terms], dtype=complex)
    choices = np.array(list(product(range(len(terms)), repeat=size)))
    r = rates[choices]  # (choices, size)
    kind = jnp.complex64 if K.dtype == jnp.float32 else jnp.complex128
    covariances = K.astype(kind)

    def exponent(i: int, j: int, factor: float) -> Array:
        """factor r_i r_j K_ij, (choices, B)."""
        return jnp.asarray(factor * r[:, i] * r[:, j], kind)[:, None] * covariances[i, j][None, :]

    zero = jnp.zeros((len(choices), K.shape[2]), kind)
    own = sum((exponent(i, i, 0.5) for i in range(size)), zero)
    cross = sum((exponent(i, j, 1.0) for i in range(size) for j in range(i + 1, size)), zero)
    large = jnp.real(cross) > 1  # then nothing cancels, while the factors may under- and overflow
    small = jnp.exp(own) * jnp.expm1(jnp.where(large, 0, cross))
    change = jnp.where(large, jnp.exp(own + cross) - jnp.exp(own), small)  # (choices, B)
    single = {
        (i, k): _real(sum(complex(c * r**k) * jnp.exp(complex(r * r) / 2 * covariances[i, i]) for c, r in terms))
        for i in range(size)
        for k in sorted({p[i] for p in patterns})
    }
    rows = []
    for pattern in patterns:
        weight = np.ones(len(choices), dtype=complex)
        mean = jnp.ones_like(K[0, 0])
        for i, k in enumerate(pattern):
            weight = weight * np.array([complex(c) * complex(r) ** k for c, r in terms])[choices[:, i]]
            mean = mean * single[i, k]
        rows.append(mean + _real((jnp.asarray(weight, kind)[:, None] * change).sum(axis=0)))
    return jnp.stack(rows)


def _real(x: Array | complex) -> Array:
    return jnp.real(jnp.asarray(x))
